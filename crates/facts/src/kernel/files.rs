//! Names of files by the kernel's keys.

use tracequet_trace::reader::ProcessKey;

use crate::fact::{FactSink, File};
use crate::input::{self, Hears, Input};
use crate::listed::Listed;
use crate::shared::Shared;
use crate::tracker::{GivenUp, Tracker};

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A file gets a key.
    Create,
    /// The key is free.
    Delete,
    /// A file has a key.
    Listed,
}

impl input::Action for Action {
    fn is_reference(self) -> bool {
        true
    }
}

#[derive(Debug)]
struct Known {
    row: File<'static>,
    path: String,
}

/// The files of a recording.
#[derive(Debug, Default)]
pub struct Files {
    list: Listed<Known>,
}

impl Tracker for Files {
    type Action = Action;
    const HEARS: &'static [Hears<Action>] = &[Hears {
        provider: "Windows-Kernel-FileIo",
        events: &[
            ("Name", Action::Listed),
            ("FileCreate", Action::Create),
            ("FileDelete", Action::Delete),
            ("FileRundown", Action::Listed),
        ],
    }];

    fn event(&mut self, action: Action, input: &Input<'_>, _: &mut Shared, _: &mut impl FactSink) {
        let (file_key, path) = (input.number("FileKey"), input.text("FileName"));
        // Keys are those of the machine.
        let id = (ProcessKey::default(), file_key);
        if action == Action::Create || self.list.get(id).is_some_and(|known| known.path != path) {
            self.list.gone(id);
        }
        let row = File { file_key, ..File::default() };
        let known = self.list.known(id, path.len(), || Known { row, path: path.to_owned() });
        match (action, known) {
            (Action::Create, Some(known)) => known.row.create_ts_ns = Some(input.ts_ns()),
            (Action::Delete, Some(known)) => {
                known.row.delete_ts_ns = Some(input.ts_ns());
                self.list.gone(id);
            }
            _ => {}
        }
    }

    fn finish(&mut self, _: u64, sink: &mut impl FactSink) {
        for known in self.list.take() {
            sink.add(&File { path: &known.path, ..known.row });
        }
    }

    fn given_up(&self) -> Vec<GivenUp> {
        vec![GivenUp { code: "too_many_files", count: self.list.lost, message: "too many files to remember" }]
    }
}
