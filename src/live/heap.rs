//! The heap dump of a running process: its collection, and the duration of its pause.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tracequet::trace::event::{Event, EventInfo};
use tracequet::trace::source::diagnostics::{Control, Reason};

use super::super::lock::lock;
use super::fields::{RUNTIME, field_number};

const GC_START: u32 = 1;
const GC_END: u32 = 2;
const RESTART_END: u32 = 3;
const SUSPEND_BEGIN: u32 = 9;
const BULK_NODE: u32 = 18;
const BULK_EDGE: u32 = 19;
const SAYS_SOMETHING: [u32; 6] = [GC_START, GC_END, RESTART_END, SUSPEND_BEGIN, BULK_NODE, BULK_EDGE];
/// Type of a collection beside which threads run: not the one that lists the heap.
const BACKGROUND: u64 = 1;
/// The whole heap.
const OLDEST_GENERATION: u64 = 2;

/// The longest time until a runtime begins to list its heap.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest silence before that, and while it lists objects, which it does without a break.
const SILENCE: Duration = Duration::from_secs(20);
/// Time between two looks at the recording.
const LOOK: Duration = Duration::from_millis(200);

/// Ends a recording that no event will end: the runtime does not begin to list its heap, or dropped the events that end
/// the list because its buffer was full.
pub fn end_when_stalled(control: &Control, dump: &Mutex<Dump>) {
    let mut progress = ListProgress::default();
    while !control.is_stopping() && !control.has_ended() {
        std::thread::sleep(LOOK);
        let Some(stalled) = progress.look(control.bytes(), control.unread(), &lock(dump)) else { continue };
        let not_begun =
            || Reason::Failed(format!("the runtime did not begin to list its heap within {} s", PATIENCE.as_secs()));
        match stalled {
            Stalled::InList => control.stop(Reason::Asked),
            Stalled::Silent => control.give_up(not_begun()),
            // The runtime works: what it still has comes.
            Stalled::BeforeList => control.stop(not_begun()),
        }
        return;
    }
}

/// The way in which the list of the heap came to a standstill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stalled {
    /// The list began, and nothing more of it comes.
    InList,
    /// The list did not begin, though the runtime sends other events.
    BeforeList,
    /// The list did not begin, and the runtime sends nothing.
    Silent,
}

/// Counts how long the list of the heap makes no progress. Each look counts for [`LOOK`], whatever the clock says:
/// while a machine stands still (a laptop that sleeps, a virtual machine that is moved), no time is counted.
#[derive(Debug, Default)]
struct ListProgress {
    bytes: u64,
    listed: u64,
    /// The time for which no bytes came.
    silent: Duration,
    /// The time for which everything that came was converted, and had no part of the list.
    unlisted: Duration,
}

impl ListProgress {
    fn look(&mut self, bytes: u64, unread: u64, dump: &Dump) -> Option<Stalled> {
        self.silent = if bytes == self.bytes { self.silent + LOOK } else { Duration::ZERO };
        if dump.listed != self.listed {
            self.unlisted = Duration::ZERO;
        } else if unread == 0 {
            self.unlisted += LOOK;
        }
        (self.bytes, self.listed) = (bytes, dump.listed);
        if dump.has_begun {
            return (self.unlisted >= SILENCE).then_some(Stalled::InList);
        }
        let stalled = if self.silent >= SILENCE { Stalled::Silent } else { Stalled::BeforeList };
        (self.unlisted > PATIENCE).then_some(stalled)
    }
}

/// The dump, as far as it has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// Whether a list of the heap has begun.
    pub has_begun: bool,
    /// Number of the collection that lists the heap; `None` as well when its start is not in the recording.
    pub collection: Option<u64>,
    /// Events that list objects or references, of any collection.
    pub listed: u64,
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
    /// The collection for which threads are suspended.
    running: Option<Running>,
    dump: Arc<Mutex<Dump>>,
}

/// A collection that has started and not ended.
#[derive(Clone, Copy, Debug)]
struct Running {
    number: Option<u64>,
    /// Whether it is one of the whole heap.
    is_full: bool,
}

impl HeapWatch {
    /// The part of the dump that others see.
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
    /// none. The dump is complete at its end. A runtime that was collecting the whole heap already may make no second
    /// collection: that one reports the objects, and its start is not in the recording.
    pub fn event(&mut self, event: &Event<'_>) -> bool {
        let number = |name| field_number(event, name);
        match event.info.event_type.event_id {
            SUSPEND_BEGIN => self.suspended_ns = Some(event.ts_ns),
            GC_START => self.started(number("Count"), number("Depth"), number("Type")),
            BULK_NODE => self.has_objects(),
            BULK_EDGE => lock(&self.dump).listed += 1,
            GC_END => return self.ended(number("Count")),
            RESTART_END => return self.resumed(event.ts_ns),
            _ => {}
        }
        false
    }

