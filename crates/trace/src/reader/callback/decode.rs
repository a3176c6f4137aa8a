//! Payloads of records: from bytes to the arguments of a callback.

use nom::Parser;

use super::parse::{columns, moved_ranges, ranges, text};
use crate::bytes::{ParseError, Parsed, i64le, inner, u8le, u32le, varuint32, varuint64};
use corprof::{FLAG_CONTINUES, FLAG_CUT, FLAG_FAILED, kind};

/// One record: a callback with its arguments, or something that the profiler has to say.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Which kind of record.
    pub kind: u8,
    /// `FLAG_` bits.
    pub flags: u8,
    /// Dense number of the thread that was called.
    pub thread: u32,
    /// OS thread id.
    pub thread_id: u64,
    /// Global order, taken when the callback was entered.
    pub sequence: u64,
    /// Time at entry, in ticks of the recording's clock; the nearest whose nanoseconds fit into 64 bits.
    pub ticks: u64,
    /// Ticks that the callback took.
    pub duration: u32,
    /// Bytes of its payload.
    pub payload_bytes: u64,
    /// Byte offset of the record.
    pub offset: u64,
    /// The payload.
    pub body: Body<'a>,
}

impl Record<'_> {
    /// Whether more rows of the same call follow.
    pub fn continues(&self) -> bool {
        self.flags & FLAG_CONTINUES != 0
    }

    /// Whether rows are missing.
    pub fn is_cut(&self) -> bool {
        self.flags & FLAG_CUT != 0
    }

    /// Whether the profiler returned a failure to the runtime.
    pub fn failed(&self) -> bool {
        self.flags & FLAG_FAILED != 0
    }
}

/// Bounds of generations, and of the heap that is not collected, as a record has them.
#[derive(Clone, Copy, Debug)]
pub struct Bounds<'a> {
    /// The HRESULT of GetGenerationBounds; 0 is success.
    pub hresult: u32,
    /// Rows of (generation, start, length, reserved).
    pub rows: &'a [[u64; 4]],
    /// The HRESULT of GetNonGCHeapBounds; `NOT_ASKED` when it was not asked.
    pub non_gc_hresult: u32,
    /// Rows of (start, length, reserved).
    pub non_gc: &'a [[u64; 3]],
}

/// The payload of a record. Names follow ICorProfilerCallback; beside the arguments it has what a profiler asked the
/// runtime for at the same time.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "names and fields are those of ICorProfilerCallback")]
pub enum Body<'a> {
    End,
    Clock {
        utc_ns: i64,
    },
    Started {
        generations: u32,
        collected: u32,
        reason: u32,
        bounds: Bounds<'a>,
    },
    Finished {
        bounds: Bounds<'a>,
    },
    Surviving {
        version: u8,
        rows: &'a [[u64; 2]],
    },
    Moved {
        version: u8,
        rows: &'a [[u64; 3]],
    },
    Roots {
        objects: &'a [[u64; 1]],
    },
    Roots2 {
        rows: &'a [[u64; 4]],
    },
    Object {
        object_id: u64,
        class_id: u64,
        /// Bytes; 0 when it was not asked for.
        size: u64,
        references: &'a [[u64; 1]],
    },
    Weak {
        rows: &'a [[u64; 3]],
    },
    HandleCreated {
        handle_id: u64,
        object_id: u64,
    },
    HandleDestroyed {
        handle_id: u64,
    },
    Finalizeable {
        flags: u32,
        object_id: u64,
        /// 0 when it was not asked for.
        class_id: u64,
    },
    ByClass {
        rows: &'a [[u64; 2]],
    },
    Allocated {
        object_id: u64,
        class_id: u64,
        size: u64,
        /// Bytes that it represents: more than `size` when the profiler takes samples.
        represented: u64,
    },
    SuspendStarted {
        reason: u32,
    },
    SuspendFinished,
    SuspendAborted,
    ResumeStarted,
    ResumeFinished,
    ThreadSuspended {
        managed_id: u64,
    },
    ThreadResumed {
        managed_id: u64,
    },
    ThreadCreated {
        managed_id: u64,
    },
    ThreadDestroyed {
        managed_id: u64,
    },
    ThreadAssigned {
        managed_id: u64,
        os_id: u64,
    },
    ThreadName {
        managed_id: u64,
        name: &'a str,
    },
    Class {
        class_id: u64,
        module_id: u64,
        token: u32,
        element_type: u8,
        rank: u32,
        element_class_id: u64,
        name: &'a str,
    },
    Function {
        function_id: u64,
        class_id: u64,
        module_id: u64,
        token: u32,
        name: &'a str,
    },
    Module {
        module_id: u64,
        base: u64,
        path: &'a str,
    },
    ClassUnloaded {
        class_id: u64,
    },
    FunctionUnloaded {
        function_id: u64,
    },
    ModuleUnloaded {
        module_id: u64,
    },
    Lost {
        count: u64,
    },
    Attached,
    Note {
        /// A `NOTE_` code.
        code: u64,
        message: &'a str,
    },
}

