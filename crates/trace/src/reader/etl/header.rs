//! The header of an event. It has one of a dozen forms; the first four bytes say which.
//!
//! ```text
//!  b0 b1: size or version   b2: form   b3: 0xC0 an ordinary header, 0x90 a WPP message
//!  1 2 SYSTEM32/64   3 4 COMPACT   10 20 FULL   11 21 INSTANCE   16 17 PERFINFO   18 19 EVENT
//! ```
//! The 32 or 64 of a form is the pointer width of the process that wrote the event, not of the machine.
//! Source: phnt's `ntwmi.h` and Geoff Chappell's notes; SYSTEM, PERFINFO64, FULL, EVENT and MESSAGE are checked on
//! files, COMPACT, INSTANCE and PERFINFO32 were never seen.
//!
//! Tuples of nom cost nothing here, though every event passes three times: reading 180,000 events takes 711 million
//! instructions, and took 728 million with fields read one by one.

use nom::Parser;
use nom::combinator::cond;

use crate::bytes::{Parsed, fail, guid, i64le, inner, take, u8le, u16le, u32le, u64le};
use crate::guid::Guid;
use crate::reader::EtwForm;

/// Process and thread id of events that have none.
pub const NO_ID: u32 = u32::MAX;

/// The header of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Head {
    /// Bytes of the event, header included.
    pub size: usize,
    /// Where extended items or the payload begin.
    pub body: usize,
    /// Pointer width of the writer.
    pub pointer_size: u8,
    /// The identity of the kind of event.
    pub form: EtwForm,
    /// Provider, class or message class; the hook's class for kernel events (none when the group is not known).
    pub guid: Option<Guid>,
    /// Event id or message number; of classic events the opcode.
    pub id: u32,
    /// Version of the payload.
    pub version: u16,
    /// Opcode.
    pub opcode: u8,
    /// Level.
    pub level: u8,
    /// Keyword.
    pub keyword: u64,
    /// Thread that wrote it.
    pub thread_id: u32,
    /// Process that wrote it.
    pub process_id: u32,
    /// Time in ticks of the session's clock; messages may have none.
    pub ticks: Option<i64>,
    /// Activity id.
    pub activity_id: Guid,
    /// Whether there are extended items before the payload.
    pub has_items: bool,
    /// Group of a kernel event.
    pub group: u8,
    /// Hardware counters in front of the payload, of 8 bytes each.
    pub counters: u8,
    /// Written by the kernel (SYSTEM, PERFINFO): identified by group and type, not by GUID.
    pub is_kernel: bool,
}

impl Head {
    fn new(size: usize, body: usize, pointer_size: u8, form: EtwForm) -> Head {
        Head {
            size,
            body,
            pointer_size,
            form,
            guid: None,
            id: 0,
            version: 0,
            opcode: 0,
            level: 0,
            keyword: 0,
            thread_id: NO_ID,
            process_id: NO_ID,
            ticks: None,
            activity_id: Guid::NONE,
            has_items: false,
            group: 0,
            counters: 0,
            is_kernel: false,
        }
    }
}

/// Reads the header of the event that begins `input`, and checks its size against what is left. An error says what
/// stands there instead.
pub fn parse(input: &[u8]) -> Result<Head, &'static str> {
    let [b0, b1, form, flags] = *input.first_chunk::<4>().ok_or("less than a header")?;
    let first = u16::from_le_bytes([b0, b1]);
    let parsed = match (flags, form) {
        (0xC0, 1) => system(input, 4, true),
        (0xC0, 2) => system(input, 8, true),
        (0xC0, 3) => system(input, 4, false),
        (0xC0, 4) => system(input, 8, false),
        (0xC0, 16) => perf_info(input, 4),
        (0xC0, 17) => perf_info(input, 8),
        (0xC0, 10) => full(input, 4, 0x30),
        (0xC0, 20) => full(input, 8, 0x30),
        (0xC0, 11) => full(input, 4, 0x48),
        (0xC0, 21) => full(input, 8, 0x48),
        (0xC0, 18) => event(input, 4),
        (0xC0, 19) => event(input, 8),
        (0x90, _) => message(input, usize::from(first)),
        _ => return Err("no header of an event that is known"),
    };
    let head = match parsed {
        Ok((_, head)) => head,
        Err(e) => return Err(inner(e).expected()),
    };
    if head.size < head.body {
        return Err("an event that is smaller than its header");
    }
    if head.size > input.len() {
        return Err("an event that is larger than what is left of its buffer");
    }
    Ok(head)
}

