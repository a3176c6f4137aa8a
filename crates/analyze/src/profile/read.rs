//! Reads a profile from the tables of a recording.

use std::collections::hash_map::Entry;

use tracequet_dataset::read::Column;
use tracequet_trace::error::did_you_mean;

use super::choice::{Choice, Filter};
use super::labels::Labels;
use super::model::{Code, Function, OfWhat, Profile, ProfileFrame, Sample, ThreadSamples, Unit, What};
use crate::lifetime::{Fate, Life, lifetimes};
use crate::prelude::*;
use crate::rows::wrong;
use crate::subjects::allocations;
use crate::subjects::pauses::Pauses;
use crate::subjects::processor::{self, Processor, State};
use crate::subjects::sites::{is_of_framework, unsure};

/// The table of sampled allocations.
const ALLOCATION: &str = "allocation";

row!(struct Trace of trace { start_ts, duration_ns, sampling_ns });

row!(struct FrameRow of frame {
    frame_id, name, written_name, inlined_into, may_belong_to, assembly, kind, file, line, line_kind, is_framework
});

row!(struct CallsiteRow of callsite { callsite_id, parent_callsite_id, frame_id });

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
    each_row::<Trace<'_>>(recording, ROW_STORED, |row| {
        (profile.start_us, profile.duration_ns, profile.sampling_ns) = (row.start_ts, row.duration_ns, row.sampling_ns);
        Ok(())
    })?;
    if what == What::Heap {
        return super::heap::read(recording, profile);
    }
    callsites(recording, &mut profile)?;
    profile.pauses = Pauses::read(recording)?.all().copied().collect();
    let filter = Filter::new(recording, choice)?;
    if let Some(is_meant) = meant(what) {
        return lived(recording, profile, &filter, is_meant);
    }
    let mut taken = Taken::of(recording, &filter, &profile);
    if choice.weight.is_none() && what == What::Cpu {
        let found = Processor::of(recording)?;
        (profile.table, profile.unit) =
            (processor::TABLE.to_owned(), if found.is_time() { Unit::Nanoseconds } else { Unit::Count });
        profile.sampling_ns = found.interval_ns();
        profile.waiting = found.each(recording, choice.samples, |sample| {
            taken.take((sample.process_id, sample.thread_id), sample.ts_ns, sample.callsite_id, sample.weight)
        })?;
    } else if choice.weight.is_none() && what == What::Allocation {
        (profile.table, profile.unit) = (ALLOCATION.to_owned(), Unit::Bytes);
        allocations::each(recording, |row| {
            let bytes = row.allocation_bytes.unwrap_or_default();
            taken.take((row.process_id, row.thread_id), row.ts_ns, row.callsite_id, bytes)
        })?;
    } else {
        let source = Source::of(recording, choice)?;
        source.read(recording, choice, &mut taken)?;
        (profile.table, profile.unit, profile.weight) = (source.table, source.unit, choice.weight.clone());
    }
    taken.into_profile(&mut profile)?;
    Ok(profile)
}

/// Samples that are taken into a profile.
struct Taken<'r, 'd> {
    recording: &'r Recording<'d>,
    filter: &'r Filter<'r>,
    threads: BTreeMap<(u64, u64), Vec<Sample>>,
    frames: Frames,
    places: Vec<u32>,
    rows: u64,
    without_stack: u64,
}

impl<'r, 'd> Taken<'r, 'd> {
    fn of(recording: &'r Recording<'d>, filter: &'r Filter<'r>, profile: &Profile) -> Taken<'r, 'd> {
        let (threads, frames) = (BTreeMap::new(), Frames::of(profile));
        Taken { recording, filter, threads, frames, places: profile.places.clone(), rows: 0, without_stack: 0 }
    }

    /// A sample of a thread, if it is chosen.
    fn take(&mut self, thread: (u64, u64), ts_ns: i64, callsite: u32, weight: u64) -> Result<()> {
        self.rows += 1;
        held(self.recording, "samples", self.rows, ROW_STORED)?;
        if !self.filter.takes(thread, ts_ns) {
            return Ok(());
        }
        let Some(callsite) = self.places.get(callsite as usize).copied().filter(|place| *place > 0) else {
            self.without_stack += 1;
            return Ok(());
        };
        self.frames.add(callsite as usize)?;
        self.threads.entry(thread).or_default().push(Sample { ts_ns, callsite, weight });
        held(self.recording, "threads", self.threads.len() as u64, BYTES_PER_THREAD)
    }

