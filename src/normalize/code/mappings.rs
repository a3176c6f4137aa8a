//! Files mapped into processes and symbols in them, as record-trace (one-collect) tells them on Linux.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::code_map::{CodeMap, Span};
use crate::normalize::fact::{FactSink, Module};
use crate::normalize::tracker::{self, Hears, Input};
use crate::reader::ProcessKey;

/// Mappings, and symbols, that are remembered; further ones are left out and counted.
const MAX_MAPPINGS: usize = 1 << 17;
const MAX_SYMBOLS: usize = 1 << 20;
/// Bytes of their text.
const MAX_TEXT: usize = 64 << 20;

/// What an event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A file is mapped.
    Mapping,
    /// What identifies the file.
    Metadata,
    /// A function in it.
    Symbol,
}

/// The events, which each recording describes itself.
pub const HEARS: &[Hears<Action>] = &[Hears {
    provider: "Universal.System",
    events: &[
        ("ProcessMapping", Action::Mapping),
        ("ProcessMappingMetadata", Action::Metadata),
        ("ProcessSymbol", Action::Symbol),
    ],
}];

impl tracker::Action for Action {}

/// A file, or a part of it, in the memory of a process.
#[derive(Debug)]
pub struct Mapping {
    process: ProcessKey,
    start: u64,
    end: u64,
    /// Where in the file the part begins.
    pub file_offset: u64,
    /// The file.
    pub path: String,
    metadata_id: u64,
}

impl Mapping {
    /// Address of the first byte.
    pub fn start(&self) -> u64 {
        self.start
    }
}

#[derive(Debug)]
struct Symbol {
    process: ProcessKey,
    start: u64,
    end: u64,
    name: String,
}

/// Mappings and symbols of a recording.
#[derive(Debug, Default)]
pub struct Mappings {
    list: Vec<Mapping>,
    symbols: Vec<Symbol>,
    /// JSON texts by their ids.
    metadata: HashMap<u64, String, RandomState>,
    text: usize,
    /// How many did not fit.
    pub lost: u64,
}

impl Mappings {
    /// An event of a mapping.
    pub fn event(&mut self, action: Action, input: &Input<'_>) {
        let name = match action {
            Action::Mapping => "FileName",
            Action::Metadata => "SymbolMetadata",
            Action::Symbol => "Name",
        };
        let text = input.text(name);
        let too_many = match action {
            Action::Mapping => self.list.len() >= MAX_MAPPINGS,
            Action::Metadata => self.metadata.len() >= MAX_MAPPINGS,
            Action::Symbol => self.symbols.len() >= MAX_SYMBOLS,
        };
        if too_many || self.text.saturating_add(text.len()) > MAX_TEXT {
            self.lost += 1;
            return;
        }
        self.text += text.len();
        let (process, text) = (input.process(), text.to_owned());
        let (start, end) = (input.number("StartAddress"), input.number("EndAddress"));
        match action {
            Action::Mapping => self.list.push(Mapping {
                process,
                start,
                end,
                file_offset: input.number("FileOffset"),
                path: text,
                metadata_id: input.number("MetadataId"),
            }),
            Action::Metadata => {
                self.metadata.insert(input.number("Id"), text);
            }
            Action::Symbol => self.symbols.push(Symbol { process, start, end, name: text }),
        }
    }

    /// Where the files lie.
    pub fn map(&self) -> CodeMap {
        let spans = self.list.iter().enumerate();
        CodeMap::new(
            spans.filter_map(|(index, m)| Some((m.process, Span::new(m.start, m.end.saturating_sub(m.start), index)?))),
        )
    }

    /// Where the functions lie.
    pub fn symbol_map(&self) -> CodeMap {
        let spans = self.symbols.iter().enumerate();
        CodeMap::new(spans.filter_map(|(index, s)| Some((s.process, symbol_span(s, index)?))))
    }

    /// A mapping by its index in the map.
    pub fn mapping(&self, index: usize) -> Option<&Mapping> {
        self.list.get(index)
    }

    /// The build id of a mapping's file.
    #[cfg(feature = "native-symbols")]
    pub fn build_id(&self, mapping: &Mapping) -> Option<String> {
        let json: serde_json::Value = serde_json::from_str(self.metadata.get(&mapping.metadata_id)?).ok()?;
        Some(json.get("build_id")?.as_str()?.to_owned())
    }

    /// A symbol by its index in its map: first address and name.
    pub fn symbol(&self, index: usize) -> Option<(u64, &str)> {
        self.symbols.get(index).map(|symbol| (symbol.start, symbol.name.as_str()))
    }

    /// The end of the recording: mappings are modules.
    pub fn finish(&mut self, sink: &mut impl FactSink) {
        for mapping in std::mem::take(&mut self.list) {
            let json = self.metadata.get(&mapping.metadata_id).map(String::as_str).unwrap_or_default();
            // {"type": "ELF", "build_id": ...} or {"type": "PE", "name": ..., "age": ..., "signature": ...}
            let json: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
            let text = |name: &str| json.get(name).and_then(|value| value.as_str()).filter(|text| !text.is_empty());
            let number = |name: &str| {
                json.get(name).and_then(serde_json::Value::as_u64).and_then(|number| u32::try_from(number).ok())
            };
            sink.add(&Module {
                process_id: mapping.process.id,
                module_id: mapping.start,
                kind: "native",
                path: &mapping.path,
                base_address: mapping.start,
                size_bytes: mapping.end.saturating_sub(mapping.start),
                file_offset: mapping.file_offset,
                time_date_stamp: number("date_time").unwrap_or_default(),
                pdb_age: number("age"),
                pdb_path: text("name"),
                build_id: text("build_id").or(text("signature")),
                ..Module::default()
            });
        }
    }
}

/// The last address of a symbol is a part of it, that of a mapping is not. Source: neighbours in files of record-trace.
fn symbol_span(symbol: &Symbol, index: usize) -> Option<Span> {
    Span::new(symbol.start, symbol.end.checked_sub(symbol.start)?.saturating_add(1), index)
}
