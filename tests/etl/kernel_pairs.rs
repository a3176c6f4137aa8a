//! System calls, operations on the registry, and messages of ALPC. No recording at hand has such events: they are written here from
//! the documented layouts.

use super::writer::*;
use crate::support::dataset::{Dataset, Table};

fn switch(ticks: i64, new: u32, old: u32) -> Vec<u8> {
    let mut payload = [new, old].map(u32::to_le_bytes).concat();
    payload.extend([9, 8, 0, 0, 6, 1, 5, 0]);
    payload.extend([0; 8]);
    perf_info(5, 36, 2, ticks, &payload)
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// A file of buffers: processor, flags, events.
fn written(buffers: &[(u16, u16, Vec<Vec<u8>>)]) -> Dataset {
    let mut writer = Writer::new();
    for (sequence, (processor, flags, events)) in (1..).zip(buffers) {
        let head = Head { processor: *processor, sequence, flags: *flags, ..Head::default() };
        writer = writer.raw(&buffer(&head, events));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("written.etl");
    std::fs::write(&path, writer.bytes).expect("room");
    Dataset::of(&path)
}

/// Times of a column in ticks.
fn ticks(table: &Table, column: &str) -> Vec<Option<i64>> {
    table.signed(column).into_iter().map(|ns| ns.map(|ns| ns / 100 + TICKS)).collect()
}

#[test]
fn system_calls_follow_their_threads_from_one_processor_to_another() {
    const KERNEL: u64 = 0xFFFF_F800_0000_0000;
    let enter = |ticks: i64, routine: u64| perf_info(0x0F, 51, 2, ticks, &(KERNEL + routine).to_le_bytes());
    let exit = |ticks: i64, status: u32| perf_info(0x0F, 52, 2, ticks, &status.to_le_bytes());
    let first = vec![
        image(3, 1000, 0, KERNEL, r"\SystemRoot\system32\ntoskrnl.exe"),
        process(3, 1000, 50, "app.exe", 259),
        thread(3, 1000, 50, 101),
        thread(3, 1000, 50, 102),
        switch(1010, 101, 0),
        // Thread 101 waits in a call, and returns from it on the other processor.
        enter(1020, 0x100),
        switch(1030, 102, 101),
        enter(1035, 0x200),
        stack_walk(1036, 1035, 102, &[0x7FF0_0000_1000]),
        // One call within another.
        enter(1037, 0x300),
        exit(1039, 0x103),
        exit(1040, 0xC000_0005),
        enter(1045, 0x100),
    ];
    let second = vec![
        // Nobody knows who runs here yet.
        enter(1005, 0x400),
        exit(1008, 0),
        switch(1050, 101, 0),
        exit(1060, 0),
        exit(1070, 0),
        enter(1080, 0x500),
    ];
    let dataset = written(&[
        (0, 0x20, first),
        (1, 0x20, second),
        (1, 0x22, vec![exit(1200, 0), switch(1210, 101, 0), exit(1220, 0)]),
    ]);
    let table = dataset.table("system_call");
    let (starts, ends) = (ticks(&table, "start_ts_ns"), ticks(&table, "end_ts_ns"));
    let (threads, status, gap) = (table.numbers("thread_id"), table.optional("status"), table.bools("touches_gap"));
    let mut rows: Vec<_> =
        (0..table.rows()).map(|row| (starts[row].unwrap(), ends[row], threads[row], status[row], gap[row])).collect();
    rows.sort_unstable();
    let unknown = u64::from(u32::MAX);
    let expected = [
        (1005, None, unknown, None, false),
        (1020, Some(1060), 101, Some(0), false),
        (1035, Some(1040), 102, Some(0xC000_0005), false),
        (1037, Some(1039), 102, Some(0x103), false),
        // Buffers are lost behind these.
        (1045, None, 102, None, true),
        (1080, None, 101, None, true),
    ];
    assert_eq!(rows, expected);
    let processes = table.numbers("process_id");
    assert!(processes.iter().zip(&threads).all(|(process, thread)| (*process == 50) == (*thread != unknown)));
    let with_stack: Vec<i64> = (0..table.rows())
        .filter(|row| table.numbers("callsite_id")[*row] != 0)
        .map(|row| starts[row].unwrap())
        .collect();
    assert_eq!(with_stack, [1035], "the stack of the caller");
    let frames = dataset.table("frame").texts("name");
    assert_eq!(frames.iter().filter(|name| *name == "ntoskrnl.exe!?").count(), 5, "the functions: {frames:?}");
    assert_eq!(dataset.problems().iter().find(|(code, _)| *code == "raw_payload"), Some(&("raw_payload", 1)));
}

#[test]
fn operations_on_the_registry_have_times_and_keys() {
    const KEY: u64 = 0xFFFF_A000_0000_1000;
    let operation = |opcode: u8, start: i64, end: i64, status: u32, index: u32, key: u64, name: &str| {
        let payload = [
            start.to_le_bytes().to_vec(),
            [status, index].map(u32::to_le_bytes).concat(),
            key.to_le_bytes().to_vec(),
            utf16(name),
        ];
        by(system(9, opcode, 2, end, &payload.concat()), 50, 101)
    };
    let events = vec![
        process(3, 1000, 50, "app.exe", 259),
        thread(3, 1000, 50, 101),
        operation(22, 0, 1005, 0, 0, KEY, r"\REGISTRY\MACHINE\SOFTWARE"),
        operation(11, 1010, 1030, 0, 0, KEY, "Shop"),
        stack_walk(1031, 1030, 101, &[0x7FF0_0000_1000]),
        operation(16, 1040, 1041, 0xC000_0034, 2, KEY, "Colour"),
        operation(23, 0, 1050, 0, 0, KEY, ""),
        // The control block is used again.
        operation(22, 0, 1060, 0, 0, KEY, r"\REGISTRY\USER"),
        operation(17, -133_000_000_000_000_000, 1070, 0, 7, KEY, ""),
        operation(25, 0, 1100, 0, 0, KEY + 8, r"\REGISTRY\MACHINE\SYSTEM"),
    ];
    let dataset = written(&[(0, 0x20, events)]);
    let table = dataset.table("registry");
    assert_eq!(table.texts("kind"), ["open", "query_value", "enumerate_key"]);
    assert_eq!(ticks(&table, "start_ts_ns"), [Some(1010), Some(1040), None]);
    assert_eq!(table.signed("duration_ns"), [Some(2_000), Some(100), None]);
    assert_eq!(table.texts("name"), ["Shop", "Colour", ""]);
    assert_eq!(table.numbers("status"), [0, 0xC000_0034, 0]);
    assert_eq!(table.numbers("index"), [0, 2, 7]);
    assert_eq!((table.numbers("process_id"), table.numbers("thread_id")), (vec![50; 3], vec![101; 3]));
    assert_eq!(table.numbers("key_handle"), [KEY; 3]);
    assert_eq!(table.numbers("callsite_id").iter().filter(|id| **id > 0).count(), 1);
    let keys = dataset.table("registry_key");
    assert_eq!(keys.texts("path"), [r"\REGISTRY\MACHINE\SOFTWARE", r"\REGISTRY\USER", r"\REGISTRY\MACHINE\SYSTEM"]);
    assert_eq!(ticks(&keys, "create_ts_ns"), [Some(1005), Some(1060), None]);
    assert_eq!(ticks(&keys, "delete_ts_ns"), [Some(1050), None, None]);
}

#[test]
fn messages_go_from_their_senders_to_their_receivers() {
    let of = |opcode: u8, ticks: i64, process: u32, thread: u32, payload: &[u8]| {
        by(system(0x1A, opcode, 0, ticks, payload), process, thread)
    };
    let number =
        |opcode, ticks, process, thread, number: u32| of(opcode, ticks, process, thread, &number.to_le_bytes());
    let port = [1u32.to_le_bytes().as_slice(), b"\\RPC Control\\shop\0"].concat();
    let first = vec![
        process(3, 1000, 50, "client.exe", 259),
        process(3, 1000, 60, "server.exe", 259),
        thread(3, 1000, 50, 101),
        thread(3, 1000, 60, 201),
        of(36, 1010, 60, 201, &port),
        number(33, 1020, 50, 101, 7),
        number(35, 1021, 50, 101, 7),
        number(37, 1030, 60, 201, 0),
        number(34, 1031, 60, 201, 7),
        // The answer has the number of the request.
        number(33, 1050, 60, 201, 7),
        number(37, 1060, 50, 101, 0x102),
        number(34, 1061, 50, 101, 7),
        // Received before it was sent: that is another one's.
        number(34, 1070, 50, 101, 9),
        number(33, 1080, 50, 101, 8),
    ];
    let dataset = written(&[(0, 0x20, first), (0, 0x22, vec![number(34, 1200, 60, 201, 8)])]);
    let table = dataset.table("alpc");
    let (starts, ends) = (ticks(&table, "start_ts_ns"), ticks(&table, "end_ts_ns"));
    let (kinds, senders, receivers) =
        (table.texts("kind"), table.numbers("thread_id"), table.optional("receiver_thread_id"));
    let mut rows: Vec<_> = (0..table.rows())
        .map(|row| (starts[row].unwrap(), ends[row], kinds[row].as_str(), senders[row], receivers[row]))
        .collect();
    rows.sort_unstable();
    let expected = [
        (1010, Some(1030), "message_wait", 201, None),
        (1020, Some(1031), "message", 101, Some(201)),
        (1021, Some(1060), "reply_wait", 101, None),
        (1050, Some(1061), "message", 201, Some(101)),
        (1080, None, "message", 101, None),
    ];
    assert_eq!(rows, expected);
    let at = |start: i64| starts.iter().position(|at| *at == Some(start)).unwrap();
    assert_eq!(table.bools("touches_gap").iter().filter(|gap| **gap).count(), 1);
    assert_eq!(table.texts("port_name")[at(1010)], r"\RPC Control\shop");
    assert_eq!((table.optional("status")[at(1010)], table.optional("status")[at(1021)]), (Some(0), Some(0x102)));
    assert_eq!(
        (table.numbers("process_id")[at(1020)], table.optional("receiver_process_id")[at(1020)]),
        (50, Some(60))
    );
    assert_eq!(table.optional("message_id")[at(1021)], Some(7));
}

/// Kernel events of every group have a provider that is called after it, whether or not the catalogue knows them.
#[test]
fn every_group_of_the_kernel_has_a_name() {
    let events: Vec<Vec<u8>> =
        (0..=0x1E).map(|group| system(group, 0xF0, 9, 1010 + i64::from(group), &[1, 2, 3])).collect();
    let mut all = events;
    all.push(system(0x1F, 0xF0, 9, 1090, &[1]));
    // A program writes such an event with the class of its group.
    let heap = [0xAB, 0x62, 0x29, 0x22, 0x80, 0x61, 0x88, 0x4B, 0xA8, 0x25, 0x34, 0x6B, 0x75, 0xF2, 0xA2, 0x4A];
    all.push(full(heap, 0xF1, 1091, &[1]));
    let dataset = written(&[(0, 0x20, all)]);
    let kinds = dataset.table("event_type");
    let (providers, names) = (kinds.texts("provider_name"), kinds.texts("event_name"));
    let mut found: Vec<&str> =
        (0..kinds.rows()).filter(|row| names[*row] == "opcode_240").map(|row| providers[row].as_str()).collect();
    found.sort_unstable();
    let mut expected = [
        "Alpc",
        "CacheManager",
        "CritSec",
        "DbgPrint",
        "DiskIo",
        "Dpc",
        "EventTrace",
        "FileIo",
        "Group1F",
        "Heap",
        "Hypervisor",
        "HypervisorX",
        "Image",
        "Job",
        "ModBound",
        "Object",
        "PageFault",
        "PerfInfo",
        "Pool",
        "Power",
        "Process",
        "Registry",
        "Spare1",
        "SplitIo",
        "StackWalk",
        "SystemConfig",
        "TcpIp",
        "Thread",
        "ThreadPool",
        "UdpIp",
        "Ums",
        "Wnf",
    ]
    .map(|name| format!("Windows-Kernel-{name}"));
    expected.sort_unstable();
    assert_eq!(found, expected);
    let of_heap = names.iter().position(|name| name == "opcode_241").expect("the event of the program");
    assert_eq!(providers[of_heap], "Windows-Kernel-Heap");
}
