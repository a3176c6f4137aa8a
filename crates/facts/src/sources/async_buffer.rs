//! Buffers of the runtime's async profiler (.NET 11): many small events of one thread in one `byte[]`.
//!
//! ```text
//!  header, 37 bytes:  version u8 = 1, size u32, context u32, OS thread u64, events u32, first tick u64, last tick u64
//!  each event:        id u8, ticks since the one before LEB128, length of the payload u8 or u16 or none, payload
//! ```
//! How long the length is depends on the id; an event of the buffers themselves (22) says it for each id, once for a
//! session.
//!
//! Source: `AsyncProfiler.cs` of dotnet/runtime and `AsyncProfilerTraceEventParser` of microsoft/perfview, both of
//! main.

use tracequet_trace::{varuint64, zigzag};

/// Bytes of the header.
const HEADER: usize = 37;

/// Ids of events.
mod id {
    pub const RUNTIME_CREATE: u8 = 1;
    pub const RUNTIME_RESUME: u8 = 2;
    pub const RUNTIME_SUSPEND: u8 = 3;
    pub const RUNTIME_COMPLETE: u8 = 4;
    pub const RUNTIME_UNWIND: u8 = 5;
    pub const RUNTIME_CREATE_STACK: u8 = 6;
    pub const RUNTIME_RESUME_STACK: u8 = 7;
    pub const RUNTIME_SUSPEND_STACK: u8 = 8;
    pub const RUNTIME_COMPLETE_METHOD: u8 = 10;
    pub const MACHINE_CREATE: u8 = 11;
    pub const MACHINE_RESUME: u8 = 12;
    pub const MACHINE_SUSPEND: u8 = 13;
    pub const MACHINE_COMPLETE: u8 = 14;
    pub const MACHINE_UNWIND: u8 = 15;
    pub const MACHINE_RESUME_STACK: u8 = 16;
    pub const MACHINE_COMPLETE_METHOD: u8 = 18;
    pub const MACHINE_APPEND_STACK: u8 = 19;
    pub const RESET_THREAD: u8 = 20;
    pub const METADATA: u8 = 22;
    pub const CLOCK: u8 = 23;
}

/// Bytes of the length before the payload of each id, by default; [`UNKNOWN`] for ids without one.
const LENGTHS: [u8; 25] = [UNKNOWN, 1, 1, 0, 0, 1, 2, 2, 2, 0, 0, 1, 1, 0, 0, 1, 2, 0, 0, 2, 0, 0, 2, 1, 1];
const UNKNOWN: u8 = u8::MAX;

/// The width of the length of the payload, by id. Kept from buffer to buffer.
#[derive(Clone, Debug)]
pub struct Lengths([u8; 256]);

impl Default for Lengths {
    fn default() -> Lengths {
        let mut all = [UNKNOWN; 256];
        all.iter_mut().zip(LENGTHS).for_each(|(to, from)| *to = from);
        Lengths(all)
    }
}

tracequet_trace::worded! {
    /// The compiler of an async method.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kind {
        /// The runtime (.NET 11): frames are code addresses.
        Runtime = "runtime",
        /// The C# compiler, as a state machine: frames are methods.
        StateMachine = "state_machine",
    }
    /// The word in the tables.
    pub fn word;
}

/// A logical call stack, the innermost method first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The id of the task that the stack is of.
    pub id: u64,
    /// The id of the task's creator, where the event says it.
    pub parent: Option<u64>,
    /// Code addresses, or ids of methods; empty when it is the stack that was sent last for the same id.
    pub frames: Vec<u64>,
}

/// The meaning of an event of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A task begins to be.
    Create { kind: Kind, parent: u64, id: u64 },
    /// A task goes on on this thread.
    Resume { kind: Kind, id: u64 },
    /// The task that went on last on this thread waits.
    Suspend,
    /// The task that went on last on this thread has ended.
    Complete,
    /// The number of its methods that an exception leaves.
    Unwind { frames: u32 },
    /// The stack of a task that begins to be.
    CreateStack { kind: Kind, stack: Stack },
    /// The stack of a task that goes on on this thread.
    ResumeStack { kind: Kind, stack: Stack },
    /// The stack of a task that will wait.
    SuspendStack { kind: Kind, stack: Stack },
    /// More callers of the task that goes on on this thread.
    AppendStack { kind: Kind, stack: Stack },
    /// A method of it has ended, and its caller goes on.
    CompleteMethod,
    /// Nothing goes on on this thread, whatever was said before.
    Reset,
    /// A moment by both clocks: ticks, and 100 ns since 1601; the ticks of a second where they are said.
    Clock { frequency: Option<u64>, ticks: u64, file_time: u64 },
    /// Nothing that is needed here.
    Other,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When, in ticks.
    pub ticks: i64,
    /// The meaning.
    pub step: Step,
}

