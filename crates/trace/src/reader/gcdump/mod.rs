//! Heap dumps of dotnet-gcdump and PerfView (`.gcdump`), version 9 and later.
//!
//! ```text
//! i32 20, "!FastSerialization.1"
//! object GCHeapDump
//!   object Graphs.MemoryGraph
//!     i64 bytes of all nodes, i32 root
//!     i32 types:     text name, i32 size, text module
//!     i32 nodes:     i32 place in the blob
//!     i32 blob:      per node: type * 2 + has size, [size], children, child - node ...    compressed numbers
//!     i32 addresses: i64 of each node, 0 for those that are no objects
//!   bool, f32, f32, object JSHeapInfo, object DotNetHeapInfo
//!   text log, i64 time, text machine, text process, i32 process id ...
//! ```
//!
//! Source: microsoft/perfview, src/MemoryGraph and src/FastSerialization; dotnet/diagnostics, src/Tools/dotnet-gcdump.

mod graph;
mod stream;

use crate::error::{Error, Problem, Result};
use crate::reader::{End, GCDUMP_CONTAINER, TraceInfo};
use crate::source::Input;
pub use graph::{Children, Graph, Node, NodeType};
use stream::{Read, Stream, Type};

const MAGIC: &[u8] = b"\x14\0\0\0!FastSerialization.1\x04\x04\x01";
/// Where the name of the first object begins, behind its versions and its length.
const NAME_AT: usize = MAGIC.len() + 12;
const NAME: &str = "GCHeapDump";

/// The first version whose fields do not depend on it.
const LEAST_VERSION: u32 = 9;

/// Whether a file begins as a heap dump does.
pub fn is_gcdump(head: &[u8]) -> bool {
    head.starts_with(MAGIC) && head.get(NAME_AT..).is_some_and(|rest| rest.starts_with(NAME.as_bytes()))
}

/// A heap dump.
#[derive(Debug)]
#[non_exhaustive]
pub struct GcDump {
    /// Version of the format.
    pub version: u32,
    /// Types and nodes.
    pub graph: Graph,
    /// The number of objects that each one represents, on average: more than 1 when only a part of them was dumped.
    pub count_multiplier: f32,
    /// The values behind the graph, as far as they could be read.
    pub about: About,
    /// The part that could not be read.
    pub problem: Option<Problem>,
    /// Bytes that were read.
    pub bytes: u64,
}

impl GcDump {
    /// The end of the reading.
    pub fn end(&self) -> End {
        End { complete: self.problem.is_none(), bytes: self.bytes, ..End::default() }
    }

    /// The dump's description of itself.
    pub fn info(&self) -> TraceInfo {
        let about = &self.about;
        let mut key_values = Vec::new();
        for (key, value) in [("MachineName", &about.machine), ("ProcessName", &about.process)] {
            key_values.extend(value.as_ref().map(|value| (key.to_owned(), value.clone())));
        }
        if about.time > 0 {
            // Local time of the machine, without an offset: no moment in UTC.
            key_values.push(("TimeCollectedTicks".to_owned(), about.time.to_string()));
        }
        TraceInfo {
            container: GCDUMP_CONTAINER,
            version: self.version,
            pointer_size: self.graph.pointer_size,
            process_id: about.process_id.into(),
            key_values,
            ..TraceInfo::default()
        }
    }
}

/// Where and when a dump was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct About {
    /// Local time of the machine in units of 100 ns since the year 1; 0 when not known.
    pub time: u64,
    /// Name of the machine.
    pub machine: Option<String>,
    /// Name of the process.
    pub process: Option<String>,
    /// Process id; 0 when not known.
    pub process_id: u32,
}

/// Reads a heap dump. It is one object: without a complete graph it cannot be used.
pub fn read(mut input: Input) -> Result<GcDump> {
    let path = input.path().to_owned();
    let mut source = input.source();
    let result = dump(&mut Stream::new(&mut source));
    if let Some(error) = source.take_error() {
        return Err(Error::Io { path, source: error });
    }
    result.map_err(|wrong| Error::Unreadable {
        path,
        offset: wrong.offset,
        what: format!("{}: {}", wrong.field, wrong.what),
        expected: wrong.expected.into(),
    })
}

fn dump(stream: &mut Stream<'_, '_>) -> Read<GcDump> {
    let magic = stream.text("the magic")?;
    if magic.as_deref() != Some("!FastSerialization.1") {
        return stream.wrong("the magic", "another text", "\"!FastSerialization.1\"");
    }
    let version = match stream.object("the dump")? {
        Some(Type { name, version, .. }) if name == NAME => version,
        _ => return stream.wrong("the dump", "another object", "GCHeapDump"),
    };
    if version < LEAST_VERSION {
        return stream.wrong("the dump", format!("version {version}"), "version 9 or later");
    }
    let graph = match stream.object("the graph")? {
        Some(Type { name, least, .. }) if name == "Graphs.MemoryGraph" => {
            if least > 0 {
                return stream.wrong("the graph", "types that are named later (.NET Native)", "names of types");
            }
            Graph::read(stream)?
        }
        _ => return stream.wrong("the graph", "another object", "Graphs.MemoryGraph"),
    };
    let mut about = About::default();
    let mut count_multiplier = 1.0;
    let problem = behind(stream, &mut about, &mut count_multiplier).err().map(|wrong| {
        let message = format!("behind the graph, {}: {}, expected {}", wrong.field, wrong.what, wrong.expected);
        Problem::error("damaged_dump", wrong.offset, message)
    });
    Ok(GcDump { version, graph, count_multiplier, about, problem, bytes: stream.position() })
}

/// The values behind the graph.
fn behind(stream: &mut Stream<'_, '_>, about: &mut About, count_multiplier: &mut f32) -> Read<()> {
    stream.u8("the width of pointers")?;
    *count_multiplier = stream.bytes("the count multiplier").map(f32::from_le_bytes)?;
    stream.u32("the size multiplier")?;
    if stream.object("JSHeapInfo")?.is_some() {
        stream.end("JSHeapInfo")?;
    }
    if stream.object("DotNetHeapInfo")?.is_some() {
        stream.u64("DotNetHeapInfo")?;
        let segments = stream.count("DotNetHeapInfo", 1)?;
        let mut fields = 0;
        for _ in 0..segments {
            // The first segment brings its type along, the others refer to it.
            fields = match stream.segment("a segment")? {
                Some(first) => 6 + u64::from(first.version >= 1),
                None => fields,
            };
            stream.chunks("a segment", fields * 8, |_| {})?;
            stream.end("a segment")?;
        }
        stream.end("DotNetHeapInfo")?;
    }
    stream.text("the log")?;
    about.time = stream.u64("the time")?;
    about.machine = stream.text("the machine")?;
    about.process = stream.text("the process")?;
    about.process_id = stream.u32("the process")?;
    Ok(())
}
