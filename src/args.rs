//! The commands and their options for clap, with their help.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tracequet::analyze::present::times;
use tracequet::{AddressType, Compression, DatasetLayout, Format};

use super::check::CheckArgs;
use super::choices::choices;
use super::cohorts::CohortsArgs;
use super::dataset::DatasetArgs;
use super::diff::DiffArgs;
use super::egress::EgressArgs;
use super::explain::ExplainArgs;
use super::export::ExportArgs;
use super::heap::HeapArgs;
use super::lifetimes::LifetimesArgs;
use super::live::args::{LiveArgs, PsArgs, ServiceArgs};
use super::own::OwnArgs;
use super::report::ReportArgs;
use super::stats::StatsArgs;
use super::survived::SurvivedArgs;
use super::values;

const ABOUT: &str = "Turns recordings of .NET processes (.nettrace, .netperf, .etl, .gcdump, .corprof, live ETW) into Parquet and Arrow tables";

const LONG_ABOUT: &str = "\
Turns recordings of .NET processes into Parquet and Arrow tables.

Inputs, recognized by their first bytes:
  .nettrace, .netperf  EventPipe: files of dotnet-trace, dotnet-monitor and DOTNET_EnableEventPipe=1
  .etl                 Windows event logs, on any system; also .etl.zip, .etlgz, .diagsession
  .gcdump              heap dumps of dotnet-gcdump and PerfView, version 9 and later
  .corprof             profiler callbacks, written by tracequet's recorder or by your own profiler
  running processes    `tracequet collect`: through the diagnostics port, or ETW on Windows
Files may be packed as .gz, .zst or .zip; - reads standard input.

Output is a directory of tables: collections and their pauses, surviving and moved ranges, the heap graph, types, methods \
and stacks, one table for each kind of event, and a table of everything that was lost or damaged.";

const EXIT_CODES: &str = "\
Exit codes:
  0  everything was read
  1  usage error, or no recording could be read
  2  everything readable was read, but events were lost, a recording is damaged or cut off, a payload \
does not fit its description, or one of several recordings could not be read. The summary and the table diagnostic have details.
     Skipped recordings do not affect the exit code
  130, 143  ended by Ctrl+C (SIGINT) or SIGTERM; unfinished output is removed";

/// Payloads are not decoded here; what could not be is no loss of the recording.
const INSPECT_EXIT_CODES: &str = "\
Exit codes:
  0  everything was read
  1  usage error, or nothing could be read
  2  everything readable was read, but events were lost, or the recording is damaged or cut off";

const EXAMPLES: &str = "\
Examples:
  tracequet inspect app.nettrace             its contents and losses
  tracequet convert app.nettrace -o app      all tables, as Parquet, in the directory app
  tracequet schema gc                        the meaning of the columns
  duckdb -c \"FROM 'app/gc.parquet'\"          query it";

