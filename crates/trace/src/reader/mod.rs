//! Bytes to raw events, one folder per format; the types at the joint between reading and meaning.
//!
//! A reader drives and a [`Visitor`] receives: events are borrowed for the length of one call, and the visitor may
//! stop the reader. Readers know bytes only; what an event means is found out in [`crate::event`].

pub mod callback;
pub mod etl;
mod foreign;
mod format;
pub mod gcdump;
pub mod nettrace;
pub mod symbols;
pub(crate) mod text;

use std::sync::Arc;

pub use format::{Format, read};

use crate::prelude::*;
use crate::time::Clock;

/// The header of a recording: facts about it as a whole.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TraceInfo {
    /// `nettrace`, `netperf`, `etl`, `etw` (a live session), `corprof` or `gcdump`.
    pub container: &'static str,
    /// Version of the format: 1 to 4 (a "V5" file says 4) or 6; of an .etl the log version, 1 or 2; of a live session
    /// 0.
    pub version: u32,
    /// Minor version (V6, .etl).
    pub minor: u32,
    /// The clock that makes time of ticks.
    pub clock: Clock,
    /// Whether the header's start time could be read; otherwise times count from 1970.
    pub start_known: bool,
    /// Bytes in a pointer of the recorded process: 4 or 8.
    pub pointer_size: u8,
    /// OS process id; 0 when the recording does not say (or holds several).
    pub process_id: u64,
    /// Number of processors; 0 when unknown.
    pub processor_count: u64,
    /// Expected nanoseconds between CPU samples; 0 when unknown.
    pub sampling_ns: u64,
    /// Free key-value pairs of the header (V6); what else the header of an .etl says of the session.
    pub key_values: Vec<(String, String)>,
}

impl TraceInfo {
    /// Whether gaps show after later events were delivered ([`Visitor::losses_known`]).
    pub fn finds_gaps_late(&self) -> bool {
        self.container == NETTRACE_CONTAINER
    }

    /// Bytes of an address in a [`Stack`]. Windows writes processes of both widths together: its stacks are widened to
    /// 8.
    pub fn stack_width(&self) -> u8 {
        if self.is_of_windows() { 8 } else { self.pointer_size }
    }

    /// Whether Windows wrote it: an .etl, or a live session.
    pub(crate) fn is_of_windows(&self) -> bool {
        [ETL_CONTAINER, LIVE_CONTAINER].contains(&self.container)
    }
}

/// [`TraceInfo::container`] of EventPipe from V4 on.
pub(crate) const NETTRACE_CONTAINER: &str = "nettrace";
/// [`TraceInfo::container`] of a heap dump.
pub(crate) const GCDUMP_CONTAINER: &str = "gcdump";
/// [`TraceInfo::container`] of an .etl.
pub(crate) const ETL_CONTAINER: &str = "etl";
/// [`TraceInfo::container`] of a live session.
pub(crate) const LIVE_CONTAINER: &str = "etw";

/// Dense number of an [`EventType`] within one recording, in the order of first sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub u32);

/// A kind of event as the recording itself describes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct EventType {
    /// Provider name as registered; empty for V1 files, which give only the GUID.
    pub provider: String,
    /// Provider GUID, when the recording has it (V1, optionally V6).
    pub provider_guid: Option<Guid>,
    /// Event id.
    pub event_id: u32,
    /// Event version.
    pub version: u32,
    /// Event name; empty for events of the runtime itself.
    pub name: String,
    /// Opcode, when the recording states it.
    pub opcode: Option<u8>,
    /// Verbosity: 0 log always, 1 critical to 5 verbose.
    pub level: u32,
    /// Keyword mask.
    pub keywords: u64,
    /// The layout of payloads, as far as the recording says.
    pub layout: Layout,
    /// Message template or description (V6).
    pub message: Option<Arc<str>>,
}

/// A recording's description of an event's payload.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// The fields, in order. Empty both for events without payload and for events that hide their fields.
    Fields(Vec<Field>),
    /// The description could not be read; why.
    Unreadable(&'static str),
    /// The event refers to metadata that is not in the recording.
    NoMetadata,
    /// An event of an .etl.
    Etw(EtwLayout),
}

impl EventType {
    /// A kind of event of which no more is known than what identifies it, at level 5 without keywords.
    pub fn new(provider: impl Into<String>, event_id: u32, version: u32, layout: Layout) -> EventType {
        EventType {
            provider: provider.into(),
            provider_guid: None,
            event_id,
            version,
            name: String::new(),
            opcode: None,
            level: 5,
            keywords: 0,
            layout,
            message: None,
        }
    }
}

/// The description of an event's payload in an .etl.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct EtwLayout {
    /// Bytes in a pointer of the process that wrote the event: it may differ from event to event.
    pub pointer_size: u8,
    /// The identity of the kind of event.
    pub form: EtwForm,
    /// The fields, when the recording describes them (TraceLogging, a manifest or a schema of the merge step).
    pub fields: Option<Vec<Field>>,
}

impl EtwLayout {
    /// A layout whose fields the recording does not describe.
    pub fn new(pointer_size: u8, form: EtwForm) -> EtwLayout {
        EtwLayout { pointer_size, form, fields: None }
    }
}

