//! The options of `collect` about processes that run or are started, and those of `ps`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tracequet::analyze::present::times;
use tracequet::trace::source::diagnostics::port::WhenFull;
use tracequet::trace::source::diagnostics::{Presets, parse_event_ids, parse_level};

use super::super::answer::FormatArgs;
use super::super::choices::choices;
use super::super::values::{age, label, number, size};
use super::condition::Condition;
use super::stop_on::StopOn;

/// Where a process is, what is recorded of it, and when the recording ends.
#[derive(Debug, Args)]
pub struct LiveArgs {
    /// Record the process with this id (see tracequet ps)
    #[arg(short, long, value_name = "PID", conflicts_with = "etw")]
    pub process_id: Option<u32>,
    /// Record the process with this name of its program or main assembly
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["process_id", "etw"])]
    pub name: Option<String>,
    /// Record the process that connects to this socket (a pipe on Windows): start it with DOTNET_DiagnosticPorts=PATH
    ///
    /// collect creates the socket. Mount its folder into a container to record a process there.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["process_id", "name", "etw"])]
    pub port: Option<PathBuf>,
    /// Start this program and record it from its first instruction
    #[arg(last = true, value_name = "PROGRAM", conflicts_with_all = ["process_id", "name", "port", "etw"])]
    pub program: Vec<OsString>,
    /// What to record [default: gc]
    ///
    /// Several names are combined; --dry-run prints the resulting providers. "leaves 94 %" is the part of its requests that a loaded
    /// server still answers while this is recorded (see LIVE.md in the documentation).
    #[arg(long = "for", visible_alias = "profile", value_name = "WHAT,...", value_delimiter = ',', ignore_case = true, value_parser = profile_names(), conflicts_with = "etw")]
    pub wanted: Vec<String>,
    /// Record these events of the runtime, by dotnet-trace's names: gc+exception; added to --for
    #[arg(long, value_name = "NAME+...", conflicts_with = "etw")]
    pub clrevents: Option<String>,
    /// How much of --clrevents: 0 to 5, or critical to verbose [default: informational]
    #[arg(long, value_name = "LEVEL", requires = "clrevents", value_parser = parse_level)]
    pub clreventlevel: Option<u32>,
    /// Record the heap once: all objects and references
    ///
    /// The process is paused for a full collection, up to some seconds for each GB of objects. Then the recording ends.
    #[arg(long, conflicts_with = "etw")]
    pub heap: bool,
    /// Record the heap at the end, beside what is recorded until then: all objects and references
    ///
    /// The process is paused for it as with --heap, when --duration is over or at Ctrl+C. With --for lifetimes,
    /// `tracequet heap
    /// --type` says which code allocated what is there.
    #[arg(long, conflicts_with_all = ["etw", "heap", "stop_on", "only_events", "except_events"])]
    pub heap_at_end: bool,
    /// Record counters, and show them while recording
    #[arg(long, conflicts_with = "etw")]
    pub counters: bool,
    /// List of methods and modules at the end, which gives stacks names: on, off, or a mask of keywords
    #[arg(long, value_name = "on|off|MASK", value_parser = rundown, conflicts_with = "etw")]
    pub rundown: Option<RundownArg>,
    /// Memory of the process for events that were not read yet [default: 256, with a heap 4096]
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..=1 << 20), conflicts_with = "etw")]
    pub buffer_size: Option<u32>,
    /// What the process does when that memory is full: drop events, or block the threads that write them until some
    /// were read (.NET 11; older runtimes drop) [default: drop, with a heap block]
    #[arg(long, value_name = "drop|block", value_enum, hide_possible_values = true, conflicts_with = "etw")]
    pub when_full: Option<WhenFullArg>,
    /// Record call stacks with events
    #[arg(long, overrides_with = "no_stack", conflicts_with = "etw")]
    pub stack: bool,
    /// Record no call stacks with events (.NET 8)
    #[arg(long, overrides_with = "stack", conflicts_with = "etw")]
    pub no_stack: bool,
    /// Record only these events of a provider, by their ids (.NET 10); repeatable
    #[arg(long, value_name = "NAME:ID,...", value_parser = parse_event_ids, conflicts_with_all = ["etw", "heap"])]
    pub only_events: Vec<(String, Vec<u32>)>,
    /// Record all events of a provider except these, by their ids (.NET 10); repeatable
    #[arg(long, value_name = "NAME:ID,...", value_parser = parse_event_ids, conflicts_with_all = ["etw", "heap"])]
    pub except_events: Vec<(String, Vec<u32>)>,
    /// Add the recording to a dataset of several, and publish new rows at this interval
    ///
    /// Writes OUT/<table>/trace=<key>/part-<n>.parquet for each table with new rows, readable immediately. When the
    /// recording has ended, one file for each table replaces the parts.
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "10s", value_parser = interval, conflicts_with_all = ["etw", "overwrite"])]
    pub follow: Option<Duration>,
    /// Add the recording to the dataset OUT of several, or create it; the recording appears when it has ended
    #[arg(long, conflicts_with_all = ["etw", "overwrite", "follow"])]
    pub append: bool,
    /// Label the recording; repeatable. Labels are rows of the table trace_label
    #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
    pub label: Vec<(String, String)>,
    /// Stop when the recording has this size: 500M, 2G
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "etw")]
    pub max_size: Option<u64>,
    /// Stop at this event: exception:TYPE, or gc.pause>200ms
    #[arg(long, value_name = "WHAT", value_parser = StopOn::parse, conflicts_with = "etw")]
    pub stop_on: Option<StopOn>,
    /// Keep the recording as well, in this file
    #[arg(long, value_name = "FILE", conflicts_with = "etw")]
    pub keep: Option<PathBuf>,
    /// How much may wait on the disk to be converted: 500M, 2G [default: 8G]
    ///
    /// When a process writes faster than tables are made. With more, nothing is taken from the process, which then
    /// drops events and says so.
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "etw")]
    pub max_spool: Option<u64>,
    /// How long the process may go on sending when it was asked to stop [default: 1m]
    ///
    /// For what is in its buffer, and for the methods that it writes at the end.
    #[arg(long, value_name = "TIME", value_parser = interval, conflicts_with = "etw")]
    pub stop_timeout: Option<Duration>,
    /// Print what would be recorded, and record nothing
    #[arg(long, conflicts_with = "etw")]
    pub dry_run: bool,
}