#[derive(Debug, Parser)]
#[command(
    name = "tracequet",
    bin_name = "tracequet",
    version,
    about = ABOUT,
    long_about = LONG_ABOUT,
    after_help = EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"),
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write the tables of one or more recordings into a directory
    #[command(
        long_about = "Writes the tables of one or more recordings into a directory.\n\n\
            One recording gives OUT/<table>.parquet. Several, a directory or a pattern give \
            OUT/<table>/trace=<key>/part-0.parquet, with the key also in the column trace_id. The key comes from the name and the \
            content of the recording. The directory appears when it is complete, and not at all after a failure. With \
            --append each recording appears when it is complete, and the next run continues a killed one.\n\n\
            If one of several recordings cannot be read, it is a line of the summary, a row of the table trace with \
            status = failed, and exit code 2.",
        after_help = CONVERT_EXAMPLES,
        after_long_help = format!("{CONVERT_EXAMPLES}\n\n{EXIT_CODES}")
    )]
    Convert(Box<ConvertArgs>),
    /// Record running processes, and write their tables
    #[command(
        long_about = "Records events of running processes and writes their tables into a directory, without a recording \
            file in between.\n\n\
            Records one process through its diagnostics port (-p, -n, --port, or a program after --), or with --etw all .NET \
            processes of a Windows machine, until the process ends, Ctrl+C, --duration, --max-size \
            or --stop-on. The tables are written during the recording. Lost events are reported in the summary and in the \
            table diagnostic, and by exit code 2.",
        after_help = COLLECT_EXAMPLES,
        after_long_help = format!("{COLLECT_EXAMPLES}\n\n{EXIT_CODES}"),
        mut_arg("output", |output| {
            let without = clap::builder::ArgPredicate::IsPresent;
            output.required(false).required_unless_present("dry_run").default_value_if("dry_run", without, ".")
        })
    )]
    Collect(Box<CollectArgs>),
    /// Record a process again and again: at intervals, or when something happens
    #[command(
        long_about = "Records a process again and again into a dataset of several recordings: once in a time, or when something \
            happens.\n\n\
            Waits for the process; attaches again after a restart. SIGTERM or Ctrl+C ends it when the recording that runs is in the \
            dataset. Each recording ends after --duration. docs/LIVE.md describes it.",
        after_help = WATCH_EXAMPLES,
        after_long_help = format!("{WATCH_EXAMPLES}\n\n{EXIT_CODES}"),
        mut_arg("duration", |duration| duration.required(true)),
        mut_args(of_collect)
    )]
    Watch(Box<WatchArgs>),
    /// List the .NET processes that can be recorded
    #[command(
        long_about = "Lists the .NET processes that can be recorded with collect, and those that cannot be \
            reached, with the reason.",
        after_help = PS_EXAMPLES
    )]
    Ps(PsArgs),
    /// Show the contents of a recording: process, providers, events, collections, losses
    #[command(
        long_about = "Shows the contents of a recording of any format: process, providers, kinds of events, threads, collections, and \
            losses.\n\nThe recording is read once and not decoded, which takes at most about a second even for a \
            large one.",
        after_help = INSPECT_EXAMPLES,
        after_long_help = format!("{INSPECT_EXAMPLES}\n\n{INSPECT_EXIT_CODES}")
    )]
    Inspect(InspectArgs),
    /// Show the fate of an object in a collection: alive, moved (to where), dead, or not collected
    #[command(
        long_about = "Shows the fate of the object at an address in a collection: alive, moved (and to where), dead, \
            not collected (its generation was not collected, so it stays, alive or not), never collected (it is in the \
            non-GC heap), or unknown, with the reason. \
            With --follow also its fate in later collections.\n\nIN is a dataset made by \
            convert, or a recording. The address is one before the collection, anywhere in an object.",
        after_help = SURVIVED_EXAMPLES
    )]
    Survived(SurvivedArgs),
    /// Show the metrics of recordings: pauses, allocations, exceptions, compilations
    #[command(long_about = super::stats::ABOUT, after_help = super::stats::EXAMPLES)]
    Stats(StatsArgs),
    /// Check rules about the metrics of recordings: bounds, and comparisons with a baseline
    #[command(long_about = super::check::ABOUT, after_help = super::check::EXAMPLES)]
    Check(CheckArgs),
    /// Show what changed between recordings: own methods, heap, findings, metrics
    #[command(alias = "compare", long_about = super::diff::ABOUT, after_help = super::diff::EXAMPLES)]
    Diff(DiffArgs),
    /// List, remove, label, expire, compact or verify the recordings of a dataset, or repair its summary
    #[command(after_help = super::dataset::EXAMPLES)]
    Dataset(DatasetArgs),
    /// Show which types fill the heap, what they retain, and what keeps an object alive
    #[command(long_about = super::heap::ABOUT, after_help = super::heap::EXAMPLES)]
    Heap(HeapArgs),
    /// Say what is wrong in recordings, the most important first, with your own code and the next step
    #[command(long_about = super::explain::ABOUT, after_help = super::explain::EXAMPLES)]
    Explain(ExplainArgs),
    /// Write call stacks for other tools: speedscope, flame graphs, pprof, Firefox Profiler, Perfetto
    #[command(long_about = super::export::ABOUT, after_help = super::export::EXAMPLES)]
    Export(ExportArgs),
    /// Show which code and types allocate what survives, is promoted, dies in generation 2, or stays
    #[command(long_about = super::lifetimes::ABOUT, after_help = super::lifetimes::EXAMPLES)]
    Lifetimes(LifetimesArgs),
    /// Write a recording as one HTML page that opens from disk
    #[command(long_about = super::report::ABOUT, after_help = super::report::EXAMPLES)]
    Report(ReportArgs),
    /// Show how many bytes survive how many collections
    #[command(
        long_about = "Shows survival over time: how many of the bytes that were allocated before a collection are alive after \
            it and after later ones.\n\nIN is a dataset made by convert, or a recording, with the ranges that survived \
            (collect --for gc-survival, or the keyword 0x400000 of the runtime). Bytes whose generation was not collected count \
            as alive. Bytes whose fate is not recorded are counted separately, as unknown.",
        after_help = super::cohorts::EXAMPLES
    )]
    Cohorts(CohortsArgs),
    /// Print the tables, the meaning of each column, and the layouts of event payloads
    #[command(
        long_about = "Prints the tables of this version of tracequet with type, unit and meaning of each column; with \
            --events, the layouts of a provider's events in every version.",
        after_help = SCHEMA_EXAMPLES
    )]
    Schema(SchemaArgs),
    /// Store tables for dotnet-monitor, as one of its egress extensions
    #[command(
        alias = "Egress",
        long_about = "Stores the tables of what dotnet-monitor collects, as one of its egress extensions: dotnet-monitor starts it with \
            its settings and a recording as standard input. docs/FLEETS.md has the settings."
    )]
    Egress(EgressArgs),
    /// Print the guide for agents: which command answers which question, how to read it, what not to conclude
    #[command(after_help = "Examples:\n  tracequet guide > skills/tracequet/SKILL.md")]
    Guide,
    /// Print completions for a shell, or a manual page
    #[command(hide = true, after_help = GENERATE_EXAMPLES)]
    Generate(GenerateArgs),
}