/// The identity of a kind of event of an .etl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EtwForm {
    /// Provider, id and version.
    Manifest,
    /// Class GUID, opcode and version; the opcode is in [`EventType::event_id`].
    Classic,
    /// Provider and the schema that comes with the event (TraceLogging).
    SelfDescribed,
    /// Message class and number of a WPP message; the number is in [`EventType::event_id`].
    Message,
}

/// A named field of a self-described payload.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Field {
    /// Name as written; may be empty or repeat another.
    pub name: String,
    /// Type.
    pub kind: FieldType,
}

impl Field {
    /// A field of this name and type.
    pub fn new(name: impl Into<String>, kind: FieldType) -> Field {
        Field { name: name.into(), kind }
    }
}

/// The types of self-described payloads (`NetTraceFormat.md`, Type format).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum FieldType {
    Bool32,
    Bool8,
    Utf16Unit,
    Utf8Unit,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
    /// 8 bytes: 100 ns units since 1601, whatever the version.
    DateTime,
    Guid,
    /// NUL-terminated UTF-16.
    Utf16Z,
    VarInt,
    VarUInt,
    /// Fields one after the other.
    Object(Vec<Field>),
    /// u16 element count, then the elements.
    Array(Box<FieldType>),
    /// A fixed number of elements.
    FixedArray(Box<FieldType>, u16),
    /// A 4-byte pointer (.etl; an 8-byte one is `U64`).
    Pointer32,
    /// A 16-bit number in network order: a port (.etl).
    U16Be,
    /// NUL-terminated 8-bit text (.etl).
    AnsiZ,
    /// SYSTEMTIME, 16 bytes (.etl).
    SystemTime,
    /// A security identifier: 8 bytes and 4 per sub-authority, whose number is the second byte (.etl).
    Sid,
    /// u16 count of bytes, then UTF-16 (.etl).
    Utf16Bytes,
    /// As many elements as an earlier field of the same structure says, by its place in it (.etl).
    Counted(Box<FieldType>, usize),
    /// Size and position relative to the end of this field, elements elsewhere in the payload.
    RelLoc(Box<FieldType>),
    /// Size and position relative to the start of the payload.
    DataLoc(Box<FieldType>),
    /// A value that is meant to be shown as text, which becomes a field of its own beside it (.etl).
    Shown(Box<FieldType>, Shown),
}

/// The text that a value is meant to be shown as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shown {
    /// `10.0.0.7`, of four bytes in network order.
    Ipv4,
    /// `fe80::1`, of 16 bytes.
    Ipv6,
    /// `10.0.0.7:443` or `[fe80::1%2]:443`, of a `SOCKADDR_IN` or `SOCKADDR_IN6`.
    SocketAddress,
    /// `0x80070005`, of a number.
    Hex,
}

/// A thread of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Thread {
    /// OS process id.
    pub process_id: u64,
    /// The number of processes that had this id before, as far as the recording says (.etl): ids are reused.
    pub process_incarnation: u32,
    /// OS thread id.
    pub thread_id: u64,
    /// Name, when the recording has it (V6, some .etl).
    pub name: Option<String>,
    /// When it began; `None` when that was before the recording, or the recording does not say (.etl).
    pub start_ticks: Option<i64>,
    /// When it ended; `None` when that was after the recording, or the recording does not say (.etl).
    pub end_ticks: Option<i64>,
    /// Address of the function that it began with; 0 when the recording does not say (.etl).
    pub start_address: u64,
    /// The thread belongs to another process and wrote events while it was attached to this one (.etl).
    pub is_attached: bool,
}

/// The id in an .etl for no process and no thread, used by events that are about none in particular.
pub const NO_SUBJECT: u64 = u32::MAX as u64;

/// One process among all that had the same id: ids are reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessKey {
    /// OS process id.
    pub id: u64,
    /// The number of processes that had this id before.
    pub incarnation: u32,
}

impl Thread {
    /// The process that it is a thread of.
    pub fn process(&self) -> ProcessKey {
        ProcessKey { id: self.process_id, incarnation: self.process_incarnation }
    }
}

/// A process of a recording that holds several, as far as the recording describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Process {
    /// OS process id. Ids are reused: two processes may have the same, one after the other.
    pub process_id: u64,
    /// OS process id of the parent.
    pub parent_id: u64,
    /// File name of the program, cut by some systems to 15 characters.
    pub name: String,
    /// Command line; empty when it is not said.
    pub command_line: String,
    /// When it began; `None` when that was before the recording.
    pub start_ticks: Option<i64>,
    /// When it ended; `None` when that was after the recording.
    pub end_ticks: Option<i64>,
    /// The result that it returned; `None` when its end is not in the recording.
    pub exit_code: Option<i32>,
    /// The number of processes that had this id before, as far as the recording says.
    pub incarnation: u32,
}

impl Process {
    /// Distinguishes it from others with the same id.
    pub fn key(&self) -> ProcessKey {
        ProcessKey { id: self.process_id, incarnation: self.incarnation }
    }
}

