//! Events of the kernel that cannot all be true: times that go back, ends without beginnings, ids that are used again.

use super::writer::*;
use crate::support::dataset::Dataset;
use crate::support::mutate::Random;

/// CSwitch, version 2.
fn switch(ticks: i64, new: u32, old: u32, state: u8) -> Vec<u8> {
    let mut payload = [new, old].map(u32::to_le_bytes).concat();
    payload.extend([9, 8, 0, 0, 6, 1, state, 0]);
    payload.extend([0; 8]);
    perf_info(5, 36, 2, ticks, &payload)
}

fn ready(ticks: i64, thread: u32) -> Vec<u8> {
    perf_info(5, 50, 2, ticks, &[thread.to_le_bytes(), [1, 2, 0, 0]].concat())
}

/// An operation on a file, version 3: cleanup (65), close (66), and others with the same fields.
fn operation(opcode: u8, ticks: i64, packet: u64) -> Vec<u8> {
    let payload = [[packet, 1, 2].map(u64::to_le_bytes).concat(), 101u32.to_le_bytes().to_vec()].concat();
    perf_info(4, opcode, 3, ticks, &payload)
}

fn operation_end(ticks: i64, packet: u64) -> Vec<u8> {
    perf_info(4, 76, 2, ticks, &[packet.to_le_bytes().as_slice(), &[0; 12]].concat())
}

fn disk_read(ticks: i64, response: u64) -> Vec<u8> {
    let mut payload = [0u32, 1, 4096, 0].map(u32::to_le_bytes).concat();
    payload.extend([0, 77, 88, response].map(u64::to_le_bytes).concat());
    payload.extend(101u32.to_le_bytes());
    perf_info(1, 10, 3, ticks, &payload)
}

fn hard_fault(ticks: i64, began: u64) -> Vec<u8> {
    let mut payload = [began, 0, 0x1000, 77].map(u64::to_le_bytes).concat();
    payload.extend([101u32, 4096].map(u32::to_le_bytes).concat());
    perf_info(2, 32, 2, ticks, &payload)
}

/// An interrupt that began at a time.
fn interrupt(ticks: i64, began: u64) -> Vec<u8> {
    let payload = [began.to_le_bytes().as_slice(), &77u64.to_le_bytes(), &[1, 7, 0, 0]].concat();
    perf_info(0x0F, 67, 2, ticks, &payload)
}

/// A value of the registry was asked for, since a time.
fn registry(ticks: i64, began: u64) -> Vec<u8> {
    let payload = [began.to_le_bytes().as_slice(), &[0; 8], &5u64.to_le_bytes(), &[b'a', 0, 0, 0]].concat();
    system(9, 16, 2, ticks, &payload)
}

/// A system call begins (51) or ends (52).
fn system_call(opcode: u8, ticks: i64) -> Vec<u8> {
    perf_info(0x0F, opcode, 2, ticks, &[5; 8])
}

/// An event of ALPC by a thread, about a message.
fn message(opcode: u8, ticks: i64, thread: u32, number: u32) -> Vec<u8> {
    by(system(0x1A, opcode, 0, ticks, &[number.to_le_bytes().as_slice(), b"p\0"].concat()), 50, thread)
}

fn dataset(buffers: &[(u16, Vec<Vec<u8>>)]) -> Dataset {
    let mut writer = Writer::new();
    for (sequence, (processor, events)) in (1..).zip(buffers) {
        writer = writer.raw(&buffer(&Head { processor: *processor, sequence, ..Head::default() }, events));
    }
    let file = tempfile::Builder::new().suffix(".etl").tempfile().expect("room");
    std::fs::write(file.path(), writer.bytes).expect("room");
    Dataset::of(file.path())
}

/// Number of rows of a table; checks that no row ends before it begins.
fn rows(dataset: &Dataset, name: &str, what: &str) -> usize {
    let table = dataset.table(name);
    for (begin, end) in table.signed("start_ts_ns").into_iter().zip(table.signed("end_ts_ns")) {
        assert!(begin.zip(end).is_none_or(|(begin, end)| begin <= end), "{what}: {name} from {begin:?} to {end:?}");
    }
    table.rows()
}

