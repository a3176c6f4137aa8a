//! Properties of reading, over recordings that are made up: what goes in comes out, in the order of time.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tracequet::trace::guid::Guid;
use tracequet::trace::reader::Order;

use crate::support::collect::{Recording, mapped};
use crate::support::compare::addresses;
use crate::support::writer::{Form, Kind, Row, Writer};

const KINDS: [Kind<'static>; 3] = [
    Kind { id: 1, provider: "Shop", event_id: 1, version: 0, name: "Order" },
    Kind { id: 2, provider: "Shop", event_id: 2, version: 0, name: "Größe" },
    Kind { id: 300, provider: "", event_id: 70_000, version: 0, name: "" },
];

/// A region as a writer makes it: runs of one thread each, and what an event refers to.
#[derive(Clone, Debug)]
struct Region {
    /// Thread, and for each event: ticks after the one before on this thread, kind, stack, activity, payload.
    runs: Vec<(u64, Vec<Made>)>,
    stacks: Vec<Vec<u64>>,
}

type Made = (u8, usize, u32, u8, Vec<u8>);

fn region() -> impl Strategy<Value = Region> {
    let payload = prop::collection::vec(any::<u8>(), 0..20);
    let event = (0..20u8, 0..KINDS.len(), 0..4u32, 0..3u8, payload);
    let run = (1..5u64, prop::collection::vec(event, 1..12));
    let stack = prop::collection::vec(any::<u64>(), 0..5);
    (prop::collection::vec(run, 0..8), prop::collection::vec(stack, 3))
        .prop_map(|(runs, stacks)| Region { runs, stacks })
}

/// The rows of regions, with ticks and sequence numbers such as a writer gives them.
fn rows(regions: &[Region]) -> Vec<Vec<Vec<Row>>> {
    let mut sequence = BTreeMap::new();
    let mut start = 100i64;
    let mut out = Vec::new();
    for region in regions {
        let mut clocks: BTreeMap<u64, i64> = BTreeMap::new();
        let mut runs = Vec::new();
        for (thread, events) in &region.runs {
            let mut run = Vec::new();
            for (later, kind, stack, activity, payload) in events {
                let clock = clocks.entry(*thread).or_insert(start);
                *clock += i64::from(*later);
                let number = sequence.entry(*thread).or_insert(0u32);
                *number += 1;
                run.push(Row {
                    metadata_id: KINDS[*kind].id,
                    sequence: *number,
                    capture_thread: *thread,
                    // The sampler captures for others.
                    thread: if *stack == 3 { 9 } else { *thread },
                    processor: u32::MAX,
                    stack_id: *stack,
                    ticks: *clock,
                    activity: Guid([*activity; 16]),
                    related: Guid([activity / 2; 16]),
                    label_list: u32::from(*activity),
                    sorted: false,
                    payload: payload.clone(),
                });
            }
            runs.push(run);
        }
        start = clocks.values().copied().max().unwrap_or(start);
        out.push(runs);
    }
    out
}

fn write(form: Form, regions: &[Region], rows: &[Vec<Vec<Row>>]) -> Vec<u8> {
    let mut writer = Writer::new(form);
    writer.metadata(&KINDS);
    writer.threads(&[1, 2, 3, 4, 9].map(|thread| (thread, 77, thread)));
    for (region, runs) in regions.iter().zip(rows) {
        writer.stacks(1, &region.stacks);
        writer.labels(1, &[1, 2].map(|n: u8| (Guid([n; 16]), Guid([n / 2; 16]))));
        let mut last = Vec::new();
        // Two runs in a block, as buffers of several threads end up in one.
        for block in runs.chunks(2) {
            writer.events(&block.concat());
            last.extend(block.iter().flatten().map(|row| (row.capture_thread, row.sequence)));
        }
        let last: BTreeMap<u64, u32> = last.into_iter().collect();
        writer.sequence_point(0, &last.into_iter().collect::<Vec<_>>());
    }
    writer.end()
}

/// What a row becomes: everything that can be seen of it.
type Shown = (i64, String, u32, u64, u64, Vec<u64>, Guid, Guid, Vec<u8>);

fn expected(region: &Region, row: &Row) -> Shown {
    let kind = KINDS.iter().find(|k| k.id == row.metadata_id).expect("a kind");
    let stack = match row.stack_id {
        0 => Vec::new(),
        id => region.stacks[id as usize - 1].clone(),
    };
    let key = format!("{}/{}", kind.provider, kind.name);
    let (thread, capture) = (row.thread, row.capture_thread);
    (row.ticks, key, kind.event_id, thread, capture, stack, row.activity, row.related, row.payload.clone())
}

