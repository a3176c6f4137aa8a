//! Exceptions: where they are thrown, and which handler catches them.
//!
//! ```text
//!  Thrown   FilterStart .. FilterStop ..   FinallyStart ..   CatchStart .. CatchStop
//! ```
//! All of it is on one thread. An exception that is thrown while another one is handled is the inner one of two.
//!
//! A filter that throws is as if it had said no: the runtime drops that exception and goes on with the outer one. .NET
//! 10 then sends FilterStop, as it does behind every filter. Runtimes up to .NET 8 send nothing, so that a handler that
//! comes next may be one within the filter, for the exception in it, or one behind it, for the outer exception. It is
//! the latter where its method is the filter's own, which can have no handler within a filter. Otherwise the FilterStop
//! that follows proves the former. Where neither is so, nothing is said of the handlers of either.

use crate::fact::Exception;
use crate::prelude::*;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceptionsAction {
    /// An exception is thrown.
    Thrown,
    /// A filter is asked.
    Filter,
    /// A filter has answered, or has thrown.
    FilterEnd,
    /// A finally or fault block begins.
    Finally,
    /// A handler begins.
    Catch,
    /// A handler ends.
    CatchEnd,
    /// The version of the runtime.
    Runtime,
}

/// An exception: its row, but for the text.
#[derive(Debug, Default)]
struct OpenException {
    row: Exception<'static>,
    type_name: String,
    message: String,
    flags: String,
    handler: Option<String>,
    /// The method whose filter is asked and has not answered.
    asks: Option<u64>,
    /// Whether its handler seems to have ended within a filter. Until that filter ends, the handler may have been that
    /// of the exception outside, whose filter threw.
    is_doubtful: bool,
}

/// A longer text is not the name of a handler: the runtime's events have 64 KB at most.
const MAX_HANDLER: usize = 64 << 10;

impl Item for OpenException {
    fn start_ts_ns(&self) -> i64 {
        self.row.ts_ns
    }

    fn text_bytes(&self) -> usize {
        self.type_name.len() + self.message.len() + self.flags.len()
    }
}

impl OpenException {
    fn report(mut self, sink: &mut impl FactSink) {
        if self.is_doubtful {
            self.forget_handler();
        }
        sink.add(&Exception {
            type_name: &self.type_name,
            message: &self.message,
            flags_text: &self.flags,
            catch_method_name: self.handler.as_deref(),
            ..self.row
        });
    }

    fn forget_handler(&mut self) {
        (self.row.catch_count, self.row.catch_ts_ns, self.row.catch_method_id) = (0, None, 0);
        (self.row.end_ts_ns, self.handler) = (None, None);
    }
}

/// Processes of which it is remembered what they say of filters that throw.
const MAX_PROCESSES: usize = 4096;

/// The exceptions that no handler is known to have dealt with.
#[derive(Debug, Default)]
pub struct Exceptions {
    /// A message may have 64 KB.
    open: Nested<OpenException, 1024>,
    /// Whether the runtime of a process sends FilterStop when a filter throws, as far as it is known.
    ends_filters: Map<ProcessKey, bool>,
}

impl Exceptions {
    fn learn(&mut self, process: ProcessKey, ends_filters: bool) {
        if self.ends_filters.len() < MAX_PROCESSES {
            self.ends_filters.insert(process, ends_filters);
        }
    }

    /// Where the innermost exception of a thread is whose filter is asked, and the method of that filter.
    fn asking(&mut self, thread: u32) -> Option<(usize, u64)> {
        self.open.of_thread(thread).enumerate().rev().find_map(|(place, open)| Some((place, open.asks?)))
    }

    /// A filter has ended. Exceptions within it that nobody caught are gone.
    fn filter_end(&mut self, thread: u32, process: ProcessKey, sink: &mut impl FactSink) {
        let Some((place, _)) = self.asking(thread) else { return };
        let within = self.open.take_from(thread, place + 1);
        if within.iter().any(|open| open.row.catch_count == 0) {
            self.learn(process, true);
        }
        // All their handlers ended before the filter did.
        within.into_iter().for_each(|open| OpenException { is_doubtful: false, ..open }.report(sink));
        if let Some(open) = self.open.innermost(thread) {
            open.asks = None;
        }
    }

    /// A handler or a filter of a method begins. If that is the method whose filter is asked, the filter has thrown:
    /// what it threw is gone.
    fn filter_is_over(&mut self, thread: u32, process: ProcessKey, method: u64, sink: &mut impl FactSink) {
        if self.ends_filters.get(&process) == Some(&true) {
            return;
        }
        let Some((place, _)) = self.asking(thread).filter(|(_, asked)| *asked == method) else { return };
        if self.open.of_thread(thread).len() == place + 1 {
            return;
        }
        self.learn(process, false);
        if self.doubt(thread, sink) {
            return;
        }
        self.open.take_from(thread, place + 1).into_iter().for_each(|open| open.report(sink));
        if let Some(open) = self.open.innermost(thread) {
            open.asks = None;
        }
    }

