//! Operations on the registry, and the names of its keys.
//!
//! An event comes at the end of an operation and says when it began, in ticks of the session's clock. A key goes by its
//! control block; events name it when it is made, and lists name those that are there.

use super::paths::Paths;
use crate::fact::{Registry, RegistryKey};
use crate::listed::{Lifecycle, Timed};
use crate::prelude::*;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistryAction {
    /// An operation ended; the word of the table for it.
    Ended(&'static str),
    /// A key gets its control block, loses it, or is listed with it by a rundown.
    Key(Lifecycle),
}

/// The longest time before the recording at which an operation may have begun. A longer time is that of another clock.
const MAX_BEFORE_NS: i64 = 3_600_000_000_000;

/// The keys of a recording.
#[derive(Debug, Default)]
pub struct RegistryOperations {
    keys: Paths,
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
        (REGISTRY, "KcbCreate", RegistryAction::Key(Lifecycle::Begin)),
        (REGISTRY, "KcbDelete", RegistryAction::Key(Lifecycle::End)),
        (REGISTRY, "KcbRundownBegin", RegistryAction::Key(Lifecycle::Rundown)),
        (REGISTRY, "KcbRundownEnd", RegistryAction::Key(Lifecycle::Rundown)),
    ];

    fn is_reference(action: RegistryAction) -> bool {
        !matches!(action, RegistryAction::Ended(_))
    }

    fn event(&mut self, action: RegistryAction, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let (key_handle, name) = (input.number("KeyHandle"), input.text("KeyName"));
        let kind = match action {
            RegistryAction::Ended(kind) => kind,
            // The end of a control block may have no name.
            RegistryAction::Key(step) => return self.keys.note(step, key_handle, name, input.ts_ns(), false),
        };
        sink.add(&Registry {
            end_ts_ns: input.ts_ns(),
            start_ts_ns: input.began(shared.clock.as_ref(), MAX_BEFORE_NS),
            kind,
            key_handle,
            name,
            index: input.fields.small("Index").unwrap_or_default(),
            status: input.number("Status") as u32,
            ..input.row()
        });
    }

    fn finish(&mut self, _: u64, sink: &mut impl FactSink) {
        for Timed { item: (key_handle, path), begun_ns, ended_ns } in self.keys.list.take() {
            sink.add(&RegistryKey { key_handle, path: &path, create_ts_ns: begun_ns, delete_ts_ns: ended_ns });
        }
    }

    fn dropped(&self) -> Vec<Dropped> {
        let message = "too many keys of the registry to remember";
        vec![Dropped { code: "too_many_registry_keys", count: self.keys.list.lost, message }]
    }
}
