//! Extended items between the header of an EVENT and its payload: stacks, correlation, provider traits, schemas.
//!
//! ```text
//!  u16 whole length, rounded up to 8   u16 type   u16 bit 0: another one follows   u16 bytes of data   data   padding
//! ```
//! Types: 1 related activity, 5 and 6 stack of 32- and 64-bit addresses, 11 TraceLogging schema, 12 provider traits; 3
//! session, 13 process start key and 16 container id become labels, as do 8, hardware counters, which events also have
//! as numbers. Others are passed over.
//! Source: checked on 4,033 items of real files; types other than 1, 6, 11 and 12 by the SDK's `evntcons.h` only.

use crate::bytes::{Parsed, take, u16le};
use crate::prelude::*;
use crate::reader::counters;

/// More items than this are not looked at: Windows writes one of each type at most.
const MAX_ITEMS: usize = 64;

/// The items of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Items<'a> {
    /// Related activity id; all zero when there is none.
    pub related_activity_id: Guid,
    /// Packed addresses, innermost first.
    pub stack: &'a [u8],
    /// Bytes of an address: 4 or 8, by the type of the item and not by that of the event.
    pub stack_width: u8,
    /// TraceLogging schema.
    pub schema: Option<&'a [u8]>,
    /// Provider traits.
    pub traits: Option<&'a [u8]>,
    /// Terminal session.
    pub session_id: Option<u32>,
    /// Key that distinguishes processes with the same id.
    pub process_start_key: Option<u64>,
    /// Container.
    pub container_id: Option<&'a [u8]>,
    /// Hardware counters: numbers of 8 bytes.
    pub counters: &'a [u8],
    /// Items that reach beyond the event.
    pub damaged: bool,
}

/// One item.
struct Item<'a> {
    kind: u16,
    linkage: u16,
    data: &'a [u8],
}

fn item(input: &[u8]) -> Parsed<'_, Item<'_>> {
    let mut head = (u16le("Length"), u16le("ExtType"), u16le("Linkage"), u16le("DataSize"));
    let (rest, (_, kind, linkage, size)) = head.parse(input)?;
    let (rest, data) = take(size.into(), "Data")(rest)?;
    let padding = data.len().next_multiple_of(8) - data.len();
    Ok((rest.get(padding..).unwrap_or_default(), Item { kind, linkage, data }))
}

/// Reads the items at the start of `input`; returns what follows them.
pub fn parse(input: &[u8]) -> (Items<'_>, &[u8]) {
    let mut items = Items::default();
    let mut rest = input;
    for _ in 0..MAX_ITEMS {
        let Ok((after, item)) = item(rest) else { break };
        items.add(item.kind, item.data);
        rest = after;
        if item.linkage & 1 == 0 {
            return (items, rest);
        }
    }
    items.damaged = true;
    (items, rest)
}

impl<'a> Items<'a> {
    fn add(&mut self, kind: u16, data: &'a [u8]) {
        match kind {
            1 => self.related_activity_id = data.first_chunk().map_or(Guid::NONE, |b| Guid(*b)),
            3 => self.session_id = data.first_chunk().map(|b| u32::from_le_bytes(*b)),
            // A match id, then the addresses.
            5 | 6 => {
                let width = if kind == 5 { 4 } else { 8 };
                let addresses = data.get(8..).unwrap_or_default();
                let whole = addresses.len() / width * width;
                (self.stack, self.stack_width) = (addresses.get(..whole).unwrap_or_default(), width as u8);
            }
            8 => self.counters = data.get(..data.len() / 8 * 8).unwrap_or_default(),
            11 => self.schema = Some(data),
            12 => self.traits = Some(data),
            13 => self.process_start_key = data.first_chunk().map(|b| u64::from_le_bytes(*b)),
            16 => self.container_id = Some(data),
            _ => {}
        }
    }

    /// The provider's name in its traits: u16 size, zero-terminated UTF-8.
    pub fn provider_name(&self) -> Option<&'a str> {
        let text = self.traits?.get(2..)?;
        let end = text.iter().position(|b| *b == 0)?;
        std::str::from_utf8(text.get(..end)?).ok().filter(|name| !name.is_empty())
    }

    /// Items without a column of their own, as a JSON object; empty when there are none.
    pub fn labels(&self) -> String {
        let has_ids = self.session_id.is_some() || self.process_start_key.is_some() || self.container_id.is_some();
        if !has_ids && self.counters.is_empty() {
            return String::new();
        }
        let mut object = serde_json::Map::new();
        if let Some(id) = self.session_id {
            object.insert("terminal_session_id".into(), id.into());
        }
        if let Some(key) = self.process_start_key {
            object.insert("process_start_key".into(), key.into());
        }
        if let Some(id) = self.container_id {
            object.insert("container_id".into(), String::from_utf8_lossy(id).into_owned().into());
        }
        if !self.counters.is_empty() {
            let counters: Vec<u64> = counters(self.counters).collect();
            object.insert("hardware_counters".into(), counters.into());
        }
        serde_json::Value::Object(object).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(kind: u16, link: u16, data: &[u8]) -> Vec<u8> {
        let whole = (8 + data.len()).next_multiple_of(8) as u16;
        let mut out = [whole, kind, link, data.len() as u16].map(u16::to_le_bytes).concat();
        out.extend(data);
        out.resize(usize::from(whole), 0xFF);
        out
    }

    #[test]
    fn items_are_told_apart_and_unknown_ones_passed_over() {
        let stack = [[0u8; 8], 7u64.to_le_bytes(), 9u64.to_le_bytes()].concat();
        let bytes = [
            item(6, 1, &stack),
            item(99, 1, b"abc"),
            item(12, 1, b"\x0b\0MySource\0"),
            item(13, 1, &5u64.to_le_bytes()),
            item(11, 0, b"schema"),
            b"payload".to_vec(),
        ]
        .concat();
        let (items, payload) = parse(&bytes);
        assert_eq!((payload, items.stack, items.stack_width), (b"payload".as_slice(), &stack[8..], 8));
        assert_eq!((items.provider_name(), items.schema), (Some("MySource"), Some(b"schema".as_slice())));
        assert_eq!(items.labels(), "{\"process_start_key\":5}");
        let narrow = item(5, 0, &[[0u8; 8].as_slice(), &[1, 0, 0, 0, 2, 0, 0]].concat());
        let (items, _) = parse(&narrow);
        assert_eq!((items.stack, items.stack_width), ([1, 0, 0, 0].as_slice(), 4), "a torn frame is left out");
    }

    #[test]
    fn hostile_items_end() {
        assert!(parse(&[]).0.damaged);
        assert!(parse(&[0; 7]).0.damaged);
        // Data beyond the event, and links without end.
        assert!(parse(&[8, 0, 1, 0, 1, 0, 200, 0]).0.damaged);
        let forever = item(99, 1, &[]).repeat(8000);
        assert!(parse(&forever).0.damaged);
        assert_eq!(parse(&item(12, 0, b"\x05\0ab")).0.provider_name(), None);
    }
}
