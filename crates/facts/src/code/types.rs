//! Types by the address of their method table, each once per process.

use std::collections::hash_map::Entry;

use crate::fact::{FactSink, Type};
use crate::input::Input;
use crate::prelude::*;

/// Types remembered; past it the memory starts again and one may appear twice.
const MAX_SEEN: usize = 1 << 20;

/// Which types are known.
#[derive(Default)]
pub struct Types {
    /// By process and id: whether a profiler reported it, not the runtime.
    seen: Map<(ProcessKey, u64), bool>,
}

impl Types {
    fn is_new(&mut self, process: ProcessKey, type_id: u64) -> bool {
        if self.seen.len() >= MAX_SEEN {
            self.seen.clear();
        }
        let place = self.seen.entry((process, type_id));
        let is_new = matches!(place, Entry::Vacant(_));
        place.or_insert(false);
        is_new
    }

    /// A class that a profiler reports, once for each class; known already if the runtime reported it.
    pub fn profiled(&mut self, process: ProcessKey, found: &Type<'_>, sink: &mut impl FactSink) {
        let key = (process, found.type_id);
        if self.is_new(process, found.type_id) {
            self.seen.insert(key, true);
        }
        if self.seen.get(&key) == Some(&true) {
            sink.add(found);
        }
    }

    /// A type of which only the name is known (from an allocation).
    pub fn named(&mut self, process: ProcessKey, type_id: u64, name: &str, sink: &mut impl FactSink) {
        self.found(process, &Type { process_id: process.id, type_id, name, ..Type::default() }, sink);
    }

    /// A type that is met, maybe again.
    pub fn found(&mut self, process: ProcessKey, found: &Type<'_>, sink: &mut impl FactSink) {
        if found.type_id != 0 && self.is_new(process, found.type_id) {
            sink.add(found);
        }
    }

    /// The types of a BulkType event: TypeID, ModuleID, TypeNameID, Flags, CorElementType, Name, TypeParameterCount,
    /// TypeParameters.
    pub fn listed(&mut self, input: &Input<'_>, sink: &mut impl FactSink) {
        let process = input.process();
        for value in input.fields.get("Values").as_list() {
            let Value::Struct(fields) = value else { continue };
            let number = |index: usize| fields.get(index).and_then(Value::as_u64).unwrap_or_default();
            let type_id = number(0);
            if !self.is_new(process, type_id) {
                continue;
            }
            let parameters: Vec<u64> = match fields.get(7) {
                Some(list) => list.as_list().iter().filter_map(Value::as_u64).collect(),
                None => Vec::new(),
            };
            let flags = u32::try_from(number(3)).unwrap_or_default();
            let found = Type {
                process_id: process.id,
                type_id,
                module_id: number(1),
                name: fields.get(5).and_then(Value::as_str).unwrap_or_default(),
                flags,
                flags_text: enum_names::type_flags(flags),
                element_type: u8::try_from(number(4)).unwrap_or_default(),
                type_parameter_ids: &parameters,
            };
            sink.add(&found);
        }
    }
}
