//! Interrupts and deferred procedure calls: a real log against its own bytes, and written ones whose content is known.

use std::collections::HashMap;

use super::writer::*;
use crate::support::dataset::{Dataset, Table};

const HAL: u64 = 0xFFFF_F800_0000_0000;
const NDIS: u64 = 0xFFFF_F800_0001_0000;
const LATE: u64 = 0xFFFF_F800_0002_0000;

/// A routine of PerfInfo that ran from `start` to `end`; what follows its address.
fn routine(opcode: u8, start: i64, end: i64, address: u64, rest: &[u8]) -> Vec<u8> {
    let version = if matches!(opcode, 68 | 69) { 1 } else { 2 };
    let payload = [start.to_le_bytes().as_slice(), &address.to_le_bytes(), rest].concat();
    perf_info(0x0F, opcode, version, end, &payload)
}

fn isr(start: i64, end: i64, address: u64) -> Vec<u8> {
    routine(67, start, end, address, &[1, 0xD1, 0, 0])
}

fn switch(ticks: i64, new: u32, old: u32) -> Vec<u8> {
    switch_with(ticks, new, old, [6, 1, 5, 0])
}

/// A switch with the old thread's wait reason, wait mode, state and ideal processor.
fn switch_with(ticks: i64, new: u32, old: u32, rest: [u8; 4]) -> Vec<u8> {
    let mut payload = [new, old].map(u32::to_le_bytes).concat();
    payload.extend([9, 8, 0, 0]);
    payload.extend(rest);
    payload.extend([0; 8]);
    perf_info(5, 36, 2, ticks, &payload)
}

/// A recording with interrupts on two processors: within one another, before their modules are listed, behind lost
/// events.
pub fn recording() -> Vec<u8> {
    let first = [
        image(3, 1000, 0, HAL, r"\SystemRoot\system32\hal.dll"),
        process(3, 1000, 50, "worker.exe", 259),
        thread(3, 1000, 50, 101),
        thread(3, 1000, 50, 102),
        thread(3, 1000, 50, 103),
        switch(1010, 101, 0),
        // An interrupt of a device within a deferred call, which takes 90 ticks, 60 of them itself.
        isr(1040, 1070, HAL + 0x100),
        routine(68, 1030, 1120, NDIS + 0x20, &[]),
        image(10, 1130, 0, LATE, r"\SystemRoot\system32\drivers\late.sys"),
        routine(69, 1140, 1150, LATE + 8, &[]),
        image(2, 1160, 0, LATE, r"\SystemRoot\system32\drivers\late.sys"),
        routine(66, 1170, 1180, LATE + 8, &[]),
        switch(1200, 0, 101),
        // A time of another clock, and one behind the end.
        routine(70, -133_000_000_000_000_000, 1210, HAL + 0x200, &[]),
        routine(70, 1230, 1220, HAL + 0x200, &[]),
        // Thread 103 takes the processor from 102 for 30 ticks, 5 of which an interrupt takes.
        switch(1240, 102, 0),
        switch_with(1250, 103, 102, [32, 1, 1, 0]),
        isr(1255, 1260, HAL + 0x100),
        switch(1280, 102, 103),
        switch(1290, 0, 102),
        image(4, 1900, 0, NDIS, r"\SystemRoot\system32\drivers\ndis.sys"),
        image(4, 1901, 50, 0x7FF0_0000_0000, r"\Device\worker.exe"),
    ];
    let second = [routine(50, 1040, 1045, HAL + 0x300, &[1, 0xB3, 0, 0, 7, 0, 0, 0]), switch(1300, 101, 0)];
    let lossy = [isr(1400, 1410, HAL + 0x100), switch(1420, 101, 0), isr(1425, 1430, 0x1234)];
    let head = |processor, sequence, flags| Head { processor, sequence, flags, ..Head::default() };
    let buffers =
        [(head(0, 1, 0x20), first.to_vec()), (head(1, 2, 0x20), second.to_vec()), (head(1, 3, 0x22), lossy.to_vec())];
    let writer = buffers.iter().fold(Writer::new(), |writer, (head, events)| writer.raw(&buffer(head, events)));
    writer.bytes
}

fn written(bytes: &[u8]) -> Dataset {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("written.etl");
    std::fs::write(&path, bytes).expect("room");
    Dataset::of(&path)
}

