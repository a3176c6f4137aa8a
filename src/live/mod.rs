//! `tracequet collect` of running or started processes, through their diagnostics port.

pub mod args;
mod at_end;
pub mod condition;
mod counters;
mod fields;
mod heap;
pub mod process;
mod service;
mod session;
mod stop_on;
mod until;
mod wanted;
mod watch;

use std::time::Duration;

use tracequet::Error;
use tracequet::trace::source::diagnostics::Limits;

use super::args::{CollectArgs, WatchArgs};
use super::convert::output;
use super::output::{Outcome, print_result};
use super::values::labels;
use args::ServiceArgs;
use process::Place;
use session::Session;

/// Records until something ends it, and prints the summary.
pub fn run(args: CollectArgs) -> anyhow::Result<Outcome> {
    record(args, None)
}

/// Records again and again, each time into a recording of the dataset.
pub fn again(args: WatchArgs) -> anyhow::Result<Outcome> {
    let WatchArgs { mut collect, service } = args;
    collect.live.append = true;
    record(collect, Some(&service))
}

fn record(mut args: CollectArgs, service: Option<&ServiceArgs>) -> anyhow::Result<Outcome> {
    // Both are the same: a heap that did not end by itself, or with a buffer as for other recordings, would not be
    // whole.
    let before = args.live.wanted.len();
    args.live.wanted.retain(|name| !name.eq_ignore_ascii_case("heap"));
    args.live.heap |= args.live.wanted.len() < before;
    if args.live.heap && !(args.live.only_events.is_empty() && args.live.except_events.is_empty()) {
        let message =
            "a heap is recorded by all of its events: --only-events and --except-events cannot choose some of them";
        return Err(Error::Usage(message.into()).into());
    }
    if args.live.heap && args.live.heap_at_end {
        return Err(Error::Usage("--heap-at-end: the heap is dumped at the beginning already".into()).into());
    }
    let request = wanted::request(&args.live, args.providers.as_deref())?;
    if args.live.dry_run {
        print_result(&wanted::dry_run(&request))?;
        return Ok(Outcome::Whole);
    }
    let usual = Limits::default();
    let duration = args.duration.map(|ns| Duration::from_nanos(u64::try_from(ns).unwrap_or_default()));
    let limits = Limits {
        // A recording that ends with a heap dump ends when all objects have come.
        duration: duration.filter(|_| !args.live.heap_at_end),
        max_bytes: args.live.max_size,
        keep: args.live.keep.clone(),
        spool_bytes: args.live.max_spool.unwrap_or(usual.spool_bytes),
        stop_timeout: args.live.stop_timeout.unwrap_or(usual.stop_timeout),
        // Of a service that goes on they would fill the disk.
        is_saved: service.is_none(),
    };
    let (as_json, quiet) = (args.output.json, args.output.quiet);
    let labels = labels(&args.live.label, "--label")?;
    let convert = output(args.output)?.follow(args.live.follow).append(args.live.append).labels(labels);
    let session = Session { live: args.live, is_service: service.is_some(), request, limits, duration, as_json, quiet };
    match service {
        Some(args) => service::run(&session, &convert, args),
        None => session.run(&Place::of(&session.live)?, &convert),
    }
}