/// Dense number of a [`Thread`] within one recording.
pub type ThreadIndex = u32;

/// A call stack as recorded: return addresses, innermost first.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Stack<'a> {
    /// Packed pointers of the trace's pointer size.
    pub addresses: &'a [u8],
    /// Identity: equal keys mean the same stack until [`Visitor::stacks_forgotten`]. `None` when nothing is known.
    pub key: Option<u32>,
}

impl<'a> Stack<'a> {
    /// A stack of packed pointers, with its identity when that is known.
    pub fn new(addresses: &'a [u8], key: Option<u32>) -> Stack<'a> {
        Stack { addresses, key }
    }
}

/// Correlation ids and labels that events share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Labels {
    /// Activity id; all zero when there is none.
    pub activity_id: Guid,
    /// Related activity id; all zero when there is none.
    pub related_activity_id: Guid,
    /// Further labels (V6: W3C trace and span id, free pairs) as a JSON object; empty when there are none.
    pub json: String,
}

/// One event, borrowed from its block.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RawEvent<'a> {
    /// Kind of event.
    pub event_type: TypeId,
    /// Time in ticks of [`TraceInfo::clock`].
    pub ticks: i64,
    /// The thread that the event is about.
    pub thread: ThreadIndex,
    /// The thread that recorded it.
    pub capture_thread: ThreadIndex,
    /// Processor number; `u32::MAX` when unknown.
    pub processor: u32,
    /// Call stack of `thread`.
    pub stack: Stack<'a>,
    /// Correlation ids.
    pub labels: &'a Labels,
    /// Hardware counters of the processor: packed numbers of 8 bytes, in the order in which the recording names them
    /// (.etl).
    pub counters: &'a [u8],
    /// Payload bytes.
    pub payload: &'a [u8],
    /// Byte offset of the payload in the (unpacked) stream.
    pub offset: u64,
}

impl<'a> RawEvent<'a> {
    /// An event of the first thread, on an unknown processor, without a stack.
    pub fn new(event_type: TypeId, ticks: i64, labels: &'a Labels, payload: &'a [u8]) -> RawEvent<'a> {
        RawEvent {
            event_type,
            ticks,
            thread: 0,
            capture_thread: 0,
            processor: u32::MAX,
            stack: Stack::default(),
            labels,
            counters: &[],
            payload,
            offset: 0,
        }
    }
}

/// Packed numbers of 8 bytes, such as [`RawEvent::counters`].
pub fn counters(packed: &[u8]) -> impl Iterator<Item = u64> {
    packed.chunks_exact(8).filter_map(|bytes| bytes.first_chunk()).map(|bytes| u64::from_le_bytes(*bytes))
}

/// Receives what a reader finds, in the order of the recording (or of time). Readers take a `dyn Visitor`: they are
/// compiled once.
pub trait Visitor {
    /// The header was read. Called once, before everything else.
    fn trace(&mut self, _info: &TraceInfo) {}

    /// A process, before the first event (.etl).
    fn process(&mut self, _process: &Process) {}

    /// A new kind of event. Returns whether its events are wanted; unwanted ones are not delivered.
    fn event_type(&mut self, _id: TypeId, _event_type: &EventType) -> bool {
        true
    }

    /// A new thread.
    fn thread(&mut self, _index: ThreadIndex, _thread: &Thread) {}

    /// One event. `Break` stops the reader.
    fn event(&mut self, event: &RawEvent<'_>) -> ControlFlow<()>;

    /// An event that is nothing but the stack of another one, which has it already (.etl).
    fn stack_event(&mut self, event: &RawEvent<'_>) -> ControlFlow<()> {
        self.event(event)
    }

    /// Keys of earlier stacks are no longer valid.
    fn stacks_forgotten(&mut self) {}

    /// Events that a thread recorded (`None`: any thread) are missing, all of them later than `since_ticks`. Reported
    /// before the first event behind the gap (.nettrace from V4 on, .etl).
    fn events_lost(&mut self, _capture_thread: Option<ThreadIndex>, _since_ticks: i64) {}

    /// Events that a thread recorded (`None`: any thread) are missing between two times. Reported as soon as it is
    /// known: events between them may have been delivered already (.nettrace), or come yet (.etl).
    fn gap(&mut self, _capture_thread: Option<ThreadIndex>, _since_ticks: i64, _until_ticks: i64) {}

    /// All gaps before the events that come have been reported (.nettrace from V4 on).
    fn losses_known(&mut self) {}

    /// Something lost, damaged or not understood; reading continues where possible.
    fn problem(&mut self, problem: Problem);

    /// Number of bytes of the (unpacked) stream that are done.
    fn progress(&mut self, _position: u64) {}
}

/// The order in which events are to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// By time; equal times in the order of the file.
    Time,
    /// As they lie in the file: nothing is held back.
    File,
}

/// The end of a recording: whole, cut or stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct End {
    /// Whether the end mark was reached.
    pub complete: bool,
    /// Bytes read.
    pub bytes: u64,
    /// Bytes behind the end mark.
    pub trailing_bytes: u64,
    /// Events that sequence numbers prove lost, a lower bound.
    pub dropped_events: u64,
}
