//! What a real process reported to its profiler and EventPipe at the same time, rewritten as an .etl in which
//! ETWClrProfiler and the runtime's own events stand side by side, by their real times: it says the same as the
//! recording of EventPipe alone.

use std::ops::ControlFlow;

use tracequet::facts::fact::Gc;
use tracequet::trace::error::Problem;
use tracequet::trace::reader::callback::{self, Body, Record, Visitor};
use tracequet::trace::source::Input;

use super::profiler::{Reports, facts};
use super::writer::{RUNTIME, TICKS, Writer};
use crate::support::agree::stories;
use crate::support::callbacks::Facts;
use crate::support::collect::Recording;
use crate::support::dual::{Dual, each_runtime};

const CLAMP: u64 = 0xFFFF_FFFF;
/// The profiler begins this much before EventPipe does, at most.
const HEAD_START_NS: i64 = 60_000_000_000;

/// Retells the records of a .corprof as the profiler's events.
struct Retelling {
    etw: Reports,
    first_ticks: i64,
    collections: u32,
}

impl Visitor for Retelling {
    fn record(&mut self, record: &Record<'_>) -> ControlFlow<()> {
        let ticks = record.ticks as i64 - self.first_ticks + TICKS;
        let etw = self.etw.at(ticks, record.thread_id as u32);
        match record.body {
            Body::Started { collected, reason, .. } => {
                self.collections += 1;
                etw.started(self.collections, (31 - collected.leading_zeros()).min(2), reason == 1);
            }
            Body::Finished { .. } => drop(etw.finished(self.collections)),
            Body::Surviving { rows, .. } => {
                etw.survived(&rows.iter().map(|[s, l]| [*s, *l.min(&CLAMP)]).collect::<Vec<_>>());
            }
            Body::Moved { rows, .. } => {
                etw.moved(&rows.iter().map(|[o, n, l]| [*o, *n, *l.min(&CLAMP)]).collect::<Vec<_>>());
            }
            Body::Roots2 { rows } => drop(etw.roots(rows)),
            Body::HandleCreated { handle_id, object_id } => drop(etw.words(12, &[handle_id, object_id])),
            Body::HandleDestroyed { handle_id } => drop(etw.words(13, &[handle_id])),
            Body::Finalizeable { object_id, .. } => drop(etw.words(11, &[object_id, 0])),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn problem(&mut self, problem: Problem) {
        panic!("{problem:?}");
    }
}

/// Both recordings as one .etl. Bulk ranges of the runtime are left out unless they are wanted.
fn retold(dual: &Dual, with_ranges: bool) -> Vec<u8> {
    let events = Recording::open(&dual.events_path());
    // Both clocks are the same: nanoseconds since the system started.
    let first_ticks = events.info.as_ref().expect("a header").clock.sync_ticks - HEAD_START_NS;
    let mut retelling = Retelling { etw: Reports::new(), first_ticks, collections: 0 };
    let path = dual.folder.path().join("app.corprof");
    callback::read(Input::open(&path).expect("the recorder's file"), &mut retelling).expect("a readable recording");
    let mut etw = retelling.etw;
    for seen in &events.events {
        let kind = &events.info_of(seen).event_type;
        if events.info_of(seen).provider != "Microsoft-Windows-DotNETRuntime"
            || !with_ranges && matches!(kind.event_id, 21 | 22)
        {
            continue;
        }
        let thread_id = events.threads[seen.capture_thread as usize].thread_id as u32;
        let etw = etw.at(seen.ticks - first_ticks + TICKS, thread_id);
        etw.event(RUNTIME, kind.event_id as u16, kind.version as u8, &seen.payload);
    }
    let ticks = |event: &Vec<u8>| i64::from_le_bytes(event[0x10..0x18].try_into().expect("8 bytes"));
    etw.events.sort_by_key(ticks);
    Writer::sized_file(&etw.events, 1 << 17, 1_000_000_000)
}

#[test]
fn callbacks_retold_beside_the_runtime_s_events_say_what_these_say() {
    for runtime in each_runtime("retold") {
        let server = [("gcServer", "1"), ("GCHeapCount", "2")];
        for (name, settings, arguments) in
            [("workstation", &[][..], &["churn"][..]), ("server", &server[..], &["churn", "2"][..])]
        {
            let dual = runtime.start(settings, &[], arguments).ended();
            let (callbacks, events) = (dual.callbacks(), dual.events());
            for with_ranges in [true, false] {
                let what = format!("{name} on {}, ranges of the runtime: {with_ranges}", runtime.name);
                let both = facts(&retold(&dual, with_ranges));
                let rows = |facts: &Facts| -> Vec<_> {
                    let row = |c: &Gc| {
                        let counts = (c.surviving_range_count, c.moved_range_count, c.surviving_bytes, c.moved_bytes);
                        (c.gc_id, c.gc_number, c.generation, c.kind, c.reason, c.complete, counts)
                    };
                    facts.collections.iter().map(row).collect()
                };
                assert_eq!(rows(&both), rows(&events), "{what}");
                assert!(stories(&both) == stories(&events), "{what}: other bounds or ranges");
                assert_eq!(both.roots, callbacks.roots, "{what}");
                assert_eq!(both.handles.len(), callbacks.handles.len(), "{what}");
                // Threads of the collector call at once: their order is by time here, and by sequence there.
                let sorted = |mut rows: Vec<_>| {
                    rows.sort_unstable();
                    rows
                };
                let apart = [&events.finalizable[..], &callbacks.finalizable].concat();
                assert_eq!(sorted(both.finalizable.clone()), sorted(apart), "{what}");
                assert!(both.surviving.iter().all(|r| r.length_kind == "exact"), "{what}");
                assert!(both.problems.is_empty(), "{what}: {:?}", both.codes());
                let (collections, ranges) = (both.collections.len(), both.surviving.len() + both.moved.len());
                assert!(collections >= 5 && ranges > 100, "{what}: {collections} collections, {ranges} ranges");
                println!("{what}: {collections} collections, {ranges} ranges, {} roots", both.roots.len());
            }
        }
    }
}