    fn started(&mut self, number: Option<u64>, generation: Option<u64>, kind: Option<u64>) {
        if kind != Some(BACKGROUND) {
            self.running = Some(Running { number, is_full: generation == Some(OLDEST_GENERATION) });
        }
    }

    fn has_objects(&mut self) {
        let mut dump = lock(&self.dump);
        dump.listed += 1;
        if !dump.has_begun && self.running.is_none_or(|running| running.is_full) {
            dump.has_begun = true;
            dump.collection = self.running.and_then(|running| running.number);
        }
    }

    fn ended(&mut self, number: Option<u64>) -> bool {
        self.running = self.running.filter(|running| running.number != number);
        let mut dump = lock(&self.dump);
        let is_it =
            dump.has_begun && !dump.is_whole && dump.collection.is_none_or(|collection| Some(collection) == number);
        dump.is_whole |= is_it;
        is_it
    }

    fn resumed(&mut self, ts_ns: i64) -> bool {
        let suspended_ns = self.suspended_ns.take();
        let mut dump = lock(&self.dump);
        if !dump.has_begun || dump.has_resumed {
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
        let now = || *lock(&dump);
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
        assert!(!now().has_begun, "objects outside of a collection of the whole heap");
        assert!(!watch.ended(Some(8)));
        watch.started(Some(10), Some(2), Some(0));
        watch.has_objects();
        assert!(!watch.ended(Some(9)) && !now().is_whole);
        watch.has_objects();
        assert!(watch.ended(Some(10)) && !watch.ended(Some(10)), "whole once");
        assert!(!watch.resumed(90), "the recording ends at the end of the collection");
        let (collection, pause_ns) = (Some(10), Some(60));
        assert_eq!(now(), Dump { has_begun: true, collection, listed: 3, is_whole: true, has_resumed: true, pause_ns });
    }

    /// The collection that the session asks for is the one that ran when it began.
    #[test]
    fn a_list_of_a_collection_whose_start_is_not_in_the_recording_is_the_heap() {
        let mut watch = HeapWatch::default();
        let dump = watch.dump();
        watch.has_objects();
        assert!(lock(&dump).has_begun && !lock(&dump).is_whole);
        assert!(watch.ended(Some(6)));
        assert!(!watch.resumed(20), "the recording ends at the end of the collection");
        let expected = Dump { has_begun: true, listed: 1, is_whole: true, has_resumed: true, ..Dump::default() };
        assert_eq!(*lock(&dump), expected);
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
        let (collection, pause_ns) = (Some(10), Some(40));
        assert_eq!(
            *lock(&dump),
            Dump { has_begun: true, collection, listed: 1, is_whole: false, has_resumed: true, pause_ns }
        );
    }

    /// Looks until the list is stalled; how long that took.
    fn stalled(mut look: impl FnMut(&mut ListProgress) -> Option<Stalled>) -> Option<(Duration, Stalled)> {
        let (mut progress, mut after) = (ListProgress::default(), Duration::ZERO);
        while after < 4 * PATIENCE {
            after += LOOK;
            if let Some(stalled) = look(&mut progress) {
                return Some((after, stalled));
            }
        }
        None
    }

    #[test]
    fn a_recording_without_a_list_ends_whether_or_not_the_program_sends_events() {
        let none = Dump::default();
        let silent = stalled(|progress| progress.look(100, 0, &none));
        assert_eq!(silent, Some((PATIENCE + LOOK, Stalled::Silent)));
        let mut bytes = 100;
        let flowing = stalled(|progress| {
            bytes += 100;
            progress.look(bytes, 0, &none)
        });
        assert_eq!(flowing, Some((PATIENCE + LOOK, Stalled::BeforeList)));
        // The list may be in what was not read yet.
        assert_eq!(stalled(|progress| progress.look(100, 50, &none)), None);
    }

    #[test]
    fn a_recording_ends_when_no_more_of_the_list_comes() {
        let mut dump = Dump { has_begun: true, ..Dump::default() };
        let mut bytes = 0;
        let lost = stalled(|progress| {
            bytes += 100;
            // A list of five seconds. The program sends events of its own from then on.
            dump.listed += u64::from(bytes <= 100 * 25);
            progress.look(bytes, 0, &dump)
        });
        assert_eq!(lost, Some((Duration::from_secs(5) + SILENCE, Stalled::InList)));
        let lists = stalled(|progress| {
            dump.listed += 1;
            progress.look(100, 0, &dump)
        });
        assert_eq!(lists, None, "more comes");
        assert_eq!(stalled(|progress| progress.look(100, 50, &dump)), None, "what came is not read");
    }
}
