//! Files mapped into processes and symbols in them, as recorded by record-trace (one-collect) on Linux.

use super::code_map::{CodeMap, Span};
use crate::fact::Module;
use crate::prelude::*;

/// Mappings, and symbols, that are remembered; further ones are left out and counted.
const MAX_MAPPINGS: usize = 1 << 17;
const MAX_SYMBOLS: usize = 1 << 20;
/// Bytes of their text.
const MAX_TEXT: usize = 64 << 20;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingsAction {
    /// A file is mapped.
    Mapping,
    /// The identity of the file.
    Metadata,
    /// A function in it.
    Symbol,
}

/// A file, or a part of it, in the memory of a process.
#[derive(Debug)]
pub struct Mapping {
    process: ProcessKey,
    /// Address of the first byte.
    pub start: u64,
    end: u64,
    /// Where in the file the part begins.
    pub file_offset: u64,
    /// The file.
    pub path: String,
    metadata_id: u64,
}

/// Bytes of metadata that are read, and of a text in them: each may be repeated in a row for each mapping.
const MAX_METADATA: usize = 64 << 10;
const MAX_METADATA_TEXT: usize = 4 << 10;

/// A file that is mapped, perhaps often.
#[derive(Debug, Default)]
struct Metadata {
    time_date_stamp: u32,
    pdb_age: Option<u32>,
    pdb_path: Option<String>,
    build_id: Option<String>,
    signature: Option<String>,
}

impl Metadata {
    /// Of `{"type": "ELF", "build_id": ...}` or `{"type": "PE", "name": ..., "age": ..., "signature": ...}`.
    fn of(json: &str) -> Metadata {
        let json = if json.len() <= MAX_METADATA { json } else { "" };
        let json: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
        let text = |name: &str| {
            let text = json.get(name).and_then(|value| value.as_str());
            text.filter(|text| (1..=MAX_METADATA_TEXT).contains(&text.len())).map(str::to_owned)
        };
        let number = |name: &str| {
            json.get(name).and_then(serde_json::Value::as_u64).and_then(|number| u32::try_from(number).ok())
        };
        Metadata {
            time_date_stamp: number("date_time").unwrap_or_default(),
            pdb_age: number("age"),
            pdb_path: text("name"),
            build_id: text("build_id"),
            signature: text("signature"),
        }
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
    metadata: Map<u64, Metadata>,
    text: usize,
    /// The number of mappings that did not fit.
    pub lost: u64,
}

impl Mappings {
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
    pub fn build_id(&self, mapping: &Mapping) -> Option<&str> {
        self.metadata.get(&mapping.metadata_id)?.build_id.as_deref()
    }

    /// A symbol by its index in its map: first address and name.
    pub fn symbol(&self, index: usize) -> Option<(u64, &str)> {
        self.symbols.get(index).map(|symbol| (symbol.start, symbol.name.as_str()))
    }
}

const SYSTEM: &str = "Universal.System";

impl Tracker for Mappings {
    type Action = MappingsAction;
    const EVENTS: Events<MappingsAction> = &[
        (SYSTEM, "ProcessMapping", MappingsAction::Mapping),
        (SYSTEM, "ProcessMappingMetadata", MappingsAction::Metadata),
        (SYSTEM, "ProcessSymbol", MappingsAction::Symbol),
    ];

    fn is_reference(_: MappingsAction) -> bool {
        true
    }

    fn event(&mut self, action: MappingsAction, input: &Input<'_>, _: &mut Shared, _: &mut impl FactSink) {
        let name = match action {
            MappingsAction::Mapping => "FileName",
            MappingsAction::Metadata => "SymbolMetadata",
            MappingsAction::Symbol => "Name",
        };
        let text = input.text(name);
        let too_many = match action {
            MappingsAction::Mapping => self.list.len() >= MAX_MAPPINGS,
            MappingsAction::Metadata => self.metadata.len() >= MAX_MAPPINGS,
            MappingsAction::Symbol => self.symbols.len() >= MAX_SYMBOLS,
        };
        if too_many || self.text.saturating_add(text.len()) > MAX_TEXT {
            self.lost += 1;
            return;
        }
        self.text += text.len();
        let (process, text) = (input.process(), text.to_owned());
        let (start, end) = (input.number("StartAddress"), input.number("EndAddress"));
        match action {
            MappingsAction::Mapping => self.list.push(Mapping {
                process,
                start,
                end,
                file_offset: input.number("FileOffset"),
                path: text,
                metadata_id: input.number("MetadataId"),
            }),
            MappingsAction::Metadata => {
                self.metadata.insert(input.number("Id"), Metadata::of(&text));
            }
            MappingsAction::Symbol => self.symbols.push(Symbol { process, start, end, name: text }),
        }
    }

