//! A trace for Perfetto, <https://ui.perfetto.dev>: what happened when, on one axis.
//!
//! Source: `protos/perfetto/trace` of <https://github.com/google/perfetto>. Intervals and counters are track events;
//! CPU samples are those of its own sampler of call stacks, so that its flame graphs show them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use super::model::{Profile, What};
use super::protobuf::{bytes, double, message, number, present, string};
use super::strings::Strings;
use crate::prelude::*;
use crate::subjects::collections::Collection;
use crate::subjects::pauses::Stop;

/// The tables that it is made of, beside those of profiles.
pub const TABLES: [&str; 3] = ["gc", "activity", "counter"];

/// Numbers of the fields of `TracePacket`.
mod packet {
    pub(super) const CLOCK_SNAPSHOT: u64 = 6;
    pub(super) const TIMESTAMP: u64 = 8;
    pub(super) const SEQUENCE: u64 = 10;
    pub(super) const TRACK_EVENT: u64 = 11;
    pub(super) const INTERNED_DATA: u64 = 12;
    pub(super) const SEQUENCE_FLAGS: u64 = 13;
    pub(super) const TRACK_DESCRIPTOR: u64 = 60;
    pub(super) const PERF_SAMPLE: u64 = 66;
}

row!(struct ProcessName of process { process_id, name, command_line });

row!(struct ThreadName of thread { process_id, thread_id, name });

row!(struct Activity of activity {
    process_id, start_ts_ns, end_ts_ns, provider_name, name, thread_id, status_code, outcome, result, activity_id,
    parent_activity_id, start_fields
});

row!(struct CounterValue of counter { process_id, ts_ns, value, provider_name, name, tags, unit, quantile });

/// Packets of a sequence share what is interned.
const EVENTS: u64 = 1;
const SAMPLES: u64 = 2;

/// `TrackEvent.Type`.
#[derive(Clone, Copy)]
enum Kind {
    Begin = 1,
    End = 2,
    Instant = 3,
    Counter = 4,
}

/// `CounterDescriptor.Unit.UNIT_SIZE_BYTES`.
const UNIT_BYTES: u64 = 3;

/// The events of a recording, for the axis of time.
#[derive(Debug, Default)]
pub struct Timeline {
    /// Name and command line by id.
    processes: BTreeMap<u64, (String, String)>,
    /// Names by process and id.
    threads: BTreeMap<(u64, u64), String>,
    intervals: BTreeMap<Lane, Vec<Interval>>,
    counters: BTreeMap<Lane, Counter>,
}

/// Where an interval or a value is shown: a process, and a name in it. Pauses come first, and collections.
type Lane = (u64, u8, String);

#[derive(Debug)]
struct Interval {
    start_ns: i64,
    /// `None` when it is not known.
    end_ns: Option<i64>,
    /// Name, category and notes, as fields of `TrackEvent`.
    content: Box<[u8]>,
}

#[derive(Debug, Default)]
struct Counter {
    unit: String,
    is_bytes: bool,
    values: Vec<(i64, f64)>,
}

/// Memory of a row, beside its texts.
const ROW_STORED: u64 = size_of::<Interval>() as u64;

impl Timeline {
    /// Reads pauses, collections, activities and counters, as far as the dataset has their tables. They are held in
    /// memory.
    pub fn read(recording: &Recording<'_>) -> Result<Timeline> {
        let mut timeline = Timeline::default();
        let has = |name| recording.tables().any(|table| table.name == name);
        timeline.read_names(recording)?;
        if has("gc_pause") {
            timeline.read_pauses(recording)?;
        }
        if has("gc") {
            timeline.read_collections(recording)?;
        }
        if has("activity") {
            timeline.read_activities(recording)?;
        }
        if has("counter") {
            timeline.read_counters(recording)?;
        }
        Ok(timeline)
    }

