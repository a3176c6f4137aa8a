//! Reading a stream that is written meanwhile: nothing is held back longer than its order takes.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use tracequet::trace::error::Problem;
use tracequet::trace::reader::{self, End, Order, RawEvent, Visitor};
use tracequet::trace::source::Input;
use tracequet::trace::source::diagnostics::{SpoolWriter, spool};

use crate::support::writer::{Form, Kind, Row, Writer};

const KIND: Kind<'_> = Kind { id: 1, provider: "A", event_id: 1, version: 0, name: "One" };

/// Sends the tick of each event.
struct Ticks(Sender<i64>, Vec<Problem>);

impl Visitor for Ticks {
    fn event(&mut self, event: &RawEvent<'_>) -> ControlFlow<()> {
        if self.0.send(event.ticks).is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn problem(&mut self, problem: Problem) {
        self.1.push(problem);
    }
}

type Reading = std::thread::JoinHandle<(End, Vec<Problem>)>;

/// A reader on a thread of its own, with the ticks of its events, and a signal for each silence that it notices.
fn start() -> (SpoolWriter, Receiver<i64>, Receiver<()>, Reading) {
    // There is room when all of it is read.
    let (writer, bytes) = spool(None, 1).expect("a spool");
    let (sender, ticks) = channel();
    let (silent, silences) = channel();
    let reading = std::thread::spawn(move || {
        let more = bytes.more();
        let more = move |limit| {
            let is_more = more(limit);
            if !is_more {
                silent.send(()).ok();
            }
            is_more
        };
        let input = Input::from_live(Path::new("live"), Box::new(bytes), Box::new(more)).expect("a stream");
        let mut visitor = Ticks(sender, Vec::new());
        let end = reader::read(input, Order::Time, &mut visitor).expect("a recording");
        (end, visitor.1)
    });
    (writer, ticks, silences, reading)
}

fn row(thread: u64, sequence: u32, ticks: i64) -> Row {
    Row { metadata_id: 1, sequence, capture_thread: thread, thread, ticks, ..Row::default() }
}

/// The next events; none within a minute is a failure.
fn next(ticks: &Receiver<i64>, count: usize) -> Vec<i64> {
    let one = |_| ticks.recv_timeout(Duration::from_secs(60)).expect("an event that is not held back");
    (0..count).map(one).collect()
}

#[test]
fn the_last_events_of_a_silent_stream_are_delivered_in_order() {
    for form in [Form::V4, Form::V6] {
        let (spool, ticks, silences, reading) = start();
        let mut recording = Writer::new(form);
        recording.metadata(&[KIND]).threads(&[(1, 7, 11), (2, 7, 12)]);
        // Two threads, each in order: no event is marked as sorted, so only what comes next could settle the order.
        recording.events(&[row(1, 1, 10), row(1, 2, 30)]).events(&[row(2, 1, 20), row(2, 2, 40)]);
        let sent = recording.bytes.len();
        spool.write(&recording.bytes).expect("room");
        assert_eq!(next(&ticks, 4), [10, 20, 30, 40], "{form:?}");
        // It goes on as if there had been no silence, and a block that is cut by one waits for its rest.
        recording.events(&[row(1, 3, 50)]).events(&[row(2, 3, 45)]);
        let (first, second) = recording.bytes[sent..].split_at((recording.bytes.len() - sent) / 2);
        silences.try_iter().for_each(drop);
        spool.write(first).expect("room");
        assert!(spool.has_room(Duration::from_secs(60)), "{form:?}: the half is not read");
        // Where it looks for more before it waits, it notices the silence, too.
        silences.recv_timeout(Duration::from_secs(1)).ok();
        spool.write(second).expect("room");
        let mut late = next(&ticks, 2);
        late.sort_unstable();
        assert_eq!(late, [45, 50], "{form:?}");
        let before = recording.bytes.len();
        let whole = recording.end();
        spool.write(&whole[before..]).expect("room");
        spool.end();
        let (end, problems) = reading.join().expect("no panic");
        assert!(end.complete && end.bytes == whole.len() as u64, "{form:?}: {end:?} {problems:?}");
        assert!(problems.iter().all(|problem| problem.code == "out_of_order"), "{form:?}: {problems:?}");
    }
}

#[test]
fn a_stream_that_is_written_byte_by_byte_is_the_same_recording() {
    for form in [Form::V4, Form::V6] {
        let (spool, ticks, _, reading) = start();
        let mut recording = Writer::new(form);
        recording.metadata(&[KIND]).threads(&[(1, 7, 11), (2, 7, 12)]);
        recording.events(&[row(1, 1, 10), row(1, 2, 30)]).events(&[row(2, 1, 20)]);
        recording.sequence_point(40, &[(1, 2), (2, 1)]).events(&[row(2, 2, 50)]);
        let whole = recording.end();
        for byte in &whole {
            spool.write(&[*byte]).expect("room");
        }
        spool.end();
        let (end, problems) = reading.join().expect("no panic");
        assert_eq!(ticks.iter().collect::<Vec<_>>(), [10, 20, 30, 50], "{form:?}");
        assert!(end.complete && problems.is_empty(), "{form:?}: {problems:?}");
    }
}
