//! What trackers remember has a bound. What is beyond it is reported, or has a row without its end.

use tracequet::Convert;

use crate::support::dataset::Dataset;
use crate::support::writer::{Form, Kind, Row, Writer};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// Events of one kind and of others, each with its payload, in blocks of 90 KB and less.
fn dataset(kinds: &[(u32, u8)], events: impl Iterator<Item = (u32, Vec<u8>)>, tables: &[&str]) -> Dataset {
    let kinds: Vec<Kind<'_>> = kinds
        .iter()
        .map(|(id, version)| Kind { id: *id, provider: RUNTIME, event_id: *id, version: *version, name: "" })
        .collect();
    let mut writer = Writer::new(Form::V4);
    writer.metadata(&kinds);
    let (mut block, mut bytes) = (Vec::new(), 0);
    for ((id, payload), sequence) in events.zip(1..) {
        bytes += payload.len() + 16;
        let ticks = i64::from(sequence);
        block.push(Row { metadata_id: id, sequence, capture_thread: 1, thread: 1, ticks, payload, ..Row::default() });
        if bytes > 60_000 {
            writer.events(&block);
            block.clear();
            bytes = 0;
        }
    }
    writer.events(&block);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), writer.end()).unwrap();
    let tables = tables.iter().map(|table| (*table).to_owned());
    Dataset::with(Convert::default().inputs([file.path().to_owned()]).tables(tables.collect::<Vec<_>>()))
}

#[test]
fn names_of_assemblies_have_a_bound_that_is_told() {
    // AssemblyLoad, each with a name of 30,000 characters: 36 MB.
    let long: Vec<u8> = "x".repeat(30_000).encode_utf16().flat_map(u16::to_le_bytes).collect();
    let load = |id: u64| {
        let numbers = [id, 1, 0].map(u64::to_le_bytes).concat();
        (154, [numbers.as_slice(), &[0; 4], &long, &[0; 2 + 2]].concat())
    };
    let dataset = dataset(&[(154, 1)], (1..=1200).map(load), &["assembly", "diagnostic"]);
    let kept = dataset.table("assembly").rows() as u64;
    assert!((1000..1150).contains(&kept), "{kept}");
    assert!(dataset.problems().contains(&("too_many_modules", 1200 - kept)), "{:?}", dataset.problems());
}

#[test]
fn work_that_waits_for_a_thread_has_a_bound() {
    let work = |id: u32, number: u64| (id, [number.to_le_bytes().as_slice(), &[0; 2]].concat());
    let queued = (1..=140_000).map(|number| work(61, number));
    // The first ones are not waited for any more, the last ones are.
    let taken = [1, 2, 139_999, 140_000].map(|number| work(62, number));
    let dataset = dataset(&[(61, 0), (62, 0)], queued.chain(taken), &["thread_pool_work", "diagnostic"]);
    let table = dataset.table("thread_pool_work");
    let started = table.signed("start_ts_ns");
    let found: Vec<u64> =
        table.numbers("work_id").into_iter().zip(&started).filter(|(_, at)| at.is_some()).map(|(id, _)| id).collect();
    assert_eq!((table.rows(), found), (140_000, vec![139_999, 140_000]));
    assert!(dataset.problems().contains(&("too_many_work_items", 131_072)), "{:?}", dataset.problems());
}