    /// Whether there is neither an interval nor a value.
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty() && self.counters.is_empty()
    }

    fn read_names(&mut self, recording: &Recording<'_>) -> Result<()> {
        let mut texts = HeldTexts::of(recording, "process");
        // An id that was given out again is shown once, by its last owner.
        each_row::<ProcessName<'_>>(recording, ROW_STORED, |row| {
            let (name, command_line) = (row.name, row.command_line);
            self.processes.insert(row.process_id, (texts.copy(name)?, texts.copy(command_line)?));
            Ok(())
        })?;
        let mut texts = HeldTexts::of(recording, "thread");
        each_row::<ThreadName<'_>>(recording, ROW_STORED, |row| {
            self.threads.insert((row.process_id, row.thread_id), texts.copy(row.name.unwrap_or_default())?);
            Ok(())
        })?;
        Ok(())
    }

    fn read_pauses(&mut self, recording: &Recording<'_>) -> Result<()> {
        let mut texts = HeldTexts::of(recording, "gc_pause");
        each_row::<Stop<'_>>(recording, ROW_STORED, |stop| {
            // Stops for the sampler or a debugger are no pauses.
            let (order, lane) = if stop.pause().is_some() { (0, "Pauses") } else { (1, "Other stops") };
            let content = Content::new(stop.reason.unwrap_or("pause"), "pause").id("gc_id", stop.gc_id.into());
            let content = content.signed("suspend_ns", Some(stop.suspend_ns));
            let lane = (stop.process_id, order, lane.to_owned());
            self.add(lane, stop.start_ts_ns, Some(stop.end_ns()), content, &mut texts)
        })
    }

    fn read_collections(&mut self, recording: &Recording<'_>) -> Result<()> {
        let mut texts = HeldTexts::of(recording, "gc");
        each_row::<Collection<'_>>(recording, ROW_STORED, |row| {
            let process = row.process_id;
            let mut name = row.generation.map_or("collection".to_owned(), |generation| format!("gen {generation}"));
            if let Some(kind @ ("background" | "foreground")) = row.kind {
                name = format!("{name} {kind}");
            }
            let content = Content::new(&name, "gc")
                .id("gc_id", row.gc_id.into())
                .text("reason", row.reason.unwrap_or_default())
                .signed("pause_ns", row.paused_ns())
                .amount("size_before_bytes", row.size_before_bytes)
                .amount("size_after_bytes", row.size_after_bytes)
                .amount("promoted_bytes", row.promoted_bytes);
            if let Some((end_ns, size)) = row.end_ts_ns.zip(row.size_after_bytes) {
                let counter = self.counters.entry((process, 0, "Heap after collections".to_owned())).or_default();
                counter.is_bytes = true;
                counter.values.push((end_ns, size as f64));
            }
            self.add((process, 1, "Collections".to_owned()), row.start_ts_ns, row.end_ts_ns, content, &mut texts)
        })
    }

    fn read_activities(&mut self, recording: &Recording<'_>) -> Result<()> {
        let mut texts = HeldTexts::of(recording, "activity");
        each_row::<Activity<'_>>(recording, ROW_STORED, |row| {
            let content = Content::new(row.name, row.provider_name)
                .id("thread_id", row.thread_id)
                .amount("status_code", row.status_code.map(u64::from))
                .text("outcome", row.outcome.unwrap_or_default())
                .text("result", row.result.unwrap_or_default())
                .text("activity_id", row.activity_id.unwrap_or_default())
                .text("parent_activity_id", row.parent_activity_id.unwrap_or_default())
                .text("start_fields", row.start_fields.unwrap_or_default());
            let lane = (row.process_id, 2, format!("{} {}", row.provider_name, row.name));
            self.add(lane, row.start_ts_ns, row.end_ts_ns, content, &mut texts)
        })
    }

    fn read_counters(&mut self, recording: &Recording<'_>) -> Result<()> {
        let mut texts = HeldTexts::of(recording, "counter");
        each_row::<CounterValue<'_>>(recording, ROW_STORED, |row| {
            let Some(value) = row.value.filter(|value| value.is_finite()) else { return Ok(()) };
            let mut name = format!("{} {}", row.provider_name, row.name);
            if let Some(tags) = row.tags.filter(|tags| !tags.is_empty()) {
                name = format!("{name} {{{tags}}}");
            }
            if let Some(quantile) = row.quantile {
                name = format!("{name} quantile {quantile}");
            }
            let (lane, unit) = ((row.process_id, 1, name), row.unit.unwrap_or_default());
            if !self.counters.contains_key(&lane) {
                texts.count(lane.2.len() + unit.len())?;
            }
            let counter = self.counters.entry(lane).or_default();
            if counter.unit.is_empty() {
                counter.unit = unit.to_owned();
            }
            counter.values.push((row.ts_ns, value));
            Ok(())
        })
    }

    fn add(
        &mut self,
        lane: Lane,
        start_ns: i64,
        end_ns: Option<i64>,
        content: Content,
        texts: &mut HeldTexts<'_>,
    ) -> Result<()> {
        texts.count(content.0.len())?;
        if !self.intervals.contains_key(&lane) {
            texts.count(lane.2.len())?;
        }
        let content = content.0.into_boxed_slice();
        self.intervals.entry(lane).or_default().push(Interval { start_ns, end_ns, content });
        Ok(())
    }

    /// Writes the trace: a sequence of packets, with the CPU samples of the profile.
    pub fn write(&self, profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = Writer { out, start_ns: profile.start_us.saturating_mul(1000), tracks: 0, packet: Vec::new() };
        writer.clocks()?;
        let mut of_process = BTreeMap::new();
        for (id, (name, command_line)) in &self.processes {
            of_process.insert(*id, writer.process(*id, name, command_line)?);
        }
        for ((process, id), name) in &self.threads {
            writer.thread(*process, *id, name)?;
        }
        for ((process, _, name), intervals) in &self.intervals {
            writer.intervals(of_process.get(process).copied(), name, intervals)?;
        }
        for ((process, _, name), counter) in &self.counters {
            writer.counter(of_process.get(process).copied(), name, counter)?;
        }
        if profile.what == What::Cpu {
            writer.samples(profile)?;
        }
        Ok(())
    }
}

