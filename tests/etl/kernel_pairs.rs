//! System calls, operations on the registry, and messages of ALPC. No recording at hand has such events: they are
//! written here from the documented layouts.

use super::writer::*;
use crate::support::dataset::{Dataset, Table};

fn switch(ticks: i64, new: u32, old: u32) -> Vec<u8> {
    let mut payload = [new, old].map(u32::to_le_bytes).concat();
    payload.extend([9, 8, 0, 0, 6, 1, 5, 0]);
    payload.extend([0; 8]);
    perf_info(5, 36, 2, ticks, &payload)
}

/// A recording with a little of each.
pub fn recording() -> Vec<u8> {
    let [first, second] = system_calls();
    file(&[(0, 0x20, first), (1, 0x20, second), (2, 0x20, registry_operations()), (3, 0x20, messages())])
}

/// A file of buffers: processor, flags, events.
fn file(buffers: &[(u16, u16, Vec<Vec<u8>>)]) -> Vec<u8> {
    let mut writer = Writer::new();
    for (sequence, (processor, flags, events)) in (1..).zip(buffers) {
        let head = Head { processor: *processor, sequence, flags: *flags, ..Head::default() };
        writer = writer.raw(&buffer(&head, events));
    }
    writer.bytes
}

fn written(buffers: &[(u16, u16, Vec<Vec<u8>>)]) -> Dataset {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("written.etl");
    std::fs::write(&path, file(buffers)).expect("room");
    Dataset::of(&path)
}

/// Times of a column in ticks.
fn ticks(table: &Table, column: &str) -> Vec<Option<i64>> {
    table.signed(column).into_iter().map(|ns| ns.map(|ns| ns / 100 + TICKS)).collect()
}

fn exit(ticks: i64, status: u32) -> Vec<u8> {
    perf_info(0x0F, 52, 2, ticks, &status.to_le_bytes())
}

/// System calls on two processors.
fn system_calls() -> [Vec<Vec<u8>>; 2] {
    const KERNEL: u64 = 0xFFFF_F800_0000_0000;
    let enter = |ticks: i64, routine: u64| perf_info(0x0F, 51, 2, ticks, &(KERNEL + routine).to_le_bytes());
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
        // Which thread runs here is not known yet.
        enter(1005, 0x400),
        exit(1008, 0),
        switch(1050, 101, 0),
        exit(1060, 0),
        exit(1070, 0),
        enter(1080, 0x500),
    ];
    [first, second]
}

