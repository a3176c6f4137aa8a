//! Reads a profile from the tables of a recording.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use tracequet_dataset::read::Recording;
use tracequet_trace::error::{Error, Result, did_you_mean};

use super::choice::{Choice, Filter};
use super::labels::Labels;
use super::model::{Code, Function, Pause, Profile, ProfileFrame, Sample, ThreadSamples, Unit, What};
use crate::allocation_source::rank;
use crate::lifetime::{Fate, Life, lifetimes};
use crate::rows::each;
use crate::{HeldTexts, held};

/// Memory of a row.
const ROW_STORED: u64 = size_of::<Sample>() as u64;

/// Reads all samples of a kind, as [`read_chosen`] does.
pub fn read(recording: &Recording<'_>, what: What) -> Result<Profile> {
    read_chosen(recording, &Choice::of(what))
}

/// Reads the samples that are chosen. They are held in memory: 24 bytes each, beside the call sites.
///
/// Fails when the recording lacks a table or column, or its call sites are not numbered one after the other.
pub fn read_chosen(recording: &Recording<'_>, choice: &Choice) -> Result<Profile> {
    let what = choice.what;
    let mut profile = Profile { name: recording.info().trace_id.clone(), what, ..Profile::default() };
    let mut sampling_ns = 0;
    each(recording, ROW_STORED, "trace", &["start_ts", "duration_ns", "sampling_ns"], |row| {
        profile.start_us = row.number(0).cast_signed();
        profile.duration_ns = row.number(1).cast_signed();
        sampling_ns = row.number(2);
        Ok(())
    })?;
    profile.sampling_ns = sampling_ns;
    callsites(recording, &mut profile)?;
    profile.pauses = pauses(recording)?;
    let filter = Filter::new(recording, choice)?;
    if let Some(is_meant) = meant(what) {
        return lived(recording, profile, &filter, is_meant);
    }
    let source = Source::of(recording, choice, sampling_ns)?;
    (profile.table, profile.unit, profile.weight) = (source.table.clone(), source.unit, choice.weight.clone());
    let mut columns = vec!["process_id", "thread_id", "callsite_id", source.time.as_str()];
    columns.extend(source.weight.as_deref());
    columns.extend(source.kind);
    // Where the kind stands.
    let kind = columns.len() - 1;
    let best = if what == What::Allocation { allocation_rank(recording)? } else { None };
    let mut threads: BTreeMap<(u64, u64), Vec<Sample>> = BTreeMap::new();
    let mut rounds = Rounds::default();
    let (sites, mut without_stack) = (profile.callsites.len() as u64, 0);
    let mut frames = Frames::of(&profile);
    each(recording, ROW_STORED, &source.table, &columns, |row| {
        let is_other = match what {
            // No thread wanted the processor.
            What::Cpu => row.text(kind) == "idle",
            What::Blocked => row.text(kind) != "blocked",
            // Lookups of precompiled code are no compilations.
            What::Jit => row.text(kind) != "jit",
            // Several kinds of samples stand for the same bytes.
            What::Allocation => rank(row.text(kind)) != best || best.is_none(),
            _ => false,
        };
        if is_other {
            return Ok(());
        }
        let (thread, ts_ns) = ((row.number(0), row.number(1)), row.number(3).cast_signed());
        if what == What::Cpu && matches!(row.text(kind), "managed" | "external" | "error") {
            rounds.see(thread, ts_ns);
        }
        if !filter.takes(thread, ts_ns) {
            return Ok(());
        }
        let callsite = row.number(2);
        if callsite == 0 || callsite >= sites {
            without_stack += 1;
            return Ok(());
        }
        frames.add(callsite as usize)?;
        let weight = if source.weight.is_some() { source.weighed(row.number(4)) } else { 1 };
        let sample = Sample { ts_ns, callsite: callsite as u32, weight };
        threads.entry(thread).or_default().push(sample);
        held(recording, "threads", threads.len() as u64, BYTES_PER_THREAD)
    })?;
    profile.without_stack = without_stack;
    if source.unit == Unit::Nanoseconds && what == What::Cpu && choice.weight.is_none() {
        rounds.weigh(&mut threads, sampling_ns);
        profile.sampling_ns = rounds.longest().unwrap_or(sampling_ns);
    }
    profile.threads = labelled(recording, threads)?;
    Ok(profile)
}

