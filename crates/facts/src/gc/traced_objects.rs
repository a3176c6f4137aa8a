//! Every allocation with the death of its object, from Visual Studio's .NET Object Allocation tool.
//!
//! Its profiler defines the events itself (`ICorProfilerInfo12`), each described in the recording. An object has a number of the
//! tool's own, not its address. The layout of `Types` was measured on recordings of version 16 (2021).

use std::collections::hash_map::Entry;

use tracequet_trace::error::beginning;

use crate::fact::{Allocation, AllocationLifetime};
use crate::prelude::*;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracedObjectsAction {
    /// A type by its module and token.
    Type,
    /// An object was allocated.
    Allocated,
    /// A collection found these objects dead.
    Dead,
    /// The runtime begins a collection.
    Collection,
}

/// Objects that are followed at a time.
const MAX_OBJECTS: usize = 1 << 19;

/// Types that are remembered, and names of constructed ones.
const MAX_TYPES: usize = 1 << 16;

/// Bytes of a name.
const MAX_NAME: usize = 4 << 10;

/// Types within a constructed type.
const MAX_PARTS: usize = 64;

/// Size from which on an object is a large one, in bytes. Source: docs of .NET, "Large object heap".
const LARGE: u64 = 85_000;

#[derive(Debug)]
struct Definition {
    name: String,
    /// Token of the type that it is nested in; 0 for none.
    parent: u64,
}

/// An object that is not known to be dead.
#[derive(Debug)]
struct Object {
    row: AllocationLifetime,
    /// Collections that began before it was allocated.
    born: usize,
}

#[derive(Debug)]
struct Collection {
    gc_id: u32,
    start_ns: i64,
    /// Whether it collected every generation.
    is_full: bool,
}

/// Objects of Visual Studio's allocation profiler.
#[derive(Debug, Default)]
pub struct TracedObjects {
    /// By process, module and token.
    definitions: Map<(ProcessKey, u64, u64), Definition>,
    /// Numbers that stand for type ids, which the tool does not write: below all addresses.
    types: Map<(ProcessKey, String), u64>,
    collections: Map<ProcessKey, Vec<Collection>>,
    objects: Map<(ProcessKey, u64), Object>,
    /// Objects that were not followed.
    left_out: u64,
}

const PROFILER: &str = "DhCorProfilerProvider";

impl Tracker for TracedObjects {
    type Action = TracedObjectsAction;
    const EVENTS: Events<TracedObjectsAction> = &[
        (PROFILER, "TypeDefinition", TracedObjectsAction::Type),
        (PROFILER, "ObjectAllocation", TracedObjectsAction::Allocated),
        (PROFILER, "DeadObjects", TracedObjectsAction::Dead),
        (RUNTIME, "GCStart", TracedObjectsAction::Collection),
    ];

    fn is_reference(action: TracedObjectsAction) -> bool {
        action == TracedObjectsAction::Type
    }

    fn event(&mut self, action: TracedObjectsAction, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let process = input.process();
        match action {
            TracedObjectsAction::Type if self.definitions.len() < MAX_TYPES => {
                let name = beginning(input.text("TypeName"), MAX_NAME).to_owned();
                let key = (process, input.number("ModuleId"), input.number("TypeId"));
                self.definitions.insert(key, Definition { name, parent: input.number("ParentTypeId") });
            }
            TracedObjectsAction::Type => {}
            TracedObjectsAction::Allocated => self.allocated(input, shared, sink),
            TracedObjectsAction::Dead => {
                for id in input.fields.get("ObjectIds").as_list().iter().filter_map(Value::as_u64) {
                    if let Some(object) = self.objects.remove(&(process, id)) {
                        let collections = self.collections.get(&process).map_or(&[][..], Vec::as_slice);
                        sink.add(&object.ended(collections, Some(input.ts_ns())));
                    }
                }
            }
            TracedObjectsAction::Collection => {
                let current = shared.runtimes.runtime_of(input).and_then(|(_, collections)| collections.current());
                if let Some(row) = current.filter(|_| !self.definitions.is_empty()) {
                    let collection =
                        Collection { gc_id: row.gc_id, start_ns: input.ts_ns(), is_full: input.number("Depth") >= 2 };
                    self.collections.entry(process).or_default().push(collection);
                }
            }
        }
    }

    fn finish(&mut self, _position: u64, sink: &mut impl FactSink) {
        let mut alive: Vec<((ProcessKey, u64), Object)> = self.objects.drain().collect();
        alive.sort_unstable_by_key(|((process, id), object)| (object.row.ts_ns, process.id, *id));
        for ((process, _), object) in alive {
            sink.add(&object.ended(self.collections.get(&process).map_or(&[], Vec::as_slice), None));
        }
    }

    fn dropped(&self) -> Vec<Dropped> {
        let message = "too many objects of Visual Studio's allocation profiler live at a time: they have no lifetime";
        vec![Dropped { code: "too_many_objects", count: self.left_out, message }]
    }
}

impl TracedObjects {
    fn allocated(&mut self, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let process = input.process();
        let Value::Bytes(types) = input.fields.get("Types") else { return };
        let name = self.name(process, types);
        let type_id = name.as_ref().map_or(0, |name| self.type_id(process, name));
        if let Some(name) = &name {
            shared.types.named(process, type_id, name, sink);
        }
        let size = input.number("Size");
        let row = AllocationLifetime {
            activity_id: input.event.raw.labels.activity_id,
            type_id,
            source: "object",
            allocation_bytes: Some(size),
            object_count: Some(1.0),
            sample_weight: 1,
            fate: "unknown",
            unknown_reason: Some("not_collected"),
            last_alive_ts_ns: input.ts_ns(),
            ..input.row()
        };
        shared.callsites.allocates((input.callsite_id, input.process_id(), type_id));
        sink.add(&Allocation {
            activity_id: row.activity_id,
            source: row.source,
            allocation_bytes: Some(size),
            object_count: row.object_count,
            type_id,
            type_name: name.as_deref(),
            object_size_bytes: Some(size),
            ..input.row()
        });
        let born = self.collections.get(&process).map_or(0, Vec::len);
        if self.objects.len() < MAX_OBJECTS {
            self.objects.insert((process, input.number("ObjectID")), Object { row, born });
        } else {
            self.left_out += 1;
        }
    }

