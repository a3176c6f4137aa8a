//! `tracequet export`: call stacks for other tools.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use crate::analyze::lifetime;
use crate::analyze::profile::{ProfileFormat, TABLES, What, read};
use crate::facts::code::own::OwnCode;
use anyhow::Context;
use clap::{Args, ValueEnum};

use super::opened;
use super::output::{Outcome, print_note};
use super::text::counted;

/// What the command does.
pub const ABOUT: &str = "Writes the call stacks of CPU samples, allocations (of all objects, or of those that survive, die in generation 2 or stay), exceptions, waits for locks or blocked threads as a profile that \
            other tools open: speedscope (all threads together and each alone), folded stacks for flame graphs, pprof, or the Firefox \
            Profiler (with the pauses of the process).\n\n\
            IN is a dataset made by convert, or a recording.";

/// Examples of the command line.
pub const EXAMPLES: &str = "\
Examples:
  tracequet export app.nettrace -o app.speedscope.json
  tracequet export app --format folded --by-thread | flamegraph.pl > app.svg
  tracequet export app --format pprof --what allocation -o app.pb; go tool pprof app.pb
  tracequet export app.nettrace --symbols bin --format firefox -o app.json";

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Dataset (a directory) or recording
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// Form of the profile
    #[arg(long, value_enum, default_value_t = FormatArg::Speedscope)]
    pub format: FormatArg,
    /// Kind of samples
    #[arg(long, value_enum, default_value_t = WhatArg::Cpu)]
    pub what: WhatArg,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    pub overwrite: bool,
    /// Begin each folded stack with its thread; the other formats always separate threads
    #[arg(long)]
    pub by_thread: bool,
    /// Directory with symbols for source lines and names of native code, if IN is a recording; repeatable
    ///
    /// A dataset already has the lines and names of its conversion.
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
    /// Make frames of the framework that call each other one; with GLOB nothing else is your own code, if IN is a recording
    #[arg(long, value_name = "GLOB", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub own: Option<String>,
    /// Recording in a dataset of several: its trace_id
    #[arg(long, value_name = "KEY")]
    pub trace: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// JSON for speedscope.app
    Speedscope,
    /// A line for each stack, for flame graphs
    Folded,
    /// Protocol buffer of pprof, not compressed
    Pprof,
    /// JSON for profiler.firefox.com
    Firefox,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WhatArg {
    /// CPU samples
    Cpu,
    /// Allocations, by bytes, of the samples that the view allocation_source names
    Allocation,
    /// Allocations of objects that survived their first collection, by bytes
    Survivors,
    /// Allocations of objects that died in generation 2, or among large or pinned objects, by bytes
    Gen2Deaths,
    /// Allocations of objects that are alive at the end, by bytes
    Live,
    /// Exceptions
    Exception,
    /// Waits for locks, by time
    Contention,
    /// Time in which threads were blocked; of an .etl with context switches
    Blocked,
}

/// What the samples of a kind are called, and how they are recorded.
fn recorded(what: WhatArg) -> (&'static str, &'static str) {
    match what {
        WhatArg::Cpu => (
            "CPU samples",
            "they are recorded with the provider Microsoft-DotNETCore-SampleProfiler, or with `collect --for cpu`",
        ),
        WhatArg::Allocation => (
            "allocations",
            "they are recorded with the keyword 0x80000000000 of .NET 10, with 0x1 at level 5 of older runtimes, or with `collect --for allocations`",
        ),
        WhatArg::Survivors | WhatArg::Gen2Deaths | WhatArg::Live => (
            "allocations of such objects",
            "they are recorded with allocations, their stacks, and the ranges that survive: `collect --for lifetimes`",
        ),
        WhatArg::Exception => (
            "exceptions",
            "they are recorded with the keyword 0x8000 of the runtime, or with `collect --for exceptions`",
        ),
        WhatArg::Contention => (
            "waits for locks",
            "they are recorded with the keyword 0x4000 of the runtime, or with `collect --for contention`",
        ),
        WhatArg::Blocked => (
            "blocked threads",
            "they are in an .etl with context switches of the kernel, as PerfView records with /ThreadTime",
        ),
    }
}

/// Exports from a dataset, or from a recording that is converted for it.
pub fn run(args: &ExportArgs) -> anyhow::Result<Outcome> {
    let (what, format) = (args.what(), args.format());
    let mut tables = TABLES.to_vec();
    if matches!(args.what, WhatArg::Survivors | WhatArg::Gen2Deaths | WhatArg::Live) {
        tables.extend(lifetime::TABLES.iter().filter(|table| !TABLES.contains(table)));
    }
    let opened = opened::open_with_symbols(&args.input, &tables, &args.symbols, args.patterns())?;
    let recording = opened.dataset.recording(args.trace.as_deref())?;
    let mut profile = read(&recording, what)?;
    if args.own.is_some() {
        profile.fold_framework();
    }
    if profile.without_stack > 0 {
        let samples = counted(profile.without_stack, "sample has", "samples have");
        print_note(&format!("{samples} no call stack and are left out\n"))?;
    }
    if profile.threads.is_empty() {
        let (name, how) = recorded(args.what);
        let key = &recording.info().trace_id;
        anyhow::bail!("there is nothing to export: the recording {key} has no {name} with call stacks; {how}");
    }
    let outcome = Outcome::with_losses(opened.losses);
    let Some(path) = &args.output else {
        let mut out = BufWriter::new(std::io::stdout().lock());
        let written = profile.write(format, args.by_thread, &mut out).and_then(|()| out.flush());
        return outcome.printed(written.map_err(|e| super::failure::Output::new("standard output", e).into()));
    };
    let mut options = File::options();
    options.write(true).create(args.overwrite).create_new(!args.overwrite).truncate(args.overwrite);
    let file = options.open(path).with_context(|| format!("{} cannot be made", path.display()))?;
    let mut out = BufWriter::new(file);
    let written = profile.write(format, args.by_thread, &mut out).and_then(|()| out.flush());
    written.with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(outcome)
}

impl ExportArgs {
    fn patterns(&self) -> OwnCode {
        let own = self.own.iter().filter(|pattern| !pattern.is_empty()).cloned().collect();
        OwnCode { own, ..OwnCode::default() }
    }

    fn what(&self) -> What {
        match self.what {
            WhatArg::Cpu => What::Cpu,
            WhatArg::Allocation => What::Allocation,
            WhatArg::Survivors => What::Survivors,
            WhatArg::Gen2Deaths => What::Gen2Deaths,
            WhatArg::Live => What::Live,
            WhatArg::Exception => What::Exception,
            WhatArg::Contention => What::Contention,
            WhatArg::Blocked => What::Blocked,
        }
    }

    fn format(&self) -> ProfileFormat {
        match self.format {
            FormatArg::Speedscope => ProfileFormat::Speedscope,
            FormatArg::Folded => ProfileFormat::Folded,
            FormatArg::Pprof => ProfileFormat::Pprof,
            FormatArg::Firefox => ProfileFormat::Firefox,
        }
    }
}
