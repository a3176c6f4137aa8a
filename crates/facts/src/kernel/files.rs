//! Names of files by the kernel's keys.

use super::paths::Paths;
use crate::fact::File;
use crate::listed::{Said, Timed};
use crate::prelude::*;

/// The files of a recording.
#[derive(Debug, Default)]
pub struct Files {
    paths: Paths,
}

const FILE_IO: &str = "Windows-Kernel-FileIo";

impl Tracker for Files {
    type Action = Said;
    const EVENTS: Events<Said> = &[
        (FILE_IO, "Name", Said::There),
        (FILE_IO, "FileCreate", Said::Begun),
        (FILE_IO, "FileDelete", Said::Ended),
        (FILE_IO, "FileRundown", Said::There),
    ];

    fn is_reference(_: Said) -> bool {
        true
    }

    fn event(&mut self, said: Said, input: &Input<'_>, _: &mut Shared, _: &mut impl FactSink) {
        self.paths.said(said, input.number("FileKey"), input.text("FileName"), input.ts_ns(), true);
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
