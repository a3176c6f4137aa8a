//! `tracequet collect` of running or started processes, through their diagnostics port.

pub mod args;
mod at_end;
mod counters;
mod fields;
mod heap;
pub mod process;
mod stop_on;
mod wanted;
mod watch;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::trace::error::{Error, Result};
use crate::trace::source::diagnostics::port::{SessionRequest, Target};
use crate::trace::source::diagnostics::{
    Control, Launched, Limits, PortRecording, Reason, exit_text, flush_types, launch, listen,
};
use crate::{Collected, Convert, Progress, collect_port};

use super::args::CollectArgs;
use super::convert::{output, print};
use super::interrupt::{end, on_interrupt};
use super::output::{Outcome, print_note, print_result};
use super::progress::Bar;
use super::text::duration;
use args::LiveArgs;
use at_end::AtEnd;
use process::Place;
use watch::LiveWatch;

/// How long a program that was started may take to end after its runtime has ended the recording.
const EXIT: Duration = Duration::from_secs(5);

/// Records until something ends it, and prints the summary.
pub fn run(mut args: CollectArgs) -> anyhow::Result<Outcome> {
    // Both are the same: a heap that did not end by itself, or with a buffer as for other recordings, would not be whole.
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
        // What ends with a heap dump ends when all objects have come.
        duration: duration.filter(|_| !args.live.heap_at_end),
        max_bytes: args.live.max_size,
        keep: args.live.keep.clone(),
        spool_bytes: args.live.max_spool.unwrap_or(usual.spool_bytes),
        stop_timeout: args.live.stop_timeout.unwrap_or(usual.stop_timeout),
    };
    let place = Place::of(&args.live)?;
    let (as_json, quiet) = (args.output.json, args.output.quiet);
    let convert = output(args.output)?.follow(args.live.follow);
    Session { live: args.live, request, limits, duration, place, as_json, quiet }.run(&convert)
}

/// What an interrupt ends.
#[derive(Default)]
struct Interrupts {
    count: u32,
    control: Option<Control>,
    /// What is to be done first.
    at_end: Option<AtEnd>,
}

/// One recording, as it was asked for.
struct Session {
    live: LiveArgs,
    request: SessionRequest,
    limits: Limits,
    duration: Option<Duration>,
    place: Place,
    as_json: bool,
    quiet: bool,
}

impl Session {
    fn run(self, convert: &Convert) -> anyhow::Result<Outcome> {
        let interrupts = Arc::<Mutex<Interrupts>>::default();
        catch_interrupts(&interrupts, self.quiet)?;
        let name = self.place.recording_name();
        let shown = name.display().to_string();
        let control = Arc::<Mutex<Option<Control>>>::default();
        let mut watch = LiveWatch::new(&self.live, control.clone(), self.as_json);
        let dump = watch.dump();
        let mut launched = None;
        let start = || {
            let (recording, target) = self.start(&interrupts, &mut launched)?;
            let mut state = lock(&interrupts);
            state.control = Some(recording.control());
            state.at_end = self.live.heap_at_end.then(AtEnd::default);
            let at_end = state.at_end.clone();
            if state.count > 0 {
                // Ctrl+C while the recording began.
                recording.control().stop(Reason::Asked);
            }
            drop(state);
            *lock(&control) = Some(recording.control());
            if let Some(dump) = dump.clone() {
                let control = recording.control();
                let (target, duration, quiet) = (target, self.duration, self.quiet);
                let watchdog = move || {
                    if at_end.is_none_or(|at_end| at_end.run(&target, &control, duration, quiet)) {
                        heap::watch_clock(&control, || lock(&dump).collection.is_some());
                    }
                };
                std::thread::Builder::new().name("heap".into()).spawn(watchdog).ok();
            }
            Ok(recording)
        };
        let mut bar = Bar::new(self.quiet || self.live.counters);
        let mut show = |progress: Progress| bar.show(&shown, progress.position, None);
        let recorded = collect_port(convert, &name, start, &mut watch, &mut show);
        bar.clear();
        watch.finish();
        let recorded = recorded?;
        let outcome = print(&recorded.summary, self.as_json, self.quiet)?;
        if !self.quiet {
            let status = launched.as_mut().map(|launched: &mut Launched| launched.exit_status(EXIT).map(exit_text));
            print_note(&ending(&recorded, status))?;
        }
        match dump.map(|dump| *lock(&dump)) {
            Some(dump) if dump.has_resumed && !dump.is_whole => {
                print_note(
                    "the heap dump is incomplete: the runtime dropped a part of it; try a larger --buffer-size\n",
                )?;
                Ok(outcome)
            }
            Some(dump) if !dump.is_whole => {
                Err(Error::Usage("the heap dump is incomplete: the recording ended before its collection did".into())
                    .into())
            }
            Some(dump) => {
                if !self.quiet {
                    let pause = dump.pause_ns.map_or("an unknown time".into(), duration);
                    print_note(&format!("the process was paused for {pause} while its heap was dumped\n"))?;
                }
                Ok(outcome)
            }
            None => Ok(outcome),
        }
    }