/// The content of an event: fields of `TrackEvent`.
struct Content(Vec<u8>);

impl Content {
    fn new(name: &str, category: &str) -> Content {
        let mut out = Vec::new();
        string(&mut out, 22, category);
        string(&mut out, 23, name);
        Content(out)
    }

    fn note(mut self, name: &str, fill: impl FnOnce(&mut Vec<u8>)) -> Content {
        message(&mut self.0, 4, |note| {
            string(note, 10, name);
            fill(note);
        });
        self
    }

    /// An id; 0 means that there is no id, and is left out.
    fn id(self, name: &str, id: u64) -> Content {
        if id == 0 { self } else { self.note(name, |note| present(note, 3, id)) }
    }

    /// An amount that is known.
    fn amount(self, name: &str, amount: Option<u64>) -> Content {
        if let Some(number) = amount { self.note(name, |note| present(note, 3, number)) } else { self }
    }

    /// A time in nanoseconds that is known.
    fn signed(self, name: &str, ns: Option<i64>) -> Content {
        self.amount(name, ns.map(i64::cast_unsigned))
    }

    /// A text that is not null.
    fn text(self, name: &str, text: &str) -> Content {
        if text.is_empty() { self } else { self.note(name, |note| string(note, 6, text)) }
    }
}

struct Writer<'o> {
    out: &'o mut dyn Write,
    /// When the recording began, since 1970.
    start_ns: i64,
    /// Tracks so far, which are numbered from 1.
    tracks: u64,
    packet: Vec<u8>,
}

