//! A small writer of .etl files, to make what no real file shows.

/// A file under construction: its header buffer, then whatever buffers are added.
pub struct Writer {
    pub bytes: Vec<u8>,
}

/// 100 ns units since 1601 at which written sessions start, and the ticks of their clock then.
pub const START: i64 = 133_232_283_966_946_549;
pub const TICKS: i64 = 1_000;
pub const BUFFER_SIZE: u32 = 4096;
/// Microsoft-Windows-DotNETRuntime, e13c0d23-ccbc-4e12-931b-d9cc2eee27e4.
pub const RUNTIME: [u8; 16] =
    [0x23, 0x0D, 0x3C, 0xE1, 0xBC, 0xCC, 0x12, 0x4E, 0x93, 0x1B, 0xD9, 0xCC, 0x2E, 0xEE, 0x27, 0xE4];

/// What the merge step adds about images, b3e675d7-2554-4f18-830b-2762732560de.
pub const IMAGE_ID: [u8; 16] =
    [0xD7, 0x75, 0xE6, 0xB3, 0x54, 0x25, 0x18, 0x4F, 0x83, 0x0B, 0x27, 0x62, 0x73, 0x25, 0x60, 0xDE];

/// What a buffer's header says beside its contents.
pub struct Head {
    pub kind: u16,
    pub flags: u16,
    pub processor: u16,
    pub sequence: i64,
    pub state: u32,
}

impl Default for Head {
    fn default() -> Head {
        Head { kind: 0, flags: 0x20, processor: 0, sequence: 1, state: 3 }
    }
}

/// A text as UTF-16 with a zero behind it.
pub fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// Puts a number at a place.
pub fn patch<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}

/// A buffer with `valid` bytes of contents, when expanded.
pub fn buffer_of(head: &Head, body: &[u8], valid: u32, size: u32) -> Vec<u8> {
    let mut out = vec![0u8; 0x48];
    patch(&mut out, 0, size.to_le_bytes());
    patch(&mut out, 0x18, head.sequence.to_le_bytes());
    patch(&mut out, 0x28, head.processor.to_le_bytes());
    patch(&mut out, 0x2C, head.state.to_le_bytes());
    patch(&mut out, 0x30, valid.to_le_bytes());
    patch(&mut out, 0x34, head.flags.to_le_bytes());
    patch(&mut out, 0x36, head.kind.to_le_bytes());
    out.extend(body);
    out.resize((size as usize).max(out.len()), 0xFF);
    out
}

/// A buffer of the session's size.
pub fn buffer(head: &Head, events: &[Vec<u8>]) -> Vec<u8> {
    sized_buffer(head, events, BUFFER_SIZE)
}

/// A buffer of a size.
pub fn sized_buffer(head: &Head, events: &[Vec<u8>], size: u32) -> Vec<u8> {
    let mut body = Vec::new();
    for event in events {
        body.extend(event);
        body.resize(body.len().next_multiple_of(8), 0);
    }
    buffer_of(head, &body, 0x48 + body.len() as u32, size)
}

/// The payload of the header event, 64-bit.
pub fn log_file_header() -> Vec<u8> {
    let mut out = vec![0u8; 0x118];
    patch(&mut out, 0, BUFFER_SIZE.to_le_bytes());
    patch(&mut out, 4, [10, 0, 1, 5]);
    patch(&mut out, 0x0C, 2u32.to_le_bytes());
    patch(&mut out, 0x10, (START + 10_000_000).to_le_bytes());
    patch(&mut out, 0x24, 2u32.to_le_bytes());
    patch(&mut out, 0x2C, 8u32.to_le_bytes());
    patch(&mut out, 0x100, 10_000_000i64.to_le_bytes());
    patch(&mut out, 0x108, START.to_le_bytes());
    patch(&mut out, 0x110, 1u32.to_le_bytes());
    out.extend("Test\0test.etl\0".encode_utf16().flat_map(u16::to_le_bytes));
    out
}

/// SYSTEM64.
pub fn system(group: u8, opcode: u8, version: u8, ticks: i64, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![version, 0, 2, 0xC0];
    out.extend(((0x20 + payload.len()) as u16).to_le_bytes());
    out.extend([opcode, group]);
    out.extend(7u32.to_le_bytes());
    out.extend(5u32.to_le_bytes());
    out.extend(ticks.to_le_bytes());
    out.extend([0; 8]);
    out.extend(payload);
    out
}

/// Who wrote an event, and when.
#[derive(Clone, Copy)]
pub struct By {
    /// EVENT64 (19) or EVENT32 (18).
    pub form: u8,
    pub process_id: u32,
    pub thread_id: u32,
    pub ticks: i64,
}

