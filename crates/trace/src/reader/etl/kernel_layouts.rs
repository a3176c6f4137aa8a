//! Where the fields lie in kernel payloads that the reader itself needs: ids, names, stacks. The layouts are those of
//! the catalogue (`schemas/events/kernel-*.toml`), compiled once.

use std::sync::OnceLock;

use super::header::{self, Head};
use crate::catalog;
use crate::catalog::syntax::{FieldLayout, LayoutField, SimpleType};
use crate::guid::Guid;
use crate::utf16;

/// The provider of what the merge step adds about images. Headers are those of the events that it describes further.
pub const IMAGE_ID: Guid = Guid::constant("b3e675d7-2554-4f18-830b-2762732560de");

/// Kernel groups have 5 bits.
const GROUPS: usize = 32;
const OPCODES: usize = 256;

/// Offsets of fields in the payload of one layout, for one pointer size. A field behind one of varying size has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offsets {
    /// The process that the event is about.
    pub process_id: Option<u16>,
    /// The thread that the event is about; of a context switch the thread that runs from here on.
    pub thread_id: Option<u16>,
    /// Of a stack the time of its event.
    pub target_time: Option<u16>,
    /// Of a stack that is defined elsewhere, and of its definition.
    pub stack_key: Option<u16>,
    /// The addresses of a stack.
    pub addresses: Option<u16>,
}

/// A layout of the catalogue.
#[derive(Debug)]
pub struct KernelLayout {
    version: u32,
    fields: Vec<LayoutField<'static>>,
    /// For pointers of 4 and of 8 bytes.
    offsets: [Offsets; 2],
}

/// The layouts of one kind of event, by version.
type Versions = Vec<KernelLayout>;

/// The layouts of all kernel events in the catalogue.
#[derive(Debug)]
pub struct KernelLayouts {
    kinds: Vec<Versions>,
    /// By group and opcode the number of the kind and 1; 0 when the catalogue has no such event.
    by_hook: Vec<u16>,
    /// Class, opcode and number of the kind, for events with a header that names the class.
    by_class: Vec<(Guid, u32, u16)>,
}

impl KernelLayouts {
    /// The layouts, compiled at the first call.
    pub fn get() -> &'static KernelLayouts {
        static LAYOUTS: OnceLock<KernelLayouts> = OnceLock::new();
        LAYOUTS.get_or_init(KernelLayouts::compile)
    }

    fn compile() -> KernelLayouts {
        let mut layouts = KernelLayouts { kinds: Vec::new(), by_hook: vec![0; GROUPS * OPCODES], by_class: Vec::new() };
        for (group, class) in header::CLASSES {
            layouts.add(class, Some(group));
        }
        layouts.add(IMAGE_ID, None);
        layouts
    }

    /// Adds the events of a class.
    fn add(&mut self, class: Guid, group: Option<u8>) {
        let provider = catalog::name_by_guid(class).and_then(catalog::provider).and_then(|p| p.as_ref().ok());
        let Some(provider) = provider else { return };
        for layouts in provider.events.chunk_by(|a, b| a.id == b.id) {
            let Some(id) = layouts.first().map(|layout| layout.id) else { continue };
            let versions = layouts.iter().filter_map(|layout| {
                let fields = layout.parsed_fields().ok()?;
                let offsets = [4, 8].map(|pointer_size| Offsets::of(&fields, pointer_size));
                Some(KernelLayout { version: layout.version, fields, offsets })
            });
            let number = self.kinds.len() as u16;
            self.kinds.push(versions.collect());
            self.by_class.push((class, id, number));
            let opcode = id as u8;
            // One event is filed under another group than its class says.
            let group = if header::class_of(0x03, opcode) == Some(class) { Some(0x03) } else { group };
            if let Some(group) = group
                && let Some(place) = self.by_hook.get_mut(usize::from(group) * OPCODES + usize::from(opcode))
            {
                *place = number + 1;
            }
        }
    }

    /// The layout of a kernel event (headers SYSTEM and PERFINFO).
    pub fn of_kernel(&self, head: &Head) -> Option<&KernelLayout> {
        let hook = usize::from(head.group) * OPCODES + usize::from(head.opcode);
        let number = self.by_hook.get(hook)?.checked_sub(1)?;
        self.version(number, head.version)
    }

    /// The layout of an event whose header names the class.
    pub fn of_class(&self, class: Guid, opcode: u8, version: u16) -> Option<&KernelLayout> {
        let kind = self.by_class.iter().find(|(known, id, _)| *known == class && *id == u32::from(opcode))?;
        self.version(kind.2, version)
    }

    /// The layout of this version, or else of the highest below it, since versions append.
    fn version(&self, number: u16, version: u16) -> Option<&KernelLayout> {
        let versions = self.kinds.get(usize::from(number))?;
        versions.iter().rfind(|layout| layout.version <= u32::from(version))
    }
}

impl Offsets {
    fn of(fields: &[LayoutField<'_>], pointer_size: u8) -> Offsets {
        let (mut offsets, mut at) = (Offsets::default(), 0u16);
        for field in fields {
            match field.name {
                "ProcessId" => offsets.process_id = Some(at),
                "ThreadId" | "NewThreadId" | "IssuingThreadId" => offsets.thread_id = Some(at),
                "TargetTimeStamp" => offsets.target_time = Some(at),
                "StackKey" => offsets.stack_key = Some(at),
                "Addresses" => offsets.addresses = Some(at),
                _ => {}
            }
            let FieldLayout::Simple(simple) = &field.layout else { break };
            let Some(size) = simple.size(pointer_size) else { break };
            at += size as u16;
        }
        offsets
    }
}

impl KernelLayout {
    /// Offsets in payloads of processes with pointers of `pointer_size` bytes.
    pub fn offsets(&self, pointer_size: u8) -> &Offsets {
        let [narrow, wide] = &self.offsets;
        if pointer_size == 4 { narrow } else { wide }
    }