impl Writer<'_> {
    /// Writes a packet of a sequence.
    fn packet(&mut self, sequence: u64, fill: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.packet.clear();
        number(&mut self.packet, packet::SEQUENCE, sequence);
        fill(&mut self.packet);
        let mut head = Vec::with_capacity(12);
        super::protobuf::varint(&mut head, 1 << 3 | 2);
        super::protobuf::varint(&mut head, self.packet.len() as u64);
        self.out.write_all(&head)?;
        self.out.write_all(&self.packet)
    }

    /// Nanoseconds since 1970. What was before the recording, as far as that is possible.
    fn time(&self, ts_ns: i64) -> u64 {
        u64::try_from(self.start_ns.saturating_add(ts_ns)).unwrap_or_default()
    }

    /// Times are those of the clock on the wall, whatever Perfetto takes them for by default (the time since the system
    /// started).
    fn clocks(&mut self) -> io::Result<()> {
        let now = self.time(0);
        self.packet(EVENTS, |packet| {
            present(packet, packet::TIMESTAMP, now);
            message(packet, packet::CLOCK_SNAPSHOT, |snapshot| {
                // BUILTIN_CLOCK_BOOTTIME and BUILTIN_CLOCK_REALTIME.
                for clock in [6, 1] {
                    message(snapshot, 1, |message| {
                        number(message, 1, clock);
                        present(message, 2, now);
                    });
                }
            });
        })
    }

    /// A track with what `fill` says of it; its number.
    fn track(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> io::Result<u64> {
        self.tracks += 1;
        let track = self.tracks;
        self.packet(EVENTS, |packet| {
            message(packet, packet::TRACK_DESCRIPTOR, |descriptor| {
                number(descriptor, 1, track);
                fill(descriptor);
            });
        })?;
        Ok(track)
    }

    fn process(&mut self, id: u64, name: &str, command_line: &str) -> io::Result<u64> {
        let name = if name.is_empty() { format!("Process {id}") } else { name.to_owned() };
        self.track(|descriptor| {
            if id == 0 {
                // Perfetto takes the process 0 for the idle one of Linux.
                return string(descriptor, 2, &name);
            }
            message(descriptor, 3, |process| {
                number(process, 1, system_id(id));
                if !command_line.is_empty() {
                    string(process, 2, command_line);
                }
                string(process, 6, &name);
            });
        })
    }

    fn thread(&mut self, process: u64, id: u64, name: &str) -> io::Result<()> {
        if process == 0 || id == 0 {
            return Ok(());
        }
        self.track(|descriptor| {
            message(descriptor, 4, |thread| {
                number(thread, 1, system_id(process));
                number(thread, 2, system_id(id));
                if !name.is_empty() {
                    string(thread, 5, name);
                }
            });
        })?;
        Ok(())
    }

    /// A track with a name below a process.
    fn named(&mut self, parent: Option<u64>, name: &str, fill: impl FnOnce(&mut Vec<u8>)) -> io::Result<u64> {
        self.track(|descriptor| {
            number(descriptor, 5, parent.unwrap_or_default());
            string(descriptor, 2, name);
            fill(descriptor);
        })
    }

    fn event(&mut self, track: u64, kind: Kind, ts_ns: i64, fill: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let time = self.time(ts_ns);
        self.packet(EVENTS, |packet| {
            present(packet, packet::TIMESTAMP, time);
            message(packet, packet::TRACK_EVENT, |event| {
                number(event, 9, kind as u64);
                number(event, 11, track);
                fill(event);
            });
        })
    }

    /// Intervals that overlap are on tracks of their own, which Perfetto shows as one because they have one name:
    /// within a track each end would be taken for that of the interval that began last.
    fn intervals(&mut self, parent: Option<u64>, name: &str, intervals: &[Interval]) -> io::Result<()> {
        let mut order: Vec<&Interval> = intervals.iter().collect();
        order.sort_by_key(|interval| (interval.start_ns, interval.end_ns));
        // Tracks by when they are free.
        let mut free: BinaryHeap<Reverse<(i64, u64)>> = BinaryHeap::new();
        for interval in order {
            let end_ns = interval.end_ns.map(|end_ns| end_ns.max(interval.start_ns));
            let track = match free.peek() {
                Some(Reverse((until, track))) if *until <= interval.start_ns => {
                    let track = *track;
                    free.pop();
                    track
                }
                _ => self.named(parent, name, |_| {})?,
            };
            let Some(end_ns) = end_ns else {
                // An interval without an end is a mark: else it would last until the recording ends.
                self.event(track, Kind::Instant, interval.start_ns, |event| {
                    event.extend_from_slice(&interval.content)
                })?;
                free.push(Reverse((interval.start_ns, track)));
                continue;
            };
            self.event(track, Kind::Begin, interval.start_ns, |event| event.extend_from_slice(&interval.content))?;
            self.event(track, Kind::End, end_ns, |_| {})?;
            free.push(Reverse((end_ns, track)));
        }
        Ok(())
    }

    fn counter(&mut self, parent: Option<u64>, name: &str, counter: &Counter) -> io::Result<()> {
        let track = self.named(parent, name, |descriptor| {
            message(descriptor, 8, |counted| match counter.is_bytes {
                true => number(counted, 3, UNIT_BYTES),
                false if !counter.unit.is_empty() => string(counted, 6, &counter.unit),
                false => {}
            });
        })?;
        let mut values: Vec<&(i64, f64)> = counter.values.iter().collect();
        values.sort_by_key(|(ts_ns, _)| *ts_ns);
        for (ts_ns, value) in values {
            self.event(track, Kind::Counter, *ts_ns, |event| double(event, 44, *value))?;
        }
        Ok(())
    }

    /// The samples of all threads in the order of time. What a sample names comes with the first one that does.
    fn samples(&mut self, profile: &Profile) -> io::Result<()> {
        let mut order: Vec<(i64, u32, u32)> = Vec::new();
        for (thread, samples) in (0..).zip(&profile.threads) {
            order.extend((0..).zip(&samples.samples).map(|(at, sample)| (sample.ts_ns, thread, at)));
        }
        order.sort_unstable();
        let mut interned = Interned::of(profile);
        for (count, (ts_ns, thread, at)) in (1..).zip(order) {
            let Some(thread) = profile.threads.get(thread as usize) else { continue };
            let Some(sample) = thread.samples.get(at as usize) else { continue };
            let time = self.time(ts_ns);
            let data = interned.data(profile, sample.callsite);
            self.packet(SAMPLES, |packet| {
                present(packet, packet::TIMESTAMP, time);
                // Interned values begin anew with the first packet, and the others need it.
                number(packet, packet::SEQUENCE_FLAGS, if count == 1 { 1 } else { 2 });
                if !data.is_empty() {
                    bytes(packet, packet::INTERNED_DATA, &data);
                }
                message(packet, packet::PERF_SAMPLE, |message| {
                    number(message, 2, system_id(thread.process_id));
                    number(message, 3, system_id(thread.thread_id));
                    number(message, 4, sample.callsite.into());
                    number(message, 6, count);
                });
            })?;
        }
        Ok(())
    }
}