#[test]
fn no_time_of_the_kernel_is_negative() {
    let mut reported = 0;
    for seed in 1..=30_u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (mut buffers, mut expected) = (Vec::new(), [0; 8]);
        // Numbers of processors above 2,047 stand for others; each is one stream of time all the same.
        for processor in [0, 1, 0xFFFF] {
            let mut now = 1000_i64;
            for _ in 0..4 {
                let mut events = Vec::new();
                for _ in 0..40 {
                    now += [0, 1, 10, 100][random.below(4)];
                    let back = [1, 50, 5000, 1 << 40, i64::MAX];
                    let ticks = if random.below(12) == 0 { now.saturating_sub(back[random.below(5)]) } else { now };
                    let (a, b) = (100 + random.below(4) as u32, 100 + random.below(4) as u32);
                    let packet = random.below(4) as u64;
                    let numbers = [0, 1, ticks.cast_unsigned(), 1 << 40, 1 << 62, 1 << 63, u64::MAX];
                    let number = numbers[random.below(numbers.len())];
                    let kind = random.below(14);
                    let of_message = 33 + random.below(5) as u8;
                    events.push(match kind {
                        0 | 1 => switch(ticks, a - 100, b - 100, random.below(10) as u8),
                        2 => ready(ticks, a - 100),
                        3 => thread(1 + random.below(4) as u8, ticks, 50 + random.below(2) as u32, a - 100),
                        4 | 5 => operation([65, 66, 73][random.below(3)], ticks, packet),
                        6 => operation_end(ticks, packet),
                        7 => disk_read(ticks, number),
                        8 => hard_fault(ticks, number),
                        9 => interrupt(ticks, number),
                        10 => registry(ticks, number),
                        11 => system_call(51, ticks),
                        12 => system_call(52, ticks),
                        _ => message(of_message, ticks, a, b - 100),
                    });
                    let is_begun = [33, 35, 36].contains(&of_message);
                    let of_table = match kind {
                        0 | 1 => Some(0),
                        4 | 5 => Some(1),
                        7 => Some(2),
                        8 => Some(3),
                        9 => Some(4),
                        10 => Some(5),
                        11 => Some(6),
                        13 if is_begun => Some(7),
                        _ => None,
                    };
                    if let Some(table) = of_table {
                        expected[table] += 1;
                    }
                }
                buffers.push((processor, events));
            }
        }
        let (dataset, what) = (dataset(&buffers), format!("seed {seed}"));
        reported += rows(&dataset, "thread_time", &what);
        rows(&dataset, "thread", &what);
        let found = ["file_io", "disk_io", "page_fault"].map(|name| rows(&dataset, name, &what));
        assert_eq!(dataset.table("context_switch").rows(), expected[0], "{what}");
        assert_eq!(found.as_slice(), &expected[1..4], "{what}");
        let found = ["registry", "system_call", "alpc"].map(|name| rows(&dataset, name, &what));
        assert_eq!(found.as_slice(), &expected[5..], "{what}");
        let interrupts = dataset.table("interrupt");
        assert_eq!(interrupts.rows(), expected[4], "{what}");
        let lengths = interrupts.signed("duration_ns").into_iter().zip(interrupts.signed("exclusive_ns"));
        assert!(
            lengths.into_iter().all(|(all, own)| own.is_none_or(|own| (0..=all.unwrap()).contains(&own))),
            "{what}"
        );
    }
    assert!(reported > 1000, "{reported}");
}

#[test]
fn what_comes_late_ends_nothing() {
    // The second buffer of the processor goes back in time.
    let first = vec![
        thread(3, 1000, 50, 101),
        thread(3, 1000, 50, 102),
        process(1, 1900, 60, "a", 0),
        switch(2000, 101, 0, 2),
        switch(2010, 102, 101, 5),
        operation(66, 2020, 7),
    ];
    let second = vec![
        operation_end(1500, 7),
        process(2, 1550, 60, "a", 0),
        ready(1600, 101),
        switch(1700, 101, 102, 5),
        switch(2100, 0, 101, 5),
        operation_end(2200, 7),
        hard_fault(2210, 0),
        hard_fault(2220, 2215),
    ];
    let dataset = dataset(&[(0, first), (0, second)]);
    let table = dataset.table("thread_time");
    let times: Vec<_> = table.signed("start_ts_ns").into_iter().zip(table.signed("end_ts_ns")).collect();
    let ns = |ticks: i64| Some((ticks - TICKS) * 100);
    // 101 ran, ran once more, and was blocked until the end, as 102 was.
    let expected = [(ns(2000), ns(2010)), (ns(1700), ns(2100)), (ns(2100), ns(2220)), (ns(1700), ns(2220))];
    assert_eq!(times, expected);
    assert_eq!(dataset.table("file_io").signed("end_ts_ns"), [ns(2200)]);
    let processes = dataset.table("process");
    let of_60 = processes.numbers("process_id").iter().position(|id| *id == 60).expect("a row");
    let [start, end] = ["start_ts_ns", "end_ts_ns"].map(|name| processes.signed(name)[of_60]);
    assert_eq!((start, end), (ns(1900), None));
    // A time of 0 is no time.
    assert_eq!(dataset.table("page_fault").signed("duration_ns"), [None, Some(500)]);
}

#[test]
fn ends_of_operations_that_are_too_many_are_told_to_be_lost() {
    let begun: Vec<Vec<u8>> = (1..=70_000).map(|packet| operation(66, 2000, packet)).collect();
    let mut events = begun;
    events.extend((69_000..=70_000).map(|packet| operation_end(3000, packet)));
    let file = tempfile::Builder::new().suffix(".etl").tempfile().expect("room");
    std::fs::write(file.path(), Writer::sized_file(&events, 1 << 16, 10_000_000)).expect("room");
    let dataset = Dataset::of(file.path());
    let table = dataset.table("file_io");
    assert_eq!(table.rows(), 70_000);
    assert_eq!(table.signed("end_ts_ns").iter().flatten().count(), 1001);
    assert!(dataset.problems().contains(&("too_many_operations", 65_536)), "{:?}", dataset.problems());
}