/// Where the rows of a kind are, and what they are weighed by.
struct Source {
    table: String,
    time: String,
    /// Without it each row counts once.
    weight: Option<String>,
    /// Whether the weight is signed: below 0 it counts as 0.
    is_signed: bool,
    unit: Unit,
    /// The column that says which rows of the table are of the kind.
    kind: Option<&'static str>,
}

/// Columns with the time of a row, the first one that a table has.
const TIMES: [&str; 3] = ["ts_ns", "start_ts_ns", "queue_ts_ns"];

impl Source {
    fn of(recording: &Recording<'_>, choice: &Choice, sampling_ns: u64) -> Result<Source> {
        let (table, weight, unit, kind) = match choice.what {
            // Weighed when all are there.
            What::Cpu if sampling_ns > 0 => ("cpu_sample", Some("sample_count"), Unit::Nanoseconds, Some("kind")),
            What::Cpu => ("cpu_sample", Some("sample_count"), Unit::Count, Some("kind")),
            What::Allocation | What::Survivors | What::Gen2Deaths | What::Live => {
                ("allocation", Some("allocation_bytes"), Unit::Bytes, Some("source"))
            }
            What::Exception => ("exception", None, Unit::Count, None),
            What::Contention => ("contention", Some("duration_ns"), Unit::Nanoseconds, None),
            What::Blocked => ("thread_time", Some("duration_ns"), Unit::Nanoseconds, Some("state")),
            What::Wait => ("wait", Some("duration_ns"), Unit::Nanoseconds, None),
            What::Jit => ("method_compilation", Some("duration_ns"), Unit::Nanoseconds, Some("kind")),
            What::Rows => (choice.table.as_str(), None, Unit::Count, None),
        };
        // Names of events mean the same in whatever case.
        let same = recording.tables().find(|known| known.name.eq_ignore_ascii_case(table));
        let table = same.map_or(table, |known| known.name.as_str());
        let schema = recording.table(table)?.scan().batches()?.schema();
        let path = || recording.table(table).map(|table| table.path().to_owned()).unwrap_or_default();
        let no = |what: String, expected: &str| Error::Dataset { path: path(), what, expected: expected.to_owned() };
        let has = |name: &str| schema.field_with_name(name).is_ok();
        if let Some(missing) = ["process_id", "thread_id", "callsite_id"].into_iter().find(|name| !has(name)) {
            return Err(no(format!("the table {table} has no {missing}"), "one with threads and call stacks"));
        }
        let time = TIMES.into_iter().find(|name| has(name));
        let time = time.ok_or_else(|| no(format!("the table {table} has no time"), "a column ts_ns"))?.to_owned();
        let (weight, unit) = match choice.weight.as_deref() {
            None => (weight, unit),
            Some(column) if column.ends_with("_ns") => (Some(column), Unit::Nanoseconds),
            Some(column) if column.ends_with("bytes") => (Some(column), Unit::Bytes),
            Some(column) => (Some(column), Unit::Count),
        };
        let weight = weight.map(str::to_owned);
        let mut is_signed = false;
        if let Some(column) = &weight {
            let missing = |found: String| {
                let numbers = schema.fields().iter().filter(|field| field.data_type().is_integer());
                let near = did_you_mean(column, numbers.map(|field| field.name().as_str()));
                let expected = format!("a column of {table} with whole numbers{near}");
                Error::MissingColumn { column: column.clone(), found, expected }
            };
            let field = schema.field_with_name(column).map_err(|_| missing("not there".into()))?;
            if !field.data_type().is_integer() {
                return Err(missing(format!("of type {}", field.data_type())));
            }
            is_signed = field.data_type().is_signed_integer();
        }
        Ok(Source { table: table.to_owned(), time, weight, is_signed, unit, kind })
    }