#[test]
fn system_calls_follow_their_threads_from_one_processor_to_another() {
    let [first, second] = system_calls();
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

const KEY: u64 = 0xFFFF_A000_0000_1000;

/// Operations on the registry, with the control blocks of keys.
fn registry_operations() -> Vec<Vec<u8>> {
    let operation = |opcode: u8, start: i64, end: i64, status: u32, index: u32, key: u64, name: &str| {
        let payload = [
            start.to_le_bytes().to_vec(),
            [status, index].map(u32::to_le_bytes).concat(),
            key.to_le_bytes().to_vec(),
            utf16(name),
        ];
        by(system(9, opcode, 2, end, &payload.concat()), 50, 101)
    };
    vec![
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
    ]
}

#[test]
fn operations_on_the_registry_have_times_and_keys() {
    let events = registry_operations();
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

/// An event of ALPC by a thread.
fn alpc(opcode: u8, ticks: i64, process: u32, thread: u32, payload: &[u8]) -> Vec<u8> {
    by(system(0x1A, opcode, 0, ticks, payload), process, thread)
}

/// One about a message with a number.
fn message(opcode: u8, ticks: i64, process: u32, thread: u32, number: u32) -> Vec<u8> {
    alpc(opcode, ticks, process, thread, &number.to_le_bytes())
}

/// A request and its answer.
fn messages() -> Vec<Vec<u8>> {
    let port = [1u32.to_le_bytes().as_slice(), b"\\RPC Control\\shop\0"].concat();
    vec![
        process(3, 1000, 50, "app.exe", 259),
        process(3, 1000, 60, "server.exe", 259),
        thread(3, 1000, 50, 101),
        thread(3, 1000, 60, 201),
        alpc(36, 1010, 60, 201, &port),
        message(33, 1020, 50, 101, 7),
        message(35, 1021, 50, 101, 7),
        message(37, 1030, 60, 201, 0),
        message(34, 1031, 60, 201, 7),
        // The answer has the number of the request.
        message(33, 1050, 60, 201, 7),
        message(37, 1060, 50, 101, 0x102),
        message(34, 1061, 50, 101, 7),
        // Received before it was sent: that is another one's.
        message(34, 1070, 50, 101, 9),
        message(33, 1080, 50, 101, 8),
    ]
}

#[test]
fn messages_go_from_their_senders_to_their_receivers() {
    let first = messages();
    let dataset = written(&[(0, 0x20, first), (0, 0x22, vec![message(34, 1200, 60, 201, 8)])]);
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

/// Events without a table of their own are decoded to their last byte.
#[test]
fn handles_and_compact_switches_are_decoded() {
    let ids = [7u32.to_le_bytes().to_vec(), 2u16.to_le_bytes().to_vec()].concat();
    let object = 0xFFFF_A000_0000_2000u64.to_le_bytes();
    let compact =
        [1_000i64.to_le_bytes().to_vec(), [9u32; 16].map(u32::to_le_bytes).concat(), vec![8; 16], vec![0x11, 0x22]]
            .concat();
    let events = vec![
        system(0x11, 32, 2, 1010, &[object.as_slice(), &ids, &[0, 0]].concat()),
        system(0x11, 33, 2, 1011, &[object.as_slice(), &ids].concat()),
        system(
            0x11,
            34,
            2,
            1012,
            &[object.as_slice(), &[1, 0, 0, 0], &ids[..4], &[60, 0, 0, 0, 2, 0, 50, 0, 0, 0]].concat(),
        ),
        system(0x11, 37, 2, 1013, &[[2, 0, 0, 0].as_slice(), &utf16("File")].concat()),
        system(0x11, 39, 2, 1014, &[object.as_slice(), &[50, 0, 0, 0], &ids, &utf16(r"\Device\a")].concat()),
        perf_info(5, 37, 2, 1015, &compact),
    ];
    let dataset = written(&[(0, 0x20, events)]);
    assert_eq!(dataset.problems(), [("raw_payload", 1)], "the header of the file");
    let create = dataset.table("event/Windows-Kernel-Object/CreateHandle");
    assert_eq!((create.numbers("handle"), create.numbers("object_type")), (vec![7], vec![2]));
    let copied = dataset.table("event/Windows-Kernel-Object/DuplicateHandle");
    assert_eq!((copied.numbers("target_process_id"), copied.numbers("source_process_id")), (vec![60], vec![50]));
    assert_eq!(dataset.table("event/Windows-Kernel-Object/HandleDCEnd").texts("name"), [r"\Device\a"]);
    assert_eq!(dataset.table("event/Windows-Kernel-Thread/CompactCSwitch").signed("first_time_stamp"), [Some(1_000)]);
    assert_eq!(dataset.table("context_switch").rows(), 0);
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
        "Alpc", "CacheManager", "CritSec", "DbgPrint", "DiskIo", "Dpc", "EventTrace", "FileIo", "Group1F", "Heap",
        "Hypervisor", "HypervisorX", "Image", "Job", "ModBound", "Object", "PageFault", "PerfInfo", "Pool", "Power",
        "Process", "Registry", "Spare1", "SplitIo", "StackWalk", "SystemConfig", "TcpIp", "Thread", "ThreadPool",
        "UdpIp", "Ums", "Wnf",
    ]
    .map(|name| format!("Windows-Kernel-{name}"));
    expected.sort_unstable();
    assert_eq!(found, expected);
    let of_heap = names.iter().position(|name| name == "opcode_241").expect("the event of the program");
    assert_eq!(providers[of_heap], "Windows-Kernel-Heap");
}