    /// Reaches the process, or starts it, and begins the session.
    fn start(
        &self,
        interrupts: &Arc<Mutex<Interrupts>>,
        launched: &mut Option<Launched>,
    ) -> Result<(PortRecording, Target)> {
        let target = match &self.place {
            Place::Process { target, .. } => target.clone(),
            Place::Program(program) => launched.insert(launch(program)?).target.clone(),
            Place::Port(path) => {
                if !self.quiet {
                    print_note(&format!("waiting for a process with DOTNET_DiagnosticPorts={}\n", path.display())).ok();
                }
                let interrupted = || lock(interrupts).count > 0;
                match listen(path, interrupted)? {
                    Some(connected) => launched.insert(connected).target.clone(),
                    None => {
                        return Err(Error::Usage(
                            "nothing was recorded: interrupted while no process connected".into(),
                        ));
                    }
                }
            }
        };
        let recording = self.begin(&target);
        // Whatever became of the recording: a program that waits at its start would wait for ever.
        let recording = recording.inspect_err(|_| launched.iter().for_each(Launched::let_go))?;
        launched.as_ref().map_or(Ok(()), Launched::resume)?;
        Ok((recording, target))
    }

    fn begin(&self, target: &Target) -> Result<PortRecording> {
        if self.live.heap {
            if !self.quiet {
                print_note("the process is paused while its heap is dumped\n").ok();
            }
            flush_types(target)?;
        }
        let recording = PortRecording::start(target, &self.request, &self.limits)?;
        if !self.quiet {
            for compromise in recording.compromises() {
                print_note(&format!("note: {compromise}\n")).ok();
            }
        }
        Ok(recording)
    }
}

/// The first interrupt ends the recording, the second gives the rest of it up, the third the program.
fn catch_interrupts(interrupts: &Arc<Mutex<Interrupts>>, quiet: bool) -> anyhow::Result<()> {
    let interrupts = interrupts.clone();
    on_interrupt(move |asked| {
        let mut state = lock(&interrupts);
        state.count += 1;
        match (state.count, &state.control) {
            (1, Some(control)) => {
                match &state.at_end {
                    Some(at_end) => at_end.now(),
                    None => control.stop(Reason::Asked),
                }
                if !quiet {
                    print_note("stopping; Ctrl+C again discards buffered events\n").ok();
                }
            }
            (1, None) => {}
            (2, Some(control)) => control.give_up(Reason::GivenUp),
            _ => end(asked),
        }
    })
}

/// What ended the recording, in a line.
fn ending(recorded: &Collected, status: Option<Option<String>>) -> String {
    let why = match &recorded.ending.reason {
        Reason::Process => "the process has ended".into(),
        Reason::Asked | Reason::Duration => String::new(),
        Reason::Size => "stopped at --max-size".into(),
        Reason::Trigger(what) => format!("stopped by {what}"),
        Reason::GivenUp => "the rest is discarded; the recording before it is kept".into(),
        Reason::Failed(why) => format!("failed: {why}"),
    };
    let program = match status {
        Some(Some(status)) => format!("the program ended: {status}"),
        Some(None) => "the program continues".into(),
        None => String::new(),
    };
    match (why.is_empty(), program.is_empty()) {
        (true, true) => String::new(),
        (false, true) => format!("{why}\n"),
        (true, false) => format!("{program}\n"),
        (false, false) => format!("{why}; {program}\n"),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