/// Bytes that do not fit the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where in the buffer.
    pub offset: usize,
    /// The bytes that are there, and what was expected.
    pub message: &'static str,
}

/// Reads one buffer.
#[derive(Debug)]
pub struct Buffer<'b> {
    bytes: &'b [u8],
    at: usize,
    ticks: i64,
    /// Events that the header announces and that were not read yet.
    left: u32,
    done: bool,
    /// OS id of the thread that the events are of.
    pub thread_id: u64,
}

impl<'b> Buffer<'b> {
    /// Reads the header.
    pub fn new(bytes: &'b [u8]) -> Result<Buffer<'b>, Damage> {
        let damage = |offset, message| Damage { offset, message };
        if bytes.first().is_some_and(|version| *version != 1) {
            return Err(damage(0, "a buffer of version 1 was expected"));
        }
        let number = |at| bytes.get(at..).and_then(<[u8]>::first_chunk).map(|bytes| u64::from_le_bytes(*bytes));
        let short = |at| bytes.get(at..).and_then(<[u8]>::first_chunk).map(|bytes| u32::from_le_bytes(*bytes));
        let header = (|| Some((short(1)?, number(9)?, short(17)?, number(21)?, number(29)?)))();
        let Some((size, thread_id, left, first, _last)) = header else {
            return Err(damage(bytes.len(), "the buffer ends within its header of 37 bytes"));
        };
        // Bytes behind the size are not part of the event.
        let end = match usize::try_from(size) {
            Ok(size) if size >= HEADER => size.min(bytes.len()),
            Ok(0) => bytes.len(),
            _ => return Err(damage(1, "the size of the buffer is less than its header")),
        };
        Ok(Buffer {
            bytes: bytes.get(..end).unwrap_or(bytes),
            at: HEADER,
            ticks: first.cast_signed(),
            left,
            done: false,
            thread_id,
        })
    }

    /// The next event; `None` at the end. After damage to a payload the next event is read; after any other there is
    /// none.
    pub fn next(&mut self, lengths: &mut Lengths) -> Option<Result<Record, Damage>> {
        if self.done {
            return None;
        }
        if self.at >= self.bytes.len() {
            self.done = true;
            let message = "the buffer has fewer events than its header says";
            return (self.left > 0).then_some(Err(Damage { offset: self.at, message }));
        }
        let found = self.event(lengths);
        self.done |= found.is_err();
        match found {
            Ok(Ok(record)) => Some(Ok(record)),
            Ok(Err(damage)) | Err(damage) => Some(Err(damage)),
        }
    }

    /// Events that are announced and are not read.
    pub fn missing(&self) -> u64 {
        self.left.into()
    }

    /// The outer error ends the buffer, the inner one only the event.
    fn event(&mut self, lengths: &mut Lengths) -> Result<Result<Record, Damage>, Damage> {
        let start = self.at;
        let mut rest = Payload { bytes: self.bytes, at: start };
        let id = rest.byte().ok_or(Damage { offset: start, message: "an event was expected" })?;
        let delta = rest.leb().ok_or(Damage { offset: start, message: "the time of an event is cut off" })?;
        self.ticks = self.ticks.wrapping_add_unsigned(delta);
        let cut = Damage { offset: start, message: "the length of an event is cut off" };
        let length = match lengths.0.get(usize::from(id)) {
            Some(0) => 0,
            Some(1) => usize::from(rest.byte().ok_or(cut)?),
            Some(2) => usize::from(rest.byte().ok_or(cut)?) | usize::from(rest.byte().ok_or(cut)?) << 8,
            _ => return Err(Damage { offset: start, message: "the id of an event is not known" }),
        };
        let end = rest.at.saturating_add(length);
        let payload = self.bytes.get(..end);
        let payload = payload.ok_or(Damage { offset: start, message: "an event is longer than its buffer" })?;
        let mut payload = Payload { bytes: payload, at: rest.at };
        self.at = end;
        self.left = self.left.saturating_sub(1);
        let ticks = self.ticks;
        let step = step(id, &mut payload, lengths);
        let message = "the payload of an event is shorter than its fields";
        Ok(step.map(|step| Record { ticks, step }).ok_or(Damage { offset: start, message }))
    }
}

/// The fields of an event. What is behind them was added by a later version.
fn step(id: u8, payload: &mut Payload<'_>, lengths: &mut Lengths) -> Option<Step> {
    let kind = if id <= id::RUNTIME_COMPLETE_METHOD { Kind::Runtime } else { Kind::StateMachine };
    Some(match id {
        id::RUNTIME_CREATE | id::MACHINE_CREATE => Step::Create { kind, parent: payload.leb()?, id: payload.leb()? },
        id::RUNTIME_RESUME | id::MACHINE_RESUME => Step::Resume { kind, id: payload.leb()? },
        id::RUNTIME_SUSPEND | id::MACHINE_SUSPEND => Step::Suspend,
        id::RUNTIME_COMPLETE | id::MACHINE_COMPLETE => Step::Complete,
        id::RUNTIME_UNWIND | id::MACHINE_UNWIND => {
            Step::Unwind { frames: u32::try_from(payload.leb()?).unwrap_or(u32::MAX) }
        }
        id::RUNTIME_CREATE_STACK => Step::CreateStack { kind, stack: payload.stack(true, false)? },
        id::RUNTIME_RESUME_STACK => Step::ResumeStack { kind, stack: payload.stack(false, false)? },
        id::RUNTIME_SUSPEND_STACK => Step::SuspendStack { kind, stack: payload.stack(false, false)? },
        id::MACHINE_RESUME_STACK => Step::ResumeStack { kind, stack: payload.stack(false, true)? },
        id::MACHINE_APPEND_STACK => Step::AppendStack { kind, stack: payload.stack(false, true)? },
        id::RUNTIME_COMPLETE_METHOD | id::MACHINE_COMPLETE_METHOD => Step::CompleteMethod,
        id::RESET_THREAD => Step::Reset,
        id::METADATA => payload.metadata(lengths)?,
        id::CLOCK => Step::Clock { frequency: None, ticks: payload.leb()?, file_time: payload.leb()? },
        // Among them methods that go on, wrappers and the id of the trace.
        _ => Step::Other,
    })
}

/// A payload up to its end.
#[derive(Debug)]
struct Payload<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Payload<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// An unsigned LEB128 number of 64 bits.
    fn leb(&mut self) -> Option<u64> {
        let (rest, number) = varuint64("number")(self.bytes.get(self.at..)?).ok()?;
        self.at = self.bytes.len() - rest.len();
        Some(number)
    }