    /// All samples were seen: those of each thread in the order of time, with its label.
    fn into_profile(self, profile: &mut Profile) -> Result<()> {
        let (labels, mut texts) = (Labels::read(self.recording)?, HeldTexts::of(self.recording, "thread"));
        let threads = self.threads.into_iter().map(|((process_id, thread_id), mut samples)| {
            samples.sort_by_key(|sample| sample.ts_ns);
            let label = texts.copy(&labels.of(process_id, thread_id))?;
            Ok(ThreadSamples { process_id, thread_id, label, samples })
        });
        (profile.threads, profile.without_stack) = (threads.collect::<Result<_>>()?, self.without_stack);
        Ok(())
    }
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
    of: &'static OfWhat,
}

/// Columns with the time of a row, the first one that a table has.
const TIMES: [&str; 3] = ["ts_ns", "start_ts_ns", "queue_ts_ns"];

impl Source {
    fn of(recording: &Recording<'_>, choice: &Choice) -> Result<Source> {
        let of = choice.what.of()?;
        let (table, weight, unit) = (&of.table, of.weight.as_deref(), of.unit);
        let table = if choice.what == What::Rows { choice.table.as_str() } else { table };
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
        Ok(Source { table: table.to_owned(), time, weight, is_signed, unit, of })
    }

    /// Takes the rows that are of the kind.
    fn read(&self, recording: &Recording<'_>, choice: &Choice, taken: &mut Taken<'_, '_>) -> Result<()> {
        // Several kinds of samples stand for the same bytes.
        let best = if choice.what == What::Allocation { allocations::best(recording)? } else { None };
        let is_meant = |kind: Option<&str>| match choice.what {
            What::Cpu => choice.samples.has(State::of(kind)),
            What::Blocked => kind == Some("blocked"),
            // Lookups of precompiled code are no compilations.
            What::Jit => kind == Some("jit"),
            What::Allocation => best.is_some() && kind.and_then(allocations::rank) == best,
            _ => self.of.only.is_none() || kind == self.of.only.as_deref(),
        };
        let of_rows = ["process_id", "thread_id", "callsite_id", self.time.as_str()];
        let names: Vec<&str> =
            of_rows.into_iter().chain(self.weight.as_deref()).chain(self.of.kind.as_deref()).collect();
        for batch in recording.table(&self.table)?.scan().columns(names).batches()? {
            let batch = batch?;
            let column = |name: &str| Column::of(&batch, name);
            let (process, thread, callsite) = (column("process_id")?, column("thread_id")?, column("callsite_id")?);
            let (time, kind) = (column(&self.time)?, self.of.kind.as_deref().map(column).transpose()?);
            let weight = self.weight.as_deref().map(column).transpose()?;
            for row in 0..batch.num_rows() {
                if !is_meant(kind.as_ref().and_then(|kind| kind.text(row))) {
                    continue;
                }
                let number = |column: &Column<'_>| column.number(row).unwrap_or_default();
                let weight = weight.as_ref().map_or(1, |weight| self.weighed(number(weight)));
                let callsite = u32::try_from(number(&callsite)).unwrap_or(u32::MAX);
                taken.take((number(&process), number(&thread)), number(&time).cast_signed(), callsite, weight)?;
            }
        }
        Ok(())
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
    let mut taken = Taken::of(recording, filter, &profile);
    lifetimes(recording, |lifetime| {
        if !is_meant(lifetime.life) {
            return Ok(());
        }
        let (sample, bytes) = (lifetime.sample, lifetime.bytes().unwrap_or_default());
        taken.take((sample.process_id, sample.thread_id), sample.ts_ns, sample.callsite_id, bytes)
    })?;
    taken.into_profile(&mut profile)?;
    Ok(profile)
}

/// Bytes of a thread beside its samples: its label, and room for the next samples.
const BYTES_PER_THREAD: u64 = 512;

/// Frames of all samples, each of which may be written with its whole stack.
const MAX_FRAMES: u64 = 4 << 30;

/// The number of frames in the samples of a profile, which a damaged dataset can make endless.
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

/// Functions, each once, and frames, each once for a line.
struct Functions<'r> {
    texts: HeldTexts<'r>,
    by_name: Map<(String, String, String), u32>,
    by_line: Map<ProfileFrame, u32>,
    functions: Vec<Function>,
    frames: Vec<ProfileFrame>,
}