/// Memory for the rows of the record at hand.
#[derive(Debug, Default)]
pub struct Scratch {
    one: Vec<[u64; 1]>,
    two: Vec<[u64; 2]>,
    three: Vec<[u64; 3]>,
    four: Vec<[u64; 4]>,
    text: String,
}

/// Reads a payload. `None` for a kind of record that this reader does not know.
pub fn body<'s>(kind: u8, payload: &[u8], scratch: &'s mut Scratch) -> Result<Option<Body<'s>>, ParseError> {
    match known(kind, payload, scratch) {
        Some(Ok((_, body))) => Ok(Some(body)),
        Some(Err(error)) => Err(inner(error)),
        None => Ok(None),
    }
}

/// A field that is a varint: an address, an id, a number.
fn id<'a>(field: &'static str) -> impl Fn(&'a [u8]) -> Parsed<'a, u64> {
    varuint64(field)
}

/// The results of GetGenerationBounds and GetNonGCHeapBounds; their rows go into the two buffers.
fn bounds<'a>(
    rows: &mut Vec<[u64; 4]>,
    non_gc: &mut Vec<[u64; 3]>,
) -> impl Parser<&'a [u8], Output = (u32, (), u32, ()), Error = ParseError> {
    (u32le("GetGenerationBounds result"), columns(rows), u32le("GetNonGCHeapBounds result"), columns(non_gc))
}

/// Makes a body of a value: nom's `map` for functions that are called once, because they hand on the buffers.
fn as_body<'a, 's, T>(read: Parsed<'a, T>, body: impl FnOnce(T) -> Body<'s>) -> Parsed<'a, Body<'s>> {
    read.map(|(rest, fields)| (rest, body(fields)))
}

