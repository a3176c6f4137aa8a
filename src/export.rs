//! `tracequet export`: call stacks for other tools.

use std::io::{BufWriter, Write};

use anyhow::Context;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tracequet::analyze::present::times;
use tracequet::analyze::profile::{Choice, Export, Profile, ProfileFormat, What, read_chosen};
use tracequet::analyze::subjects::processor::Samples;

use super::asked::WhichArgs;
use super::opened::{self, Opened};
use super::output::{check_output, create_output};
use super::prelude::*;
use super::text::counted;

/// The description of the command.
pub const ABOUT: &str = "Writes the call stacks of CPU samples, allocations (of all objects, or of those that survive, die in generation 2 or stay), exceptions, waits for locks, other waits, blocked threads, compilations, or the rows of any table with call stacks as a profile that \
            other tools open: speedscope (all threads together and each alone), folded stacks for flame graphs, pprof, the Firefox \
            Profiler (with the pauses of the process), Perfetto (CPU samples with pauses, collections, activities and counters), or OpenTelemetry (OTLP, with \
            the span of each sample).\n\n\
            IN is a dataset made by convert, or a recording.";

/// Examples of the command line.
pub const EXAMPLES: &str = "\
Examples:
  tracequet export app.nettrace -o app.speedscope.json
  tracequet export app --what allocation --own --format folded --top 10
  tracequet export app --format folded --by-thread | flamegraph.pl > app.svg
  tracequet export app --format pprof --what allocation -o app.pb; go tool pprof app.pb
  tracequet export after.nettrace --base before.nettrace --format folded | flamegraph.pl > diff.svg
  tracequet export app.nettrace --symbols bin --format firefox -o app.json
  tracequet export app.nettrace --format perfetto -o app.pftrace
  tracequet export app.nettrace --what allocation --format otlp -o app.otlp
  tracequet export app --what wait --from 12s --to 14s --format folded
  tracequet export app.gcdump --what heap --format folded | flamegraph.pl > heap.svg
  tracequet export app --what event/Shop/Priced --weight cents --format pprof -o app.pb
  tracequet export app --what wait --request 00c07d1c-0000-0000-0000-0000e34d5e5a --from 5.3s --to 5.4s";

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Dataset (a directory) or recording
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// Form of the profile
    #[arg(long, default_value = "speedscope", value_parser = formats())]
    pub format: ProfileFormat,
    /// Kind of samples: cpu, allocation, survivors, gen2-deaths, live, exception, contention, wait, blocked, jit, heap,
    /// or a table
    ///
    /// cpu: CPU samples. allocation: allocations, by bytes, of the samples that the view allocation_source names;
    /// survivors, gen2-deaths and live: those of objects that survived their first collection, died in generation 2 or
    /// among large or pinned objects, or are alive at the end. exception: exceptions. contention: waits for locks, by
    /// time. wait: other waits, by time. blocked: time in which threads were blocked, of an .etl with context switches.
    /// jit: compilations, by time. heap: bytes of the last heap dump, below the types of the objects that keep them
    /// alive. Any table with call stacks, such as event/PROVIDER/NAME or thread_pool_work: its
    /// rows, each counting once.
    #[arg(long, value_name = "KIND|TABLE", default_value = "cpu", value_parser = Choice::parse)]
    pub what: Choice,
    /// Which CPU samples: of threads that ran, or all, also those outside of managed code, which wait or run native
    /// code
    #[arg(long, value_enum, default_value_t = SamplesArg::Running)]
    pub samples: SamplesArg,
    /// Weigh rows by this column of their table, which has whole numbers
    #[arg(long, value_name = "COLUMN")]
    pub weight: Option<String>,
    /// Only what happened at or after this time since the start: 12.5, 12.5s, 300ms, 1m30s; waits by their beginning
    #[arg(long, value_name = "TIME", value_parser = times::parse)]
    pub from: Option<i64>,
    /// Only what happened before this time since the start
    #[arg(long, value_name = "TIME", value_parser = times::parse)]
    pub to: Option<i64>,
    /// Only the thread with this OS id, or the threads with this name
    #[arg(long, value_name = "ID|NAME")]
    pub thread: Option<String>,
    /// Only what threads did for a request: its activity_id, or its path, as the views request_time and thread_activity
    /// have them, or the id of a trace or span (W3C, 32 or 16 digits)
    ///
    /// The runtime gives an id to one request after another: --from and --to choose one of them.
    #[arg(long, value_name = "ACTIVITY")]
    pub request: Option<String>,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    pub overwrite: bool,
    /// Write how the samples differ from those of this recording or dataset: folded stacks with both weights, or a
    /// pprof in which those of BASE are negative
    #[arg(long, value_name = "BASE")]
    pub base: Option<PathBuf>,
    /// Write only this many folded stacks: those with the largest weights, the largest first
    #[arg(long, value_name = "COUNT", conflicts_with = "base")]
    pub top: Option<usize>,
    /// Begin each folded stack with its thread; the other formats always separate threads
    #[arg(long)]
    pub by_thread: bool,
    /// Directory with symbols for source lines and names of native code, if IN is a recording; repeatable
    ///
    /// A dataset already has the lines and names of its conversion.
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
    /// Make frames of the framework that call each other one; with GLOB nothing else is your own code, if IN is a
    /// recording
    #[arg(long, value_name = "GLOB", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub own: Option<String>,
    #[command(flatten)]
    pub which: WhichArgs,
}