    /// The fields of a payload with their bytes, text without its terminator. Ends in front of the first field that is
    /// not whole.
    pub fn fields<'p>(&self, payload: &'p [u8], pointer_size: u8) -> impl Iterator<Item = (&'static str, &'p [u8])> {
        let mut rest = payload;
        self.fields.iter().map_while(move |field| {
            let FieldLayout::Simple(simple) = &field.layout else { return None };
            let (bytes, after) = split_field(*simple, rest, pointer_size)?;
            rest = after;
            Some((field.name, bytes))
        })
    }
}

/// The bytes of a field, and what follows it.
fn split_field(simple: SimpleType, input: &[u8], pointer_size: u8) -> Option<(&[u8], &[u8])> {
    if let Some(size) = simple.size(pointer_size) {
        return input.split_at_checked(size);
    }
    match simple {
        SimpleType::TokenSid => match input.split_first_chunk::<4>() {
            Some(([0, 0, 0, 0], _)) => input.split_at_checked(4),
            _ => {
                let parts = *input.get(2 * usize::from(pointer_size) + 1)?;
                input.split_at_checked(2 * usize::from(pointer_size) + 8 + 4 * usize::from(parts))
            }
        },
        SimpleType::AnsiZ => {
            let end = input.iter().position(|byte| *byte == 0)?;
            Some((input.get(..end)?, input.get(end + 1..)?))
        }
        _ => match utf16::end(input) {
            Some(end) => Some((input.get(..end)?, input.get(end + 2..)?)),
            None if simple == SimpleType::Utf16Tail => Some((input.get(..input.len() / 2 * 2)?, &[])),
            None => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(group: u8, opcode: u8, version: u16) -> Head {
        let bytes = [version as u8, 0, 2, 0xC0, 0x20, 0, opcode, group];
        let bytes = [bytes.as_slice(), &[0; 0x18]].concat();
        header::parse(&bytes).unwrap()
    }

    #[test]
    fn offsets_follow_the_catalogue_and_the_pointer_size() {
        let layouts = KernelLayouts::get();
        let of = |group, opcode, version, pointer_size| {
            let layout = layouts.of_kernel(&kernel(group, opcode, version)).unwrap();
            *layout.offsets(pointer_size)
        };
        let ids = |offsets: Offsets| (offsets.process_id, offsets.thread_id);
        assert_eq!(ids(of(0x03, 1, 3, 8)), (Some(8), None), "the start of a process");
        assert_eq!(ids(of(0x03, 1, 3, 4)), (Some(4), None));
        assert_eq!(ids(of(0x03, 10, 2, 8)), (Some(16), None), "the load of an image");
        assert_eq!(ids(of(0x0F, 46, 2, 4)), (None, Some(4)), "a sample");
        assert_eq!(ids(of(0x05, 36, 2, 8)), (None, Some(0)), "the thread that runs from here on");
        assert_eq!(ids(of(0x02, 32, 2, 8)), (None, Some(32)), "a hard fault");
        assert_eq!(of(0x18, 37, 2, 8).stack_key, Some(16));
        assert_eq!((of(0x18, 32, 2, 8).target_time, of(0x18, 32, 2, 8).addresses), (Some(0), Some(16)));
        assert_eq!(of(0x18, 35, 2, 4).addresses, Some(4));
    }

    #[test]
    fn versions_and_classes_choose_the_layout() {
        let layouts = KernelLayouts::get();
        assert!(layouts.of_kernel(&kernel(0x03, 1, 1)).is_none(), "older than the oldest layout");
        assert_eq!(layouts.of_kernel(&kernel(0x03, 1, 9)).map(|l| l.version), Some(5));
        assert!(layouts.of_kernel(&kernel(0xFF, 0xFF, 2)).is_none());
        let process = Guid::constant("3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c");
        assert_eq!(layouts.of_class(process, 1, 4).map(|l| l.version), Some(4));
        assert!(layouts.of_class(Guid::NONE, 1, 4).is_none());
    }

    #[test]
    fn fields_end_in_front_of_what_is_not_whole() {
        let layout = KernelLayouts::get().of_kernel(&kernel(0x03, 1, 2)).unwrap();
        let sid = [[7; 8].as_slice(), &[1, 2, 0, 0, 0, 0, 0, 5, 1, 0, 0, 0, 2, 0, 0, 0]].concat();
        let payload = [[7; 20].as_slice(), &sid, b"a.exe\0", b"a\0 \0b\0\0\0"].concat();
        let fields: Vec<_> = layout.fields(&payload, 4).collect();
        assert_eq!(fields.len(), 8);
        assert_eq!(fields[6..], [("ImageFileName", b"a.exe".as_slice()), ("CommandLine", b"a\0 \0b\0".as_slice())]);
        for length in 0..payload.len() {
            assert!(layout.fields(&payload[..length], 4).count() < 8, "{length}");
        }
        let none = [[7; 20].as_slice(), &[0; 4], b"\0", b"\0\0"].concat();
        assert_eq!(layout.fields(&none, 4).count(), 8, "without a security identifier");
    }
}
