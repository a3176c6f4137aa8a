//! Names of files by the kernel's keys.

use crate::fact::File;
use crate::listed::Listed;
use crate::prelude::*;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesAction {
    /// A file gets a key.
    Create,
    /// The key is free.
    Delete,
    /// A file has a key.
    Listed,
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

const FILE_IO: &str = "Windows-Kernel-FileIo";

impl Tracker for Files {
    type Action = FilesAction;
    const EVENTS: Events<FilesAction> = &[
        (FILE_IO, "Name", FilesAction::Listed),
        (FILE_IO, "FileCreate", FilesAction::Create),
        (FILE_IO, "FileDelete", FilesAction::Delete),
        (FILE_IO, "FileRundown", FilesAction::Listed),
    ];

    fn is_reference(_: FilesAction) -> bool {
        true
    }

    fn event(&mut self, action: FilesAction, input: &Input<'_>, _: &mut Shared, _: &mut impl FactSink) {
        let (file_key, path) = (input.number("FileKey"), input.text("FileName"));
        // Keys are those of the machine.
        let id = (ProcessKey::default(), file_key);
        if action == FilesAction::Create || self.list.get(id).is_some_and(|known| known.path != path) {
            self.list.gone(id);
        }
        let row = File { file_key, ..File::default() };
        let known = self.list.known(id, path.len(), || Known { row, path: path.to_owned() });
        match (action, known) {
            (FilesAction::Create, Some(known)) => known.row.create_ts_ns = Some(input.ts_ns()),
            (FilesAction::Delete, Some(known)) => {
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

    fn dropped(&self) -> Vec<Dropped> {
        vec![Dropped { code: "too_many_files", count: self.list.lost, message: "too many files to remember" }]
    }
}
