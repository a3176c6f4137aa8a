//! One recording of a process, from the options to the summary.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tracequet::trace::source::diagnostics::port::{SessionRequest, Target};
use tracequet::trace::source::diagnostics::{
    Control, Launched, Limits, PortRecording, Reason, exit_text, flush_types, launch, listen,
};
use tracequet::{Collected, Convert, Progress, collect_port};
use tracequet::{Error, Result};

use super::super::convert::print;
use super::super::interrupt::{end, on_interrupt};
use super::super::lock::lock;
use super::super::output::{Outcome, print_note};
use super::super::progress::Bar;
use super::super::text::duration;
use super::args::LiveArgs;
use super::at_end::AtEnd;
use super::heap;
use super::process::Place;
use super::watch::LiveWatch;

/// The time that a program that was started may take to end after its runtime has ended the recording.
const EXIT: Duration = Duration::from_secs(5);

/// The recording that an interrupt ends.
#[derive(Default)]
pub struct Interrupts {
    /// The number of interrupts.
    pub count: u32,
    /// When it was counted last.
    last: Option<Instant>,
    /// The session that runs.
    pub control: Option<Control>,
    /// Whether the runtime was asked for a session and has not answered. For a heap dump it answers when its collection
    /// has ended.
    is_beginning: bool,
    /// The first thing to do.
    at_end: Option<AtEnd>,
}

/// A recording, as it was asked for.
pub struct Session {
    /// The options.
    pub live: LiveArgs,
    /// Whether it is one of many.
    pub is_service: bool,
    /// The providers that are asked of the runtime.
    pub request: SessionRequest,
    /// The condition that ends the recording.
    pub limits: Limits,
    /// The duration, also where a heap dump comes at the end.
    pub duration: Option<Duration>,
    /// Whether the summary is JSON.
    pub as_json: bool,
    /// Whether only failures are printed.
    pub quiet: bool,
}

/// A runtime that can be recorded.
pub struct Reached<'l> {
    target: Target,
    /// One that waits at its start, perhaps.
    launched: Option<&'l Launched>,
}

impl<'l> Reached<'l> {
    /// One that runs.
    pub fn running(target: Target) -> Reached<'l> {
        Reached { target, launched: None }
    }

    fn launched(launched: &'l Launched) -> Reached<'l> {
        Reached { target: launched.target.clone(), launched: Some(launched) }
    }
}

/// The outcome of a recording.
pub struct Recorded {
    /// The dataset, and what ended it.
    pub collected: Collected,
    /// The heap dump, if that was recorded.
    dump: Option<heap::Dump>,
}

impl Session {
    /// Records once.
    pub fn run(&self, place: &Place, convert: &Convert) -> anyhow::Result<Outcome> {
        let interrupts = Arc::<Mutex<Interrupts>>::default();
        catch_interrupts(&interrupts, self.quiet)?;
        let mut launched = None;
        let (shared, slot) = (&interrupts, &mut launched);
        let reach = move || {
            let launched = slot;
            self.reach(place, shared, launched)
        };
        let recorded = self.record(convert, &place.recording_name(), &interrupts, reach)?;
        let outcome = print(&recorded.collected.summary, self.as_json, self.quiet)?;
        if !self.quiet {
            let status = launched.as_mut().map(|launched: &mut Launched| launched.exit_status(EXIT).map(exit_text));
            print_note(&ending(&recorded.collected, status))?;
        }
        match recorded.dump {
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

    /// Records until something ends it. The runtime is reached when everything else was found sound.
    pub fn record<'r>(
        &self,
        convert: &Convert,
        name: &Path,
        interrupts: &Arc<Mutex<Interrupts>>,
        reach: impl FnOnce() -> Result<Reached<'r>>,
    ) -> Result<Recorded> {
        let shown = name.display().to_string();
        let control = Arc::<Mutex<Option<Control>>>::default();
        let mut watch = LiveWatch::new(&self.live, control.clone(), self.as_json);
        let dump = watch.dump();
        let start = || {
            let reached = reach()?;
            lock(interrupts).is_beginning = true;
            let begun = self.start(reached);
            let mut state = lock(interrupts);
            state.is_beginning = false;
            let (recording, target) = begun?;
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
                let (duration, quiet) = (self.duration, self.quiet);
                let watchdog = move || {
                    if at_end.is_none_or(|at_end| at_end.run(&target, &control, duration, quiet)) {
                        heap::end_when_stalled(&control, &dump);
                    }
                };
                std::thread::Builder::new().name("heap".into()).spawn(watchdog).ok();
            }
            Ok(recording)
        };
        let mut bar = Bar::new(self.quiet || self.live.counters || self.is_service);
        let mut show = |progress: Progress| bar.show(&shown, progress.position, None);
        let recorded = collect_port(convert, name, start, &mut watch, &mut show);
        bar.clear();
        watch.finish();
        lock(interrupts).control = None;
        Ok(Recorded { collected: recorded?, dump: dump.map(|dump| *lock(&dump)) })
    }