/// The class GUID under which consumers see the events of each kernel group.
pub const CLASSES: [(u8, Guid); 21] = [
    (0x00, Guid::constant("68fdd900-4a3e-11d1-84f4-0000f80464e3")),
    (0x01, Guid::constant("3d6fa8d4-fe05-11d0-9dda-00c04fd7ba7c")),
    (0x02, Guid::constant("3d6fa8d3-fe05-11d0-9dda-00c04fd7ba7c")),
    (0x03, Guid::constant("3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c")),
    (0x04, Guid::constant("90cbdc39-4a3e-11d1-84f4-0000f80464e3")),
    (0x05, Guid::constant("3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c")),
    (0x06, Guid::constant("9a280ac0-c8e0-11d1-84e2-00c04fb998a2")),
    (0x08, Guid::constant("bf3a50c5-a9c9-4988-a005-2df0b7c80f80")),
    (0x09, Guid::constant("ae53722e-c863-11d2-8659-00c04fa321a1")),
    (0x0A, Guid::constant("13976d09-a327-438c-950b-7f03192815c7")),
    (0x0B, Guid::constant("01853a65-418f-4f36-aefc-dc0f1d2fd235")),
    (0x0E, Guid::constant("0268a8b6-74fd-4302-9dd0-6e8f1795c0cf")),
    (0x0F, Guid::constant("ce1dbfb4-137e-4da6-87b0-3f59aa102cbc")),
    (0x10, Guid::constant("222962ab-6180-4b88-a825-346b75f2a24a")),
    (0x11, Guid::constant("89497f50-effe-4440-8cf2-ce6b1cdcaca7")),
    (0x14, Guid::constant("2cb15d1d-5fc1-11d2-abe1-00a0c911f518")),
    (0x17, Guid::constant("3ac66736-cc59-4cff-8115-8df50e39816b")),
    (0x18, Guid::constant("def2fe46-7bd6-4b80-bd94-f57fe20d0ce3")),
    (0x1A, Guid::constant("45d8cccd-539f-4b72-a8b7-5c683142609a")),
    (0x1B, Guid::constant("d837ca92-12b9-44a5-ad6a-3a65b3578aa8")),
    (0x1C, Guid::constant("c861d0e2-a2c1-4d36-9f9c-970bab943a12")),
];

/// Names of the kernel's groups, by their numbers. Source: `EVENT_TRACE_GROUP_*` of phnt's `ntwmi.h`.
const GROUPS: [&str; 31] = [
    "EventTrace", "DiskIo", "PageFault", "Process", "FileIo", "Thread", "TcpIp", "Job", "UdpIp", "Registry",
    "DbgPrint", "SystemConfig", "Spare1", "Wnf", "Pool", "PerfInfo", "Heap", "Object", "Power", "ModBound", "Image",
    "Dpc", "CacheManager", "CritSec", "StackWalk", "Ums", "Alpc", "SplitIo", "ThreadPool", "Hypervisor", "HypervisorX",
];

/// The provider of a kernel event by its group, and of an event whose header has the class of a group.
pub fn kernel_provider(head: &Head) -> Option<String> {
    let of_class = |class| CLASSES.iter().find(|(_, known)| *known == class).map(|(group, _)| *group);
    let group = match head.guid {
        Some(class) if head.form == EtwForm::Classic => of_class(class)?,
        None if head.is_kernel => head.group,
        _ => return None,
    };
    match GROUPS.get(usize::from(group)) {
        Some(name) => Some(format!("Windows-Kernel-{name}")),
        None => Some(format!("Windows-Kernel-Group{group:02X}")),
    }
}

/// The class GUID under which consumers see a kernel event. The load of an image has the group of processes (0x030A)
/// but is an event of the class Image.
pub fn class_of(group: u8, opcode: u8) -> Option<Guid> {
    let group = if (group, opcode) == (0x03, 0x0A) { 0x14 } else { group };
    CLASSES.iter().find(|(known, _)| *known == group).map(|(_, class)| *class)
}

/// The first 8 bytes of a kernel event.
fn kernel(input: &[u8], body: usize, pointer_size: u8) -> Parsed<'_, Head> {
    let fields = (u16le("Version"), u16le("HeaderType"), u16le("Size"), u8le("Type"), u8le("Group"));
    let all = |(version, _, size, opcode, group)| {
        let (size, body) = (usize::from(size), body + 8 * extensions(version));
        let head = Head::new(size, body, pointer_size, EtwForm::Classic);
        let counters = (version >> 8 & 7) as u8;
        let (version, guid, id) = (version & 0xFF, class_of(group, opcode), u32::from(opcode));
        Head { id, version, opcode, group, guid, counters, is_kernel: true, ..head }
    };
    fields.map(all).parse(input)
}

/// Numbers of 8 bytes before the payload. Bit 15: an index of precise sampling; bits 8 to 10: how many hardware
/// counters follow it.
fn extensions(version: u16) -> usize {
    usize::from(version >> 8 & 7) + usize::from(version >> 15)
}