/// When a process is recorded again, and what becomes of the recordings.
#[derive(Debug, Args)]
pub struct ServiceArgs {
    /// Record once in this time: 5m, 1h; with --when at most once
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub every: Duration,
    /// Record when this happens; repeatable: 'gc.pause > 200ms', 'cpu > 80 %', 'working set > 2GB',
    /// 'exception System.TimeoutException'
    ///
    /// Until then a session with only the events that this needs is watched. The recording has the label trigger.
    #[arg(long, value_name = "CONDITION", value_parser = Condition::parse, conflicts_with = "heap")]
    pub when: Vec<Condition>,
    /// Remove recordings with the same labels that are older than this: 12h, 7d
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub keep_for: Option<Duration>,
    /// Compact the dataset once this many recordings are not compacted yet; 0: never [default: 256]
    #[arg(long, value_name = "COUNT")]
    pub compact_at: Option<usize>,
}

choices! {
    /// The behaviour of a process when its buffer is full.
    pub enum WhenFullArg for WhenFull {
        /// Drops events.
        Drop,
        /// Waits.
        Block,
    }
}

/// The events that are written at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RundownArg {
    /// Whether the runtime's own default.
    Switch(bool),
    /// These keywords.
    Keywords(u64),
}

fn rundown(text: &str) -> Result<RundownArg, String> {
    match text {
        "on" => Ok(RundownArg::Switch(true)),
        "off" => Ok(RundownArg::Switch(false)),
        _ => number(text).map(RundownArg::Keywords).map_err(|_| "expected on, off or a mask such as 0x80020139".into()),
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let ns = times::parse(text)?;
    let least = Duration::from_secs(1);
    let interval = Duration::from_nanos(u64::try_from(ns).unwrap_or_default());
    if interval < least { Err("expected a second at least".into()) } else { Ok(interval) }
}

fn profile_names() -> clap::builder::PossibleValuesParser {
    let presets = Presets::shipped().map(|shipped| shipped.all.as_slice()).unwrap_or_default();
    let value = |p: &'static tracequet::trace::source::diagnostics::Preset| {
        clap::builder::PossibleValue::new(p.name.as_str()).help(p.help())
    };
    presets.iter().map(value).collect::<Vec<_>>().into()
}

/// The processes that can be recorded.
#[derive(Debug, Args)]
pub struct PsArgs {
    #[command(flatten)]
    pub format: FormatArgs,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rundown_is_a_switch_or_a_mask() {
        assert_eq!(rundown("on"), Ok(RundownArg::Switch(true)));
        assert_eq!(rundown("off"), Ok(RundownArg::Switch(false)));
        assert_eq!(rundown("0x80020139"), Ok(RundownArg::Keywords(0x8002_0139)));
        assert!(rundown("yes").is_err());
    }
}
