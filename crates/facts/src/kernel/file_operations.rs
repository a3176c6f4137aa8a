//! Operations on files, from the request of a program to its end.

use crate::fact::FileIo;
use crate::prelude::*;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOperationsAction {
    /// An operation begins, by this word of the table.
    Begin(&'static str),
    /// The path of one that is of this kind: an event of its own, beside that of its beginning.
    Path(&'static str),
    /// One ends.
    End,
}

/// Operations that are remembered, and bytes of their paths. Beyond that all are reported as they are.
const MAX_OPEN: usize = 1 << 16;
const MAX_TEXT: usize = 16 << 20;

/// An operation: its row, but for the text.
#[derive(Debug)]
struct OpenFileOperation {
    row: FileIo<'static>,
    path: String,
    /// Only its path was seen so far.
    is_path: bool,
}

impl OpenFileOperation {
    /// Whether another event of the same packet may be of the same operation: the event of its beginning and that of
    /// its path.
    fn goes_with(&self, row: &FileIo<'_>) -> bool {
        let is_same = |one: &str, other: &str| one == other || one == "set_info";
        let (open, new) = (self.row.kind, row.kind);
        let file_object = self.row.file_object == row.file_object;
        file_object && (self.is_path || self.path.is_empty()) && (is_same(open, new) || is_same(new, open))
    }

    fn report(&self, sink: &mut impl FactSink) {
        sink.add(&FileIo { path: &self.path, ..self.row });
    }
}

/// The open operations, by their I/O request packets.
#[derive(Debug, Default)]
pub struct FileOperations {
    open: Map<u64, OpenFileOperation>,
    text: usize,
    /// Operations that were reported before their end, because too many were open.
    unkept: u64,
}

impl FileOperations {
    /// An operation begins. It has two events where it has a path: this is the second one if the first one is open.
    fn begin(&mut self, irp: u64, mut row: FileIo<'static>, path: &str, is_path: bool, sink: &mut impl FactSink) {
        let mut path = path.to_owned();
        if let Some(open) = self.open.get_mut(&irp).filter(|open| is_path != open.is_path && open.goes_with(&row)) {
            if is_path {
                // A rename may begin as the setting of its information.
                (open.row.kind, open.path) = (row.kind, path);
                self.text += open.path.len();
                return;
            }
            // The path of the file came first.
            row = FileIo { start_ts_ns: open.row.start_ts_ns, kind: open.row.kind, ..row };
            path = std::mem::take(&mut open.path);
            self.text -= path.len();
            self.open.remove(&irp);
        }
        self.text += path.len();
        if self.open.len() >= MAX_OPEN || self.text > MAX_TEXT {
            self.unkept += self.open.len() as u64;
            self.take_all(false, sink);
            self.text = path.len();
        }
        // The packet is used again: the end of what it was used for before is not in the recording.
        if let Some(before) = self.open.insert(irp, OpenFileOperation { row, path, is_path }) {
            self.text -= before.path.len();
            before.report(sink);
        }
    }

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

const FILE_IO: &str = "Windows-Kernel-FileIo";

impl Tracker for FileOperations {
    type Action = FileOperationsAction;
    const EVENTS: Events<FileOperationsAction> = &[
        (FILE_IO, "Create", FileOperationsAction::Begin("create")),
        (FILE_IO, "Read", FileOperationsAction::Begin("read")),
        (FILE_IO, "Write", FileOperationsAction::Begin("write")),
        (FILE_IO, "Flush", FileOperationsAction::Begin("flush")),
        (FILE_IO, "Cleanup", FileOperationsAction::Begin("cleanup")),
        (FILE_IO, "Close", FileOperationsAction::Begin("close")),
        (FILE_IO, "QueryInfo", FileOperationsAction::Begin("query_info")),
        (FILE_IO, "SetInfo", FileOperationsAction::Begin("set_info")),
        (FILE_IO, "Delete", FileOperationsAction::Begin("delete")),
        (FILE_IO, "Rename", FileOperationsAction::Begin("rename")),
        (FILE_IO, "DirEnum", FileOperationsAction::Begin("list_directory")),
        (FILE_IO, "DirNotify", FileOperationsAction::Begin("watch_directory")),
        (FILE_IO, "FSControl", FileOperationsAction::Begin("control")),
        (FILE_IO, "DeletePath", FileOperationsAction::Path("delete")),
        (FILE_IO, "RenamePath", FileOperationsAction::Path("rename")),
        (FILE_IO, "SetLinkPath", FileOperationsAction::Path("set_link")),
        (FILE_IO, "OperationEnd", FileOperationsAction::End),
    ];

    fn needs_others(_: FileOperationsAction) -> bool {
        true
    }

    fn event(&mut self, action: FileOperationsAction, input: &Input<'_>, _: &mut Shared, sink: &mut impl FactSink) {
        let irp = input.number("Irp");
        match action {
            FileOperationsAction::Begin(kind) | FileOperationsAction::Path(kind) => {
                let is_path = action == FileOperationsAction::Path(kind);
                let path = input.fields.text("OpenPath").or(input.fields.text("FileName")).unwrap_or_default();
                let row = FileIo {
                    kind,
                    file_key: input.number("FileKey"),
                    file_object: input.number("FileObject"),
                    byte_offset: input.number("Offset"),
                    size_bytes: input.fields.small("IoSize").or(input.fields.small("Length")).unwrap_or_default(),
                    info_class: input.fields.small("InfoClass").unwrap_or_default(),
                    ..input.row()
                };
                if irp == 0 {
                    return sink.add(&FileIo { path, ..row });
                }
                self.begin(irp, row, path, is_path, sink);
            }
            FileOperationsAction::End => {
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

    fn dropped(&self) -> Vec<Dropped> {
        let message = "too many concurrent operations on files; ends missing in the table file_io";
        vec![Dropped { code: "too_many_operations", count: self.unkept, message }]
    }
}
