//! Payloads of records: bytes to what a callback was called with.

use super::format::{FLAG_CONTINUES, FLAG_CUT, FLAG_FAILED, kind};
use crate::bytes::{Parsed, fail, take, u8le, u32le, varuint64};

/// One record: a callback as it was called, or something that the profiler has to say.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Which kind of record.
    pub kind: u8,
    /// `FLAG_` bits.
    pub flags: u8,
    /// Dense number of the thread that was called.
    pub thread: u32,
    /// Its OS thread id.
    pub thread_id: u64,
    /// Global order, taken when the callback was entered.
    pub sequence: u64,
    /// Time at entry, in ticks of the recording's clock.
    pub ticks: u64,
    /// Ticks that the callback took.
    pub duration: u32,
    /// Bytes of its payload.
    pub payload_bytes: u64,
    /// Byte offset of the record.
    pub offset: u64,
    /// What it says.
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
    /// What GetGenerationBounds returned; 0 is success.
    pub hresult: u32,
    /// Rows of (generation, start, length, reserved).
    pub rows: &'a [[u64; 4]],
    /// What GetNonGCHeapBounds returned; `NOT_ASKED` when it was not asked.
    pub non_gc_hresult: u32,
    /// Rows of (start, length, reserved).
    pub non_gc: &'a [[u64; 3]],
}

/// What a record says. Names follow ICorProfilerCallback; beside what the runtime passes stands what a profiler may have
/// asked for then.
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
        /// Bytes that it stands for: more than `size` when the profiler takes samples.
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

#[inline]
fn zigzag<'a>(input: &'a [u8], field: &'static str) -> Parsed<'a, i64> {
    let (rest, n) = varuint64(field)(input)?;
    Ok((rest, (n >> 1) as i64 ^ -((n & 1) as i64)))
}

fn varuint32<'a>(input: &'a [u8], field: &'static str) -> Parsed<'a, u32> {
    crate::bytes::varuint32(field)(input)
}

/// A count of rows that take at least `min` bytes each.
fn count<'a>(input: &'a [u8], min: usize) -> Parsed<'a, usize> {
    let (rest, n) = varuint64("row count")(input)?;
    match usize::try_from(n) {
        Ok(n) if n <= rest.len() / min => Ok((rest, n)),
        _ => Err(fail(input.len(), "row count", "as many rows as there are bytes left for")),
    }
}

fn shift<'a>(input: &'a [u8]) -> Parsed<'a, u32> {
    let (rest, shift) = u8le("shift")(input)?;
    if shift > 63 { Err(fail(input.len(), "shift", "0 to 63")) } else { Ok((rest, u32::from(shift))) }
}

/// The two columns that all ranges have, into columns `S` and `L` of the rows.
#[allow(clippy::indexing_slicing, reason = "S and L are constants below N")]
fn ranges<'a, const N: usize, const S: usize, const L: usize>(
    input: &'a [u8],
    rows: &mut Vec<[u64; N]>,
) -> Parsed<'a, u32> {
    let (input, n) = count(input, N)?;
    let (input, shift) = shift(input)?;
    rows.clear();
    rows.reserve(n);
    // Gaps first: the starts need the lengths, which stand behind them.
    let mut rest = input;
    for _ in 0..n {
        let (next, gap) = zigzag(rest, "range start")?;
        let mut row = [0; N];
        row[S] = gap.wrapping_shl(shift) as u64;
        rows.push(row);
        rest = next;
    }
    let mut end = 0u64;
    for row in rows.iter_mut() {
        let (next, length) = varuint64("range length")(rest)?;
        row[L] = length.wrapping_shl(shift);
        row[S] = row[S].wrapping_add(end);
        end = row[S].wrapping_add(row[L]);
        rest = next;
    }
    Ok((rest, shift))
}

fn moved<'a>(input: &'a [u8], rows: &mut Vec<[u64; 3]>) -> Parsed<'a, ()> {
    let (mut rest, shift) = ranges::<3, 0, 2>(input, rows)?;
    let mut end = rows.first().map_or(0, |row| row[0]);
    for row in rows.iter_mut() {
        let (next, gap) = zigzag(rest, "new start")?;
        row[1] = end.wrapping_add(gap.wrapping_shl(shift) as u64);
        end = row[1].wrapping_add(row[2]);
        rest = next;
    }
    Ok((rest, ()))
}

