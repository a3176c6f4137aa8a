//! Methods, each once per process and address of its code.

use std::collections::HashSet;

use foldhash::fast::RandomState;

use crate::normalize::fact::{FactSink, Method};
use crate::normalize::tracker::{self, Hears, Input, RUNDOWN, RUNTIME};
use crate::reader::ProcessKey;

/// Methods remembered; past it the memory starts anew and one may appear twice.
const MAX_SEEN: usize = 1 << 20;

/// What an event says about a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is there.
    Known,
}

/// The events.
pub const HEARS: &[Hears<Action>] = &[
    Hears {
        provider: RUNTIME,
        events: &[
            ("MethodLoadVerbose", Action::Known),
            ("MethodDCStartVerboseV2", Action::Known),
            ("MethodDCEndVerboseV2", Action::Known),
        ],
    },
    Hears {
        provider: RUNDOWN,
        events: &[("MethodDCStartVerbose", Action::Known), ("MethodDCEndVerbose", Action::Known)],
    },
];

impl tracker::Action for Action {}

/// Which methods are known.
#[derive(Default)]
pub struct Methods {
    /// By process, id and start of the code: a method is compiled more than once.
    seen: HashSet<(ProcessKey, u64, u64), RandomState>,
}

impl Methods {
    /// A method that was loaded, or is there at the start or the end of the recording.
    pub fn event(&mut self, Action::Known: Action, input: &Input<'_>, sink: &mut impl FactSink) {
        let (method_id, start_address) = (input.number("MethodID"), input.number("MethodStartAddress"));
        if self.seen.len() >= MAX_SEEN {
            self.seen.clear();
        }
        if self.seen.insert((input.process(), method_id, start_address)) {
            sink.add(&Method {
                process_id: input.process_id(),
                method_id,
                namespace: input.text("MethodNamespace"),
                name: input.text("MethodName"),
                signature: input.text("MethodSignature"),
                start_address,
                size_bytes: input.number("MethodSize"),
                module_id: input.number("ModuleID"),
            });
        }
    }
}
