//! Work of the thread pool by your outermost methods: where a recording names no route, the handlers of requests are among them.

use tracequet_analyze::subjects::waits::{Reasons, Waited};

use crate::facts::with_code;
use crate::prelude::*;
use crate::subjects::{Groups, Largest};

/// Time and samples of workers by call site.
#[derive(Debug, Default)]
pub(crate) struct Handlers(Map<u32, Work>);

#[derive(Clone, Copy, Debug, Default)]
struct Work {
    waited: Waited,
    ran: u64,
    outside: u64,
}

impl Work {
    /// The order of rows: a sample of the runtime stands for some milliseconds.
    fn size(&self) -> u64 {
        self.waited.total_ns.saturating_add((self.ran + self.outside).saturating_mul(1_000_000))
    }
}

impl Handlers {
    /// A worker waited.
    pub(crate) fn wait(&mut self, callsite: u32, duration_ns: Option<i64>) {
        self.0.entry(callsite).or_default().waited.add(duration_ns);
    }

    /// A sample of a worker, which ran, or was outside of managed code.
    pub(crate) fn sample(&mut self, callsite: u32, runs: bool) {
        let work = self.0.entry(callsite).or_default();
        *(if runs { &mut work.ran } else { &mut work.outside }) += 1;
    }

    /// The part of the page; `None` where no worker ran own code.
    pub(crate) fn html(self, reasons: &Reasons) -> Option<String> {
        let mut groups: Groups<Work> = Groups::new();
        for (callsite, more) in self.0 {
            let path = reasons.own_path(callsite);
            let mut outermost = path.iter().rev().copied();
            let Some(first) = outermost.next() else { continue };
            let work = groups.of([first, outermost.next().unwrap_or_default()]);
            work.waited.join(&more.waited);
            (work.ran, work.outside) = (work.ran + more.ran, work.outside + more.outside);
        }
        let Largest { rows, of, .. } = groups.largest(Work::size);
        if rows.is_empty() {
            return None;
        }
        let mut table = table!("handlers-table", &rows, |(names, work)| {
            let name = |place: usize| Cell::optional(names.get(place).map(String::as_str));
            let samples = |count: u64| Cell::count(Some(count).filter(|_| work.ran + work.outside > 0));
        } {
            words("begins in", "Your outermost method on the stack of a worker") => name(0),
            words("calls", "Your next method on the stack: below what dispatches all requests the handler of one") => name(1),
            numbers("waits", "How many, for locks and for all else that the runtime reports") =>
                Cell::count(Some(work.waited.count).filter(|waits| *waits > 0)),
            numbers("waited", "All waits together that ended in the recording") => Cell::span(work.waited.total()),
            numbers("longest", "The longest of them") => Cell::span(work.waited.longest_ns),
            numbers("ran", "Samples of the runtime in managed code") => samples(work.ran),
            numbers("outside", "Samples of the runtime outside of managed code, where threads nearly always wait") =>
                samples(work.outside),
        });
        table.without_empty();
        let about = format!(
            "No requests are recorded, so that no route has a name: `tracequet collect --for requests` records them. This is what workers of \
             the thread pool ran, by your outermost methods on their stacks: the handlers of requests are among them. {}",
            rows_note(rows.len(), of, ["pair of methods", "pairs of methods"], "the most time")
        );
        Some(format!(
            "<p class=\"note\">{}</p>\n{}",
            with_code(&about),
            table.html("Work of the thread pool by method")
        ))
    }
}
