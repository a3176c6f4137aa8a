//! `tracequet watch`: records a process again and again, for weeks. The process may not be there yet, and may be
//! restarted.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::super::lock::lock;
use super::args::ServiceArgs;
use super::process::{Place, program_name};
use super::session::{Interrupts, Reached, Recorded, Session, catch_interrupts};
use super::until::{Happened, watch};
use tracequet::trace::error::Error as TraceError;
use tracequet::trace::source::diagnostics::port::Target;
use tracequet::trace::source::diagnostics::{Listener, Reason};
use tracequet::trace::time::format_utc;
use tracequet::{Convert, Done, Expire, InputSummary, expire};
use tracequet::{Error, Result};

use super::super::output::{Outcome, print_note, print_result};
use super::super::text::{clean, counted, duration, size};
use super::super::{failure, freed, json};

/// The first wait for a process that is not there; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// And at last.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Recordings in a row that may fail. With more the service ends, so that whoever runs it learns of it.
const MOST_FAILURES: u32 = 10;
/// The time between two looks at whether the service was asked to end.
const LOOK: Duration = Duration::from_millis(100);
/// The shortest time between two removals of old recordings, and between two compactions.
const TIDY: Duration = Duration::from_secs(3600);
/// The number of recordings that are not compacted yet at which a compaction starts.
const UNPACKED: usize = 256;
/// The label with the condition that made a recording.
const TRIGGER: &str = "trigger";

/// Records until it is asked to end.
pub fn run(session: &Session, convert: &Convert, args: &ServiceArgs) -> anyhow::Result<Outcome> {
    let live = &session.live;
    if !args.when.is_empty() && live.label.iter().any(|(name, _)| name == TRIGGER) {
        return Err(Error::Usage(format!("--label {TRIGGER}: --when sets this label")).into());
    }
    if session.duration.is_some_and(|duration| duration > args.every) {
        return Err(Error::Usage("--duration is longer than --every".into()).into());
    }
    freed::share();
    let interrupts = Arc::<Mutex<Interrupts>>::default();
    catch_interrupts(&interrupts, session.quiet)?;
    let listener = live.port.as_deref().map(Listener::new).transpose()?;
    let mut service = Service {
        session,
        convert,
        args,
        interrupts,
        listener,
        health: Health::default(),
        tidied: None,
        compacted: None,
        said: String::new(),
    };
    service.run()?;
    Ok(service.health.outcome())
}

/// The recordings so far.
#[derive(Debug, Default)]
struct Health {
    recordings: u64,
    with_losses: u64,
    failures: u64,
    /// Whether the process was ever there.
    was_there: bool,
}

impl Health {
    fn outcome(&self) -> Outcome {
        match self.recordings == 0 && (self.failures > 0 || !self.was_there) {
            true => Outcome::Nothing,
            false => Outcome::with_losses(self.with_losses > 0 || self.failures > 0),
        }
    }
}

struct Service<'s> {
    session: &'s Session,
    convert: &'s Convert,
    args: &'s ServiceArgs,
    interrupts: Arc<Mutex<Interrupts>>,
    listener: Option<Listener>,
    health: Health,
    /// When old recordings were removed last.
    tidied: Option<Instant>,
    /// When the last compaction ended, or failed.
    compacted: Option<Instant>,
    /// The last message, which is not repeated.
    said: String,
}

/// The outcome of a round.
enum Round {
    /// There is another recording, which was begun then.
    Recorded(Instant),
    /// The process was watched, and nothing happened.
    Quiet,
    /// The process is not there, or cannot be reached: why.
    Absent(Error),
    /// The recording failed.
    Failed(Error),
    /// Nothing can be recorded as the options say.
    Impossible(Error),
}