/// Ids of processes and threads have 32 bits in Perfetto.
fn system_id(id: u64) -> u64 {
    id & u64::from(u32::MAX)
}

/// The values of a profile that were written: ids in the trace are places in its lists, from 1.
struct Interned {
    files: Strings,
    callsites: Vec<bool>,
    frames: Vec<bool>,
    functions: Vec<bool>,
    written_files: u64,
}

impl Interned {
    fn of(profile: &Profile) -> Interned {
        Interned {
            files: Strings::default(),
            callsites: vec![false; profile.callsites.len()],
            frames: vec![false; profile.frames.len()],
            functions: vec![false; profile.functions.len()],
            written_files: 0,
        }
    }

    /// The message `InternedData` with what a call site needs and was not written before.
    fn data(&mut self, profile: &Profile, callsite: u32) -> Vec<u8> {
        let mut out = Vec::new();
        if !is_first(&mut self.callsites, callsite) {
            return out;
        }
        // The outermost frame comes first.
        let frames = profile.stack_frames(callsite);
        for id in &frames {
            let Some(frame) = profile.frames.get(*id as usize).filter(|_| is_first(&mut self.frames, *id)) else {
                continue;
            };
            let Some(function) = profile.functions.get(frame.function as usize) else { continue };
            let file = self.files.index(&function.file) + 1;
            if file > self.written_files {
                self.written_files = file;
                interned(&mut out, 17, file, &function.file);
                message(&mut out, 19, |mapping| {
                    number(mapping, 1, file);
                    number(mapping, 7, file);
                });
            }
            if is_first(&mut self.functions, frame.function) {
                interned(&mut out, 5, u64::from(frame.function) + 1, &function.name);
                if !function.source.is_empty() {
                    interned(&mut out, 18, u64::from(frame.function) + 1, &function.source);
                }
            }
            message(&mut out, 6, |message| {
                number(message, 1, u64::from(*id) + 1);
                number(message, 2, u64::from(frame.function) + 1);
                number(message, 3, file);
                if !function.source.is_empty() {
                    number(message, 5, u64::from(frame.function) + 1);
                    number(message, 6, frame.line.into());
                }
            });
        }
        message(&mut out, 7, |stack| {
            number(stack, 1, callsite.into());
            // One by one: Perfetto does not read these packed.
            frames.iter().for_each(|frame| number(stack, 2, u64::from(*frame) + 1));
        });
        out
    }
}

/// An `InternedString` in a field of `InternedData`.
fn interned(out: &mut Vec<u8>, field: u64, id: u64, text: &str) {
    message(out, field, |message| {
        number(message, 1, id);
        string(message, 2, text);
    });
}