    fn weighed(&self, bits: u64) -> u64 {
        if self.is_signed { u64::try_from(bits.cast_signed()).unwrap_or_default() } else { bits }
    }
}

/// Which lives are meant, where it is allocations whose objects lived so.
fn meant(what: What) -> Option<fn(&Life) -> bool> {
    match what {
        What::Survivors => Some(|life| life.survived_first() == Some(true)),
        What::Gen2Deaths => Some(Life::died_old),
        What::Live => Some(|life| life.fate == Fate::Alive),
        _ => None,
    }
}

/// Allocations whose objects lived as is meant, by bytes.
fn lived(
    recording: &Recording<'_>,
    mut profile: Profile,
    filter: &Filter<'_>,
    is_meant: fn(&Life) -> bool,
) -> Result<Profile> {
    profile.unit = Unit::Bytes;
    let mut threads: BTreeMap<(u64, u64), Vec<Sample>> = BTreeMap::new();
    let mut frames = Frames::of(&profile);
    let (sites, mut without_stack) = (profile.callsites.len() as u64, 0);
    lifetimes(recording, |lifetime| {
        let (sample, thread) = (lifetime.sample, (lifetime.sample.process_id, lifetime.sample.thread_id));
        if !is_meant(lifetime.life) || !filter.takes(thread, sample.ts_ns) {
            return Ok(());
        }
        let callsite = sample.callsite_id;
        if callsite == 0 || u64::from(callsite) >= sites {
            without_stack += 1;
            return Ok(());
        }
        frames.add(callsite as usize)?;
        let weight = lifetime.bytes().unwrap_or_default();
        threads.entry(thread).or_default().push(Sample { ts_ns: sample.ts_ns, callsite, weight });
        held(recording, "threads", threads.len() as u64, BYTES_PER_THREAD)
    })?;
    profile.without_stack = without_stack;
    profile.threads = labelled(recording, threads)?;
    Ok(profile)
}

/// The samples of each thread in the order of time, with its label.
fn labelled(recording: &Recording<'_>, threads: BTreeMap<(u64, u64), Vec<Sample>>) -> Result<Vec<ThreadSamples>> {
    let (labels, mut texts) = (Labels::read(recording)?, HeldTexts::of(recording, "thread"));
    let threads = threads.into_iter().map(|((process_id, thread_id), mut samples)| {
        samples.sort_by_key(|sample| sample.ts_ns);
        let label = texts.copy(&labels.of(process_id, thread_id))?;
        Ok(ThreadSamples { process_id, thread_id, label, samples })
    });
    threads.collect::<Result<_>>()
}

/// The rank of the samples that allocations are counted by.
fn allocation_rank(recording: &Recording<'_>) -> Result<Option<u8>> {
    let mut best: Option<u8> = None;
    each(recording, ROW_STORED, "allocation", &["source"], |row| {
        let found = rank(row.text(0));
        best = best.into_iter().chain(found).min();
        Ok(())
    })?;
    Ok(best)
}

/// How often the runtime's sampler came round. It takes a sample of every thread each time, and comes less often than it is
/// meant to: the time between two is the one that is observed.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// Of each thread how many samples there are, and when the first and the last one was taken.
    threads: HashMap<(u64, u64), (u64, i64, i64), RandomState>,
}

impl Rounds {
    /// A sample of a thread, by its process and id.
    pub(crate) fn see(&mut self, thread: (u64, u64), ts_ns: i64) {
        let (count, first, last) = self.threads.entry(thread).or_insert((0, ts_ns, ts_ns));
        (*count, *first, *last) = (*count + 1, (*first).min(ts_ns), (*last).max(ts_ns));
    }