    /// The filter in which handlers seem to have ended has not ended, and something else has begun: whose handlers they
    /// were is not known. Returns whether there were some.
    fn doubt(&mut self, thread: u32, sink: &mut impl FactSink) -> bool {
        let Some(last) = self.open.of_thread(thread).rposition(|open| open.is_doubtful) else { return false };
        let asked = self.open.of_thread(thread).take(last).rposition(|open| open.asks.is_some());
        let mut taken = self.open.take_from(thread, asked.unwrap_or(last));
        let later = taken.split_off(taken.len().min(last + 1 - asked.unwrap_or(last)));
        taken.into_iter().for_each(|open| open.report(sink));
        later.into_iter().for_each(|open| self.open.begin(thread, open, |evicted| evicted.report(sink)));
        true
    }

    /// A handler has ended.
    fn catch_end(&mut self, thread: u32, process: ProcessKey, ts_ns: i64, sink: &mut impl FactSink) {
        let ended = |open: &OpenException| !open.is_doubtful && open.row.ts_ns <= ts_ns;
        let place = self.open.of_thread(thread).rposition(|open| ended(open));
        let is_in_filter = self.open.of_thread(thread).take(place.unwrap_or_default()).any(|open| open.asks.is_some());
        if is_in_filter && self.ends_filters.get(&process) != Some(&true) {
            if let Some(open) = place.and_then(|place| self.open.of_thread(thread).nth(place)) {
                open.row.end_ts_ns = Some(ts_ns);
                open.is_doubtful = true;
            }
            return;
        }
        if let Some(mut open) = self.open.end(thread, ts_ns, ended, |_| {}) {
            open.row.end_ts_ns = Some(ts_ns);
            open.report(sink);
        }
    }
}

impl Tracker for Exceptions {
    type Action = ExceptionsAction;
    const EVENTS: Events<ExceptionsAction> = &[
        (RUNTIME, "ExceptionThrown", ExceptionsAction::Thrown),
        (RUNTIME, "ExceptionFilterStart", ExceptionsAction::Filter),
        (RUNTIME, "ExceptionFilterStop", ExceptionsAction::FilterEnd),
        (RUNTIME, "ExceptionFinallyStart", ExceptionsAction::Finally),
        (RUNTIME, "ExceptionCatchStart", ExceptionsAction::Catch),
        (RUNTIME, "ExceptionCatchStop", ExceptionsAction::CatchEnd),
        (RUNTIME, "RuntimeInformationStart", ExceptionsAction::Runtime),
    ];

    fn event(&mut self, action: ExceptionsAction, input: &Input<'_>, _: &mut Shared, sink: &mut impl FactSink) {
        let (thread, process, ts_ns) = (input.capture_thread(), input.process(), input.ts_ns());
        match action {
            ExceptionsAction::Thrown => {
                let thrown = OpenException {
                    row: Exception {
                        ts_ns,
                        hresult: input.number("ExceptionHRESULT") as u32,
                        flags: input.number("ExceptionFlags") as u32,
                        instruction_pointer: input.number("ExceptionEIP"),
                        ..input.row()
                    },
                    type_name: input.text("ExceptionType").to_owned(),
                    message: input.text("ExceptionMessage").to_owned(),
                    flags: input.words_of("ExceptionThrownFlagsMap", "ExceptionFlags"),
                    ..OpenException::default()
                };
                if self.ends_filters.get(&process) == Some(&false) {
                    self.doubt(thread, sink);
                }
                self.open.begin(thread, thrown, |evicted| evicted.report(sink));
            }
            ExceptionsAction::Filter => {
                let method = input.number("MethodID");
                self.filter_is_over(thread, process, method, sink);
                if let Some(open) = self.open.innermost(thread) {
                    open.row.filter_count += 1;
                    open.asks = Some(method);
                }
            }
            ExceptionsAction::FilterEnd => self.filter_end(thread, process, sink),
            ExceptionsAction::Finally => {
                if let Some(open) = self.open.innermost(thread) {
                    open.row.finally_count += 1;
                }
            }
            ExceptionsAction::Catch => {
                let method = input.number("MethodID");
                self.filter_is_over(thread, process, method, sink);
                let Some(open) = self.open.innermost(thread).filter(|open| open.row.ts_ns <= ts_ns) else { return };
                open.asks = None;
                open.row.catch_count += 1;
                open.row.catch_ts_ns = Some(ts_ns);
                open.row.catch_method_id = method;
                let handler = input.fields.text("MethodName").filter(|name| name.len() <= MAX_HANDLER);
                open.handler = handler.map(str::to_owned);
            }
            ExceptionsAction::CatchEnd => self.catch_end(thread, process, ts_ns, sink),
            ExceptionsAction::Runtime => {
                // Which .NET 9 does was not seen.
                let ends_filters = match input.number("VMMajorVersion") {
                    1..=8 => false,
                    10.. => true,
                    _ => return,
                };
                self.learn(process, ends_filters);
            }
        }
    }