/// EVENT64 or EVENT32 of a version, with extended items if there are any.
pub fn event_by(by: By, provider: [u8; 16], id: u16, version: u8, items: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = ((0x50 + items.len() + payload.len()) as u16).to_le_bytes().to_vec();
    out.extend([by.form, 0xC0, u8::from(!items.is_empty()), 0, 0, 0]);
    out.extend(by.thread_id.to_le_bytes());
    out.extend(by.process_id.to_le_bytes());
    out.extend(by.ticks.to_le_bytes());
    out.extend(provider);
    out.extend(id.to_le_bytes());
    out.extend([version, 0, 4, 0, 0, 0]);
    out.extend([0; 8 + 8 + 16]);
    out.extend(items);
    out.extend(payload);
    out
}

/// EVENT64 (form 19) or EVENT32 (18) of process 5, thread 7.
pub fn event(form: u8, provider: [u8; 16], id: u16, ticks: i64, items: &[u8], payload: &[u8]) -> Vec<u8> {
    event_by(By { form, process_id: 5, thread_id: 7, ticks }, provider, id, 0, items, payload)
}

/// FULL64.
pub fn full(class: [u8; 16], opcode: u8, ticks: i64, payload: &[u8]) -> Vec<u8> {
    let mut out = ((0x30 + payload.len()) as u16).to_le_bytes().to_vec();
    out.extend([20, 0xC0, opcode, 0, 0, 0]);
    out.extend(7u32.to_le_bytes());
    out.extend(5u32.to_le_bytes());
    out.extend(ticks.to_le_bytes());
    out.extend(class);
    out.extend([0; 8]);
    out.extend(payload);
    out
}

/// An extended item.
pub fn item(kind: u16, more: bool, data: &[u8]) -> Vec<u8> {
    let whole = (8 + data.len()).next_multiple_of(8) as u16;
    let mut out = [whole, kind, u16::from(more), data.len() as u16].map(u16::to_le_bytes).concat();
    out.extend(data);
    out.resize(usize::from(whole), 0);
    out
}

impl Writer {
    /// With a header buffer.
    pub fn new() -> Writer {
        Writer::with_header(&log_file_header())
    }

    /// With a header event of this payload.
    pub fn with_header(payload: &[u8]) -> Writer {
        let head = Head { kind: 4, sequence: 0, flags: 0x21, ..Head::default() };
        Writer { bytes: buffer(&head, &[system(0, 0, 2, TICKS, payload)]) }
    }

    /// Adds a buffer of events of processor 0.
    pub fn events(mut self, sequence: i64, events: &[Vec<u8>]) -> Writer {
        self.bytes.extend(buffer(&Head { sequence, ..Head::default() }, events));
        self
    }

    /// A whole file of these events, in as many buffers as they need.
    pub fn file(events: &[Vec<u8>]) -> Vec<u8> {
        Writer::sized_file(events, BUFFER_SIZE, 10_000_000)
    }

    /// The same with buffers of a size, and a clock with this frequency.
    pub fn sized_file(events: &[Vec<u8>], size: u32, frequency: i64) -> Vec<u8> {
        let mut buffers: Vec<Vec<Vec<u8>>> = vec![Vec::new()];
        let whole = size as usize - 0x48;
        let mut room = whole;
        for event in events {
            let bytes = event.len().next_multiple_of(8);
            if bytes > room {
                buffers.push(Vec::new());
                room = whole;
            }
            room -= bytes;
            buffers.last_mut().expect("a buffer").push(event.clone());
        }
        let mut header = log_file_header();
        patch(&mut header, 0, size.to_le_bytes());
        patch(&mut header, 0x24, (buffers.len() as u32 + 1).to_le_bytes());
        patch(&mut header, 0x100, frequency.to_le_bytes());
        let first = Head { kind: 4, sequence: 0, flags: 0x21, ..Head::default() };
        let mut bytes = sized_buffer(&first, &[system(0, 0, 2, TICKS, &header)], size);
        for (sequence, events) in (1..).zip(&buffers) {
            bytes.extend(sized_buffer(&Head { sequence, ..Head::default() }, events, size));
        }
        bytes
    }

    /// Adds bytes as they are.
    pub fn raw(mut self, bytes: &[u8]) -> Writer {
        self.bytes.extend(bytes);
        self
    }
}

/// The same event as written by another process and thread (SYSTEM, EVENT and FULL headers).
pub fn by(mut event: Vec<u8>, process_id: u32, thread_id: u32) -> Vec<u8> {
    patch(&mut event, 8, thread_id.to_le_bytes());
    patch(&mut event, 12, process_id.to_le_bytes());
    event
}