    /// The time between two samples of each process: that of the thread with the most samples.
    pub(crate) fn intervals(&self) -> HashMap<u64, u64, RandomState> {
        let mut most: HashMap<u64, (u64, u64), RandomState> = HashMap::default();
        for ((process, _), (count, first, last)) in &self.threads {
            let between = count.saturating_sub(1);
            let span = last.saturating_sub(*first).cast_unsigned();
            let known = most.entry(*process).or_default();
            *known = (*known).max((between, span));
        }
        let interval = |(process, (between, span)): (u64, (u64, u64))| Some((process, span.checked_div(between)?));
        most.into_iter().filter_map(interval).filter(|(_, interval)| *interval > 0).collect()
    }

    /// Threads that were seen.
    pub(crate) fn threads(&self) -> usize {
        self.threads.len()
    }

    fn longest(&self) -> Option<u64> {
        self.intervals().into_values().max()
    }

    /// Samples become time; those of a kernel, which do not come in rounds, by the interval that was asked for.
    fn weigh(&self, threads: &mut BTreeMap<(u64, u64), Vec<Sample>>, nominal: u64) {
        let intervals = self.intervals();
        for (thread, samples) in threads {
            let own = self.threads.contains_key(thread).then(|| intervals.get(&thread.0)).flatten();
            let interval = own.copied().unwrap_or(nominal);
            samples.iter_mut().for_each(|sample| sample.weight = sample.weight.saturating_mul(interval));
        }
    }
}

/// What a thread takes beside its samples: its label, and room for the next samples.
const BYTES_PER_THREAD: u64 = 512;

/// Frames of all samples, each of which may be written with its whole stack.
const MAX_FRAMES: u64 = 4 << 30;

/// How many frames the samples of a profile have, which a damaged dataset can make endless.
struct Frames {
    /// Of each call site.
    depths: Vec<u32>,
    all: u64,
}

impl Frames {
    fn of(profile: &Profile) -> Frames {
        let mut depths: Vec<u32> = Vec::with_capacity(profile.callsites.len());
        for (parent, _) in &profile.callsites {
            // A caller comes before its callees; the first one is no call site.
            depths.push(depths.get(*parent as usize).map_or(0, |depth| depth.saturating_add(1)));
        }
        Frames { depths, all: 0 }
    }

    fn add(&mut self, callsite: usize) -> Result<()> {
        self.all = self.all.saturating_add(self.depths.get(callsite).copied().unwrap_or_default().into());
        if self.all > MAX_FRAMES {
            return Err(Error::TooLarge("call stacks of more than 4 billion frames together are not written".into()));
        }
        Ok(())
    }
}

/// Call sites, with frames of the same name as one function.
fn callsites(recording: &Recording<'_>, profile: &mut Profile) -> Result<()> {
    let mut by_name: HashMap<(String, String, String), u32, RandomState> = HashMap::default();
    let mut by_line: HashMap<ProfileFrame, u32, RandomState> = HashMap::default();
    let mut functions: Vec<Function> = Vec::new();
    let mut frames = Vec::new();
    let mut of_frame: Vec<u32> = vec![0];
    let mut texts = HeldTexts::of(recording, "frame");
    let columns = ["frame_id", "name", "assembly", "kind", "file", "line", "line_kind", "is_framework"];
    each(recording, ROW_STORED, "frame", &columns, |row| {
        if row.number(0) != of_frame.len() as u64 {
            return Err(row.wrong("frames that are not numbered one after the other"));
        }
        let (name, assembly) = (row.text(1), row.text(2));
        let file = if assembly.is_empty() { name.split_once('!').map_or("", |(file, _)| file) } else { assembly };
        let (source, line) = (row.text(4), row.number(5) as u32);
        let key = (name.to_owned(), file.to_owned(), source.to_owned());
        let function = match by_name.entry(key) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let code = match row.text(3) {
                    "managed" => Code::Managed,
                    "native" => Code::Native,
                    "kernel" => Code::Kernel,
                    _ => Code::Unknown,
                };
                let (name, file, source) = (texts.copy(name)?, texts.copy(file)?, texts.copy(source)?);
                let is_framework = row.number(7) == 1;
                functions.push(Function { name, file, source, start_line: 0, code, is_framework });
                *new.insert((functions.len() - 1) as u32)
            }
        };
        // Without the line of the address there is that of the method.
        let line = match row.text(6) {
            "exact" => line,
            _ => {
                if let Some(function) = functions.get_mut(function as usize) {
                    function.start_line = line;
                }
                0
            }
        };
        let frame = ProfileFrame { function, line };
        let frame = *by_line.entry(frame).or_insert_with(|| {
            frames.push(frame);
            (frames.len() - 1) as u32
        });
        of_frame.push(frame);
        Ok(())
    })?;
    let mut callsites = vec![(0, 0)];
    each(recording, ROW_STORED, "callsite", &["callsite_id", "parent_callsite_id", "frame_id"], |row| {
        let (id, parent, frame) = (row.number(0), row.number(1), row.number(2));
        let frame = usize::try_from(frame).ok().and_then(|frame| of_frame.get(frame)).copied();
        let (true, true, Some(frame)) = (id == callsites.len() as u64, parent < id, frame) else {
            return Err(row.wrong("a call site that does not follow the one before and its caller"));
        };
        callsites.push((parent as u32, frame));
        Ok(())
    })?;
    (profile.functions, profile.frames, profile.callsites) = (functions, frames, callsites);
    Ok(())
}