    fn cut(&mut self, cut: &Cut, sink: &mut impl FactSink) {
        for mut open in self.open.take(cut.thread) {
            open.row.touches_gap |= cut.is_lost();
            open.report(sink);
        }
    }

    fn dropped(&self) -> Vec<Dropped> {
        let message = "too many concurrent exceptions; handlers missing in the table exception";
        vec![Dropped { code: "too_many_exceptions", count: self.open.dropped(), message }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;
    use crate::tests::made_up::{Each, Given, event};

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
                (ExceptionsAction::Thrown, vec![("ExceptionType", Given::Text("E"))]),
                (ExceptionsAction::Catch, vec![("MethodName", Given::Text(&name))]),
                (ExceptionsAction::CatchEnd, vec![("ClrInstanceID", Given::Number(1))]),
            ] {
                event(action, 1, &fields, |input| exceptions.event(action, input, &mut Shared::default(), &mut sink));
            }
        }
        assert_eq!(names, [(1, Some(64 << 10)), (1, None)]);
    }

    /// A step of a thread: a letter for the event, and the method or the name of the exception.
    fn handlers(steps: &[(char, u64)], runtime: u64) -> Vec<(i64, u32, u64)> {
        let mut rows = Vec::new();
        let mut sink = Each(|fact: &Fact<'_>| {
            if let Fact::Exception(all) = fact {
                rows.extend(all.iter().map(|row| (row.ts_ns, row.catch_count, row.catch_method_id)));
            }
        });
        let mut exceptions = Exceptions::default();
        let all = [('R', runtime)].into_iter().chain(steps.iter().copied());
        for ((kind, number), ts_ns) in all.zip(0..) {
            let (action, field) = match kind {
                'T' => (ExceptionsAction::Thrown, "ExceptionEIP"),
                'F' => (ExceptionsAction::Filter, "MethodID"),
                'f' => (ExceptionsAction::FilterEnd, "ClrInstanceID"),
                'C' => (ExceptionsAction::Catch, "MethodID"),
                'c' => (ExceptionsAction::CatchEnd, "ClrInstanceID"),
                _ => (ExceptionsAction::Runtime, "VMMajorVersion"),
            };
            event(action, ts_ns, &[(field, Given::Number(number))], |input| {
                exceptions.event(action, input, &mut Shared::default(), &mut sink)
            });
        }
        exceptions.cut(&Cut::default(), &mut sink);
        rows.sort_unstable();
        rows
    }

    #[test]
    fn an_exception_that_leaves_a_filter_has_no_handler() {
        // Thrown in the filter of method 1, which is over then; caught by 2.
        let steps = [('T', 0), ('F', 1), ('T', 0), ('f', 0), ('C', 2), ('c', 0), ('T', 0), ('C', 3), ('c', 0)];
        for runtime in [0, 9, 10] {
            assert_eq!(handlers(&steps, runtime), [(1, 1, 2), (3, 0, 0), (7, 1, 3)], "{runtime}");
        }
        // Caught within the filter, twice, and the filter says yes.
        let steps = [
            ('T', 0),
            ('F', 1),
            ('T', 0),
            ('C', 4),
            ('c', 0),
            ('T', 0),
            ('C', 5),
            ('c', 0),
            ('f', 0),
            ('C', 1),
            ('c', 0),
        ];
        for runtime in [0, 9, 10] {
            assert_eq!(handlers(&steps, runtime), [(1, 1, 1), (3, 1, 4), (6, 1, 5)], "{runtime}");
        }
    }

    #[test]
    fn old_runtimes_do_not_say_that_a_filter_threw() {
        // The outer handler is in the method of the filter, which cannot catch within it.
        let same = [('T', 0), ('F', 1), ('T', 0), ('C', 1), ('c', 0), ('T', 0), ('C', 3), ('c', 0)];
        assert_eq!(handlers(&same, 8), [(1, 1, 1), (3, 0, 0), (6, 1, 3)]);
        assert_eq!(handlers(&same, 0), [(1, 1, 1), (3, 0, 0), (6, 1, 3)]);
        // In another method: within the filter, or behind it? The next exception comes without an end of the filter.
        let other = [('T', 0), ('F', 1), ('T', 0), ('C', 2), ('c', 0), ('T', 0), ('C', 3), ('c', 0)];
        assert_eq!(handlers(&other, 8), [(1, 0, 0), (3, 0, 0), (6, 1, 3)]);
        // The next filter of the same method: the first one has thrown.
        let next = [('T', 0), ('F', 1), ('T', 0), ('F', 1), ('f', 0), ('C', 2), ('c', 0)];
        assert_eq!(handlers(&next, 8), [(1, 1, 2), (3, 0, 0)]);
    }
}