/// The payloads in the order of the table in `schemas/corprof.md`.
fn known<'a, 's>(kind: u8, input: &'a [u8], scratch: &'s mut Scratch) -> Option<Parsed<'a, Body<'s>>> {
    let Scratch { one, two, three, four, text: name } = scratch;
    let nothing = |body| Ok((input, body));
    Some(match kind {
        kind::END => nothing(Body::End),
        kind::CLOCK => as_body(i64le("UTC")(input), |utc_ns| Body::Clock { utc_ns }),
        kind::GC_STARTED => {
            let numbers = (varuint32("generation count"), varuint32("generations collected"), varuint32("reason"));
            let read = (numbers, bounds(four, three)).parse(input);
            as_body(read, |((generations, collected, reason), (hresult, (), non_gc_hresult, ()))| {
                let bounds = Bounds { hresult, rows: four, non_gc_hresult, non_gc: three };
                Body::Started { generations, collected, reason, bounds }
            })
        }
        kind::GC_FINISHED => {
            let read = bounds(four, three).parse(input);
            as_body(read, |(hresult, (), non_gc_hresult, ())| Body::Finished {
                bounds: Bounds { hresult, rows: four, non_gc_hresult, non_gc: three },
            })
        }
        kind::SURVIVING | kind::SURVIVING2 => {
            let version = 1 + u8::from(kind == kind::SURVIVING2);
            let read = ranges(two)(input);
            as_body(read, |()| Body::Surviving { version, rows: two })
        }
        kind::MOVED | kind::MOVED2 => {
            let version = 1 + u8::from(kind == kind::MOVED2);
            let read = moved_ranges(three)(input);
            as_body(read, |()| Body::Moved { version, rows: three })
        }
        kind::ROOTS => {
            let read = columns(one)(input);
            as_body(read, |()| Body::Roots { objects: one })
        }
        kind::ROOTS2 => {
            let read = columns(four)(input);
            as_body(read, |()| Body::Roots2 { rows: four })
        }
        kind::OBJECT => {
            let read = (id("object"), id("class"), columns(one)).parse(input);
            as_body(read, |(object_id, class_id, ())| Body::Object { object_id, class_id, size: 0, references: one })
        }
        kind::WEAK => {
            let read = columns(three)(input);
            as_body(read, |()| Body::Weak { rows: three })
        }
        kind::HANDLE_CREATED => as_body((id("handle"), id("object")).parse(input), |(handle_id, object_id)| {
            Body::HandleCreated { handle_id, object_id }
        }),
        kind::HANDLE_DESTROYED => as_body(id("handle")(input), |handle_id| Body::HandleDestroyed { handle_id }),
        kind::FINALIZEABLE => as_body((varuint32("flags"), id("object")).parse(input), |(flags, object_id)| {
            Body::Finalizeable { flags, object_id, class_id: 0 }
        }),
        kind::BY_CLASS => {
            let read = columns(two)(input);
            as_body(read, |()| Body::ByClass { rows: two })
        }
        kind::ALLOCATED => {
            let read = (id("object"), id("class"), id("size")).parse(input);
            as_body(read, |(object_id, class_id, size)| Body::Allocated {
                object_id,
                class_id,
                size,
                represented: size,
            })
        }
        kind::SUSPEND_STARTED => as_body(varuint32("reason")(input), |reason| Body::SuspendStarted { reason }),
        kind::SUSPEND_FINISHED => nothing(Body::SuspendFinished),
        kind::SUSPEND_ABORTED => nothing(Body::SuspendAborted),
        kind::RESUME_STARTED => nothing(Body::ResumeStarted),
        kind::RESUME_FINISHED => nothing(Body::ResumeFinished),
        kind::THREAD_SUSPENDED => as_body(id("ThreadID")(input), |managed_id| Body::ThreadSuspended { managed_id }),
        kind::THREAD_RESUMED => as_body(id("ThreadID")(input), |managed_id| Body::ThreadResumed { managed_id }),
        kind::THREAD_CREATED => as_body(id("ThreadID")(input), |managed_id| Body::ThreadCreated { managed_id }),
        kind::THREAD_DESTROYED => as_body(id("ThreadID")(input), |managed_id| Body::ThreadDestroyed { managed_id }),
        kind::THREAD_ASSIGNED => as_body((id("ThreadID"), id("OS thread id")).parse(input), |(managed_id, os_id)| {
            Body::ThreadAssigned { managed_id, os_id }
        }),
        kind::THREAD_NAME => {
            let read = (id("ThreadID"), text(name)).parse(input);
            as_body(read, |(managed_id, ())| Body::ThreadName { managed_id, name })
        }
        kind::CLASS => {
            let array = (u8le("element type"), varuint32("rank"), id("ClassID of the elements"));
            let read = (id("ClassID"), id("ModuleID"), varuint32("token"), array, text(name)).parse(input);
            as_body(read, |(class_id, module_id, token, (element_type, rank, element_class_id), ())| Body::Class {
                class_id,
                module_id,
                token,
                element_type,
                rank,
                element_class_id,
                name,
            })
        }
        kind::FUNCTION => {
            let ids = (id("FunctionID"), id("ClassID"), id("ModuleID"), varuint32("token"));
            let read = (ids, text(name)).parse(input);
            as_body(read, |((function_id, class_id, module_id, token), ())| Body::Function {
                function_id,
                class_id,
                module_id,
                token,
                name,
            })
        }
        kind::MODULE => {
            let read = (id("ModuleID"), id("base address"), text(name)).parse(input);
            as_body(read, |(module_id, base, ())| Body::Module { module_id, base, path: name })
        }
        kind::CLASS_UNLOADED => as_body(id("ClassID")(input), |class_id| Body::ClassUnloaded { class_id }),
        kind::FUNCTION_UNLOADED => {
            as_body(id("FunctionID")(input), |function_id| Body::FunctionUnloaded { function_id })
        }
        kind::MODULE_UNLOADED => as_body(id("ModuleID")(input), |module_id| Body::ModuleUnloaded { module_id }),
        kind::LOST => as_body(varuint64("record count")(input), |count| Body::Lost { count }),
        kind::ATTACHED => nothing(Body::Attached),
        kind::NOTE => {
            let read = (varuint64("code"), text(name)).parse(input);
            as_body(read, |(code, ())| Body::Note { code, message: name })
        }
        _ => return None,
    })
}