fn shown(recording: &Recording) -> Vec<Shown> {
    let show = |seen: &crate::support::collect::Seen| {
        let t = &recording.info_of(seen).event_type;
        let (thread, capture) =
            (&recording.threads[seen.thread as usize], &recording.threads[seen.capture_thread as usize]);
        assert_eq!((thread.process_id, capture.process_id), (77, 77));
        (
            seen.ticks,
            format!("{}/{}", t.provider, t.name),
            t.event_id,
            thread.thread_id,
            capture.thread_id,
            addresses(&seen.stack, 8),
            seen.labels.activity_id,
            seen.labels.related_activity_id,
            seen.payload.clone(),
        )
    };
    recording.events.iter().map(show).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_goes_in_comes_out_in_the_order_of_time(regions in prop::collection::vec(region(), 0..4)) {
        let rows = rows(&regions);
        let mut by_file = Vec::new();
        let mut by_time = Vec::new();
        for (region, runs) in regions.iter().zip(&rows) {
            let in_file: Vec<Shown> = runs.iter().flatten().map(|row| expected(region, row)).collect();
            by_file.extend(in_file.clone());
            // Stable: equal times stay in the order of the file.
            let mut in_time = in_file;
            in_time.sort_by_key(|event| event.0);
            by_time.extend(in_time);
        }
        for form in [Form::V4, Form::V6] {
            let bytes = write(form, &regions, &rows);
            let recording = Recording::mapped(&bytes);
            prop_assert_eq!(recording.codes(), Vec::<&str>::new());
            prop_assert!(recording.end.complete);
            prop_assert_eq!(recording.end.dropped_events, 0);
            prop_assert_eq!(shown(&recording), by_time.clone());
            let piped = Recording::piped(&bytes);
            prop_assert_eq!(&piped.events, &recording.events);
            let in_file_order = Recording::read_in(mapped(&bytes), Order::File);
            prop_assert_eq!(shown(&in_file_order), by_file.clone());
        }
    }

    #[test]
    fn every_event_that_is_left_out_behind_the_first_is_counted(
        regions in prop::collection::vec(region(), 1..4),
        keep in prop::collection::vec(any::<bool>(), 64),
    ) {
        let mut rows = rows(&regions);
        let mut first_kept = BTreeMap::new();
        let mut last_numbers: Vec<BTreeMap<u64, u32>> = Vec::new();
        let (mut place, mut left_out_v4, mut left_out_v6) = (0usize, 0u64, 0u64);
        let mut numbers = BTreeMap::new();
        for runs in &mut rows {
            for run in runs.iter_mut() {
                run.retain(|row| {
                    place += 1;
                    numbers.insert(row.capture_thread, row.sequence);
                    let kept = keep[place % keep.len()];
                    if kept {
                        first_kept.entry(row.capture_thread).or_insert(row.sequence);
                    } else {
                        left_out_v6 += 1;
                        left_out_v4 += u64::from(first_kept.contains_key(&row.capture_thread));
                    }
                    kept
                });
            }
            // A sequence point that names every thread makes all losses known, in V4 from the first sight on.
            first_kept.extend(numbers.iter().map(|(thread, number)| (*thread, *number)));
            last_numbers.push(numbers.clone());
        }
        for (form, left_out) in [(Form::V4, left_out_v4), (Form::V6, left_out_v6)] {
            let mut writer = Writer::new(form);
            writer.metadata(&KINDS).threads(&[1, 2, 3, 4, 9].map(|thread| (thread, 77, thread)));
            for ((region, runs), last) in regions.iter().zip(&rows).zip(&last_numbers) {
                writer.stacks(1, &region.stacks).labels(1, &[1, 2].map(|n: u8| (Guid([n; 16]), Guid([n / 2; 16]))));
                writer.events(&runs.concat());
                writer.sequence_point(0, &last.iter().map(|(thread, number)| (*thread, *number)).collect::<Vec<_>>());
            }
            let recording = Recording::mapped(&writer.end());
            prop_assert_eq!(recording.end.dropped_events, left_out, "{:?}", form);
            let reported: u64 = recording.problems.iter().map(|p| p.count).sum();
            prop_assert_eq!(reported, left_out);
        }
    }
}

proptest! {
    // Each case is a recording of tens of thousands of events.
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sorted_marks_change_when_events_are_delivered_but_not_their_order(
        later in prop::collection::vec((0..3u8, 0..4u64), 40_000..60_000),
        every in 500..3000usize,
    ) {
        // Batches as a runtime writes them: threads one after the other, all later than the batch before.
        let mut clock = 1000i64;
        let mut sequence = [0u32; 4];
        let mut batches = Vec::new();
        for batch in later.chunks(every) {
            let mut rows: Vec<Row> = Vec::new();
            for (more, thread) in batch {
                clock += i64::from(*more);
                rows.push(Row { metadata_id: 1, ticks: clock, capture_thread: *thread, ..Row::default() });
            }
            rows.sort_by_key(|row| row.capture_thread);
            let oldest = rows.iter().map(|row| row.ticks).min();
            for row in &mut rows {
                let number = &mut sequence[row.capture_thread as usize];
                *number += 1;
                row.sequence = *number;
                row.payload = vec![row.capture_thread as u8, *number as u8];
            }
            // The first event of a batch is marked when nothing behind it is older.
            if let Some(first) = rows.first_mut() {
                first.sorted = Some(first.ticks) == oldest;
            }
            clock += 1;
            batches.push(rows);
        }
        let write = |marks: bool| {
            let mut writer = Writer::new(Form::V4);
            writer.metadata(&KINDS);
            for batch in &batches {
                let unmarked = |row: &Row| Row { sorted: row.sorted && marks, ..row.clone() };
                writer.events(&batch.iter().map(unmarked).collect::<Vec<_>>());
            }
            writer.end()
        };
        let marked = Recording::mapped(&write(true));
        let unmarked = Recording::mapped(&write(false));
        prop_assert_eq!(marked.events.len(), later.len());
        prop_assert_eq!(marked.codes(), Vec::<&str>::new());
        let differs = marked.events.iter().zip(&unmarked.events).position(|(a, b)| a != b);
        prop_assert_eq!(differs, None);
        prop_assert!(marked.events.is_sorted_by_key(|event| event.ticks));
    }
}