/// PERFINFO64.
pub fn perf_info(group: u8, opcode: u8, version: u8, ticks: i64, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![version, 0, 17, 0xC0];
    out.extend(((0x10 + payload.len()) as u16).to_le_bytes());
    out.extend([opcode, group]);
    out.extend(ticks.to_le_bytes());
    out.extend(payload);
    out
}

/// SampledProfile of a thread.
pub fn sample(ticks: i64, thread_id: u32, instruction_pointer: u64, flags: u16) -> Vec<u8> {
    let mut payload = instruction_pointer.to_le_bytes().to_vec();
    payload.extend(thread_id.to_le_bytes());
    payload.extend([1u16, flags].map(u16::to_le_bytes).concat());
    perf_info(0x0F, 46, 2, ticks, &payload)
}

/// A process begins (1), ends (2) or is listed (3).
pub fn process(opcode: u8, ticks: i64, process_id: u32, name: &str, exit_code: i32) -> Vec<u8> {
    let mut payload = 9u64.to_le_bytes().to_vec();
    payload.extend([process_id, 4, 1, exit_code.cast_unsigned()].map(u32::to_le_bytes).concat());
    payload.extend([0; 8 + 4]);
    payload.extend(name.bytes().chain([0]));
    payload.extend(format!("{name} -x\0").encode_utf16().flat_map(u16::to_le_bytes));
    system(3, opcode, 3, ticks, &payload)
}

/// A thread begins (1), ends (2) or is listed (3).
pub fn thread(opcode: u8, ticks: i64, process_id: u32, thread_id: u32) -> Vec<u8> {
    let mut payload = [process_id, thread_id].map(u32::to_le_bytes).concat();
    payload.extend([1u64, 2, 3, 4, 5, 0x7FF0_0000_1234, 6].map(u64::to_le_bytes).concat());
    payload.extend([0; 8]);
    system(5, opcode, 3, ticks, &payload)
}

/// An image is loaded (10, filed under processes), unloaded (2) or listed (3).
pub fn image(opcode: u8, ticks: i64, process_id: u32, base: u64, path: &str) -> Vec<u8> {
    let mut payload = [base, 0x2000].map(u64::to_le_bytes).concat();
    payload.extend([process_id, 0, 77, 0].map(u32::to_le_bytes).concat());
    payload.extend([0; 8 + 16]);
    payload.extend(format!("{path}\0").encode_utf16().flat_map(u16::to_le_bytes));
    system(if opcode == 10 { 3 } else { 0x14 }, opcode, 3, ticks, &payload)
}

/// The symbols of an image, as a merged file names them; its header names no process.
pub fn pdb_id(ticks: i64, process_id: u32, base: u64) -> Vec<u8> {
    pdb_id_of(ticks, process_id, base, ([7; 16], 3, "app.pdb"))
}

/// The same with the symbols' id, age and path.
pub fn pdb_id_of(ticks: i64, process_id: u32, base: u64, (id, age, path): ([u8; 16], u32, &str)) -> Vec<u8> {
    let mut payload = base.to_le_bytes().to_vec();
    payload.extend(process_id.to_le_bytes());
    payload.extend([id.as_slice(), &age.to_le_bytes(), path.as_bytes(), b"\0"].concat());
    let mut event = by(full(IMAGE_ID, 36, ticks, &payload), 0, 0);
    event[6] = 2;
    event
}

/// A stack of the event at `target` on a thread.
pub fn stack_walk(ticks: i64, target: i64, thread_id: u32, frames: &[u64]) -> Vec<u8> {
    let mut payload = target.to_le_bytes().to_vec();
    payload.extend([5, thread_id].map(u32::to_le_bytes).concat());
    frames.iter().for_each(|frame| payload.extend(frame.to_le_bytes()));
    system(0x18, 32, 2, ticks, &payload)
}

/// A stack whose frames come later, with the definition of its key (37 kernel part, 38 user part).
pub fn stack_key(opcode: u8, ticks: i64, target: i64, thread_id: u32, key: u64) -> Vec<u8> {
    let mut payload = target.to_le_bytes().to_vec();
    payload.extend([5, thread_id].map(u32::to_le_bytes).concat());
    payload.extend(key.to_le_bytes());
    system(0x18, opcode, 2, ticks, &payload)
}

/// The definition of the key of a stack.
pub fn stack_definition(ticks: i64, key: u64, frames: &[u64]) -> Vec<u8> {
    let mut payload = key.to_le_bytes().to_vec();
    frames.iter().for_each(|frame| payload.extend(frame.to_le_bytes()));
    system(0x18, 36, 2, ticks, &payload)
}
