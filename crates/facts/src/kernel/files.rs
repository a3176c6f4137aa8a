//! Names of files by the kernel's keys.

use super::paths::Paths;
use crate::fact::File;
use crate::listed::{Lifecycle, Timed};
use crate::prelude::*;

/// The files of a recording.
#[derive(Debug, Default)]
pub struct Files {
    paths: Paths,
}

const FILE_IO: &str = "Windows-Kernel-FileIo";

impl Tracker for Files {
    type Action = Lifecycle;
    const EVENTS: Events<Lifecycle> = &[
        (FILE_IO, "Name", Lifecycle::Rundown),
        (FILE_IO, "FileCreate", Lifecycle::Begin),
        (FILE_IO, "FileDelete", Lifecycle::End),
        (FILE_IO, "FileRundown", Lifecycle::Rundown),
    ];

    fn is_reference(_: Lifecycle) -> bool {
        true
    }

    fn event(&mut self, step: Lifecycle, input: &Input<'_>, _: &mut Shared, _: &mut impl FactSink) {
        self.paths.note(step, input.number("FileKey"), input.text("FileName"), input.ts_ns(), true);
    }

    fn finish(&mut self, _: u64, sink: &mut impl FactSink) {
        for Timed { item: (file_key, path), begun_ns, ended_ns } in self.paths.list.take() {
            sink.add(&File { file_key, path: &path, create_ts_ns: begun_ns, delete_ts_ns: ended_ns });
        }
    }

    fn dropped(&self) -> Vec<Dropped> {
        vec![Dropped { code: "too_many_files", count: self.paths.list.lost, message: "too many files to remember" }]
    }
}