const CONVERT_EXAMPLES: &str = "\
Examples:
  tracequet convert app.nettrace -o app
  tracequet convert app.nettrace -o app --tables gc,gc_pause,diagnostic
  tracequet convert app.nettrace -o app --from 1m30s --to 2m
  tracequet convert night/ -o night --jobs 0 --compression zstd:9
  tracequet convert traces/ -o lake --append --label branch=main --label commit=$(git rev-parse HEAD)
  find . -name '*.etl' | tracequet convert --files-from - -o lake --append
  ssh server cat app.nettrace.gz | tracequet convert - -o app --json > app.json";

const COLLECT_EXAMPLES: &str = "\
Examples:
  tracequet collect -p 1234 --for gc -o app                                     until Ctrl+C
  tracequet collect --for cpu,exceptions -o app -- dotnet app.dll --port 80     from its first instruction
  tracequet collect -n app --for gc-survival --duration 30s --keep app.nettrace -o app
  tracequet collect -p 1234 --stop-on 'gc.pause>200ms' -o app
  tracequet collect -p 1234 --heap -o heap
  tracequet collect --etw --duration 30s -o app
  tracequet collect --etw --process MyApp.exe -o app
  tracequet collect --etw --providers Microsoft-Windows-DotNETRuntime:0x1980001,My-EventSource-GUID -o app";

const WATCH_EXAMPLES: &str = "\
Examples:
  tracequet watch -n orders --duration 10s --every 5m -o lake
  tracequet watch -n orders --for cpu,gc --duration 20s --every 10m --when 'gc.pause > 200ms' --keep-for 7d -o lake
  tracequet watch --port /diagnostics/orders --for gc --duration 10s --every 5m -o /lake/orders";