    fn finish(&mut self, _: u64, sink: &mut impl FactSink) {
        let none = Metadata::default();
        for mapping in std::mem::take(&mut self.list) {
            let about = self.metadata.get(&mapping.metadata_id).unwrap_or(&none);
            sink.add(&Module {
                process_id: mapping.process.id,
                module_id: mapping.start,
                kind: "native",
                path: &mapping.path,
                base_address: mapping.start,
                size_bytes: mapping.end.saturating_sub(mapping.start),
                file_offset: mapping.file_offset,
                time_date_stamp: about.time_date_stamp,
                pdb_age: about.pdb_age,
                pdb_path: about.pdb_path.as_deref(),
                build_id: about.build_id.as_deref().or(about.signature.as_deref()),
                ..Module::default()
            });
        }
    }

    fn dropped(&self) -> Vec<Dropped> {
        vec![Dropped::modules(self.lost)]
    }
}

/// The last address of a symbol is a part of it, that of a mapping is not. Source: neighbours in files of record-trace.
fn symbol_span(symbol: &Symbol, index: usize) -> Option<Span> {
    Span::new(symbol.start, symbol.end.checked_sub(symbol.start)?.saturating_add(1), index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;
    use crate::tests::made_up::{Each, Given, event};

    #[derive(Default)]
    struct Bytes(usize);

    impl FactSink for Bytes {
        fn fact(&mut self, fact: Fact<'_>) {
            if let Fact::Module(rows) = fact {
                self.0 += rows.iter().map(|row| row.pdb_path.map_or(0, str::len)).sum::<usize>();
            }
        }
    }

    #[test]
    fn metadata_of_many_mappings_are_read_once() {
        let json = |name: usize, rest: usize| {
            let (name, rest) = ("n".repeat(name), "[1],".repeat(rest));
            format!(r#"{{"name": "{name}", "age": 3, "signature": "s", "more": [{rest}0]}}"#)
        };
        let about = Metadata::of(&json(9, 1));
        assert_eq!(
            (about.pdb_age, about.pdb_path.map(|name| name.len()), about.signature.as_deref()),
            (Some(3), Some(9), Some("s"))
        );
        assert!(Metadata::of(&json(MAX_METADATA_TEXT + 1, 1)).pdb_path.is_none());
        assert!(Metadata::of(&json(9, MAX_METADATA)).pdb_age.is_none());
        let mut mappings = Mappings::default();
        mappings.metadata.insert(7, Metadata::of(&json(9, 16_000)));
        let mapping = || Mapping {
            process: ProcessKey::default(),
            start: 0x1000,
            end: 0x2000,
            file_offset: 0,
            path: String::new(),
            metadata_id: 7,
        };
        // Read anew for each mapping, the metadata (64 kB of JSON) would be 25 GB of text.
        mappings.list.extend((0..400_000).map(|_| mapping()));
        let mut bytes = Bytes::default();
        mappings.finish(0, &mut bytes);
        assert_eq!(bytes.0, 3_600_000);
    }

    fn symbol(mappings: &mut Mappings) {
        let fields =
            [("StartAddress", Given::Number(16)), ("EndAddress", Given::Number(31)), ("Name", Given::Text("f"))];
        event(MappingsAction::Symbol, 1, &fields, |input| {
            mappings.event(MappingsAction::Symbol, input, &mut Shared::default(), &mut Each(|_: &Fact<'_>| {}))
        });
    }

    #[test]
    fn symbols_and_the_text_of_mappings_have_a_bound() {
        let mut mappings = Mappings { text: (64 << 20) - 1, ..Mappings::default() };
        symbol(&mut mappings);
        symbol(&mut mappings);
        assert_eq!((mappings.symbols.len(), mappings.lost), (1, 1), "64 MB of text");

        let mut mappings = Mappings::default();
        let known = || Symbol { process: ProcessKey::default(), start: 0, end: 0, name: String::new() };
        mappings.symbols.extend((1..1 << 20).map(|_| known()));
        symbol(&mut mappings);
        symbol(&mut mappings);
        assert_eq!((mappings.symbols.len(), mappings.lost), (1 << 20, 1));
    }
}
