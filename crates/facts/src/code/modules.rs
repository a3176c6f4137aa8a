//! Files that the loader mapped into processes, with address and time.

use super::code_map::{CodeMap, Span};
use crate::fact::Module;
use crate::listed::{Lifecycle, Listed, Timed};
use crate::prelude::*;

/// Events that name symbols. A module that is listed at the start and at the end has each twice; those of .NET have
/// another two.
const MAX_PDBS: usize = 1 << 19;

/// Bytes of their paths, at most.
const MAX_TEXT: usize = 32 << 20;

/// The meaning of an event about a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModulesAction {
    /// A module is loaded, unloaded, or listed by a rundown.
    Module(Lifecycle),
    /// Which symbols belong to it.
    Symbols,
    /// Which symbols belong to its IL.
    IlSymbols,
    /// An entry of its debug directory.
    DebugEntry,
}

/// The minor version of a debug entry of a portable PDB: `PM`. Source: the .NET runtime's PE-COFF specification.
const PORTABLE: u64 = 0x504D;

/// The symbols of a module.
#[derive(Debug)]
pub struct Pdb {
    /// Their id.
    pub guid: Guid,
    /// The number of times that the symbols were written.
    pub age: Option<u32>,
    /// Their path when the module was built.
    pub path: Option<String>,
}

/// The symbols of a module as an event names them.
#[derive(Debug)]
enum Named {
    Symbols(Pdb),
    IlSymbols(Pdb),
    /// Symbols in a portable PDB with this stamp.
    Portable(u32),
}

/// The symbols of a module, as far as they are known.
#[derive(Clone, Copy, Debug, Default)]
struct Symbols<'m> {
    own: Option<&'m Pdb>,
    il: Option<&'m Pdb>,
    portable_stamp: Option<u32>,
}

/// A module: its row, but for the path.
#[derive(Debug)]
struct Known {
    row: Module<'static>,
    process: ProcessKey,
    path: String,
    /// From when on it is known.
    first_ns: i64,
}

/// The modules of a recording, in the order of first sight.
#[derive(Default)]
pub struct Modules {
    list: Listed<Known>,
    /// The events that name symbols, by process id and base address, with their times: the merge step writes them with
    /// the time of an event of the image, before or after it.
    named: Map<(u64, u64), Vec<(i64, Named)>>,
    /// The number of names.
    named_count: usize,
    /// Bytes of the paths of symbols.
    text: usize,
}

impl Modules {
    /// An event that says something of the symbols of a module.
    fn named(&mut self, action: ModulesAction, input: &Input<'_>) {
        let named = match action {
            ModulesAction::DebugEntry if input.number("MinorVersion") != PORTABLE => None,
            ModulesAction::DebugEntry => input.fields.small("TimeDateStamp").map(Named::Portable),
            _ => input.fields.get("PdbGuid").as_guid().map(|guid| {
                let path = input.fields.text("PdbName").map(str::to_owned);
                let pdb = Pdb { guid, age: input.fields.small("Age"), path };
                if action == ModulesAction::IlSymbols { Named::IlSymbols(pdb) } else { Named::Symbols(pdb) }
            }),
        };
        if let Some(named) = named
            && self.named_count < MAX_PDBS
            && self.text <= MAX_TEXT
        {
            if let Named::Symbols(Pdb { path: Some(path), .. }) | Named::IlSymbols(Pdb { path: Some(path), .. }) =
                &named
            {
                self.text += path.len();
            }
            let place = (input.number("ProcessId"), input.number("ImageBase"));
            self.named_count += 1;
            self.named.entry(place).or_default().push((input.ts_ns(), named));
        }
    }

    /// Where the modules lie.
    pub fn map(&self) -> CodeMap {
        let spans = self.list.all().iter().enumerate().filter_map(|(index, Timed { item, begun_ns, ended_ns })| {
            let span = Span::new(item.row.base_address, item.row.size_bytes, index)?;
            let (from_ns, until_ns) = (begun_ns.unwrap_or(i64::MIN), ended_ns.unwrap_or(i64::MAX));
            Some((item.process, Span { from_ns, until_ns, ..span }))
        });
        CodeMap::new(spans)
    }

    /// A module by its index in the map: base address and path.
    pub fn module(&self, index: usize) -> Option<(u64, &str)> {
        self.list.all().get(index).map(|module| (module.item.row.base_address, module.item.path.as_str()))
    }

    /// The symbols of each module, in the order of the map's indices.
    pub fn pdbs(&self) -> Vec<Option<&Pdb>> {
        self.symbols().into_iter().map(|symbols| symbols.own).collect()
    }

    /// The symbols of the IL of modules that are portable, or may be: process, path, and what identifies them.
    pub fn of_il(&self) -> Vec<(ProcessKey, &str, &Pdb)> {
        let known = self.list.each().zip(self.symbols()).filter_map(|(module, symbols)| {
            let own = symbols.own.filter(|_| symbols.portable_stamp.is_some());
            Some((module.process, module.path.as_str(), symbols.il.or(own)?))
        });
        known.collect()
    }