/// Options of `collect` that one recording has and `watch` has not.
fn of_collect(arg: clap::Arg) -> clap::Arg {
    let others = "etw keywords session process program heap_at_end keep dry_run counters append follow overwrite";
    let is_other = others.split(' ').any(|other| arg.get_id() == other);
    if is_other { arg.hide(true).conflicts_with("every") } else { arg }
}

const PS_EXAMPLES: &str = "\
Examples:
  tracequet ps
  tracequet ps --json | jq '.[] | select(.problem == null) | .process_id'";

const SURVIVED_EXAMPLES: &str = "\
Examples:
  tracequet survived app 12 0x7f3b2c001020
  tracequet survived app.corprof 12 0x7f3b2c001020 --follow
  tracequet survived night 12 0x7f3b2c001020 --trace app-1a2b3c4d5e6f7081
  cd app; duckdb -init views.sql -c \"SELECT survived(12, '0x7f3b2c001020'), address_after(12, '0x7f3b2c001020')\"";

const INSPECT_EXAMPLES: &str = "\
Examples:
  tracequet inspect app.nettrace
  tracequet inspect app.nettrace --all | less
  tracequet inspect app.nettrace --json | jq '.event_types[] | select(.decoded_by == \"raw\")'
  curl -s https://example.org/app.nettrace.zst | tracequet inspect -";

const SCHEMA_EXAMPLES: &str = "\
Examples:
  tracequet schema                                             all tables
  tracequet schema gc_surviving_range                          one table
  tracequet schema --format markdown > TABLES.md
  tracequet schema --events                                    providers in the catalogue
  tracequet schema --events Microsoft-Windows-DotNETRuntime    their events";

const GENERATE_EXAMPLES: &str = "\
Examples:
  tracequet generate man > tracequet.1
  tracequet generate man convert > tracequet-convert.1
  tracequet generate bash > /etc/bash_completion.d/tracequet";

