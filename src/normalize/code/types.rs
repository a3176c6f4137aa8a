//! Types by the address of their method table, and methods by their id, each once per process.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use crate::event::value::Value;
use crate::normalize::fact::{FactSink, Method, Type};
use crate::normalize::scalars::Scalars;
use crate::reader::ProcessKey;

/// Types and methods remembered; past it the memory starts anew and one may appear twice.
const MAX_SEEN: usize = 1 << 20;

/// Which types and methods are known.
#[derive(Default)]
pub struct Types {
    /// By process and id: whether a profiler told of it, not the runtime.
    seen: HashMap<(ProcessKey, u64), bool, FixedState>,
    /// By process, id and start of the code: a method is compiled more than once.
    methods: HashSet<(ProcessKey, u64, u64), FixedState>,
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

    /// A class that a profiler tells of, which sees to it that it tells of it once: known already if the runtime told of it.
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
        if type_id != 0 && self.is_new(process, type_id) {
            sink.add(&Type { process_id: process.id, type_id, name, ..Type::default() });
        }
    }

    /// The types of a BulkType event: TypeID, ModuleID, TypeNameID, Flags, CorElementType, Name, TypeParameterCount,
    /// TypeParameters.
    pub fn bulk(&mut self, process: ProcessKey, scalars: &Scalars, sink: &mut impl FactSink) {
        for value in scalars.get("Values").as_list() {
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
            let found = Type {
                process_id: process.id,
                type_id,
                module_id: number(1),
                name: fields.get(5).and_then(Value::as_str).unwrap_or_default(),
                flags: u32::try_from(number(3)).unwrap_or_default(),
                element_type: u8::try_from(number(4)).unwrap_or_default(),
                type_parameter_ids: &parameters,
            };
            sink.add(&found);
        }
    }

    /// A method that was loaded, or is there at the start or the end of the recording: MethodID, ModuleID,
    /// MethodStartAddress, MethodSize, MethodNamespace, MethodName, MethodSignature.
    pub fn method(&mut self, process: ProcessKey, scalars: &Scalars, sink: &mut impl FactSink) {
        let number = |name| scalars.number(name).unwrap_or_default();
        let (method_id, start_address) = (number("MethodID"), number("MethodStartAddress"));
        if self.methods.len() >= MAX_SEEN {
            self.methods.clear();
        }
        if self.methods.insert((process, method_id, start_address)) {
            let text = |name| scalars.text(name).unwrap_or_default();
            sink.add(&Method {
                process_id: process.id,
                method_id,
                namespace: text("MethodNamespace"),
                name: text("MethodName"),
                signature: text("MethodSignature"),
                start_address,
                size_bytes: number("MethodSize"),
                module_id: number("ModuleID"),
            });
        }
    }
}
