//! Composes recordings block by block, in V4 and V6, so that a test reads as the story of a recording.

use tracequet::trace::guid::Guid;

/// Which form a [`Writer`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    V4,
    V6,
}

/// A kind of event without described fields.
#[derive(Clone, Copy, Debug)]
pub struct Kind<'n> {
    pub id: u32,
    pub provider: &'n str,
    pub event_id: u32,
    pub version: u8,
    pub name: &'n str,
}

/// The type of a field that is described.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    Byte,
    /// Bytes with their number before them.
    Bytes,
    EmptyObject,
    Int,
    Long,
    /// Numbers of eight bytes with their number before them.
    Longs,
    String,
    /// An unsigned LEB128 number (V6 only).
    VarUint,
}

/// One event as it is to be written. In V6 threads are indices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub metadata_id: u32,
    pub sequence: u32,
    pub capture_thread: u64,
    pub thread: u64,
    pub processor: u32,
    pub stack_id: u32,
    pub ticks: i64,
    pub activity: Guid,
    pub related: Guid,
    pub label_list: u32,
    pub sorted: bool,
    pub payload: Vec<u8>,
}

/// A recording in the making.
#[derive(Clone, Debug)]
pub struct Writer {
    form: Form,
    /// What is written so far.
    pub bytes: Vec<u8>,
}

/// The clock of every recording that is written: it starts at tick 0, and a tick is 100 ns.
pub const FREQUENCY: i64 = 10_000_000;

impl Writer {
    /// Begins a recording: magic and header.
    pub fn new(form: Form) -> Writer {
        Writer::with_pointers(form, 8)
    }

