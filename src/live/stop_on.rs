//! `--stop-on`: an exception of a type, or a long pause.

use tracequet::analyze::present::times;
use tracequet::trace::event::{Event, EventInfo};
use tracequet::trace::source::diagnostics::port::{EventFilter, Provider};

use super::fields::{RUNTIME, field_number, field_text};

/// An event or a counter that ends a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopOn {
    /// An exception of this type was thrown. Without a namespace: of this name in any.
    Exception(String),
    /// All threads were stopped for a collection longer than this many nanoseconds.
    Pause(i64),
}

const EXPECTED: &str =
    "expected exception:TYPE (exception:System.OutOfMemoryException) or gc.pause>TIME (gc.pause>200ms)";

impl StopOn {
    /// Reads it as it is typed.
    pub fn parse(text: &str) -> Result<StopOn, String> {
        if let Some(name) = text.strip_prefix("exception:") {
            let fits = !name.is_empty() && !name.contains(char::is_whitespace);
            return fits.then(|| StopOn::Exception(name.into())).ok_or_else(|| EXPECTED.into());
        }
        let limit = text.strip_prefix("gc.pause").map(str::trim_start).and_then(|rest| rest.strip_prefix('>'));
        match limit.map(|limit| times::parse(limit.trim())) {
            Some(Ok(ns)) => Ok(StopOn::Pause(ns)),
            Some(Err(error)) => Err(format!("gc.pause>: {error}")),
            None => Err(EXPECTED.into()),
        }
    }

    /// Ids of the events that say something about it.
    pub fn event_ids(&self) -> &'static [u32] {
        match self {
            StopOn::Exception(_) => &[EXCEPTION_THROWN],
            StopOn::Pause(_) => &[SUSPEND_BEGIN, RESTART_END],
        }
    }

    /// The provider that has to be recorded for it.
    pub fn provider(&self) -> Provider {
        let (keywords, level) = match self {
            StopOn::Exception(_) => (0x8000, 2),
            StopOn::Pause(_) => (1, 4),
        };
        Provider { name: RUNTIME.into(), keywords, level, arguments: String::new(), events: EventFilter::All }
    }
}

/// Looks for what ends a recording.
#[derive(Debug)]
pub struct StopWatch {
    stop_on: StopOn,
    /// When the runtime began to stop the threads for a collection.
    suspended_ns: Option<i64>,
}

impl StopWatch {
    /// Waits for `stop_on`.
    pub fn new(stop_on: StopOn) -> StopWatch {
        StopWatch { stop_on, suspended_ns: None }
    }

    /// Whether events of this kind say something about it.
    pub fn wants(&self, info: &EventInfo) -> bool {
        info.provider == RUNTIME && self.stop_on.event_ids().contains(&info.event_type.event_id)
    }

    /// Whether it has happened now, in words.
    pub fn event(&mut self, event: &Event<'_>) -> Option<String> {
        match (&self.stop_on, event.info.event_type.event_id) {
            (StopOn::Exception(wanted), EXCEPTION_THROWN) => {
                let thrown = field_text(event, "ExceptionType")?;
                is_type(&thrown, wanted).then(|| format!("an exception {thrown}"))
            }
            (StopOn::Pause(_), SUSPEND_BEGIN) => {
                // SuspendForGC, SuspendForGCPrep
                let is_gc = field_number(event, "Reason").is_some_and(|reason| [1, 6].contains(&reason));
                self.suspended_ns = is_gc.then_some(event.ts_ns);
                None
            }
            (StopOn::Pause(limit), RESTART_END) => {
                let pause = event.ts_ns - self.suspended_ns.take()?;
                (pause > *limit).then(|| format!("a pause of {:.1} ms", pause as f64 / 1e6))
            }
            _ => None,
        }
    }
}

const EXCEPTION_THROWN: u32 = 80;
const SUSPEND_BEGIN: u32 = 9;
const RESTART_END: u32 = 3;

fn is_type(thrown: &str, wanted: &str) -> bool {
    thrown == wanted || !wanted.contains('.') && thrown.rsplit('.').next() == Some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_recording_is_read() {
        let exception = |name: &str| Ok(StopOn::Exception(name.into()));
        assert_eq!(StopOn::parse("exception:System.OutOfMemoryException"), exception("System.OutOfMemoryException"));
        assert_eq!(StopOn::parse("gc.pause>200ms"), Ok(StopOn::Pause(200_000_000)));
        assert_eq!(StopOn::parse("gc.pause > 1m30s"), Ok(StopOn::Pause(90_000_000_000)));
        for wrong in ["", "exception:", "exception:a b", "gc.pause<1s", "gc.pause>", "gc.pause>soon", "cpu>90"] {
            assert!(StopOn::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_type_may_be_named_without_its_namespace() {
        assert!(is_type("System.IO.IOException", "IOException"));
        assert!(is_type("System.IO.IOException", "System.IO.IOException"));
        assert!(!is_type("System.IO.IOException", "IO.IOException") && !is_type("My.IOExceptions", "IOException"));
    }
}
