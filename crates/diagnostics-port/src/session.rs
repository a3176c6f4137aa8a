//! Event sessions (command set 2): the runtime streams a .nettrace through the connection on which it was asked to.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::frame::{Fields, Message};
use crate::port::Connection;
use crate::target::Target;
use crate::wait::PATIENCE;

const EVENT_PIPE: u8 = 2;
const STOP_TRACING: u8 = 1;
/// .NET Core 3.0: always with the default rundown and with stacks.
const COLLECT_TRACING: u8 = 2;
/// .NET 5: the rundown may be left out.
const COLLECT_TRACING_2: u8 = 3;
/// .NET 8: stacks may be left out.
const COLLECT_TRACING_3: u8 = 4;
/// .NET 9: the keywords of the rundown may be chosen.
const COLLECT_TRACING_4: u8 = 5;
/// .NET 10: events may be chosen by their ids.
const COLLECT_TRACING_5: u8 = 6;
/// .NET 11: the program may wait where events would be dropped.
const COLLECT_TRACING_6: u8 = 7;
/// The kind of session that streams over its own connection.
const STREAMING: u32 = 0;
/// Keywords of the rundown that a runtime writes by default.
const DEFAULT_RUNDOWN: u64 = 0x8002_0139;
/// A keyword that no method and no module is listed for: the events without one are about the runtime.
const RUNTIME_ALONE: u64 = 1;
/// Keyword of the runtime: collect now, and report the heap if GCHeapDump is set, too.
const GC_HEAP_COLLECT: u64 = 0x80_0000;
/// The longest time that a runtime may take to dump its heap: it answers when the collection is done.
const HEAP_PATIENCE: Duration = Duration::from_secs(1800);
/// The only format that is written today.
const NETTRACE: u32 = 1;

/// A provider, and how much of it is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Name.
    pub name: String,
    /// Events with any of these keywords.
    pub keywords: u64,
    /// Events up to this verbosity: 0 those that are always logged, 1 critical to 5 verbose.
    pub level: u32,
    /// `KEY=VALUE;...` for the provider itself; may be empty.
    pub arguments: String,
    /// Which of these events.
    pub events: EventFilter,
}

/// Which events of a provider are wanted, among those of its keywords and level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EventFilter {
    /// All.
    #[default]
    All,
    /// Events with these ids.
    Only(Vec<u32>),
    /// All but those with these ids.
    Except(Vec<u32>),
}

impl EventFilter {
    /// Whether the ids are those that are wanted, and the ids.
    fn parts(&self) -> (bool, &[u32]) {
        match self {
            EventFilter::All => (false, &[]),
            EventFilter::Only(ids) => (true, ids),
            EventFilter::Except(ids) => (false, ids),
        }
    }
}

/// The list of methods and modules that the runtime writes at the end, without which addresses of managed code have no
/// names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rundown {
    /// The rundown that the runtime makes by itself (keywords 0x80020139).
    Default,
    /// None.
    Off,
    /// Only what the runtime says of itself: its version, how it was started, the settings of its collector. Older
    /// runtimes than .NET 9 write none then.
    Runtime,
    /// These keywords of Microsoft-Windows-DotNETRuntimeRundown.
    Keywords(u64),
}

/// A runtime's way with events for which its buffer has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// The runtime drops events, and counts them.
    #[default]
    Drop,
    /// Threads that write events wait until some were read: nothing is lost, and a reader that stands still holds the
    /// program.
    Block,
    /// The runtime waits if it can (.NET 11). Another one drops events, which is no compromise then.
    BlockIfItCan,
}

/// A session to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRequest {
    /// Size of the buffer in the process, MB. When it is full, events are dropped, or the program waits.
    pub buffer_mb: u32,
    /// The way with events when the buffer is full.
    pub when_full: WhenFull,
    /// The rundown at the end.
    pub rundown: Rundown,
    /// Whether events have call stacks.
    pub stacks: bool,
    /// The providers that are recorded.
    pub providers: Vec<Provider>,
}