    fn symbols(&self) -> Vec<Symbols<'_>> {
        // When modules appear in each place, in the order of time.
        let mut places: Map<(u64, u64), Vec<i64>> = Map::default();
        for Known { row, first_ns, .. } in self.list.each() {
            places.entry((row.process_id, row.base_address)).or_default().push(*first_ns);
        }
        // Live events may come late.
        places.values_mut().for_each(|starts| starts.sort_unstable());
        let sorted = self.named.iter().map(|(place, named)| {
            let mut named: Vec<&(i64, Named)> = named.iter().collect();
            named.sort_by_key(|(ts_ns, _)| *ts_ns);
            (*place, named)
        });
        let named: Map<(u64, u64), Vec<&(i64, Named)>> = sorted.collect();
        let of = |Timed { item: Known { row, first_ns, .. }, ended_ns, .. }: &Timed<Known>| {
            let place = (row.process_id, row.base_address);
            let named = named.get(&place).map(Vec::as_slice).unwrap_or_default();
            let (from, until) = match places.get(&place).map(Vec::as_slice).unwrap_or_default() {
                [_] => (i64::MIN, i64::MAX),
                // Of several modules in the same place, one after the other, the one that was there at that time.
                starts => {
                    let next = starts.get(starts.partition_point(|start| *start <= *first_ns));
                    (*first_ns, ended_ns.unwrap_or(i64::MAX).min(next.map_or(i64::MAX, |next| next - 1)))
                }
            };
            let mut symbols = Symbols::default();
            for (_, said) in named.iter().filter(|(ts_ns, _)| (from..=until).contains(ts_ns)) {
                match said {
                    Named::Symbols(pdb) => symbols.own = Some(pdb),
                    Named::IlSymbols(pdb) => symbols.il = Some(pdb),
                    Named::Portable(stamp) => symbols.portable_stamp = Some(*stamp),
                }
            }
            symbols
        };
        self.list.all().iter().map(of).collect()
    }
}

const IMAGE: &str = "Windows-Kernel-Image";
const IMAGE_ID: &str = "KernelTraceControl-ImageId";

impl Tracker for Modules {
    type Action = ModulesAction;
    const EVENTS: Events<ModulesAction> = &[
        (IMAGE, "Load", ModulesAction::Module(Lifecycle::Begin)),
        (IMAGE, "Unload", ModulesAction::Module(Lifecycle::End)),
        (IMAGE, "DCStart", ModulesAction::Module(Lifecycle::Rundown)),
        (IMAGE, "DCEnd", ModulesAction::Module(Lifecycle::Rundown)),
        (IMAGE_ID, "PdbId", ModulesAction::Symbols),
        (IMAGE_ID, "ILPdbId", ModulesAction::IlSymbols),
        (IMAGE_ID, "DebugEntry", ModulesAction::DebugEntry),
    ];

    fn is_reference(_: ModulesAction) -> bool {
        true
    }

    fn event(&mut self, action: ModulesAction, input: &Input<'_>, _: &mut Shared, _: &mut impl FactSink) {
        let ModulesAction::Module(step) = action else { return self.named(action, input) };
        let (base_address, path, first_ns) = (input.number("ImageBase"), input.text("FileName"), input.ts_ns());
        let id = (input.process(), base_address);
        let new = || Known {
            row: Module {
                module_id: base_address,
                kind: "native",
                base_address,
                size_bytes: input.number("ImageSize"),
                time_date_stamp: input.fields.small("TimeDateStamp").unwrap_or_default(),
                ..input.row()
            },
            process: id.0,
            path: path.to_owned(),
            first_ns,
        };
        self.list.note(step, (id, first_ns), |_| true, path.len(), new);
        if step == Lifecycle::End {
            self.list.gone(id);
        }
    }

    fn finish(&mut self, _: u64, sink: &mut impl FactSink) {
        for (Timed { item: Known { row, path, .. }, begun_ns, ended_ns }, symbols) in
            self.list.all().iter().zip(self.symbols())
        {
            let (load_ts_ns, unload_ts_ns) = (*begun_ns, *ended_ns);
            let stamp = symbols.portable_stamp;
            let mut module = Module { path, load_ts_ns, unload_ts_ns, portable_pdb_stamp: stamp, ..*row };
            if let Some(pdb) = symbols.own {
                (module.pdb_guid, module.pdb_age) = (pdb.guid, pdb.age);
                module.pdb_path = pdb.path.as_deref();
            }
            if let Some(pdb) = symbols.il {
                (module.il_pdb_guid, module.il_pdb_path) = (pdb.guid, pdb.path.as_deref());
            }
            sink.add(&module);
        }
    }

    fn dropped(&self) -> Vec<Dropped> {
        vec![Dropped::modules(self.list.lost)]
    }
}