impl Functions<'_> {
    /// The function of a name, which a person writes in this way. `file` is its assembly or file, `source` its source file.
    fn function(
        &mut self,
        [name, written, file, source]: [&str; 4],
        code: Code,
        is_framework: Option<bool>,
    ) -> Result<u32> {
        match self.by_name.entry((name.to_owned(), file.to_owned(), source.to_owned())) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(new) => {
                let (name, file) = (self.texts.copy(name)?, self.texts.copy(file)?);
                let source = self.texts.copy(source)?;
                let is_the_same =
                    name.strip_prefix(written).is_some_and(|rest| rest.is_empty() || rest.starts_with('('));
                let written = if is_the_same { String::new() } else { self.texts.copy(written)? };
                self.functions.push(Function { name, written, file, source, start_line: 0, code, is_framework });
                Ok(*new.insert((self.functions.len() - 1) as u32))
            }
        }
    }

    fn frame(&mut self, function: u32, line: u32) -> u32 {
        let frame = ProfileFrame { function, line };
        *self.by_line.entry(frame).or_insert_with(|| {
            self.frames.push(frame);
            (self.frames.len() - 1) as u32
        })
    }
}

/// Call sites, with frames of the same name as one function. One whose address belongs to a method that the compiler
/// put into another one is two: that of the code, and below it that of the method. So is one that may belong to such a
/// method or to the code itself.
fn callsites(recording: &Recording<'_>, profile: &mut Profile) -> Result<()> {
    let mut all = Functions {
        texts: HeldTexts::of(recording, "frame"),
        by_name: Map::default(),
        by_line: Map::default(),
        functions: Vec::new(),
        frames: Vec::new(),
    };
    let mut of_frame: Vec<u32> = vec![0];
    // By the name as it was written: methods with code of their own, and those of frames that are in other code.
    let mut written: Map<String, u32> = Map::default();
    let mut inlined: BTreeMap<u32, (String, u32)> = BTreeMap::new();
    let mut below: Map<u32, u32> = Map::default();
    each_row::<FrameRow<'_>>(recording, ROW_STORED, |row| {
        if row.frame_id as usize != of_frame.len() {
            return Err(wrong(recording, "frame", "frames that are not numbered one after the other"));
        }
        let (name, assembly) = (row.name, row.assembly.unwrap_or_default());
        let file = if assembly.is_empty() { name.split_once('!').map_or("", |(file, _)| file) } else { assembly };
        let code = match row.kind {
            "managed" => Code::Managed,
            "native" => Code::Native,
            "kernel" => Code::Kernel,
            _ => Code::Unknown,
        };
        // An inlined method of the user may lie in code of the framework: `is_framework` is that of the code.
        let is_framework = row.inlined_into.map_or(row.is_framework, |host| Some(is_of_framework(host)));
        let function =
            all.function([name, row.written_name, file, row.file.unwrap_or_default()], code, is_framework)?;
        // Without the line of the address there is that of the method.
        let line = match (row.line_kind, row.line.unwrap_or_default()) {
            (Some("exact"), line) => line,
            (_, line) => {
                if let Some(function) = all.functions.get_mut(function as usize) {
                    function.start_line = line;
                }
                0
            }
        };
        if row.inlined_into.is_some() {
            inlined.insert(row.frame_id, (all.texts.copy(row.written_name)?, function));
        } else if row.is_framework == Some(false) && !written.contains_key(row.written_name) {
            written.insert(all.texts.copy(row.written_name)?, function);
        }
        if let Some(others) = row.may_belong_to {
            let function = all.function([&unsure(row.written_name, others), row.written_name, file, ""], code, None)?;
            below.insert(row.frame_id, all.frame(function, 0));
        }
        of_frame.push(all.frame(function, line));
        Ok(())
    })?;
    for (frame_id, (name, host)) in inlined {
        let function = match written.get(&name) {
            Some(known) => *known,
            None => {
                let file = all.functions.get(host as usize).map_or_else(String::new, |host| host.file.clone());
                all.function([&name, &name, &file, ""], Code::Managed, Some(false))?
            }
        };
        below.insert(frame_id, all.frame(function, 0));
    }
    let (mut callsites, mut places) = (vec![(0, 0)], vec![0u32]);
    each_row::<CallsiteRow<'_>>(recording, ROW_STORED, |row| {
        let (id, frame) = (row.callsite_id, of_frame.get(row.frame_id as usize).copied());
        let above = places.get(row.parent_callsite_id as usize).copied();
        let (true, Some(above), Some(frame)) = (id as usize == places.len(), above, frame) else {
            return Err(wrong(recording, "callsite", "a call site that does not follow the one before and its caller"));
        };
        callsites.push((above, frame));
        if let Some(frame) = below.get(&row.frame_id) {
            callsites.push(((callsites.len() - 1) as u32, *frame));
        }
        places.push((callsites.len() - 1) as u32);
        Ok(())
    })?;
    (profile.functions, profile.frames, profile.callsites) = (all.functions, all.frames, callsites);
    profile.places = places;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
