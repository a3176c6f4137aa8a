//! Lifetimes of an .etl: the events of a recording of EventPipe, written as Windows logs them, give the same lives.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use tracequet::Convert;
use tracequet::dataset::read::Dataset as Read;
use tracequet::trace::error::Problem;
use tracequet::trace::event::{self, Event, EventInfo, EventVisitor};
use tracequet::trace::reader::{Order, TypeId};
use tracequet::trace::source::Input;

use super::writer::{By, RUNTIME, TICKS, Writer, event_by};
use crate::support::dataset::{Dataset, rows};
use crate::support::files::sample;

/// Writes the events of the runtime, one tick after the other.
#[derive(Default)]
struct Retold {
    kinds: HashMap<u32, (u16, u8)>,
    events: Vec<Vec<u8>>,
}

impl EventVisitor for Retold {
    fn event_type(&mut self, id: TypeId, info: &EventInfo) -> bool {
        let is_of_runtime = info.provider == "Microsoft-Windows-DotNETRuntime";
        if is_of_runtime {
            self.kinds.insert(id.0, (info.event_type.event_id as u16, info.event_type.version as u8));
        }
        is_of_runtime
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if let Some((id, version)) = self.kinds.get(&event.raw.event_type.0) {
            let ticks = TICKS + 10 * (1 + self.events.len() as i64);
            let by = By { form: 19, process_id: 5, thread_id: 100 + event.raw.thread, ticks };
            self.events.push(event_by(by, RUNTIME, *id, *version, &[], event.raw.payload));
        }
        ControlFlow::Continue(())
    }

    fn problem(&mut self, problem: Problem) {
        panic!("{problem:?}");
    }
}

/// What is known of each sample, in the order of time, but for times and stacks.
fn lives(path: &Path) -> Vec<[String; 13]> {
    let dataset = Dataset::with(Convert::default().inputs([path.to_owned()]).lifetimes(1 << 30));
    let read = Read::open(dataset.path()).unwrap();
    let recording = read.recording(None).unwrap();
    rows(
        &recording,
        "allocation_lifetime",
        [
            "object_id", "type_id", "source", "allocation_bytes", "object_count", "fate", "unknown_reason",
            "first_gc_id", "end_gc_id", "survived_collections", "generation_at_end", "highest_generation",
            "end_object_id",
        ],
    )
}

#[test]
fn a_log_of_windows_says_of_lives_what_eventpipe_says() {
    for name in ["lifetimes.nettrace", "gc-churn-3.1.nettrace", "server-gc.nettrace"] {
        let path = sample(name);
        let mut retold = Retold::default();
        event::read(Input::open(&path).unwrap(), Order::Time, &mut retold).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("retold.etl");
        std::fs::write(&log, Writer::sized_file(&retold.events, 1 << 17, 10_000_000)).unwrap();
        let (mut found, mut expected) = (lives(&log), lives(&path));
        found.sort();
        expected.sort();
        let dead = found.iter().filter(|row| row[5] == "dead").count();
        assert_eq!(found.len(), expected.len(), "{name}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{name}");
        }
        assert!(dead > 20 && found.len() > 50, "{name}: {dead} of {}", found.len());
    }
}