#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// Recordings: .nettrace, .netperf, .etl, .gcdump, .corprof, packed or not; directories with recordings in them or
    /// below; quoted patterns ('night/**/*.nettrace'); addresses (s3://bucket/night/, with the feature cloud); - is
    /// standard input
    #[arg(value_name = "IN", required_unless_present = "files_from")]
    pub inputs: Vec<PathBuf>,
    /// Also read the recordings listed in this file, one per line; - is standard input
    #[arg(long, value_name = "FILE")]
    pub files_from: Option<PathBuf>,
    /// Add to the dataset OUT, or create it; recordings that it already has are skipped
    #[arg(long, conflicts_with = "overwrite")]
    pub append: bool,
    /// With --append: convert recordings again that another version of tracequet or other options converted
    #[arg(long, requires = "append")]
    pub refresh: bool,
    /// Take the SHA-256 of each recording, too (column sha256 of trace)
    #[arg(long)]
    pub sha256: bool,
    /// Label the recordings; repeatable. Labels are rows of the table trace_label
    #[arg(long, value_name = "NAME=VALUE", value_parser = values::label)]
    pub label: Vec<(String, String)>,
    /// Stop at the first of several recordings that cannot be read
    #[arg(long)]
    pub fail_fast: bool,
    /// Number of recordings to convert at the same time; 0: as many as processors. The output does not depend on it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub jobs: usize,
    /// Write the tables of small recordings together in few files, as dataset compact does; for datasets of several
    /// recordings
    #[arg(long)]
    pub pack: bool,
    /// Memory for recordings converted at the same time: 500MB, 2GB [default: half of the free memory]
    #[arg(long, value_name = "BYTES", value_parser = values::size)]
    pub memory: Option<u64>,
    /// Read only events of these providers [default: all]
    ///
    /// Tables that are made from events of other providers stay empty.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub providers: Vec<String>,
    /// Read only events of these processes, by name or id [default: all]
    ///
    /// An .etl holds all processes of a machine. Names are known only when kernel events of processes were recorded.
    /// Kernel events belong to the process that they describe; events of the whole machine belong to each process.
    #[arg(long, value_name = "NAME|PID,...", value_delimiter = ',', value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub process: Vec<String>,
    /// Instrumentation manifest (.man) with the events of a provider in an .etl, or a directory of them; repeatable
    ///
    /// Formats of trace messages (WPP), .tmf, are read in the same way.
    #[arg(long, visible_alias = "tmf", value_name = "FILE|DIR")]
    pub manifest: Vec<PathBuf>,
    /// Read only events at or after this time since the start: 12.5, 12.5s, 300ms, 1m30s
    ///
    /// Modules, methods and types are those of the whole recording.
    #[arg(long, value_name = "TIME", value_parser = times::parse)]
    pub from: Option<i64>,
    /// Read only events before this time since the start
    #[arg(long, value_name = "TIME", value_parser = times::parse)]
    pub to: Option<i64>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The options of a dataset.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Directory to write the tables into, or an address (s3://bucket/lake, with the feature cloud)
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Write only these tables [default: all]
    ///
    /// `figures` means what rules and comparisons of many recordings need: trace, trace_label, diagnostic, metric,
    /// finding, process, gc, gc_pause, event_type, session_provider. `event` means the tables of all kinds of events,
    /// `event/<provider>` and `event/<provider>/<event>` some of them.
    #[arg(long, value_name = "TABLE,...", value_delimiter = ',', value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub tables: Vec<String>,
    /// File format of the tables
    #[arg(long, value_enum, default_value_t = FormatArg::Parquet)]
    pub format: FormatArg,
    /// Compression: zstd[:LEVEL], snappy or none
    #[arg(long, value_name = "NAME", default_value = "zstd", value_parser = values::compression)]
    pub compression: Compression,
    /// Layout of the files in the directory
    #[arg(long, value_enum, default_value_t = LayoutArg::Auto)]
    pub layout: LayoutArg,
    /// Type of addresses, lengths and ids of 64 bits
    #[arg(long, value_enum, default_value_t = AddressTypeArg::Uint64)]
    pub address_type: AddressTypeArg,
    /// Fill the table heap_dominator with the retained sizes of a heap dump's objects; SIZE limits the memory for it
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = "4G", value_parser = values::size)]
    pub dominators: Option<u64>,
    /// Fill the table gc_cohort with the survival of bytes over time; SIZE limits the memory for one collection
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = "4G", value_parser = values::size)]
    pub cohorts: Option<u64>,
    /// Fill the table allocation_lifetime with the lives of sampled objects; SIZE limits the memory for it
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = "4G", value_parser = values::size)]
    pub lifetimes: Option<u64>,
    /// Directory with symbols, for source lines of stack frames and names of native frames; repeatable
    ///
    /// Symbols are portable PDBs of assemblies, PDBs of native Windows files, and ELF files, also in the layout of
    /// symbol servers. They are also searched for at the paths of modules in the recording. They are matched by their
    /// id, never by name alone.
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
    #[command(flatten)]
    pub own: OwnArgs,
    /// Replace the dataset at OUT
    #[arg(long)]
    pub overwrite: bool,
    /// Stop at the first damage in a recording and write nothing
    #[arg(long)]
    pub strict: bool,
    /// Print the summary as JSON to standard output
    #[arg(long)]
    pub json: bool,
    /// No progress and no summary; only errors
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("where from").required(true).multiple(true).args(["etw", "process_id", "name", "port", "program", "dry_run"]))]
pub struct CollectArgs {
    #[command(flatten)]
    pub live: LiveArgs,
    /// From a live ETW session (Windows, as administrator or as a member of Performance Log Users)
    #[arg(long)]
    pub etw: bool,
    /// Keywords of the runtime: 0x1 collections, 0x400000 surviving and moved ranges, 0x2 handles
    #[arg(long, value_name = "MASK", default_value = "0x400001", value_parser = values::number)]
    pub keywords: u64,
    /// Providers, with keywords and level, in dotnet-trace's syntax; added to --for
    ///
    /// NAME, then :KEYWORDS (hexadecimal, with or without 0x), then :LEVEL (0 to 5 or its name), then :KEY=VALUE;...
    /// for the provider. Without keywords: the default keywords of the runtime, all keywords of others; without a
    /// level: 4. With
    /// --etw: NAME or GUID, levels 1 to 5, no arguments; --keywords are the default keywords of the runtime.
    #[arg(long, value_name = "NAME[:KEYWORDS[:LEVEL[:ARGUMENTS]]],...")]
    pub providers: Option<String>,
    /// Write only events of these processes, by name or id [default: all]
    #[arg(long, value_name = "NAME|PID,...", value_delimiter = ',', value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub process: Vec<String>,
    /// Instrumentation manifest (.man) with the events of a provider, or a directory of them; repeatable
    ///
    /// Formats of trace messages (WPP), .tmf, are read in the same way.
    #[arg(long, visible_alias = "tmf", value_name = "FILE|DIR")]
    pub manifest: Vec<PathBuf>,
    /// Stop after this time: 30, 30s, 1m30s, 00:01:30 [default: at Ctrl+C]
    #[arg(long, value_name = "TIME", value_parser = times::parse)]
    pub duration: Option<i64>,
    /// Name of the ETW session; names have to be unique
    #[arg(long, value_name = "NAME", default_value = "tracequet", value_parser = values::session_name)]
    pub session: String,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Args)]