/// A session that has begun.
#[derive(Debug)]
pub struct Session {
    /// The id by which it is stopped.
    pub id: u64,
    /// Gives the bytes of a .nettrace, until the session is stopped or the process ends.
    pub connection: Connection,
    /// Requests that this runtime is too old for, and what it does instead.
    pub compromises: Vec<&'static str>,
}

const WHOLE_RUNDOWN: &str =
    "this runtime cannot choose the keywords of its rundown: it uses the default ones (needs .NET 9)";
const NO_RUNDOWN: &str = "this runtime cannot leave its rundown out: it is recorded anyway (needs .NET 5)";
const ALL_EVENTS: &str =
    "this runtime cannot choose events by their ids: all events of the keywords are recorded (needs .NET 10)";
const ALL_STACKS: &str = "this runtime cannot leave call stacks out: they are recorded anyway (needs .NET 8)";

const NO_BLOCKING: &str = "this runtime cannot wait when its buffer is full: it drops events then (needs .NET 11)";

/// Begins a session with the oldest command that says what is wanted. A runtime that does not know it is asked with the
/// next older one.
pub fn start_session(target: &Target, request: &SessionRequest) -> Result<Session> {
    let collects = |p: &Provider| p.name == "Microsoft-Windows-DotNETRuntime" && p.keywords & GC_HEAP_COLLECT != 0;
    let patience = if request.providers.iter().any(collects) { HEAP_PATIENCE } else { PATIENCE };
    let mut last = None;
    for (command, compromises) in attempts(request) {
        let message = message(command, request).finish()?;
        match target.connect()?.ask("CollectTracing", message, patience) {
            Ok((connection, payload)) => {
                let id = Fields(&payload).u64("the id of the session")?;
                return Ok(Session { id, connection, compromises });
            }
            Err(error) if error.is_unknown_command() => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or(Error::Refused { command: "CollectTracing", hresult: 0 }))
}

/// The commands to try in order, each with what it cannot say of the request.
fn attempts(request: &SessionRequest) -> Vec<(u8, Vec<&'static str>)> {
    let chosen = matches!(request.rundown, Rundown::Keywords(_));
    let off = matches!(request.rundown, Rundown::Off | Rundown::Runtime);
    let stacks = |compromise: &mut Vec<_>| compromise.extend((!request.stacks).then_some(ALL_STACKS));
    let mut attempts = Vec::new();
    let filtered = request.providers.iter().any(|provider| provider.events != EventFilter::All);
    if request.when_full != WhenFull::Drop {
        attempts.push((COLLECT_TRACING_6, vec![]));
    }
    let has_to_block = request.when_full == WhenFull::Block;
    let mut rundown: Vec<_> = has_to_block.then_some(NO_BLOCKING).into_iter().collect();
    if filtered {
        attempts.push((COLLECT_TRACING_5, rundown.clone()));
    }
    rundown.extend(filtered.then_some(ALL_EVENTS));
    if chosen || request.rundown == Rundown::Runtime {
        attempts.push((COLLECT_TRACING_4, rundown.clone()));
    }
    rundown.extend(chosen.then_some(WHOLE_RUNDOWN));
    if !request.stacks {
        attempts.push((COLLECT_TRACING_3, rundown.clone()));
    }
    if off {
        let mut compromises = rundown.clone();
        stacks(&mut compromises);
        attempts.push((COLLECT_TRACING_2, compromises));
    }
    let mut compromises = rundown;
    compromises.extend(off.then_some(NO_RUNDOWN));
    stacks(&mut compromises);
    attempts.push((COLLECT_TRACING, compromises));
    attempts
}

fn message(command: u8, request: &SessionRequest) -> Message {
    let mut message = Message::new(EVENT_PIPE, command);
    let has_filters = matches!(command, COLLECT_TRACING_5 | COLLECT_TRACING_6);
    if has_filters {
        message = message.u32(STREAMING);
    }
    message = message.u32(request.buffer_mb).u32(NETTRACE);
    let wanted = !matches!(request.rundown, Rundown::Off | Rundown::Runtime);
    message = match command {
        COLLECT_TRACING_2 => message.bool(wanted),
        COLLECT_TRACING_3 => message.bool(wanted).bool(request.stacks),
        COLLECT_TRACING_4 | COLLECT_TRACING_5 | COLLECT_TRACING_6 => {
            let keywords = match request.rundown {
                Rundown::Default => DEFAULT_RUNDOWN,
                Rundown::Off => 0,
                Rundown::Runtime => RUNTIME_ALONE,
                Rundown::Keywords(keywords) => keywords,
            };
            message.u64(keywords).bool(request.stacks)
        }
        _ => message,
    };
    message = message.u32(u32::try_from(request.providers.len()).unwrap_or(u32::MAX));
    for provider in &request.providers {
        message = message.u64(provider.keywords).u32(provider.level).string(&provider.name).string(&provider.arguments);
        if has_filters {
            let (enable, ids) = provider.events.parts();
            // A runtime (.NET 10) that is given an id twice sends no event of the provider at all.
            let ids: std::collections::BTreeSet<u32> = ids.iter().copied().collect();
            message = message.bool(enable).u32(u32::try_from(ids.len()).unwrap_or(u32::MAX));
            message = ids.iter().fold(message, |message, id| message.u32(*id));
        }
    }
    if command == COLLECT_TRACING_6 {
        message = message.u32(match request.when_full {
            WhenFull::Drop => 0,
            WhenFull::Block | WhenFull::BlockIfItCan => 1,
        });
    }
    message
}

/// Ends a session, on a connection of its own. The answer comes when everything was written, the rundown included:
/// the session's connection has to be read at the same time.
pub fn stop_session(target: &Target, id: u64, limit: Duration) -> Result<()> {
    let message = Message::new(EVENT_PIPE, STOP_TRACING).u64(id).finish()?;
    target.connect()?.ask("StopTracing", message, limit).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(rundown: Rundown, stacks: bool) -> SessionRequest {
        filtered(rundown, stacks, EventFilter::All)
    }

    fn filtered(rundown: Rundown, stacks: bool, events: EventFilter) -> SessionRequest {
        let provider = Provider { name: "A".into(), keywords: 0x11, level: 4, arguments: String::new(), events };
        let when_full = WhenFull::Drop;
        SessionRequest { buffer_mb: 256, when_full, rundown, stacks, providers: vec![provider] }
    }

    #[test]
    fn the_oldest_command_that_suffices_comes_first() {
        let commands = |rundown, stacks| {
            attempts(&request(rundown, stacks)).into_iter().map(|(command, c)| (command, c.len())).collect::<Vec<_>>()
        };
        assert_eq!(commands(Rundown::Default, true), [(2, 0)]);
        assert_eq!(commands(Rundown::Off, true), [(3, 0), (2, 1)]);
        assert_eq!(commands(Rundown::Runtime, true), [(5, 0), (3, 0), (2, 1)]);
        assert_eq!(commands(Rundown::Default, false), [(4, 0), (2, 1)]);
        assert_eq!(commands(Rundown::Off, false), [(4, 0), (3, 1), (2, 2)]);
        assert_eq!(commands(Rundown::Keywords(8), true), [(5, 0), (2, 1)]);
        assert_eq!(commands(Rundown::Keywords(8), false), [(5, 0), (4, 1), (2, 2)]);
        let filtered = |rundown, stacks| {
            let request = filtered(rundown, stacks, EventFilter::Only(vec![1]));
            attempts(&request).into_iter().map(|(command, c)| (command, c.len())).collect::<Vec<_>>()
        };
        assert_eq!(filtered(Rundown::Default, true), [(6, 0), (2, 1)]);
        assert_eq!(filtered(Rundown::Keywords(8), false), [(6, 0), (5, 1), (4, 2), (2, 3)]);
    }

    #[test]
    fn a_session_that_loses_nothing_is_asked_for_first() {
        let blocking = |request| SessionRequest { when_full: WhenFull::Block, ..request };
        let commands =
            |request| attempts(&blocking(request)).into_iter().map(|(c, said)| (c, said.len())).collect::<Vec<_>>();
        assert_eq!(commands(request(Rundown::Default, true)), [(7, 0), (2, 1)]);
        assert_eq!(commands(request(Rundown::Off, false)), [(7, 0), (4, 1), (3, 2), (2, 3)]);
        let only = filtered(Rundown::Off, true, EventFilter::Only(vec![1]));
        assert_eq!(commands(only.clone()), [(7, 0), (6, 1), (3, 2), (2, 3)]);
        assert!(attempts(&blocking(only.clone())).iter().skip(1).all(|(_, said)| said.contains(&NO_BLOCKING)));
        let if_it_can = SessionRequest { when_full: WhenFull::BlockIfItCan, ..request(Rundown::Default, true) };
        assert_eq!(attempts(&if_it_can), [(7, vec![]), (2, vec![])]);
        // As CollectTracing5, and what to do when the buffer is full behind all providers.
        let bytes = |command, request| message(command, &request).finish().unwrap().split_off(crate::frame::HEADER);
        for (request, mode) in [(blocking(only.clone()), 1), (only.clone(), 0)] {
            let expected = [bytes(COLLECT_TRACING_5, only.clone()), vec![mode, 0, 0, 0]].concat();
            assert_eq!(bytes(COLLECT_TRACING_6, request), expected);
        }
    }

    #[test]
    fn commands_differ_before_the_providers() {
        let payload = |command, rundown, stacks| {
            message(command, &request(rundown, stacks)).finish().unwrap().split_off(crate::frame::HEADER)
        };
        let begin = [0, 1, 0, 0, 1, 0, 0, 0];
        let providers = [1, 0, 0, 0, 0x11, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, b'A', 0, 0, 0, 0, 0, 0, 0];
        let whole = |middle: &[u8]| [&begin[..], middle, &providers[..]].concat();
        assert_eq!(payload(2, Rundown::Default, true), whole(&[]));
        assert_eq!(payload(3, Rundown::Off, true), whole(&[0]));
        assert_eq!(payload(3, Rundown::Runtime, true), whole(&[0]));
        assert_eq!(payload(5, Rundown::Runtime, true), whole(&[1, 0, 0, 0, 0, 0, 0, 0, 1]));
        assert_eq!(payload(4, Rundown::Default, false), whole(&[1, 0]));
        assert_eq!(payload(5, Rundown::Keywords(0x108), true), whole(&[8, 1, 0, 0, 0, 0, 0, 0, 1]));
        assert_eq!(payload(5, Rundown::Default, true), whole(&[0x39, 1, 2, 0x80, 0, 0, 0, 0, 1]));
    }

    #[test]
    fn events_are_chosen_behind_each_provider() {
        for (events, tail) in [
            (EventFilter::All, &[0, 0, 0, 0, 0][..]),
            (EventFilter::Only(vec![1, 0x102]), &[1, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0]),
            (EventFilter::Only(vec![0x102, 1, 0x102]), &[1, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0]),
            (EventFilter::Except(vec![9]), &[0, 1, 0, 0, 0, 9, 0, 0, 0]),
        ] {
            let message = message(COLLECT_TRACING_5, &filtered(Rundown::Off, true, events)).finish().unwrap();
            let begin = [&[0; 4][..], &[0, 1, 0, 0, 1, 0, 0, 0], &[0; 8], &[1]].concat();
            let provider = [1, 0, 0, 0, 0x11, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, b'A', 0, 0, 0, 0, 0, 0, 0];
            assert_eq!(message[crate::frame::HEADER..], [&begin, &provider[..], tail].concat());
        }
    }
}