#[test]
fn interrupts_have_their_times_routines_and_threads() {
    let dataset = written(&recording());
    let table = dataset.table("interrupt");
    let ticks = |column: &str| -> Vec<Option<i64>> {
        table.signed(column).into_iter().map(|ns| ns.map(|ns| ns / 100)).collect()
    };
    // In the order of their ends.
    let mut order: Vec<usize> = (0..table.rows()).collect();
    order.sort_by_key(|row| table.signed("ts_ns")[*row]);
    let [ends, starts, lengths, own] = ["ts_ns", "start_ts_ns", "duration_ns", "exclusive_ns"].map(ticks);
    let (kinds, processors) = (table.texts("kind"), table.optional("processor"));
    let row = |row: usize| (ends[row].unwrap() + TICKS, kinds[row].as_str(), processors[row].unwrap());
    let times = |row: usize| (starts[row].map(|start| start + TICKS), lengths[row], own[row]);
    let rows: Vec<_> = order.iter().map(|at| (row(*at), times(*at))).collect();
    let expected = [
        ((1045, "msi_isr", 1), (Some(1040), Some(5), Some(5))),
        ((1070, "isr", 0), (Some(1040), Some(30), Some(30))),
        ((1120, "dpc", 0), (Some(1030), Some(90), Some(60))),
        ((1150, "timer_dpc", 0), (Some(1140), Some(10), Some(10))),
        ((1180, "threaded_dpc", 0), (Some(1170), Some(10), Some(10))),
        ((1210, "io_timer", 0), (None, None, None)),
        ((1220, "io_timer", 0), (None, None, None)),
        ((1260, "isr", 0), (Some(1255), Some(5), Some(5))),
        ((1410, "isr", 1), (Some(1400), Some(10), Some(10))),
        ((1430, "isr", 1), (Some(1425), Some(5), Some(5))),
    ];
    assert_eq!(rows, expected);
    let numbers = |column: &str| order.iter().map(|row| table.optional(column)[*row]).collect::<Vec<_>>();
    // Thread 101 until it gave the processor up; on the other processor nothing is known before its first switch, and
    // behind lost events.
    let (idle, worker) = (Some(0), Some(101));
    assert_eq!(numbers("thread_id"), [None, worker, worker, worker, worker, idle, idle, Some(103), None, worker]);
    assert_eq!(numbers("process_id")[1..6], [Some(50), Some(50), Some(50), Some(50), Some(0)]);
    // ndis.sys is listed at the end only; late.sys was not there any more.
    let hal = Some(HAL);
    assert_eq!(numbers("module_id"), [hal, hal, Some(NDIS), Some(LATE), None, hal, hal, hal, hal, None]);
    assert_eq!(numbers("vector")[..3], [Some(0xB3), Some(0xD1), None]);
    assert_eq!(numbers("return_value")[..3], [Some(1), Some(1), None]);
    assert_eq!(numbers("message_number")[..3], [Some(7), None, None]);

    // The routine is a call stack of one frame in its module.
    let (callsite, frame) = (dataset.table("callsite"), dataset.table("frame"));
    let by = |table: &Table, id: &str, value: &str| -> HashMap<u64, u64> {
        table.numbers(id).into_iter().zip(table.numbers(value)).collect()
    };
    let frame_of = by(&callsite, "callsite_id", "frame_id");
    let names: HashMap<u64, String> = frame.numbers("frame_id").into_iter().zip(frame.texts("name")).collect();
    let name = |row: &usize| names[&frame_of[&table.numbers("callsite_id")[*row]]].clone();
    assert_eq!(order[..4].iter().map(name).collect::<Vec<_>>(), ["hal.dll!?", "hal.dll!?", "ndis.sys!?", "late.sys!?"]);

    // Fields that are ticks can be placed by the row of the recording.
    let trace = dataset.table("trace");
    let [start, frequency] = ["start_ticks", "clock_frequency"].map(|column| trace.signed(column)[0].unwrap());
    let event = dataset.table("event/Windows-Kernel-PerfInfo/Dpc");
    let initial = event.numbers("initial_time")[0] as i64;
    assert_eq!((initial - start) * 1_000_000_000 / frequency, (1030 - TICKS) * 100);
}

