//! What threads work on, by the activity ids of the events that they write.

use crate::support::dataset::Dataset;
use crate::support::writer::{Form, Kind, Row, Writer};
use tracequet::trace::guid::Guid;

/// The id that EventSource of process 77 makes of a path: its numbers, a nibble each, and a checksum.
fn id(numbers: [u8; 4]) -> Guid {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&numbers);
    let sum = u32::from_le_bytes(numbers).wrapping_add(0x599D_99AD);
    id[12..].copy_from_slice(&(sum ^ 77).to_le_bytes());
    Guid(id)
}

#[test]
fn a_thread_works_on_an_activity_until_it_writes_another_id() {
    let (outer, inner, other) = (id([0x11, 0, 0, 0]), id([0x11, 0x20, 0, 0]), Guid([9; 16]));
    // When, on which thread, for what.
    let written = [
        (5, 3, Guid::default()),
        (10, 3, outer),
        (15, 4, other),
        (20, 3, outer),
        (30, 3, inner),
        (40, 3, Guid::default()),
        (50, 3, outer),
    ];
    let mut sequences = std::collections::BTreeMap::<u64, u32>::new();
    let rows = written.map(|(ticks, thread, activity)| {
        let sequence = sequences.entry(thread).or_default();
        *sequence += 1;
        let (metadata_id, capture_thread, sequence) = (1, thread, *sequence);
        Row { metadata_id, sequence, capture_thread, thread, ticks, activity, ..Row::default() }
    });
    let kind = Kind { id: 1, provider: "Shop", event_id: 1, version: 0, name: "Order" };
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), Writer::new(Form::V4).metadata(&[kind]).events(&rows).end()).unwrap();
    let dataset = Dataset::of(file.path());
    let table = dataset.table("thread_activity");
    let (starts, ends, counts) = (table.signed("start_ts_ns"), table.signed("end_ts_ns"), table.numbers("event_count"));
    let (threads, ids, paths) = (table.numbers("thread_id"), table.texts("activity_id"), table.texts("activity_path"));
    let row = |row: usize| {
        (threads[row], starts[row].unwrap(), ends[row].unwrap(), ids[row].clone(), paths[row].as_str(), counts[row])
    };
    let mut found: Vec<_> = (0..table.rows()).map(row).collect();
    found.sort_unstable();
    let expected = [
        (3, 1000, 3000, outer.to_string(), "//1/1", 2),
        (3, 3000, 4000, inner.to_string(), "//1/1/2", 1),
        // At the end of the recording just behind the last event.
        (3, 5000, 5001, outer.to_string(), "//1/1", 1),
        (4, 1500, 1501, other.to_string(), "", 1),
    ];
    assert_eq!(found, expected);
    assert!(table.numbers("process_id").iter().all(|process| *process == 77));
}