    /// Begins the recording of a process whose pointers have this many bytes.
    pub fn with_pointers(form: Form, pointer_size: u32) -> Writer {
        let mut header = Vec::new();
        for part in [2026u16, 11, 5, 20, 18, 12, 29, 912] {
            header.extend(part.to_le_bytes());
        }
        header.extend(0i64.to_le_bytes());
        header.extend(FREQUENCY.to_le_bytes());
        header.extend(pointer_size.to_le_bytes());
        let mut writer = Writer { form, bytes: b"Nettrace".to_vec() };
        match form {
            Form::V4 => {
                writer.bytes.extend(b"\x14\0\0\0!FastSerialization.1");
                for number in [77u32, 2, 1_000_000] {
                    header.extend(number.to_le_bytes());
                }
                writer.begin_object("Trace", 4, 4);
                writer.bytes.extend(header);
                writer.bytes.push(6);
            }
            Form::V6 => {
                writer.bytes.extend([0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
                header.extend(1u32.to_le_bytes());
                string(&mut header, "ProcessId");
                string(&mut header, "77");
                writer.block("", 1, &header);
            }
        }
        writer
    }

    fn begin_object(&mut self, name: &str, version: u32, min_reader: u32) {
        self.bytes.extend([5, 5, 1]);
        for number in [version, min_reader, name.len() as u32] {
            self.bytes.extend(number.to_le_bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(6);
    }

    /// Any block: by its name in V4, its number in V6.
    pub fn block(&mut self, name: &str, kind: u8, content: &[u8]) -> &mut Writer {
        match self.form {
            Form::V4 => {
                self.begin_object(name, 2, 2);
                self.bytes.extend((content.len() as u32).to_le_bytes());
                while !self.bytes.len().is_multiple_of(4) {
                    self.bytes.push(0);
                }
                self.bytes.extend(content);
                self.bytes.push(6);
            }
            Form::V6 => {
                self.bytes.extend((content.len() as u32 | u32::from(kind) << 24).to_le_bytes());
                self.bytes.extend(content);
            }
        }
        self
    }

    /// Describes kinds of events.
    pub fn metadata(&mut self, kinds: &[Kind<'_>]) -> &mut Writer {
        let mut content = Vec::new();
        if self.form == Form::V6 {
            content.extend([0, 0]);
            for kind in kinds {
                let mut row = Vec::new();
                varuint(&mut row, u64::from(kind.id));
                string(&mut row, kind.provider);
                varuint(&mut row, u64::from(kind.event_id));
                string(&mut row, kind.name);
                // No fields; the version is optional metadata.
                row.extend([0, 0, 2, 0, 9, kind.version]);
                content.extend((row.len() as u16).to_le_bytes());
                content.extend(row);
            }
            return self.block("", 3, &content);
        }
        content.extend(block_header());
        let mut before = Row::default();
        for kind in kinds {
            let mut payload = kind.id.to_le_bytes().to_vec();
            utf16(&mut payload, kind.provider);
            payload.extend(kind.event_id.to_le_bytes());
            utf16(&mut payload, kind.name);
            payload.extend([0; 8]);
            payload.extend(u32::from(kind.version).to_le_bytes());
            payload.extend([0; 4 + 4]);
            let row = Row { payload, ..Row::default() };
            self.row(&mut content, &mut before, &row);
        }
        self.block("MetadataBlock", 3, &content)
    }

    /// Describes a kind of event with its fields.
    pub fn described(&mut self, kind: Kind<'_>, fields: &[(&str, Type)]) -> &mut Writer {
        if self.form == Form::V6 {
            let mut row = Vec::new();
            varuint(&mut row, u64::from(kind.id));
            string(&mut row, kind.provider);
            varuint(&mut row, u64::from(kind.event_id));
            string(&mut row, kind.name);
            row.extend((fields.len() as u16).to_le_bytes());
            for (name, kind) in fields {
                let mut field = Vec::new();
                string(&mut field, name);
                field.extend(match kind {
                    Type::Byte => vec![6],
                    Type::Bytes => vec![19, 6],
                    Type::EmptyObject => vec![1, 0, 0],
                    Type::Int => vec![9],
                    Type::Long => vec![12],
                    Type::Longs => vec![19, 12],
                    Type::String => vec![18],
                    Type::VarUint => vec![21],
                });
                row.extend((field.len() as u16).to_le_bytes());
                row.extend(field);
            }
            row.extend([2, 0, 9, kind.version]);
            let mut content = vec![0, 0];
            content.extend((row.len() as u16).to_le_bytes());
            content.extend(row);
            return self.block("", 3, &content);
        }
        let mut payload = kind.id.to_le_bytes().to_vec();
        utf16(&mut payload, kind.provider);
        payload.extend(kind.event_id.to_le_bytes());
        utf16(&mut payload, kind.name);
        payload.extend([0; 8]);
        payload.extend(u32::from(kind.version).to_le_bytes());
        payload.extend([0; 4]);
        payload.extend((fields.len() as u32).to_le_bytes());
        for (name, kind) in fields {
            payload.extend(match kind {
                Type::Byte => vec![6, 0, 0, 0],
                Type::Int => vec![9, 0, 0, 0],
                Type::Bytes | Type::Longs | Type::VarUint => panic!("V4 describes no {kind:?}"),
                Type::EmptyObject => vec![1, 0, 0, 0, 0, 0, 0, 0],
                Type::Long => vec![12, 0, 0, 0],
                Type::String => vec![18, 0, 0, 0],
            });
            utf16(&mut payload, name);
        }
        let mut content = block_header().to_vec();
        self.row(&mut content, &mut Row::default(), &Row { payload, ..Row::default() });
        self.block("MetadataBlock", 3, &content)
    }

    /// Stacks with ids from `first` on.
    pub fn stacks(&mut self, first: u32, stacks: &[Vec<u64>]) -> &mut Writer {
        let mut content = first.to_le_bytes().to_vec();
        content.extend((stacks.len() as u32).to_le_bytes());
        for stack in stacks {
            content.extend((stack.len() as u32 * 8).to_le_bytes());
            stack.iter().for_each(|address| content.extend(address.to_le_bytes()));
        }
        self.block("StackBlock", 5, &content)
    }

    /// Threads by index, process and thread id (V6 only; V4 has none to declare).
    pub fn threads(&mut self, threads: &[(u64, u64, u64)]) -> &mut Writer {
        let mut content = Vec::new();
        for (index, process, thread) in threads {
            let mut row = Vec::new();
            varuint(&mut row, *index);
            row.push(2);
            varuint(&mut row, *process);
            row.push(3);
            varuint(&mut row, *thread);
            content.extend((row.len() as u16).to_le_bytes());
            content.extend(row);
        }
        if self.form == Form::V6 { self.block("", 6, &content) } else { self }
    }

    /// Label lists with ids from `first` on, each an activity id and a related one (V6 only).
    pub fn labels(&mut self, first: u32, lists: &[(Guid, Guid)]) -> &mut Writer {
        let mut content = first.to_le_bytes().to_vec();
        content.extend((lists.len() as u32).to_le_bytes());
        for (activity, related) in lists {
            content.push(1);
            content.extend(activity.0);
            content.push(0x82);
            content.extend(related.0);
        }
        if self.form == Form::V6 { self.block("", 8, &content) } else { self }
    }

    /// A block of events with compressed headers.
    pub fn events(&mut self, rows: &[Row]) -> &mut Writer {
        let mut content = block_header().to_vec();
        let mut before = Row::default();
        for row in rows {
            self.row(&mut content, &mut before, row);
        }
        self.block("EventBlock", 2, &content)
    }

    /// A sequence point with the last sequence number of each thread.
    pub fn sequence_point(&mut self, ticks: i64, threads: &[(u64, u32)]) -> &mut Writer {
        let mut content = ticks.to_le_bytes().to_vec();
        if self.form == Form::V6 {
            content.extend([0; 4]);
        }
        content.extend((threads.len() as u32).to_le_bytes());
        for (thread, sequence) in threads {
            match self.form {
                Form::V4 => {
                    content.extend(thread.to_le_bytes());
                    content.extend(sequence.to_le_bytes());
                }
                Form::V6 => {
                    varuint(&mut content, *thread);
                    varuint(&mut content, u64::from(*sequence));
                }
            }
        }
        self.block("SPBlock", 4, &content)
    }

    /// The end mark. Gives the whole recording.
    pub fn end(&mut self) -> Vec<u8> {
        match self.form {
            Form::V4 => self.bytes.push(1),
            Form::V6 => self.bytes.extend([0; 4]),
        }
        self.bytes.clone()
    }

    /// One event with a compressed header: the difference to the one before.
    fn row(&self, out: &mut Vec<u8>, before: &mut Row, row: &Row) {
        let mut flags = 0;
        let mut body = Vec::new();
        if row.metadata_id != before.metadata_id {
            flags |= 1;
            varuint(&mut body, u64::from(row.metadata_id));
        }
        let counts = self.form == Form::V6 || row.metadata_id != 0;
        let difference = row.sequence.wrapping_sub(before.sequence).wrapping_sub(u32::from(counts));
        if difference != 0 || (row.capture_thread, row.processor) != (before.capture_thread, before.processor) {
            flags |= 2;
            varuint(&mut body, u64::from(difference));
            varuint(&mut body, row.capture_thread);
            varuint(&mut body, u64::from(row.processor));
        }
        if row.thread != before.thread {
            flags |= 4;
            varuint(&mut body, row.thread);
        }
        if row.stack_id != before.stack_id {
            flags |= 8;
            varuint(&mut body, u64::from(row.stack_id));
        }
        varuint(&mut body, row.ticks.wrapping_sub(before.ticks) as u64);
        if self.form == Form::V6 {
            if row.label_list != before.label_list {
                flags |= 16;
                varuint(&mut body, u64::from(row.label_list));
            }
        } else {
            if row.activity != before.activity {
                flags |= 16;
                body.extend(row.activity.0);
            }
            if row.related != before.related {
                flags |= 32;
                body.extend(row.related.0);
            }
        }
        if row.sorted {
            flags |= 64;
        }
        if row.payload.len() != before.payload.len() {
            flags |= 128;
            varuint(&mut body, row.payload.len() as u64);
        }
        out.push(flags);
        out.extend(body);
        out.extend(&row.payload);
        *before = row.clone();
    }
}

/// Header of event and metadata blocks: compressed, without times.
fn block_header() -> [u8; 20] {
    let mut header = [0; 20];
    header[0] = 20;
    header[2] = 1;
    header
}

/// Appends an unsigned LEB128 number.
pub fn varuint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn string(out: &mut Vec<u8>, text: &str) {
    varuint(out, text.len() as u64);
    out.extend(text.bytes());
}

/// A text as UTF-16 with a zero behind it.
pub fn utf16(out: &mut Vec<u8>, text: &str) {
    text.encode_utf16().chain([0]).for_each(|unit| out.extend(unit.to_le_bytes()));
}