#[test]
fn views_say_what_ran_instead_of_a_thread() {
    let Some(python) = crate::support::python::python("views_say_what_ran_instead_of_a_thread") else { return };
    let dataset = written(&recording());
    let query = "SELECT thread_id, processor, (ready_ms * 1e4)::INT, kind, what, by_thread_id, times, (ms * 1e4)::INT \
                 FROM ran_instead ORDER BY ms DESC";
    let expected = "(102, 0, 30, 'thread', 'worker.exe', 103, 1, 25)\n(102, 0, 30, 'isr', 'hal.dll!?', None, 1, 5)\n";
    assert_eq!(crate::tables::queries::asked(&python, &dataset, query), expected);
    let query = "SELECT kind, what, routine, how_often, (total_ms * 1e4)::INT, (longest_us * 10)::INT, processors \
                 FROM interrupt_by_routine WHERE kind IN ('isr', 'dpc') ORDER BY total_ms DESC, how_often DESC";
    let expected = "('dpc', 'ndis.sys!?', 'fffff80000010020', 1, 60, 90, 1)\n\
                    ('isr', 'hal.dll!?', 'fffff80000000100', 3, 45, 30, 2)\n\
                    ('isr', '[unknown]', '1234', 1, 5, 5, 1)\n";
    assert_eq!(crate::tables::queries::asked(&python, &dataset, query), expected);
}

#[test]
fn interrupts_before_the_list_of_modules_have_a_bound() {
    let count = (1 << 16) + 100;
    let mut events: Vec<Vec<u8>> = (0..count).map(|at| isr(1000 + at, 1001 + at, NDIS + 1)).collect();
    events.push(image(4, 1002 + count, 0, NDIS, r"\SystemRoot\system32\drivers\ndis.sys"));
    let dataset = written(&Writer::sized_file(&events, 1 << 20, 10_000_000));
    let modules = dataset.table("interrupt").optional("module_id");
    assert_eq!(modules.iter().filter(|module| **module == Some(NDIS)).count(), 100);
    assert!(dataset.problems().contains(&("too_many_interrupts", 1 << 16)), "{:?}", dataset.problems());
}

/// An event with a PERFINFO64 header. Its kind is group and opcode.
pub struct RawEvent<'l> {
    pub processor: u16,
    pub kind: (u8, u8),
    pub ticks: i64,
    pub payload: &'l [u8],
}

/// The events with a PERFINFO64 header in an uncompressed log, read byte by byte without the reader; the log's first
/// tick and its ticks in a second.
pub fn raw_events(log: &[u8]) -> (Vec<RawEvent<'_>>, i64, i64) {
    let word = |at: usize| u16::from_le_bytes(log[at..at + 2].try_into().unwrap());
    let long = |at: usize| u32::from_le_bytes(log[at..at + 4].try_into().unwrap()) as usize;
    let quad = |at: usize| i64::from_le_bytes(log[at..at + 8].try_into().unwrap());
    let (mut found, mut buffer) = (Vec::new(), 0);
    // The header event is 0x48 bytes into the file, its payload 0x20 behind that.
    let (start, frequency) = (quad(0x48 + 0x10), quad(0x68 + 0x100));
    while buffer + 0x48 <= log.len() {
        let (end, processor) = (buffer + long(buffer + 0x30), word(buffer + 0x28) & 0xFF);
        let mut at = buffer + 0x48;
        while at < end {
            let form = log[at + 2];
            let size = if matches!(form, 1 | 2 | 16 | 17) { word(at + 4) } else { word(at) };
            if form == 17 {
                let (kind, payload) = ((log[at + 7], log[at + 6]), &log[at + 16..at + usize::from(size)]);
                found.push(RawEvent { processor, kind, ticks: quad(at + 8), payload });
            }
            at += usize::from(size).next_multiple_of(8);
        }
        buffer += long(buffer);
    }
    (found, start, frequency)
}

/// A log of Windows 7 with eight processors, which is not part of the project: its file, and its bytes.
pub fn real_log(test: &str) -> Option<(std::path::PathBuf, Vec<u8>)> {
    let path = crate::support::expected::shared_folder(test, "third")?.join("slowppt.etl.zst");
    let log = zstd::decode_all(std::fs::File::open(&path).unwrap()).unwrap();
    Some((path, log))
}

