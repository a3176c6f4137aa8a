//! Operations on the registry, and the names of its keys.
//!
//! An event comes at the end of an operation and says when it began, in ticks of the session's clock. A key goes by its
//! control block; events name it when it is made, and lists name those that are there.

use crate::fact::{Registry, RegistryKey};
use crate::listed::Listed;
use crate::prelude::*;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistryAction {
    /// An operation ended; the word of the table for it.
    Ended(&'static str),
    /// A key gets a control block.
    Create,
    /// The control block is free.
    Delete,
    /// A key has a control block.
    Listed,
}

/// The longest time before the recording at which an operation may have begun. A longer time is that of another clock.
const MAX_BEFORE_NS: i64 = 3_600_000_000_000;

#[derive(Debug)]
struct Known {
    row: RegistryKey<'static>,
    path: String,
}

/// The keys of a recording.
#[derive(Debug, Default)]
pub struct RegistryOperations {
    keys: Listed<Known>,
}

impl RegistryOperations {
    fn key(&mut self, action: RegistryAction, input: &Input<'_>) {
        let (key_handle, path) = (input.number("KeyHandle"), input.text("KeyName"));
        // Control blocks are those of the machine.
        let id = (ProcessKey::default(), key_handle);
        // The end of a control block may have no name.
        let is_another = self.keys.get(id).is_some_and(|known| known.path != path && action != RegistryAction::Delete);
        if action == RegistryAction::Create || is_another {
            self.keys.gone(id);
        }
        let row = RegistryKey { key_handle, ..RegistryKey::default() };
        let known = self.keys.known(id, path.len(), || Known { row, path: path.to_owned() });
        match (action, known) {
            (RegistryAction::Create, Some(known)) => known.row.create_ts_ns = Some(input.ts_ns()),
            (RegistryAction::Delete, Some(known)) => {
                known.row.delete_ts_ns = Some(input.ts_ns());
                self.keys.gone(id);
            }
            _ => {}
        }
    }
}

const REGISTRY: &str = "Windows-Kernel-Registry";

impl Tracker for RegistryOperations {
    type Action = RegistryAction;
    const EVENTS: Events<RegistryAction> = &[
        (REGISTRY, "Create", RegistryAction::Ended("create")),
        (REGISTRY, "Open", RegistryAction::Ended("open")),
        (REGISTRY, "Delete", RegistryAction::Ended("delete")),
        (REGISTRY, "Query", RegistryAction::Ended("query")),
        (REGISTRY, "SetValue", RegistryAction::Ended("set_value")),
        (REGISTRY, "DeleteValue", RegistryAction::Ended("delete_value")),
        (REGISTRY, "QueryValue", RegistryAction::Ended("query_value")),
        (REGISTRY, "EnumerateKey", RegistryAction::Ended("enumerate_key")),
        (REGISTRY, "EnumerateValueKey", RegistryAction::Ended("enumerate_value")),
        (REGISTRY, "QueryMultipleValue", RegistryAction::Ended("query_multiple_value")),
        (REGISTRY, "SetInformation", RegistryAction::Ended("set_information")),
        (REGISTRY, "Flush", RegistryAction::Ended("flush")),
        (REGISTRY, "Virtualize", RegistryAction::Ended("virtualize")),
        (REGISTRY, "Close", RegistryAction::Ended("close")),
        (REGISTRY, "QuerySecurity", RegistryAction::Ended("query_security")),
        (REGISTRY, "SetSecurity", RegistryAction::Ended("set_security")),
        (REGISTRY, "KcbCreate", RegistryAction::Create),
        (REGISTRY, "KcbDelete", RegistryAction::Delete),
        (REGISTRY, "KcbRundownBegin", RegistryAction::Listed),
        (REGISTRY, "KcbRundownEnd", RegistryAction::Listed),
    ];

    fn is_reference(action: RegistryAction) -> bool {
        !matches!(action, RegistryAction::Ended(_))
    }

    fn event(&mut self, action: RegistryAction, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let RegistryAction::Ended(kind) = action else { return self.key(action, input) };
        sink.add(&Registry {
            end_ts_ns: input.ts_ns(),
            start_ts_ns: input.began(shared.clock.as_ref(), MAX_BEFORE_NS),
            kind,
            key_handle: input.number("KeyHandle"),
            name: input.text("KeyName"),
            index: input.fields.small("Index").unwrap_or_default(),
            status: input.number("Status") as u32,
            ..input.row()
        });
    }

    fn finish(&mut self, _: u64, sink: &mut impl FactSink) {
        for known in self.keys.take() {
            sink.add(&RegistryKey { path: &known.path, ..known.row });
        }
    }

    fn dropped(&self) -> Vec<Dropped> {
        let message = "too many keys of the registry to remember";
        vec![Dropped { code: "too_many_registry_keys", count: self.keys.lost, message }]
    }
}