    /// A signed number: the lowest bit is the sign.
    fn zigzag(&mut self) -> Option<i64> {
        self.leb().map(zigzag)
    }

    fn stack(&mut self, has_parent: bool, has_states: bool) -> Option<Stack> {
        // A number for stacks, not used yet; the wrapper of the innermost frame.
        self.byte()?;
        self.byte()?;
        let count = usize::from(self.byte()?);
        let parent = if has_parent { Some(self.leb()?) } else { None };
        let id = self.leb()?;
        // A frame has a byte at least.
        let mut frames = Vec::with_capacity(count.min(self.bytes.len().saturating_sub(self.at)));
        let mut frame = 0u64;
        for number in 0..count {
            frame = if number == 0 { self.leb()? } else { frame.wrapping_add_signed(self.zigzag()?) };
            if has_states {
                self.zigzag()?;
            }
            frames.push(frame);
        }
        Some(Stack { id, parent, frames })
    }

    fn metadata(&mut self, lengths: &mut Lengths) -> Option<Step> {
        let (frequency, ticks, file_time) = (self.leb()?, self.leb()?, self.leb()?);
        let (_buffer_size, _wrappers) = (self.leb()?, self.byte()?);
        let step = Step::Clock { frequency: Some(frequency), ticks, file_time };
        // Previews of .NET 11 end here.
        let Some(count) = self.byte() else { return Some(step) };
        let mut said = lengths.clone();
        for _ in 0..count {
            let (id, _version, length) = (self.byte()?, self.byte()?, self.byte()?);
            *said.0.get_mut(usize::from(id))? = if length <= 2 { length } else { return None };
        }
        *lengths = said;
        Some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leb(out: &mut Vec<u8>, mut value: u64) {
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }

    fn zigzag(out: &mut Vec<u8>, value: i64) {
        leb(out, ((value << 1) ^ (value >> 63)) as u64);
    }

    fn event(out: &mut Vec<u8>, id: u8, ticks: u64, payload: &[u8], length: u8) {
        out.push(id);
        leb(out, ticks);
        out.extend(&(payload.len() as u16).to_le_bytes()[..usize::from(length)]);
        out.extend(payload);
    }

    fn numbers(all: &[u64]) -> Vec<u8> {
        let mut out = Vec::new();
        all.iter().for_each(|number| leb(&mut out, *number));
        out
    }

    fn stack(parent: Option<u64>, id: u64, frames: &[u64], has_states: bool) -> Vec<u8> {
        let mut out = vec![0, 3, frames.len() as u8];
        parent.iter().for_each(|parent| leb(&mut out, *parent));
        leb(&mut out, id);
        for (number, frame) in frames.iter().enumerate() {
            match number.checked_sub(1).map(|before| frames[before]) {
                None => leb(&mut out, *frame),
                Some(before) => zigzag(&mut out, frame.wrapping_sub(before) as i64),
            }
            if has_states {
                zigzag(&mut out, -2);
            }
        }
        out
    }

    fn buffer(events: &[u8], count: u32) -> Vec<u8> {
        let mut out = vec![1];
        out.extend((HEADER as u32 + events.len() as u32).to_le_bytes());
        out.extend(9u32.to_le_bytes());
        out.extend(77u64.to_le_bytes());
        out.extend(count.to_le_bytes());
        out.extend(1000u64.to_le_bytes());
        out.extend(5000u64.to_le_bytes());
        out.extend(events);
        out
    }

    fn read(bytes: &[u8], lengths: &mut Lengths) -> (Vec<Record>, Vec<Damage>) {
        let (mut records, mut damage) = (Vec::new(), Vec::new());
        match Buffer::new(bytes) {
            Ok(mut buffer) => {
                while let Some(found) = buffer.next(lengths) {
                    match found {
                        Ok(record) => records.push(record),
                        Err(found) => damage.push(found),
                    }
                }
            }
            Err(found) => damage.push(found),
        }
        (records, damage)
    }

    const FRAMES: [u64; 4] = [0x7F00_0000_1000, 0x7F00_0000_0800, 0x7F80_0000_0000, 3];

    /// An event of each id, with what it says.
    fn all() -> (Vec<u8>, Vec<Step>) {
        let of = |parent, id, frames: &[u64]| Stack { id, parent, frames: frames.to_vec() };
        let (runtime, machine) = (Kind::Runtime, Kind::StateMachine);
        let events: Vec<(u8, Vec<u8>, Step)> = vec![
            (
                22,
                numbers(&[10_000_000, 500, 600, 16128]).into_iter().chain([32, 1, 200, 1, 2]).collect(),
                Step::Clock { frequency: Some(10_000_000), ticks: 500, file_time: 600 },
            ),
            (20, vec![], Step::Reset),
            (1, numbers(&[5, 1 << 40]), Step::Create { kind: runtime, parent: 5, id: 1 << 40 }),
            (2, numbers(&[7]), Step::Resume { kind: runtime, id: 7 }),
            (3, vec![], Step::Suspend),
            (4, vec![], Step::Complete),
            (5, numbers(&[3]), Step::Unwind { frames: 3 }),
            (6, stack(Some(5), 7, &FRAMES, false), Step::CreateStack { kind: runtime, stack: of(Some(5), 7, &FRAMES) }),
            (
                7,
                stack(None, 7, &FRAMES[..1], false),
                Step::ResumeStack { kind: runtime, stack: of(None, 7, &FRAMES[..1]) },
            ),
            (8, stack(None, 7, &[], false), Step::SuspendStack { kind: runtime, stack: of(None, 7, &[]) }),
            (9, vec![], Step::Other),
            (10, vec![], Step::CompleteMethod),
            (11, numbers(&[0, 8]), Step::Create { kind: machine, parent: 0, id: 8 }),
            (12, numbers(&[u64::MAX]), Step::Resume { kind: machine, id: u64::MAX }),
            (13, vec![], Step::Suspend),
            (14, vec![], Step::Complete),
            (15, numbers(&[1 << 33]), Step::Unwind { frames: u32::MAX }),
            (16, stack(None, 8, &FRAMES, true), Step::ResumeStack { kind: machine, stack: of(None, 8, &FRAMES) }),
            (17, vec![], Step::Other),
            (18, vec![], Step::CompleteMethod),
            (
                19,
                stack(None, 8, &FRAMES[2..], true),
                Step::AppendStack { kind: machine, stack: of(None, 8, &FRAMES[2..]) },
            ),
            (21, vec![], Step::Other),
            (23, numbers(&[900, 901]), Step::Clock { frequency: None, ticks: 900, file_time: 901 }),
            (24, vec![7; 16], Step::Other),
            // Of the id that the metadata announce.
            (200, vec![1, 2, 3], Step::Other),
        ];
        let mut bytes = Vec::new();
        for (id, payload, _) in &events {
            let length = if *id == 200 { 2 } else { LENGTHS[usize::from(*id)] };
            event(&mut bytes, *id, 300, payload, length);
        }
        (buffer(&bytes, events.len() as u32), events.into_iter().map(|(_, _, step)| step).collect())
    }

    #[test]
    fn each_event_is_read() {
        let (bytes, steps) = all();
        let mut lengths = Lengths::default();
        let (records, damage) = read(&bytes, &mut lengths);
        assert_eq!(damage, []);
        assert_eq!(records.iter().map(|record| record.step.clone()).collect::<Vec<_>>(), steps);
        assert!(records.iter().zip(1..).all(|(record, nth)| record.ticks == 1000 + 300 * nth));
        assert_eq!(Buffer::new(&bytes).unwrap().thread_id, 77);
        // The lengths hold for later buffers, and what is behind the size is left alone.
        let mut later = Vec::new();
        event(&mut later, 200, 1, &[9; 300], 2);
        let mut later = buffer(&later, 1);
        later.extend([4; 9]);
        assert_eq!(read(&later, &mut lengths), (vec![Record { ticks: 1001, step: Step::Other }], vec![]));
        let message = "the id of an event is not known";
        assert_eq!(read(&later, &mut Lengths::default()).1, [Damage { offset: HEADER, message }]);
    }

    #[test]
    fn fields_of_later_versions_are_left_alone() {
        let mut events = Vec::new();
        event(&mut events, 2, 5, &[7, 1, 2, 3], 1);
        event(&mut events, 14, 5, &[], 0);
        let steps = [Step::Resume { kind: Kind::Runtime, id: 7 }, Step::Complete];
        let (records, damage) = read(&buffer(&events, 2), &mut Lengths::default());
        assert!(damage.is_empty() && records.iter().map(|record| &record.step).eq(&steps));
        // The metadata of a preview end behind the wrappers.
        let mut events = Vec::new();
        event(&mut events, 22, 5, &[1, 2, 3, 4, 32], 2);
        assert_eq!(read(&buffer(&events, 1), &mut Lengths::default()).1, []);
    }

    #[test]
    fn what_is_before_a_cut_is_read_and_the_cut_is_reported() {
        let (bytes, steps) = all();
        for length in 0..bytes.len() {
            let (records, damage) = read(&bytes[..length], &mut Lengths::default());
            assert!(records.iter().map(|record| &record.step).eq(&steps[..records.len()]), "{length}");
            assert_eq!(damage.len(), 1, "{length}: {damage:?}");
            assert!(damage[0].offset <= length);
        }
    }

    #[test]
    fn a_payload_that_is_too_short_spares_its_neighbours() {
        for (id, payload) in [(1, vec![5]), (2, vec![0x80]), (5, vec![]), (23, vec![1]), (7, vec![0, 0, 9, 1, 1, 1])] {
            let mut events = Vec::new();
            event(&mut events, 3, 1, &[], 0);
            event(&mut events, id, 1, &payload, LENGTHS[usize::from(id)]);
            event(&mut events, 4, 1, &[], 0);
            let (records, damage) = read(&buffer(&events, 3), &mut Lengths::default());
            assert_eq!(
                records.iter().map(|record| record.step.clone()).collect::<Vec<_>>(),
                [Step::Suspend, Step::Complete]
            );
            assert_eq!((damage.len(), damage[0].offset), (1, HEADER + 2), "{id}");
        }
    }

    #[test]
    fn hostile_bytes_end() {
        // A generator with a fixed seed.
        let mut seed = 9u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let (bytes, _) = all();
        let mut damaged = 0;
        for _ in 0..20_000 {
            let mut bytes = bytes.clone();
            for _ in 0..1 + random(4) {
                let at = random(bytes.len() as u64) as usize;
                bytes[at] = [0, 1, 0x7F, 0x80, 0xFF, random(256) as u8][random(6) as usize];
            }
            let (records, damage) = read(&bytes, &mut Lengths::default());
            assert!(records.len() + damage.len() <= bytes.len());
            damaged += damage.len();
        }
        assert!(damaged > 1000);
        // A number of more than 64 bits, a version and sizes that there are not.
        assert!(Payload { bytes: &[0xFF; 10], at: 0 }.leb().is_none());
        let mut bytes = bytes;
        for (at, value, offset) in [(1, 36, 1), (0, 2, 0)] {
            bytes[at] = value;
            bytes[2] = 0;
            assert_eq!(read(&bytes, &mut Lengths::default()).1[0].offset, offset);
        }
    }
}