pub struct WatchArgs {
    #[command(flatten)]
    pub service: ServiceArgs,
    #[command(flatten)]
    pub collect: CollectArgs,
}

#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Recording: .nettrace, .netperf, .etl, .gcdump, .corprof, packed or not; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Instrumentation manifest (.man) with the events of a provider in an .etl, or a directory of them; repeatable
    ///
    /// Formats of trace messages (WPP), .tmf, are read in the same way.
    #[arg(long, visible_alias = "tmf", value_name = "FILE|DIR")]
    pub manifest: Vec<PathBuf>,
    /// Show how many stack frames have a name, and the reasons for missing names; reads the recording once more
    #[arg(long)]
    pub frames: bool,
    #[command(flatten)]
    pub format: super::answer::FormatArgs,
    /// List all kinds of events, threads and collections, not only the first 20
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Only this table, or this view or macro of views.sql
    #[arg(value_name = "TABLE")]
    pub table: Option<String>,
    #[command(flatten)]
    pub format: super::answer::FormatArgs,
    /// The events of a provider instead of the tables; without a name, the providers
    #[arg(long, value_name = "PROVIDER", num_args = 0..=1, default_missing_value = "", conflicts_with = "table")]
    pub events: Option<String>,
}

#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// What to print
    #[arg(value_enum)]
    pub what: Generated,
    /// Command of the manual page [default: tracequet]
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
}

choices! {
    pub enum FormatArg for Format {
        /// Apache Parquet
        Parquet,
        /// Arrow IPC files (Feather)
        Arrow,
    }
}

choices! {
    pub enum LayoutArg for DatasetLayout {
        /// OUT/<table>.parquet for one recording, hive for several
        Auto,
        /// OUT/<table>/trace=<key>/part-0.parquet
        Hive,
    }
}

choices! {
    pub enum AddressTypeArg for AddressType {
        /// Unsigned, as they are
        Uint64,
        /// Signed with the same bits, for Spark
        Int64,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Generated {
    /// Manual page
    Man,
    /// Completions for bash
    Bash,
    /// Completions for zsh
    Zsh,
    /// Completions for fish
    Fish,
    /// Completions for PowerShell
    Powershell,
    /// Completions for Elvish
    Elvish,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