    /// The number that stands for a type; 0 where there are too many.
    fn type_id(&mut self, process: ProcessKey, name: &str) -> u64 {
        let all = self.types.len();
        match self.types.entry((process, name.to_owned())) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) if all < MAX_TYPES => *new.insert(all as u64 + 1),
            Entry::Vacant(_) => 0,
        }
    }

    /// The name of a constructed type, as reflection writes it: that of the first part.
    fn name(&self, process: ProcessKey, types: &[u8]) -> Option<String> {
        let (mut names, mut rest) = (Vec::new(), types);
        while names.len() < MAX_PARTS && !rest.is_empty() {
            let part = part(&mut rest)?;
            names.push((self.definition(process, part.module, part.token)?, part));
        }
        Some(beginning(&constructed(&names, 0)?, MAX_NAME).to_owned())
    }

    /// The name of a type with those of the types that it is nested in.
    fn definition(&self, process: ProcessKey, module: u64, token: u64) -> Option<String> {
        let mut found = self.definitions.get(&(process, module, token))?;
        let mut name = found.name.clone();
        for _ in 0..MAX_PARTS {
            match self.definitions.get(&(process, module, found.parent)).filter(|_| found.parent != 0) {
                Some(outer) if name.len() <= MAX_NAME => {
                    name = format!("{}+{name}", outer.name);
                    found = outer;
                }
                _ => break,
            }
        }
        Some(name)
    }
}

/// One of the types that `Types` lists.
struct Part {
    /// Of an array those of its element.
    module: u64,
    token: u64,
    /// `[]`, `[,]` and so on of arrays.
    brackets: String,
    /// Places of its type arguments in the list.
    arguments: Vec<u8>,
}

/// Module, token, whether it is an array, ranks of the arrays within it, lengths of its dimensions, type arguments up to a zero.
fn part(rest: &mut &[u8]) -> Option<Part> {
    let (module, token, is_array) = (number::<8>(rest)?, number::<4>(rest)?, number::<4>(rest)? != 0);
    let inner = number::<4>(rest)?;
    let mut ranks = (0..inner).map(|_| number::<4>(rest)).take(MAX_PARTS).collect::<Option<Vec<u64>>>()?;
    let dimensions = number::<4>(rest)?;
    *rest = rest.get(usize::try_from(dimensions).ok()?.checked_mul(4)?..)?;
    ranks.extend(is_array.then_some(dimensions));
    let brackets = ranks.into_iter().map(|rank| format!("[{}]", ",".repeat(rank.clamp(1, 32) as usize - 1)));
    let (brackets, end) = (brackets.collect(), rest.iter().position(|argument| *argument == 0)?);
    let arguments = rest.get(..end)?.to_vec();
    *rest = rest.get(end + 1..)?;
    Some(Part { module, token, brackets, arguments })
}

/// A little-endian number of `BYTES` bytes.
fn number<const BYTES: usize>(rest: &mut &[u8]) -> Option<u64> {
    let (bytes, behind) = rest.split_first_chunk::<BYTES>()?;
    *rest = behind;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// The name of a part with those of its arguments, which stand behind it in the list.
fn constructed(parts: &[(String, Part)], place: usize) -> Option<String> {
    let (name, part) = parts.get(place)?;
    let mut out = name.clone();
    for (at, argument) in part.arguments.iter().map(|argument| usize::from(*argument)).enumerate() {
        out.push(if at == 0 { '[' } else { ',' });
        out += &constructed(parts, Some(argument).filter(|argument| *argument > place)?)?;
        if out.len() > MAX_NAME {
            return None;
        }
    }
    if !part.arguments.is_empty() {
        out.push(']');
    }
    Some(out + &part.brackets)
}

impl Object {
    /// The row of an object that died by a time, or lives at the end. A collection counts as survived where it is certain that it collected
    /// the object: the first one of a small object, and those of generation 2.
    fn ended(self, collections: &[Collection], dead_ns: Option<i64>) -> AllocationLifetime {
        let mut row = self.row;
        let is_large = row.allocation_bytes.is_some_and(|size| size >= LARGE);
        let later = collections.get(self.born..).unwrap_or_default().iter().enumerate();
        let mut certain =
            later.filter(|(place, gc)| gc.is_full || *place == 0 && !is_large).map(|(_, gc)| gc).peekable();
        row.first_gc_id = certain.peek().map_or(0, |gc| gc.gc_id);
        if let (Some(_), Some(last)) = (dead_ns, collections.last().filter(|_| collections.len() > self.born)) {
            row.end_gc_id = last.gc_id;
            if row.first_gc_id == 0 {
                row.first_gc_id = last.gc_id;
            }
        }
        for gc in certain.filter(|gc| gc.gc_id != row.end_gc_id) {
            (row.survived_collections, row.last_alive_ts_ns) = (row.survived_collections + 1, gc.start_ns);
        }
        (row.fate, row.unknown_reason) = match dead_ns {
            Some(_) => ("dead", None),
            None if row.survived_collections > 0 => ("alive", None),
            None => (row.fate, row.unknown_reason),
        };
        AllocationLifetime { dead_ts_ns: dead_ns, ..row }
    }
}
