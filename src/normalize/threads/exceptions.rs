//! Exceptions: where they are thrown, and which handler catches them.
//!
//! ```text
//!  Thrown   FilterStart ..   FinallyStart ..   CatchStart .. CatchStop
//! ```
//! All of it is on one thread. An exception that is thrown while another one is handled is the inner one of two.

use crate::normalize::fact::{Exception, FactSink};
use crate::normalize::nested::{Item, Nested};
use crate::normalize::tracker::{self, Hears, Input, RUNTIME};

/// What an event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is thrown.
    Thrown,
    /// A filter is asked.
    Filter,
    /// A finally or fault block begins.
    Finally,
    /// A handler begins.
    Catch,
    /// A handler ends.
    CatchEnd,
}

/// The events.
pub const HEARS: &[Hears<Action>] = &[Hears {
    provider: RUNTIME,
    events: &[
        ("ExceptionThrown", Action::Thrown),
        ("ExceptionFilterStart", Action::Filter),
        ("ExceptionFinallyStart", Action::Finally),
        ("ExceptionCatchStart", Action::Catch),
        ("ExceptionCatchStop", Action::CatchEnd),
    ],
}];

impl tracker::Action for Action {}

/// An exception: its row, but for the text.
#[derive(Debug, Default)]
struct Open {
    row: Exception<'static>,
    type_name: String,
    message: String,
    flags: String,
    handler: Option<String>,
}

/// The name of a handler that is longer is none: the runtime's events have 64 KB at most.
const MAX_HANDLER: usize = 64 << 10;

impl Item for Open {
    fn start_ts_ns(&self) -> i64 {
        self.row.ts_ns
    }

    fn text_bytes(&self) -> usize {
        self.type_name.len() + self.message.len() + self.flags.len()
    }
}

impl Open {
    fn report(&self, sink: &mut impl FactSink) {
        sink.add(&Exception {
            type_name: &self.type_name,
            message: &self.message,
            flags_text: &self.flags,
            catch_method_name: self.handler.as_deref(),
            ..self.row
        });
    }
}

/// The exceptions that no handler is known to have dealt with.
#[derive(Debug, Default)]
pub struct Exceptions {
    /// A message may have 64 KB.
    open: Nested<Open, 1024>,
}

impl Exceptions {
    /// Those whose end was not looked for any more, because too many went on.
    pub fn given_up(&self) -> u64 {
        self.open.given_up()
    }

    /// An event of an exception.
    pub fn event(&mut self, action: Action, input: &Input<'_>, sink: &mut impl FactSink) {
        let thread = input.capture_thread();
        if action == Action::Thrown {
            let thrown = Open {
                row: Exception {
                    ts_ns: input.ts_ns(),
                    process_id: input.process_id(),
                    thread_id: input.thread_id(),
                    callsite_id: input.callsite_id,
                    hresult: input.number("ExceptionHRESULT") as u32,
                    flags: input.number("ExceptionFlags") as u32,
                    instruction_pointer: input.number("ExceptionEIP"),
                    ..Exception::default()
                },
                type_name: input.text("ExceptionType").to_owned(),
                message: input.text("ExceptionMessage").to_owned(),
                flags: input.words_of("ExceptionThrownFlagsMap", "ExceptionFlags"),
                handler: None,
            };
            return self.open.begin(thread, thrown, |evicted| evicted.report(sink));
        }
        let Some(open) = self.open.innermost(thread) else { return };
        match action {
            Action::Thrown => {}
            Action::Filter => open.row.filter_count += 1,
            Action::Finally => open.row.finally_count += 1,
            Action::Catch if input.ts_ns() < open.row.ts_ns => {}
            Action::Catch => {
                open.row.catch_count += 1;
                open.row.catch_ts_ns = Some(input.ts_ns());
                open.row.catch_method_id = input.number("MethodID");
                let handler = input.fields.text("MethodName").filter(|name| name.len() <= MAX_HANDLER);
                open.handler = handler.map(str::to_owned);
            }
            Action::CatchEnd => {
                if let Some(mut ended) = self.open.end(thread, input.ts_ns(), |_| true, |_| {}) {
                    ended.row.end_ts_ns = Some(input.ts_ns());
                    ended.report(sink);
                }
            }
        }
    }

    /// Events of a thread (`None`: of any) were lost: what comes behind the gap may be of other exceptions.
    pub fn events_lost(&mut self, thread: Option<u32>, sink: &mut impl FactSink) {
        self.open.take(thread).iter().for_each(|open| open.report(sink));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalize::fact::Fact;
    use crate::normalize::made_up::{Each, Given, event};

    #[test]
    fn the_name_of_a_handler_has_a_bound() {
        let mut names = Vec::new();
        for length in [64 << 10, (64 << 10) + 1] {
            let mut sink = Each(|fact: &Fact<'_>| {
                if let Fact::Exception(rows) = fact {
                    names.extend(rows.iter().map(|row| (row.catch_count, row.catch_method_name.map(str::len))));
                }
            });
            let (mut exceptions, name) = (Exceptions::default(), "x".repeat(length));
            for (action, fields) in [
                (Action::Thrown, vec![("ExceptionType", Given::Text("E"))]),
                (Action::Catch, vec![("MethodName", Given::Text(&name))]),
                (Action::CatchEnd, vec![("ClrInstanceID", Given::Number(1))]),
            ] {
                event(action, 1, &fields, |input| exceptions.event(action, input, &mut sink));
            }
        }
        assert_eq!(names, [(1, Some(64 << 10)), (1, None)]);
    }
}
