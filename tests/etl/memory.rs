//! Memory does not grow with the file.

use std::io::Write;
use std::path::Path;

use tracequet::{Convert, convert};

use super::expected::shared_file;
use super::hostile::{PROVIDER, RUNTIME};
use super::writer::*;
use crate::hostile::limits::{is_alone, peak_mb};

const SIZE: u32 = 64 << 10;

/// A log of `megabytes`: processors in turn, collections with ranges, stacks, and events without a description.
fn write(path: &Path, megabytes: u64, processors: u16) -> u64 {
    let mut out = std::io::BufWriter::new(std::fs::File::create(path).expect("room"));
    let mut header = log_file_header();
    patch(&mut header, 0, SIZE.to_le_bytes());
    let buffers = megabytes * 16;
    patch(&mut header, 0x24, (buffers as u32).to_le_bytes());
    let head = system(0, 0, 2, TICKS, &header);
    let first = Head { kind: 4, sequence: 0, flags: 0x21, ..Head::default() };
    out.write_all(&buffer_of(&first, &head, 0x48 + head.len() as u32, SIZE)).expect("room");
    let numbers = |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let ranges = |index: u32| {
        let rows = (0..64u64).flat_map(|n| [0x10_0000 + n * 0x100, 0x80]).flat_map(u64::to_le_bytes);
        [numbers(&[index, 64]), vec![8, 0], rows.collect()].concat()
    };
    let stack = item(6, false, &(0..17u64).flat_map(|n| (n * 0x1000).to_le_bytes()).collect::<Vec<u8>>());
    let mut events = 1;
    for sequence in 1..buffers {
        let processor = (sequence % u64::from(processors)) as u16;
        // The times of the processors lie between each other.
        let at = |n: i64| TICKS + (sequence as i64 / 4 * 1000 + n) * 4 + i64::from(processor);
        let mut body = Vec::with_capacity(SIZE as usize);
        let mut add = |event: Vec<u8>| {
            body.extend(event);
            body.resize(body.len().next_multiple_of(8), 0);
            events += 1;
        };
        let collection = sequence as u32 / 4;
        if processor == 0 {
            add(event(19, RUNTIME, 1, at(0), &[], &numbers(&[collection, 2, 0, 0])));
            (0..4).for_each(|n| add(event(19, RUNTIME, 21, at(1 + i64::from(n)), &[], &ranges(n))));
            add(event(19, RUNTIME, 2, at(9), &[], &numbers(&[collection, 2])));
        }
        for n in 10..60 {
            add(event(19, PROVIDER, (n % 3) as u16, at(n), &stack, &[n as u8; 900]));
        }
        let valid = 0x48 + body.len() as u32;
        let head = Head { sequence: sequence as i64, processor, ..Head::default() };
        out.write_all(&buffer_of(&head, &body, valid, SIZE)).expect("room");
    }
    out.flush().expect("room");
    events
}

#[test]
fn a_large_log_takes_little_memory() {
    if !is_alone("etl::memory::a_large_log_takes_little_memory") {
        return;
    }
    let large = std::env::var_os("TRACEQUET_TEST_LARGE").is_some();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("large.etl");
    let events = write(&path, if large { 512 } else { 256 }, 4);
    let request = Convert::new([path], folder.path().join("out"));
    let summary = convert(&request, &mut |_| {}).expect("a dataset");
    let input = &summary.inputs[0];
    assert_eq!((input.events, input.complete), (events, true));
    assert!(input.collections > 1000 && input.incomplete_collections == 0);
    // 512 MB must stay below 300 MB; the half of it takes no less, and 1 GB no more.
    println!("{} events, {:?} MB", input.events, peak_mb());
    assert!(peak_mb().is_none_or(|peak| peak < 300), "{:?} MB", peak_mb());
}

#[test]
fn the_log_of_one_processor_is_given_back_as_it_is_read() {
    if !is_alone("etl::memory::the_log_of_one_processor_is_given_back_as_it_is_read") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("large.etl");
    let events = write(&path, 200, 1);
    let found = tracequet::inspect::inspect(&path, &mut |_, _| {}).expect("a recording");
    assert_eq!(found.events, events);
    assert!(peak_mb().is_none_or(|peak| peak < 60), "{:?} MB", peak_mb());
    let request = Convert::new([path], folder.path().join("out"));
    assert_eq!(convert(&request, &mut |_| {}).expect("a dataset").inputs[0].events, events);
    assert!(peak_mb().is_none_or(|peak| peak < 180), "{:?} MB", peak_mb());
}

/// A log of `copies` of the buffers of another, as they are.
fn repeat(log: &Path, copies: usize, path: &Path) {
    let bytes = std::fs::read(log).expect("a log");
    let header = u32::from_le_bytes(bytes[..4].try_into().expect("four bytes")) as usize;
    let mut out = std::io::BufWriter::new(std::fs::File::create(path).expect("room"));
    out.write_all(&bytes[..header]).expect("room");
    (0..copies).for_each(|_| out.write_all(&bytes[header..]).expect("room"));
    out.flush().expect("room");
}

#[test]
fn copies_of_a_real_log_take_little_memory() {
    let name = "net.4.5.2.x64.etl";
    if !is_alone("etl::memory::copies_of_a_real_log_take_little_memory") {
        return;
    }
    let Some(log) = shared_file("copies_of_a_real_log_take_little_memory", name) else { return };
    // They take 249 MB here, and 320 if each payload table keeps the buffers of a whole batch. In a release build 12
    // copies take 229 MB, 24 take 259 and 60 take 330: each lists symbols and methods anew.
    let copies = 12;
    let folder = tempfile::tempdir().expect("a folder");
    let many = folder.path().join("many.etl");
    repeat(&log.path, copies, &many);
    let rows = |path: &Path| {
        let output = folder.path().join("out");
        let request = Convert::new([path.to_owned()], output).overwrite(true).tables(["event"]);
        let summary = convert(&request, &mut |_| {}).expect("a dataset");
        summary.tables.into_iter().map(|t| (t.name, t.rows)).collect::<std::collections::BTreeMap<_, _>>()
    };
    let (all, once) = (rows(&many), rows(&log.path));
    assert!(peak_mb().is_none_or(|peak| peak < 280), "{:?} MB", peak_mb());
    assert!(all.keys().eq(once.keys()));
    let is_told = |table: &str| {
        // Which of many events of one time and thread a stack belongs to is unknown. The header event occurs once.
        table.starts_with("event/") && !table.contains("StackWalk") && !table.contains("Kernel-EventTrace/")
    };
    for (table, rows) in once.into_iter().filter(|(table, _)| is_told(table)) {
        assert_eq!(all[&table], rows * copies as u64, "{table}");
    }
}