/// A log of Windows 7 with eight processors. An independent reader found 138,599 interrupts of 2,577.9 ms, 1,118 of
/// messages of 17.6 ms, and 15,267 deferred calls of 97.9 ms, all of them in 51 modules of the kernel.
#[test]
fn interrupts_of_a_real_log_are_those_of_its_bytes() {
    let test = "interrupts_of_a_real_log_are_those_of_its_bytes";
    let Some((path, log)) = real_log(test) else { return };
    let (raw, start, frequency) = raw_events(&log);
    let request =
        tracequet::Convert::default().inputs([path]).tables(["interrupt", "module", "callsite", "frame", "trace"]);
    let dataset = Dataset::with(request);
    let table = dataset.table("interrupt");
    let trace = dataset.table("trace");
    assert_eq!(
        (trace.signed("start_ticks"), trace.signed("clock_frequency")),
        (vec![Some(start)], vec![Some(frequency)])
    );
    let ns = |ticks: i64| ((i128::from(ticks) - i128::from(start)) * 1_000_000_000 / i128::from(frequency)) as i64;
    let kind = |opcode| match opcode {
        50 => "msi_isr",
        66 => "threaded_dpc",
        67 => "isr",
        68 => "dpc",
        69 => "timer_dpc",
        _ => "io_timer",
    };
    let of_raw = |event: &RawEvent<'_>| {
        let (0x0F, opcode @ (50 | 66..=70)) = event.kind else { return None };
        let quad = |at: usize| i64::from_le_bytes(event.payload[at..at + 8].try_into().unwrap());
        Some((ns(event.ticks), ns(quad(0)), u64::from(event.processor), kind(opcode), quad(8) as u64))
    };
    let mut expected: Vec<_> = raw.iter().filter_map(of_raw).collect();
    let (ends, starts, kinds) = (table.signed("ts_ns"), table.signed("start_ts_ns"), table.texts("kind"));
    let (processors, addresses) = (table.optional("processor"), table.numbers("routine_address"));
    let found = |row: usize| {
        let (end, start) = (ends[row].unwrap(), starts[row].unwrap());
        (end, start, processors[row].unwrap(), kinds[row].as_str(), addresses[row])
    };
    let mut found: Vec<_> = (0..table.rows()).map(found).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert!(found == expected, "{} rows, {} events", found.len(), expected.len());

    let (lengths, own) = (table.signed("duration_ns"), table.signed("exclusive_ns"));
    let sum = |wanted: &[&str]| {
        let rows = (0..table.rows()).filter(|row| wanted.contains(&kinds[*row].as_str()));
        rows.fold((0, 0), |(count, ns), row| (count + 1, ns + lengths[row].unwrap()))
    };
    let ms = |(count, ns): (usize, i64)| (count, ns / 1_000_000);
    assert_eq!(ms(sum(&["isr"])), (138_599, 2_577));
    assert_eq!(ms(sum(&["msi_isr"])), (1_118, 17));
    assert_eq!(ms(sum(&["dpc", "timer_dpc", "threaded_dpc"])), (15_267, 97));
    // Each moment of a processor counts once, by the union of all intervals on it.
    let mut busy = 0;
    for processor in 0..8 {
        let mut intervals: Vec<(i64, i64)> =
            found.iter().filter(|row| row.2 == processor).map(|row| (row.1, row.0)).collect();
        intervals.sort_unstable();
        let mut until = i64::MIN;
        for (start, end) in intervals {
            busy += (end - start.max(until)).max(0);
            until = until.max(end);
        }
    }
    assert_eq!(own.into_iter().map(Option::unwrap).sum::<i64>(), busy);
    // Every routine lies in a module of the kernel that is listed with its address.
    let module = dataset.table("module");
    let (bases, sizes, processes) =
        (module.numbers("module_id"), module.numbers("size_bytes"), module.numbers("process_id"));
    let kernel: HashMap<u64, u64> =
        (0..module.rows()).filter(|row| processes[*row] == 0).map(|row| (bases[row], sizes[row])).collect();
    let modules = table.optional("module_id");
    assert!(
        modules
            .iter()
            .zip(&addresses)
            .all(|(base, address)| { base.is_some_and(|base| (base..base + kernel[&base]).contains(address)) })
    );
}
