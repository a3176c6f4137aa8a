//! The heap dump of a running process: its collection, and the duration of its pause.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::trace::event::{Event, EventInfo};
use crate::trace::source::diagnostics::{Control, Reason};

use super::fields::{RUNTIME, field_number};

const GC_START: u32 = 1;
const GC_END: u32 = 2;
const RESTART_END: u32 = 3;
const SUSPEND_BEGIN: u32 = 9;
const BULK_NODE: u32 = 18;
const SAYS_SOMETHING: [u32; 5] = [GC_START, GC_END, RESTART_END, SUSPEND_BEGIN, BULK_NODE];
/// Type of a collection beside which threads run: not the one that lists the heap.
const BACKGROUND: u64 = 1;
/// The whole heap.
const OLDEST_GENERATION: u64 = 2;

/// How long a runtime may take until it begins to list its heap.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it may be silent before that, and while it lists objects, which it does without a break.
const SILENCE: Duration = Duration::from_secs(20);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(200);

/// Ends a recording in which no event will: the runtime did not begin, or the events that end a list were dropped because
/// its buffer was full.
pub fn watch_clock(control: &Control, has_begun: impl Fn() -> bool) {
    let begin = Instant::now();
    let (mut bytes, mut changed) = (0, begin);
    while !control.is_stopping() && !control.has_ended() {
        std::thread::sleep(LOOK);
        if control.bytes() != bytes {
            (bytes, changed) = (control.bytes(), Instant::now());
        }
        if changed.elapsed() < SILENCE {
            continue;
        }
        if has_begun() {
            return control.stop(Reason::Asked);
        }
        if begin.elapsed() > PATIENCE {
            let why = format!("the runtime did not begin to list its heap within {} s", PATIENCE.as_secs());
            return control.give_up(Reason::Failed(why));
        }
    }
}

/// What is known of the dump so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// Number of the collection that lists the heap.
    pub collection: Option<u64>,
    /// Whether that collection has ended: the heap is whole.
    pub is_whole: bool,
    /// Whether threads run again after it.
    pub has_resumed: bool,
    /// Duration of its pause, nanoseconds.
    pub pause_ns: Option<i64>,
}

/// Looks for the collection that lists the heap.
#[derive(Debug, Default)]
pub struct HeapWatch {
    suspended_ns: Option<i64>,
    /// Number of the collection of the whole heap that runs.
    running: Option<u64>,
    dump: Arc<Mutex<Dump>>,
}

impl HeapWatch {
    /// What others see of it.
    pub fn dump(&self) -> Arc<Mutex<Dump>> {
        self.dump.clone()
    }

    /// Whether events of this kind say something about it.
    pub fn wants(&self, info: &EventInfo) -> bool {
        info.provider == RUNTIME && SAYS_SOMETHING.contains(&info.event_type.event_id)
    }

    /// Whether the recording can end with this event: the heap is whole, or threads run again and its end was dropped.
    ///
    /// The runtime collects when the session begins. The heap dump is the first full collection, and not a
    /// background one, that reports objects: the program may make collections of its own before it, which report
    /// none. The dump is complete at its end.
    pub fn event(&mut self, event: &Event<'_>) -> bool {
        let number = |name| field_number(event, name);
        match event.info.event_type.event_id {
            SUSPEND_BEGIN => self.suspended_ns = Some(event.ts_ns),
            GC_START => self.started(number("Count"), number("Depth"), number("Type")),
            BULK_NODE => self.has_objects(),
            GC_END => return self.ended(number("Count")),
            RESTART_END => return self.resumed(event.ts_ns),
            _ => {}
        }
        false
    }

    fn dump_now(&self) -> MutexGuard<'_, Dump> {
        self.dump.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn started(&mut self, count: Option<u64>, generation: Option<u64>, kind: Option<u64>) {
        if generation == Some(OLDEST_GENERATION) && kind != Some(BACKGROUND) {
            self.running = count;
        }
    }

    fn has_objects(&mut self) {
        let running = self.running;
        let mut dump = self.dump_now();
        dump.collection = dump.collection.or(running);
    }

    fn ended(&mut self, count: Option<u64>) -> bool {
        if self.running == count {
            self.running = None;
        }
        let mut dump = self.dump_now();
        let is_it = !dump.is_whole && dump.collection.is_some() && dump.collection == count;
        dump.is_whole |= is_it;
        is_it
    }

    fn resumed(&mut self, ts_ns: i64) -> bool {
        let suspended_ns = self.suspended_ns.take();
        let mut dump = self.dump_now();
        if dump.collection.is_none() || dump.has_resumed {
            return false;
        }
        dump.has_resumed = true;
        dump.pause_ns = suspended_ns.map(|begin| ts_ns.saturating_sub(begin));
        !dump.is_whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that collects its whole heap now and then does so while the session begins.
    #[test]
    fn a_collection_of_the_program_is_not_taken_for_the_one_that_tells_the_heap() {
        let mut watch = HeapWatch::default();
        let dump = watch.dump();
        let now = || *dump.lock().unwrap_or_else(PoisonError::into_inner);
        watch.suspended_ns = Some(10);
        watch.started(Some(7), Some(2), Some(0));
        assert!(!watch.ended(Some(7)), "it reported nothing");
        assert!(!watch.resumed(20));
        assert_eq!(now(), Dump::default());
        // A young one and a background one beside the forced one.
        watch.suspended_ns = Some(30);
        watch.started(Some(8), Some(1), Some(0));
        watch.started(Some(9), Some(2), Some(BACKGROUND));
        watch.has_objects();
        assert_eq!(now().collection, None, "objects outside of a collection of the whole heap");
        watch.started(Some(10), Some(2), Some(0));
        watch.has_objects();
        assert!(!watch.ended(Some(8)) && !now().is_whole);
        watch.has_objects();
        assert!(watch.ended(Some(10)) && !watch.ended(Some(10)), "whole once");
        assert!(!watch.resumed(90), "the recording ends at the end of the collection");
        assert_eq!(now(), Dump { collection: Some(10), is_whole: true, has_resumed: true, pause_ns: Some(60) });
    }

    /// The buffer of the runtime was full: the end of the collection is among what was dropped.
    #[test]
    fn the_recording_ends_when_threads_run_again_though_the_end_of_the_collection_was_dropped() {
        let mut watch = HeapWatch::default();
        let dump = watch.dump();
        watch.suspended_ns = Some(30);
        assert!(!watch.resumed(40), "nothing was reported");
        watch.suspended_ns = Some(50);
        watch.started(Some(10), Some(2), Some(0));
        watch.has_objects();
        assert!(watch.resumed(90));
        let dump = *dump.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(dump, Dump { collection: Some(10), is_whole: false, has_resumed: true, pause_ns: Some(40) });
    }
}