fn columns<'a, const N: usize>(input: &'a [u8], rows: &mut Vec<[u64; N]>) -> Parsed<'a, ()> {
    let (mut rest, n) = count(input, N)?;
    rows.clear();
    rows.resize(n, [0; N]);
    for column in 0..N {
        let (next, shift) = shift(rest)?;
        rest = next;
        let mut value = 0u64;
        for row in rows.iter_mut() {
            let (next, change) = zigzag(rest, "column")?;
            value = value.wrapping_add(change.wrapping_shl(shift) as u64);
            if let Some(cell) = row.get_mut(column) {
                *cell = value;
            }
            rest = next;
        }
    }
    Ok((rest, ()))
}

fn text<'a>(input: &'a [u8], out: &mut String) -> Parsed<'a, ()> {
    let (rest, n) = varuint64("text length")(input)?;
    let n = usize::try_from(n).unwrap_or(usize::MAX);
    let (rest, bytes) = take(n, "text")(rest)?;
    out.clear();
    out.push_str(&String::from_utf8_lossy(bytes));
    Ok((rest, ()))
}

fn numbers<'a, const N: usize>(input: &'a [u8]) -> Parsed<'a, [u64; N]> {
    let mut out = [0; N];
    let mut rest = input;
    for number in &mut out {
        (rest, *number) = varuint64("number")(rest)?;
    }
    Ok((rest, out))
}

fn bounds<'a, 's>(input: &'a [u8], scratch: &'s mut Scratch) -> Parsed<'a, Bounds<'s>> {
    let (rest, hresult) = u32le("GetGenerationBounds result")(input)?;
    let (rest, ()) = columns(rest, &mut scratch.four)?;
    let (rest, non_gc_hresult) = u32le("GetNonGCHeapBounds result")(rest)?;
    let (rest, ()) = columns(rest, &mut scratch.three)?;
    Ok((rest, Bounds { hresult, rows: &scratch.four, non_gc_hresult, non_gc: &scratch.three }))
}

/// Reads a payload. `None` for a kind of record that this reader does not know.
pub fn body<'s>(
    kind: u8,
    payload: &[u8],
    scratch: &'s mut Scratch,
) -> Result<Option<Body<'s>>, crate::bytes::ParseError> {
    known(kind, payload, scratch).map(|(_, body)| body).map_err(crate::bytes::inner)
}