impl Service<'_> {
    fn run(&mut self) -> anyhow::Result<()> {
        let (mut wait, mut failures) = (FIRST_WAIT, 0);
        while !self.is_asked_to_end() {
            match self.round()? {
                Round::Recorded(begun) => {
                    (wait, failures) = (FIRST_WAIT, 0);
                    self.tidy()?;
                    self.compact()?;
                    freed::give_back();
                    self.rest(self.args.every.saturating_sub(begun.elapsed()));
                    continue;
                }
                Round::Quiet => {
                    wait = FIRST_WAIT;
                    continue;
                }
                Round::Absent(why) => self.warn(&format!("waiting: {why}"))?,
                Round::Failed(why) => {
                    failures += 1;
                    self.health.failures += 1;
                    // Each time: each is a recording that is missing.
                    self.said.clear();
                    self.warn(&format!("failed: {why}"))?;
                    if failures >= MOST_FAILURES {
                        let message = format!("{failures} recordings in a row failed");
                        return Err(anyhow::Error::new(why).context(message));
                    }
                }
                Round::Impossible(why) => return Err(why.into()),
            }
            self.rest(wait.min(self.args.every));
            wait = (wait * 2).min(LONGEST_WAIT);
        }
        Ok(())
    }

    fn round(&mut self) -> anyhow::Result<Round> {
        let (target, name) = match self.find() {
            Ok(found) => found,
            Err(error) => return Ok(Round::Absent(error)),
        };
        self.health.was_there = true;
        let mut happened = None;
        if !self.args.when.is_empty() {
            self.say(&format!("watching {}", name.display()))?;
            match self.watch(&target) {
                Ok(Some(found)) => happened = Some(found),
                Ok(None) => return Ok(Round::Quiet),
                Err(error) => return Ok(Round::Absent(error)),
            }
        }
        if self.is_asked_to_end() {
            return Ok(Round::Quiet);
        }
        self.record(&target, &name, happened.as_ref())
    }

    /// The process as it is now, and what its recording is called.
    fn find(&self) -> Result<(Target, PathBuf)> {
        if let Some(listener) = &self.listener {
            let path = self.session.live.port.as_deref().unwrap_or_else(|| std::path::Path::new(""));
            let absent =
                || TraceError::Unreachable(format!("no process with DOTNET_DiagnosticPorts={}", path.display()));
            let (target, info) = listener.newest().ok_or_else(absent)?;
            return Ok((target, PathBuf::from(format!("{}-{}", program_name(&info), info.process))));
        }
        let place = Place::of(&self.session.live)?;
        let name = place.recording_name();
        match place {
            Place::Process { target, .. } => Ok((target, name)),
            _ => Err(Error::Usage("expected a process: -p PID, -n NAME or --port PATH".into())),
        }
    }

    fn watch(&self, target: &Target) -> Result<Option<Happened>> {
        let interrupts = self.interrupts.clone();
        let watched = watch(target, &self.args.when, |control| {
            let mut state = lock(&interrupts);
            if state.count > 0 {
                control.stop(Reason::Asked);
            }
            state.control = Some(control);
        });
        lock(&self.interrupts).control = None;
        watched
    }

    fn record(
        &mut self,
        target: &Target,
        name: &std::path::Path,
        happened: Option<&Happened>,
    ) -> anyhow::Result<Round> {
        let begun = Instant::now();
        let labels = self.session.live.label.iter().cloned();
        let trigger = happened.map(|happened| (TRIGGER.to_owned(), happened.condition.clone()));
        let convert = self.convert.clone().labels(labels.chain(trigger));
        let mut is_reached = false;
        let reach = || {
            is_reached = true;
            Ok(Reached::running(target.clone()))
        };
        let recorded = self.session.record(&convert, name, &self.interrupts, reach);
        Ok(match recorded {
            Ok(recorded) => {
                self.count(&recorded, happened)?;
                Round::Recorded(begun)
            }
            Err(error) if !is_reached && (error.is_of_request() || matches!(error, Error::OtherVersion { .. })) => {
                Round::Impossible(error)
            }
            // The process has just ended.
            Err(Error::Trace(
                error @ (TraceError::Unreachable(_)
                | TraceError::NotFound { .. }
                | TraceError::TimedOut(_)
                | TraceError::Refused(_)),
            )) => Round::Absent(error.into()),
            Err(error @ Error::Usage(_)) => Round::Absent(error),
            Err(error) => Round::Failed(error),
        })
    }

    /// A line for a recording.
    fn count(&mut self, recorded: &Recorded, happened: Option<&Happened>) -> anyhow::Result<()> {
        let summary = &recorded.collected.summary;
        self.health.recordings += 1;
        self.health.with_losses += u64::from(summary.has_losses());
        let Some(input) = summary.inputs.first() else { return Ok(()) };
        if self.session.as_json {
            return print_result(&json::recording(&Done::Converted(input.clone())));
        }
        let by = happened.map_or_else(String::new, |one| format!(", because of {} ({})", one.what, one.condition));
        let bytes = summary.tables.iter().map(|table| table.bytes).sum();
        self.said.clear();
        self.say(&format!("{}{by}", line(input, bytes, summary.has_losses())))
    }

    /// Removes what is too old.
    fn tidy(&mut self) -> anyhow::Result<()> {
        let Some(keep_for) = self.args.keep_for else { return Ok(()) };
        let pause = TIDY.min(keep_for / 24);
        if self.tidied.is_some_and(|tidied| tidied.elapsed() < pause) {
            return Ok(());
        }
        self.tidied = Some(Instant::now());
        let wanted = Expire {
            older_than: Some(keep_for),
            labels: self.session.live.label.iter().cloned().collect(),
            ..Expire::default()
        };
        match expire(self.convert.output_path(), &wanted) {
            Ok(gone) if gone.is_empty() => Ok(()),
            Ok(gone) => {
                let bytes = gone.iter().fold(0u64, |sum, one| sum.saturating_add(one.bytes));
                let what = counted(gone.len() as u64, "old recording", "old recordings");
                self.say(&format!("removed {what}, {}", size(bytes)))
            }
            Err(error) => {
                self.health.failures += 1;
                self.warn(&format!("old recordings were not removed: {error}"))
            }
        }
    }

    /// Compacts the dataset when it has many recordings that are not compacted yet. A failure is logged; a later round
    /// tries again.
    fn compact(&mut self) -> anyhow::Result<()> {
        let most = self.args.compact_at.unwrap_or(UNPACKED);
        if most == 0 || self.compacted.is_some_and(|compacted| compacted.elapsed() < TIDY.min(self.args.every * 16)) {
            return Ok(());
        }
        let lake = self.convert.output_path();
        let done = match tracequet::unpacked(lake) {
            Ok(unpacked) if unpacked < most => return Ok(()),
            Ok(_) => tracequet::compact(lake, tracequet::GRACE),
            Err(error) => Err(error),
        };
        self.compacted = Some(Instant::now());
        match done {
            Ok(done) => {
                let what = counted(done.recordings, "recording", "recordings");
                self.say(&format!("compacted {what}: {} files became {}", done.files.0, done.files.1))
            }
            Err(error) => {
                self.health.failures += 1;
                self.warn(&format!("recordings were not compacted: {error}"))
            }
        }
    }

    /// Writes a line of the log, unless it is the one that was written last.
    fn say(&mut self, text: &str) -> anyhow::Result<()> {
        if self.session.quiet { Ok(()) } else { self.warn(text) }
    }

    /// The same with what has to be known.
    fn warn(&mut self, text: &str) -> anyhow::Result<()> {
        if text == self.said {
            return Ok(());
        }
        text.clone_into(&mut self.said);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let now = format_utc(i64::try_from(now).unwrap_or(i64::MAX));
        match print_note(&format!("{now} {}\n", clean(text))) {
            // The reader of the log has gone. The service goes on.
            Err(error) if failure::is_closed_pipe(&error) => Ok(()),
            printed => printed,
        }
    }

    fn is_asked_to_end(&self) -> bool {
        lock(&self.interrupts).count > 0
    }

    /// Does nothing for this time, or until it is asked to end.
    fn rest(&self, time: Duration) {
        let end = Instant::now() + time;
        while !self.is_asked_to_end() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(LOOK));
        }
    }
}

fn line(input: &InputSummary, bytes: u64, has_losses: bool) -> String {
    let span = duration(input.last_ns.saturating_sub(input.first_ns));
    let losses = match (has_losses, input.dropped_events) {
        (false, _) => String::new(),
        (true, 0) => ", with losses".to_owned(),
        (true, dropped) => format!(", LOST {}", counted(dropped, "event", "events")),
    };
    let events = counted(input.events, "event", "events");
    format!("recorded {}: {events} in {span}, {}{losses}", input.trace_id, size(bytes))
}