/// Whether this place was not asked for before.
fn is_first(written: &mut [bool], place: u32) -> bool {
    written.get_mut(place as usize).is_some_and(|written| !std::mem::replace(written, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Type, number and content of each field of a message; content of a number is its value.
    fn fields(mut message: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
        fn varint(message: &mut &[u8]) -> u64 {
            let mut value = 0;
            for shift in (0..).step_by(7) {
                let (byte, rest) = message.split_first().expect("a byte");
                *message = rest;
                value |= u64::from(byte & 0x7f) << shift;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            value
        }
        let mut found = Vec::new();
        while !message.is_empty() {
            let key = varint(&mut message);
            let (value, length) = match key & 7 {
                0 => (varint(&mut message), 0),
                1 => (0, 8),
                2 => (0, varint(&mut message) as usize),
                other => panic!("wire type {other}"),
            };
            let (content, rest) = message.split_at(length);
            found.push((key >> 3, value, content.to_vec()));
            message = rest;
        }
        found
    }

    fn one(message: &[u8], field: u64) -> (u64, Vec<u8>) {
        let found = fields(message).into_iter().find(|(number, ..)| *number == field);
        found.map(|(_, value, content)| (value, content)).unwrap_or_else(|| panic!("no field {field}"))
    }

    #[test]
    fn what_overlaps_is_on_tracks_of_its_own_and_what_has_no_end_is_a_mark() {
        let interval = |start_ns, end_ns| Interval { start_ns, end_ns, content: Content::new("x", "y").0.into() };
        let intervals = vec![
            interval(0, Some(10)),
            interval(5, Some(20)),
            interval(10, Some(12)),
            interval(11, None),
            interval(30, Some(30)),
        ];
        let timeline =
            Timeline { intervals: BTreeMap::from([((0, 0, "Pauses".to_owned()), intervals)]), ..Timeline::default() };
        let mut out = Vec::new();
        timeline.write(&Profile { start_us: 1, ..Profile::default() }, &mut out).unwrap();
        let packets: Vec<Vec<u8>> = fields(&out).into_iter().map(|(_, _, content)| content).collect();
        let tracks =
            packets.iter().filter(|packet| fields(packet).iter().any(|(field, ..)| *field == packet::TRACK_DESCRIPTOR));
        assert_eq!(tracks.count(), 3);
        // Of each track what is open: an end belongs to the one that is, whatever it is.
        let mut events: Vec<(u64, u64, u64)> = Vec::new();
        for packet in
            packets.iter().filter(|packet| fields(packet).iter().any(|(field, ..)| *field == packet::TRACK_EVENT))
        {
            let event = one(packet, packet::TRACK_EVENT).1;
            events.push((one(packet, packet::TIMESTAMP).0 - 1000, one(&event, 9).0, one(&event, 11).0));
        }
        events.sort_by_key(|(time, ..)| *time);
        let mut open: BTreeMap<u64, u64> = BTreeMap::new();
        let mut lengths = Vec::new();
        for (time, kind, track) in events {
            match kind {
                1 => assert_eq!(open.insert(track, time), None, "two at a time on track {track}"),
                2 => lengths.push(time - open.remove(&track).expect("it began")),
                _ => assert_eq!((kind, time), (3, 11)),
            }
        }
        lengths.sort_unstable();
        assert_eq!((lengths, open.len()), (vec![0, 2, 10, 15], 0));
    }

    #[test]
    fn a_name_is_written_once_and_before_it_is_needed() {
        let mut profile = Profile::of_chain(&["Main", "Load", "Main"], 2);
        profile.start_us = 1;
        let mut out = Vec::new();
        Timeline::default().write(&profile, &mut out).unwrap();
        let samples: Vec<Vec<u8>> = fields(&out).into_iter().map(|(_, _, content)| content).skip(1).collect();
        assert_eq!(samples.len(), 2);
        let data = one(&samples[0], packet::INTERNED_DATA).1;
        let stack = fields(&one(&data, 7).1).into_iter().filter(|(field, ..)| *field == 2).map(|(_, frame, _)| frame);
        assert_eq!(stack.collect::<Vec<_>>(), [1, 2, 3], "the outermost first, by ids from 1");
        assert!(fields(&samples[1]).iter().all(|(field, ..)| *field != packet::INTERNED_DATA));
        assert_eq!((one(&samples[0], packet::SEQUENCE_FLAGS).0, one(&samples[1], packet::SEQUENCE_FLAGS).0), (1, 2));
        assert_eq!(one(&one(&samples[1], packet::PERF_SAMPLE).1, 4).0, 3);
    }
}