/// Pauses for collections; none when the dataset lacks their table.
fn pauses(recording: &Recording<'_>) -> Result<Vec<Pause>> {
    let mut pauses = Vec::new();
    if recording.tables().any(|table| table.name == "gc_pause") {
        each(
            recording,
            ROW_STORED,
            "gc_pause",
            &["process_id", "start_ts_ns", "duration_ns", "gc_id", "kind"],
            |row| {
                if row.text(4) == "gc" {
                    pauses.push(Pause {
                        process_id: row.number(0),
                        start_ns: row.number(1).cast_signed(),
                        duration_ns: row.number(2).cast_signed(),
                        gc_id: row.number(3),
                    });
                }
                Ok(())
            },
        )?;
    }
    pauses.sort_by_key(|pause| pause.start_ns);
    Ok(pauses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stand_for_the_time_between_two_that_is_observed() {
        let (mut rounds, mut threads) = (Rounds::default(), BTreeMap::new());
        let sample = |ts_ns| Sample { ts_ns, callsite: 1, weight: 1 };
        // A thread from the beginning to the end, a short one, and one of a process that was seen once.
        for (thread, times) in [((1, 10), (0..=500).collect::<Vec<i64>>()), ((1, 11), vec![7, 90]), ((2, 20), vec![5])]
        {
            for time in times {
                let ts_ns = time * 10_000_000;
                rounds.see(thread, ts_ns);
                threads.entry(thread).or_insert_with(Vec::new).push(sample(ts_ns));
            }
        }
        threads.entry((3, 30)).or_default().push(sample(1));
        rounds.weigh(&mut threads, 1_000_000);
        let weight = |thread: (u64, u64)| threads[&thread].iter().map(|sample| sample.weight).sum::<u64>();
        assert_eq!((weight((1, 10)), weight((1, 11))), (5_010_000_000, 20_000_000));
        assert_eq!((weight((2, 20)), weight((3, 30))), (1_000_000, 1_000_000), "as it was meant to be");
        assert_eq!(rounds.longest(), Some(10_000_000));
    }

    #[test]
    fn stacks_that_take_forever_to_write_are_refused() {
        // A chain of a million calls, and a sample in each.
        let callsites = (0..1u32 << 20).map(|n| (n.saturating_sub(1), 0)).collect();
        let profile = Profile { callsites, ..Profile::default() };
        let mut frames = Frames::of(&profile);
        assert_eq!((frames.depths[0], frames.depths[1], frames.depths[1000]), (0, 1, 1000));
        let refused = (0..1 << 20).position(|callsite| frames.add(callsite).is_err());
        assert!(refused.is_some_and(|at| (90_000..100_000).contains(&at)), "{refused:?}");
    }
}