fn known<'a, 's>(kind: u8, input: &'a [u8], scratch: &'s mut Scratch) -> Parsed<'a, Option<Body<'s>>> {
    let (rest, body) = match kind {
        kind::END => (input, Body::End),
        kind::CLOCK => {
            let (rest, utc_ns) = crate::bytes::i64le("UTC")(input)?;
            (rest, Body::Clock { utc_ns })
        }
        kind::GC_STARTED => {
            let (rest, generations) = varuint32(input, "generation count")?;
            let (rest, collected) = varuint32(rest, "generations collected")?;
            let (rest, reason) = varuint32(rest, "reason")?;
            let (rest, bounds) = bounds(rest, scratch)?;
            (rest, Body::Started { generations, collected, reason, bounds })
        }
        kind::GC_FINISHED => {
            let (rest, bounds) = bounds(input, scratch)?;
            (rest, Body::Finished { bounds })
        }
        kind::SURVIVING | kind::SURVIVING2 => {
            let (rest, _) = ranges::<2, 0, 1>(input, &mut scratch.two)?;
            (rest, Body::Surviving { version: 1 + u8::from(kind == kind::SURVIVING2), rows: &scratch.two })
        }
        kind::MOVED | kind::MOVED2 => {
            let (rest, ()) = moved(input, &mut scratch.three)?;
            (rest, Body::Moved { version: 1 + u8::from(kind == kind::MOVED2), rows: &scratch.three })
        }
        kind::ROOTS => {
            let (rest, ()) = columns(input, &mut scratch.one)?;
            (rest, Body::Roots { objects: &scratch.one })
        }
        kind::ROOTS2 => {
            let (rest, ()) = columns(input, &mut scratch.four)?;
            (rest, Body::Roots2 { rows: &scratch.four })
        }
        kind::OBJECT => {
            let (rest, [object_id, class_id]) = numbers(input)?;
            let (rest, ()) = columns(rest, &mut scratch.one)?;
            (rest, Body::Object { object_id, class_id, size: 0, references: &scratch.one })
        }
        kind::WEAK => {
            let (rest, ()) = columns(input, &mut scratch.three)?;
            (rest, Body::Weak { rows: &scratch.three })
        }
        kind::BY_CLASS => {
            let (rest, ()) = columns(input, &mut scratch.two)?;
            (rest, Body::ByClass { rows: &scratch.two })
        }
        kind::HANDLE_CREATED => {
            let (rest, [handle_id, object_id]) = numbers(input)?;
            (rest, Body::HandleCreated { handle_id, object_id })
        }
        kind::FINALIZEABLE => {
            let (rest, flags) = varuint32(input, "flags")?;
            let (rest, [object_id]) = numbers(rest)?;
            (rest, Body::Finalizeable { flags, object_id, class_id: 0 })
        }
        kind::ALLOCATED => {
            let (rest, [object_id, class_id, size]) = numbers(input)?;
            (rest, Body::Allocated { object_id, class_id, size, represented: size })
        }
        kind::SUSPEND_STARTED => {
            let (rest, reason) = varuint32(input, "reason")?;
            (rest, Body::SuspendStarted { reason })
        }
        kind::SUSPEND_FINISHED => (input, Body::SuspendFinished),
        kind::SUSPEND_ABORTED => (input, Body::SuspendAborted),
        kind::RESUME_STARTED => (input, Body::ResumeStarted),
        kind::RESUME_FINISHED => (input, Body::ResumeFinished),
        kind::ATTACHED => (input, Body::Attached),
        kind::THREAD_ASSIGNED => {
            let (rest, [managed_id, os_id]) = numbers(input)?;
            (rest, Body::ThreadAssigned { managed_id, os_id })
        }
        kind::THREAD_NAME => {
            let (rest, [managed_id]) = numbers(input)?;
            let (rest, ()) = text(rest, &mut scratch.text)?;
            (rest, Body::ThreadName { managed_id, name: &scratch.text })
        }
        kind::CLASS => {
            let (rest, [class_id, module_id]) = numbers(input)?;
            let (rest, token) = varuint32(rest, "token")?;
            let (rest, element_type) = u8le("element type")(rest)?;
            let (rest, rank) = varuint32(rest, "rank")?;
            let (rest, [element_class_id]) = numbers(rest)?;
            let (rest, ()) = text(rest, &mut scratch.text)?;
            let name = &scratch.text;
            (rest, Body::Class { class_id, module_id, token, element_type, rank, element_class_id, name })
        }
        kind::FUNCTION => {
            let (rest, [function_id, class_id, module_id]) = numbers(input)?;
            let (rest, token) = varuint32(rest, "token")?;
            let (rest, ()) = text(rest, &mut scratch.text)?;
            (rest, Body::Function { function_id, class_id, module_id, token, name: &scratch.text })
        }
        kind::MODULE => {
            let (rest, [module_id, base]) = numbers(input)?;
            let (rest, ()) = text(rest, &mut scratch.text)?;
            (rest, Body::Module { module_id, base, path: &scratch.text })
        }
        _ => {
            let of: fn(u64) -> Body<'static> = match kind {
                kind::HANDLE_DESTROYED => |handle_id| Body::HandleDestroyed { handle_id },
                kind::THREAD_SUSPENDED => |managed_id| Body::ThreadSuspended { managed_id },
                kind::THREAD_RESUMED => |managed_id| Body::ThreadResumed { managed_id },
                kind::THREAD_CREATED => |managed_id| Body::ThreadCreated { managed_id },
                kind::THREAD_DESTROYED => |managed_id| Body::ThreadDestroyed { managed_id },
                kind::CLASS_UNLOADED => |class_id| Body::ClassUnloaded { class_id },
                kind::FUNCTION_UNLOADED => |function_id| Body::FunctionUnloaded { function_id },
                kind::MODULE_UNLOADED => |module_id| Body::ModuleUnloaded { module_id },
                kind::LOST => |count| Body::Lost { count },
                _ => return Ok((input, None)),
            };
            let (rest, [number]) = numbers(input)?;
            (rest, of(number))
        }
    };
    Ok((rest, Some(body)))
}
