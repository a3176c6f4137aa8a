//! Types by the address of their method table, each once per process.

use std::collections::HashSet;

use foldhash::fast::FixedState;

use super::fact::{Fact, FactSink, Type};
use super::scalars::Scalars;
use crate::event::value::Value;
use crate::reader::ProcessKey;

/// Types remembered; past it the memory starts anew and a type may appear twice.
const MAX_TYPES: usize = 1 << 20;

/// Which types are known.
#[derive(Default)]
pub struct Types {
    seen: HashSet<(ProcessKey, u64), FixedState>,
}

impl Types {
    fn is_new(&mut self, process: ProcessKey, type_id: u64) -> bool {
        if self.seen.len() >= MAX_TYPES {
            self.seen.clear();
        }
        self.seen.insert((process, type_id))
    }

    /// A type of which only the name is known (from an allocation).
    pub fn named(&mut self, process: ProcessKey, type_id: u64, name: &str, sink: &mut impl FactSink) {
        if type_id != 0 && self.is_new(process, type_id) {
            sink.fact(Fact::Type(&Type { process_id: process.id, type_id, name, ..Type::default() }));
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
                type_parameters: &parameters,
            };
            sink.fact(Fact::Type(&found));
        }
    }
}