fn system(input: &[u8], pointer_size: u8, with_times: bool) -> Parsed<'_, Head> {
    let (input, head) = kernel(input, if with_times { 0x20 } else { 0x18 }, pointer_size)?;
    let fields = (u32le("ThreadId"), u32le("ProcessId"), i64le("TimeStamp"));
    let all = |(thread_id, process_id, ticks)| Head { thread_id, process_id, ticks: Some(ticks), ..head };
    fields.map(all).parse(input)
}

fn perf_info(input: &[u8], pointer_size: u8) -> Parsed<'_, Head> {
    let (input, head) = kernel(input, 0x10, pointer_size)?;
    i64le("TimeStamp").map(|ticks| Head { ticks: Some(ticks), ..head }).parse(input)
}

fn full(input: &[u8], pointer_size: u8, body: usize) -> Parsed<'_, Head> {
    let fields = (
        u16le("Size"),
        u16le("HeaderType"),
        u8le("Type"),
        u8le("Level"),
        u16le("Version"),
        u32le("ThreadId"),
        u32le("ProcessId"),
        i64le("TimeStamp"),
        guid("Guid"),
    );
    let all = |(size, _, opcode, level, version, thread_id, process_id, ticks, class)| {
        let head = Head::new(usize::from(size), body, pointer_size, EtwForm::Classic);
        let (id, ticks, guid) = (u32::from(opcode), Some(ticks), Some(class));
        Head { id, version, opcode, level, thread_id, process_id, ticks, guid, ..head }
    };
    fields.map(all).parse(input)
}

fn event(input: &[u8], pointer_size: u8) -> Parsed<'_, Head> {
    let fields = (
        u16le("Size"),
        u16le("HeaderType"),
        u16le("Flags"),
        u16le("EventProperty"),
        u32le("ThreadId"),
        u32le("ProcessId"),
        i64le("TimeStamp"),
        guid("ProviderId"),
        u16le("Id"),
        u8le("Version"),
        u8le("Channel"),
        u8le("Level"),
        u8le("Opcode"),
        u16le("Task"),
        u64le("Keyword"),
        take(8, "KernelTime and UserTime"),
        guid("ActivityId"),
    );
    let all = |(
        size,
        _,
        flags,
        _,
        thread,
        process,
        ticks,
        provider,
        id,
        version,
        _,
        level,
        opcode,
        _,
        keyword,
        _,
        activity,
    )| {
        Head {
            guid: Some(provider),
            id: u32::from(id),
            version: u16::from(version),
            opcode,
            level,
            keyword,
            thread_id: thread,
            process_id: process,
            ticks: Some(ticks),
            activity_id: activity,
            has_items: flags & 1 != 0,
            ..Head::new(usize::from(size), 0x50, pointer_size, EtwForm::Manifest)
        }
    };
    fields.map(all).parse(input)
}

/// Options of a WPP message: which fields its header has, unaligned and in this order.
const SEQUENCE: u16 = 0x01;
const MESSAGE_GUID: u16 = 0x02;
/// Stands in place of the GUID.
const COMPONENT_ID: u16 = 0x04;
const TIME: u16 = 0x08 | 0x10;
const SYSTEM_INFORMATION: u16 = 0x20;
const POINTER_32: u16 = 0x40;

fn message(whole: &[u8], size: usize) -> Parsed<'_, Head> {
    if size < 8 {
        return Err(fail(whole.len(), "Size", "a message of at least 8 bytes"));
    }
    let (input, (_, number, options)) =
        (u32le("HeaderType"), u16le("MessageNumber"), u16le("MessageFlags")).parse(whole)?;
    let has = |option: u16| options & option != 0;
    let mut fields = (
        cond(has(SEQUENCE), u32le("Sequence")),
        cond(has(COMPONENT_ID), u32le("ComponentId").map(component)),
        cond(has(MESSAGE_GUID) && !has(COMPONENT_ID), guid("MessageGuid")),
        cond(has(TIME), i64le("TimeStamp")),
        cond(has(SYSTEM_INFORMATION), (u32le("ThreadId"), u32le("ProcessId"))),
    );
    let (input, (_, component, class, ticks, ids)) = fields.parse(input)?;
    let (thread_id, process_id) = ids.unwrap_or((NO_ID, NO_ID));
    let (guid, id) = (component.or(class), u32::from(number));
    let pointer_size = if has(POINTER_32) { 4 } else { 8 };
    let head = Head::new(size, whole.len() - input.len(), pointer_size, EtwForm::Message);
    Ok((input, Head { id, guid, ticks, thread_id, process_id, ..head }))
}

/// The number of a component in place of a GUID.
fn component(number: u32) -> Guid {
    let [a, b, c, d] = number.to_le_bytes();
    Guid([a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
}