choices! {
    /// Which CPU samples are exported.
    pub enum SamplesArg for Samples {
        /// Of threads that ran: processor time
        Running,
        /// Also of threads outside of managed code, which wait or run native code
        All,
    }
}

/// Why there is nothing to export.
fn nothing(profile: &Profile, choice: &Choice) -> Result<String, Error> {
    let of = choice.what.of()?;
    let (key, how) = (&profile.name, &of.how);
    let name = if choice.what == What::Rows { format!("rows of {}", choice.table) } else { of.title.clone() };
    Ok(if choice.is_of_some() {
        let all = "without --from, --to, --thread and --request there may be some";
        format!("the recording {key} has no such {name} with call stacks; {all}")
    } else if profile.waiting > 0 {
        let samples = counted(profile.waiting, "sample is of a thread", "samples are of threads");
        let all = "outside of managed code, which nearly always waits; --samples all exports them";
        format!("of the recording {key} all {samples} {all}")
    } else {
        format!("the recording {key} has no {name} with call stacks; {how}")
    })
}

/// Exports from a dataset, or from a recording that is converted for it.
pub fn run(args: &ExportArgs) -> anyhow::Result<Outcome> {
    let (choice, format) = (args.choice(), args.format);
    let tables = Export::tables(&choice, format)?;
    if args.top.is_some() && args.format != ProfileFormat::Folded {
        return Err(Error::Usage("--top chooses among folded stacks, expected --format folded".into()).into());
    }
    check_output(args.output.as_deref(), args.overwrite)?;
    let opened = args.open(&args.input, &tables)?;
    let recording = opened.dataset.recording(args.which.trace.as_deref())?;
    let mut export = Export::read(&recording, &choice, format)?;
    if args.own.is_some() {
        export.profile.fold_framework();
    }
    let profile = &export.profile;
    if profile.without_stack > 0 {
        let samples = counted(profile.without_stack, "sample has", "samples have");
        print_note(&format!("{samples} no call stack and are left out\n"))?;
    }
    if export.is_empty() {
        anyhow::bail!("there is nothing to export: {}", nothing(profile, &choice)?);
    }
    if profile.waiting > 0 {
        let samples = counted(profile.waiting, "sample", "samples");
        print_note(&format!(
            "{samples} of threads outside of managed code, which nearly always wait, left out: see --samples all\n"
        ))?;
    }
    let base = args.base.as_deref().map(|path| args.read_base(path, &choice, profile)).transpose()?;
    let write = |out: &mut dyn Write| match (args.top, &base) {
        (Some(most), _) => export.profile.write_largest(args.by_thread, most, out),
        (None, Some((base, _))) => export.write_difference(base, args.by_thread, out),
        (None, None) => export.write(args.by_thread, out),
    };
    let outcome = Outcome::with_losses(opened.losses || base.as_ref().is_some_and(|(_, losses)| *losses));
    let Some(path) = &args.output else {
        let mut out = BufWriter::new(std::io::stdout().lock());
        let written = write(&mut out).and_then(|()| out.flush());
        return outcome.printed(written.context(super::failure::Output("standard output")));
    };
    let mut out = BufWriter::new(create_output(path, args.overwrite)?);
    let written = write(&mut out).and_then(|()| out.flush());
    written.with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(outcome)
}

impl ExportArgs {
    /// The profile that another one is compared with, and whether its recording has losses.
    fn read_base(&self, path: &Path, choice: &Choice, new: &Profile) -> anyhow::Result<(Profile, bool)> {
        if !matches!(self.format, ProfileFormat::Folded | ProfileFormat::Pprof) {
            return Err(Error::Usage("a difference (--base) is written with --format folded or pprof".into()).into());
        }
        let opened = self.open(path, &choice.tables())?;
        let mut base = read_chosen(&opened.dataset.recording(None)?, choice)?;
        if base.unit != new.unit && !base.threads.is_empty() {
            let what = "of one recording it is known how far apart its samples are, and of the other it is not, so that they cannot be compared";
            return Err(Error::Usage(what.into()).into());
        }
        if self.own.is_some() {
            base.fold_framework();
        }
        Ok((base, opened.losses))
    }

    fn open(&self, input: &Path, tables: &[&str]) -> anyhow::Result<Opened> {
        let own = self.own.iter().filter(|pattern| !pattern.is_empty()).cloned().collect();
        let asked = AskedArgs { which: self.which.clone(), own: OwnArgs { own, not_own: Vec::new() } };
        opened::open(input, tables, &asked, asked.request().symbols(self.symbols.iter().cloned()))
    }

    fn choice(&self) -> Choice {
        Choice {
            weight: self.weight.clone(),
            samples: self.samples.into(),
            from_ns: self.from,
            to_ns: self.to,
            thread: self.thread.clone(),
            activity: self.request.clone(),
            ..self.what.clone()
        }
    }
}

/// Reads the word of a format.
fn formats() -> impl TypedValueParser<Value = ProfileFormat> {
    let values = ProfileFormat::ALL.map(|format| PossibleValue::new(format.as_str()).help(format.about()));
    PossibleValuesParser::new(values).try_map(|word| ProfileFormat::parse(&word))
}