    /// Reaches the process, or starts it.
    fn reach<'l>(
        &self,
        place: &Place,
        interrupts: &Arc<Mutex<Interrupts>>,
        launched: &'l mut Option<Launched>,
    ) -> Result<Reached<'l>> {
        match place {
            Place::Process { target, .. } => Ok(Reached::running(target.clone())),
            Place::Program(program) => Ok(Reached::launched(launched.insert(launch(program)?))),
            Place::Port(path) => {
                if !self.quiet {
                    print_note(&format!("waiting for a process with DOTNET_DiagnosticPorts={}\n", path.display())).ok();
                }
                let interrupted = || lock(interrupts).count > 0;
                match listen(path, interrupted)? {
                    Some(connected) => Ok(Reached::launched(launched.insert(connected))),
                    None => Err(Error::Usage("nothing was recorded: interrupted while no process connected".into())),
                }
            }
        }
    }

    /// Begins the session, and lets a program that waits at its start go.
    fn start(&self, reached: Reached<'_>) -> Result<(PortRecording, Target)> {
        let recording = self.begin(&reached.target);
        // Whatever became of the recording: a program that waits at its start would wait for ever.
        let recording = recording.inspect_err(|_| reached.launched.iter().for_each(|launched| launched.let_go()))?;
        reached.launched.map_or(Ok(()), Launched::resume)?;
        Ok((recording, reached.target))
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
            for compromise in &recording.compromises {
                print_note(&format!("note: {compromise}\n")).ok();
            }
        }
        Ok(recording)
    }
}

/// An interrupt so soon behind another one is the same: `timeout` and a terminal signal a program and its group.
const AGAIN: Duration = Duration::from_millis(500);

impl Interrupts {
    /// Counts an interrupt; how often there were some, or nothing for one that is the same as the one before.
    fn counted(&mut self, now: Instant) -> Option<u32> {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) < AGAIN) {
            return None;
        }
        self.last = Some(now);
        self.count += 1;
        Some(self.count)
    }
}

/// The first interrupt ends the recording, the second gives the rest of it up, the third the program.
pub fn catch_interrupts(interrupts: &Arc<Mutex<Interrupts>>, quiet: bool) -> anyhow::Result<()> {
    let interrupts = interrupts.clone();
    on_interrupt(move |asked| {
        let mut state = lock(&interrupts);
        let Some(count) = state.counted(Instant::now()) else { return };
        match (count, &state.control) {
            (1, Some(control)) => {
                match &state.at_end {
                    Some(at_end) => at_end.now(),
                    None => control.stop(Reason::Asked),
                }
                if !quiet {
                    print_note("stopping; Ctrl+C again discards buffered events\n").ok();
                }
            }
            (1, None) if state.is_beginning && !quiet => {
                print_note("stopping when the runtime has answered; Ctrl+C again ends at once\n").ok();
            }
            (1, None) => {}
            (2, Some(control)) => control.give_up(Reason::GivenUp),
            _ => end(asked),
        }
    })
}

/// The reason why the recording ended, in a line.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_signals_within_milliseconds_are_one() {
        let (mut interrupts, start) = (Interrupts::default(), Instant::now());
        let after = |interrupts: &mut Interrupts, ms| interrupts.counted(start + Duration::from_millis(ms));
        let counted = [0, 3, 499, 500, 700, 1001].map(|ms| after(&mut interrupts, ms));
        assert_eq!(counted, [Some(1), None, None, Some(2), None, Some(3)]);
    }
}
