//! Which events are starts, stops and failures of work, and what names the work.

use std::hash::{BuildHasher, Hash};
use std::sync::LazyLock;

use foldhash::fast::RandomState;
use tracequet_trace::event::EventInfo;

/// Whether an event is a start, a stop or a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The work begins.
    Start,
    /// The work ends.
    Stop,
    /// The work has failed; the stop comes later.
    Failed,
}

/// The kind of work that an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkEvent {
    /// Where in the work it stands.
    pub step: Step,
    /// A number that is equal for starts and stops of one kind of work.
    pub kind: u64,
    /// Bytes of the event's name before the name of the work, and of that name.
    name: (u8, u16),
}

const STARTS: &[&str] = &["Start", "Begin", "Fork", "Started"];
const STOPS: &[&str] = &["Stop", "End", "Join", "Stopped", "Completed"];
const FAILED: &str = "Failed";

/// The EventSource of ASP.NET Core.
const HOSTING: &str = "Microsoft.AspNetCore.Hosting";

/// A number that stands for something in this run of the program: another one in the next, so that no recording can be
/// made whose numbers collide.
pub fn number(of: impl Hash) -> u64 {
    static STATE: LazyLock<RandomState> = LazyLock::new(RandomState::default);
    STATE.hash_one(of)
}

/// The number of a kind of work.
pub fn kind(provider: &str, name: &str) -> u64 {
    number((provider, name))
}

/// The name of the work, with the step that the name of an event ends in.
fn split_name(name: &str) -> Option<(&str, Step)> {
    let ends = |words: &[&str]| words.iter().find_map(|word| name.strip_suffix(word));
    let found =
        ends(&["Start"]).map(|work| (work, Step::Start)).or_else(|| ends(&["Stop"]).map(|work| (work, Step::Stop)));
    found.map(|(work, step)| (work.trim_end_matches(['.', '/']), step))
}

impl WorkEvent {
    /// The meaning of events of a type, by their opcode or, where they have none, by the convention for names of
    /// EventSources.
    pub fn of(info: &EventInfo) -> Option<WorkEvent> {
        WorkEvent::named(&info.provider, &info.name, info.opcode)
    }

    fn named(provider: &str, name: &str, opcode: Option<u8>) -> Option<WorkEvent> {
        // UnhandledException comes before the stop of a request whose handler threw.
        if (provider, name) == (HOSTING, "UnhandledException") {
            return Some(WorkEvent { step: Step::Failed, kind: kind(provider, "Request"), name: (0, 0) });
        }
        let step = match opcode {
            Some(1) => Step::Start,
            Some(2) => Step::Stop,
            None | Some(0) => match split_name(name) {
                Some((_, step)) => step,
                None => name.strip_suffix(FAILED).map(|_| Step::Failed)?,
            },
            Some(_) => return None,
        };
        let words = match step {
            Step::Start => STARTS,
            Step::Stop => STOPS,
            Step::Failed => &[FAILED],
        };
        let suffix = words.iter().find_map(|word| name.strip_suffix(word)).map(|work| (0, of_task(work, words)));
        let prefix =
            || words.iter().find_map(|word| name.strip_prefix(word)).map(|work| (name.len() - work.len(), work));
        let (skipped, work) = suffix.or_else(prefix).unwrap_or((0, name));
        let work = work.trim_end_matches(['.', '/']);
        let place = (u8::try_from(skipped).ok()?, u16::try_from(work.len()).ok()?);
        Some(WorkEvent { step, kind: kind(provider, work), name: place })
    }

    /// The name of the work; that of the event when it is nothing but `Start`.
    pub fn work_name<'n>(&self, event_name: &'n str) -> &'n str {
        let (skipped, len) = (usize::from(self.name.0), usize::from(self.name.1));
        event_name.get(skipped..skipped + len).filter(|name| !name.is_empty()).unwrap_or(event_name)
    }
}

/// The name of the task before an opcode of Windows: of `ProcessStart/win:Start` it is `ProcessStart`, and the work is
/// `Process`.
fn of_task<'n>(work: &'n str, words: &[&str]) -> &'n str {
    let Some(task) = work.strip_suffix("/win:") else { return work };
    words.iter().find_map(|word| task.strip_suffix(word)).filter(|work| !work.is_empty()).unwrap_or(task)
}

/// The last letters of names for which [`is_id`] holds.
pub const ID_ENDS: &[u8] = b"dDrR";

/// Fields of BenchmarkDotNet's engine, which runs one benchmark and one iteration at a time: `EngineEventSource`.
const OF_BENCHMARKS: [&str; 2] = ["benchmarkName", "totalOperations"];

/// Whether a field by its name identifies a piece of work.
pub fn is_id(field: &str) -> bool {
    let ends = |end: &str| {
        let start = field.len().checked_sub(end.len());
        start.and_then(|start| field.get(start..)).is_some_and(|tail| tail.eq_ignore_ascii_case(end))
    };
    ends("id") || ends("identifier") || OF_BENCHMARKS.contains(&field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_of_windows_are_no_part_of_the_name() {
        let work = |name: &str, opcode| {
            let work = WorkEvent::named("P", name, Some(opcode)).unwrap();
            (work.kind, work.work_name(name).to_owned())
        };
        let (start, stop) = (work("ProcessStart/win:Start", 1), work("ProcessStop/win:Stop", 2));
        assert_eq!((start.1.as_str(), stop.1.as_str(), start.0 == stop.0), ("Process", "Process", true));
        assert_eq!(work("SetActive/win:Start", 1).1, "SetActive");
        assert_eq!(work("Start/win:Start", 1).1, "Start");
    }

    #[test]
    fn an_exception_that_nothing_handles_is_a_failure_of_the_request() {
        let request = WorkEvent::named(HOSTING, "RequestStart", Some(1)).unwrap();
        let thrown = WorkEvent::named(HOSTING, "UnhandledException", Some(0)).unwrap();
        assert_eq!((thrown.step, thrown.kind == request.kind), (Step::Failed, true));
        assert_eq!(WorkEvent::named("Other", "UnhandledException", Some(0)), None);
    }

    #[test]
    fn names_end_in_a_step() {
        assert_eq!(split_name("RequestStart"), Some(("Request", Step::Start)));
        assert_eq!(
            split_name("System.Net.Http.HttpRequestOut.Stop"),
            Some(("System.Net.Http.HttpRequestOut", Step::Stop))
        );
        assert_eq!(split_name("Started"), None);
        assert_eq!(
            ["connectionId", "requestID", "TraceIdentifier", "id", "totalOperations", "width", "Idle", ""].map(is_id),
            [true, true, true, true, true, false, false, false]
        );
        assert_ne!(kind("a", "bc"), kind("ab", "c"));
    }
}
