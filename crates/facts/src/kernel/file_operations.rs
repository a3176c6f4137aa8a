//! Operations on files, from the request of a program to its end.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::fact::{FactSink, FileIo};
use crate::input::{self, Hears, Input};
use crate::shared::Shared;
use crate::tracker::{Cut, GivenUp, Tracker};

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// An operation begins, by this word of the table.
    Begin(&'static str),
    /// One ends.
    End,
}

impl input::Action for Action {
    fn needs_others(self) -> bool {
        true
    }
}

/// Operations that are remembered, and bytes of their paths. Beyond that all are reported as they are.
const MAX_OPEN: usize = 1 << 16;
const MAX_TEXT: usize = 16 << 20;

/// An operation: its row, but for the text.
#[derive(Debug)]
struct Open {
    row: FileIo<'static>,
    path: String,
}

impl Open {
    fn report(&self, sink: &mut impl FactSink) {
        sink.add(&FileIo { path: &self.path, ..self.row });
    }
}

/// The open operations, by their I/O request packets.
#[derive(Debug, Default)]
pub struct FileOperations {
    open: HashMap<u64, Open, RandomState>,
    text: usize,
    /// Operations that were reported before their end, because too many were open.
    unkept: u64,
}

impl FileOperations {
    /// Events were lost (`is_lost`), or the recording ends: open operations may have ended unseen.
    fn take_all(&mut self, is_lost: bool, sink: &mut impl FactSink) {
        self.text = 0;
        let mut open: Vec<_> = self.open.drain().collect();
        open.sort_unstable_by_key(|(irp, open)| (open.row.start_ts_ns, *irp));
        for (_, open) in &mut open {
            open.row.touches_gap |= is_lost;
            open.report(sink);
        }
    }
}

impl Tracker for FileOperations {
    type Action = Action;
    const HEARS: &'static [Hears<Action>] = &[Hears {
        provider: "Windows-Kernel-FileIo",
        events: &[
            ("Create", Action::Begin("create")),
            ("Read", Action::Begin("read")),
            ("Write", Action::Begin("write")),
            ("Flush", Action::Begin("flush")),
            ("Cleanup", Action::Begin("cleanup")),
            ("Close", Action::Begin("close")),
            ("QueryInfo", Action::Begin("query_info")),
            ("SetInfo", Action::Begin("set_info")),
            ("Delete", Action::Begin("delete")),
            ("Rename", Action::Begin("rename")),
            ("DirEnum", Action::Begin("list_directory")),
            ("DirNotify", Action::Begin("watch_directory")),
            ("FSControl", Action::Begin("control")),
            ("OperationEnd", Action::End),
        ],
    }];

    fn event(&mut self, action: Action, input: &Input<'_>, _: &mut Shared, sink: &mut impl FactSink) {
        let irp = input.number("Irp");
        match action {
            Action::Begin(kind) => {
                let path = input.fields.text("OpenPath").or(input.fields.text("FileName")).unwrap_or_default();
                let row = FileIo {
                    start_ts_ns: input.ts_ns(),
                    process_id: input.process_id(),
                    thread_id: input.thread_id(),
                    callsite_id: input.callsite_id,
                    kind,
                    file_key: input.number("FileKey"),
                    file_object: input.number("FileObject"),
                    byte_offset: input.number("Offset"),
                    size_bytes: input.fields.small("IoSize").or(input.fields.small("Length")).unwrap_or_default(),
                    info_class: input.fields.small("InfoClass").unwrap_or_default(),
                    ..FileIo::default()
                };
                if irp == 0 {
                    return sink.add(&FileIo { path, ..row });
                }
                self.text += path.len();
                if self.open.len() >= MAX_OPEN || self.text > MAX_TEXT {
                    self.unkept += self.open.len() as u64;
                    self.take_all(false, sink);
                    self.text = path.len();
                }
                // The packet is used again: the end of what it was used for before is not in the recording.
                if let Some(before) = self.open.insert(irp, Open { row, path: path.to_owned() }) {
                    self.text -= before.path.len();
                    before.report(sink);
                }
            }
            Action::End => {
                // An end from before the beginning is that of another operation.
                if self.open.get(&irp).is_some_and(|open| open.row.start_ts_ns <= input.ts_ns())
                    && let Some(mut ended) = self.open.remove(&irp)
                {
                    self.text -= ended.path.len();
                    ended.row.end_ts_ns = Some(input.ts_ns());
                    ended.row.status = Some(input.number("NtStatus") as u32);
                    ended.row.result = input.number("ExtraInfo");
                    ended.report(sink);
                }
            }
        }
    }

    fn cut(&mut self, cut: &Cut, sink: &mut impl FactSink) {
        self.take_all(cut.is_lost(), sink);
    }

    fn given_up(&self) -> Vec<GivenUp> {
        vec![GivenUp {
            code: "too_many_operations",
            count: self.unkept,
            message: "too many concurrent operations on files; ends missing in the table file_io",
        }]
    }
}
