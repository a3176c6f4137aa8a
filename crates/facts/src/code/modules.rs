//! Files that the loader mapped into processes, with address and time.

use super::code_map::{CodeMap, Span};
use crate::fact::Module;
use crate::prelude::*;

/// A recording of a whole machine holds tens of thousands at most; past it modules are left out and counted.
const MAX_MODULES: usize = 1 << 17;

/// Events that name symbols. A module that is listed at the start and at the end has each twice; those of .NET have
/// another two.
const MAX_PDBS: usize = 4 * MAX_MODULES;

/// Bytes of their paths, at most.
const MAX_TEXT: usize = 32 << 20;

/// The meaning of an event about a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModulesAction {
    /// The module is loaded.
    Load,
    /// The module is unloaded.
    Unload,
    /// The module is there, at the start or at the end of the session.
    Listed,
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
struct Listed {
    row: Module<'static>,
    process: ProcessKey,
    path: String,
    /// From when on it is known.
    first_ns: i64,
}

/// The modules of a recording, in the order of first sight.
#[derive(Default)]
pub struct Modules {
    list: Vec<Listed>,
    loaded: Map<(ProcessKey, u64), usize>,
    /// The events that name symbols, by process id and base address, with their times: the merge step writes them with
    /// the time of an event of the image, before or after it.
    named: Map<(u64, u64), Vec<(i64, Named)>>,
    /// The number of names.
    named_count: usize,
    text: usize,
    /// Modules that did not fit.
    pub lost: u64,
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
        let spans = self.list.iter().enumerate().filter_map(|(index, Listed { row, process, .. })| {
            let span = Span::new(row.base_address, row.size_bytes, index)?;
            let (from_ns, until_ns) = (row.load_ts_ns.unwrap_or(i64::MIN), row.unload_ts_ns.unwrap_or(i64::MAX));
            Some((*process, Span { from_ns, until_ns, ..span }))
        });
        CodeMap::new(spans)
    }

    /// A module by its index in the map: base address and path.
    pub fn module(&self, index: usize) -> Option<(u64, &str)> {
        self.list.get(index).map(|module| (module.row.base_address, module.path.as_str()))
    }

    /// The symbols of each module, in the order of the map's indices.
    pub fn pdbs(&self) -> Vec<Option<&Pdb>> {
        self.symbols().into_iter().map(|symbols| symbols.own).collect()
    }

    /// The symbols of the IL of modules that are portable, or may be: process, path, and what identifies them.
    pub fn of_il(&self) -> Vec<(ProcessKey, &str, &Pdb)> {
        let known = self.list.iter().zip(self.symbols()).filter_map(|(module, symbols)| {
            let own = symbols.own.filter(|_| symbols.portable_stamp.is_some());
            Some((module.process, module.path.as_str(), symbols.il.or(own)?))
        });
        known.collect()
    }

    fn symbols(&self) -> Vec<Symbols<'_>> {
        // When modules appear in each place, in the order of time.
        let mut places: Map<(u64, u64), Vec<i64>> = Map::default();
        for Listed { row, first_ns, .. } in &self.list {
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
        let of = |Listed { row, first_ns, .. }: &Listed| {
            let place = (row.process_id, row.base_address);
            let named = named.get(&place).map(Vec::as_slice).unwrap_or_default();
            let (from, until) = match places.get(&place).map(Vec::as_slice).unwrap_or_default() {
                [_] => (i64::MIN, i64::MAX),
                // Of several modules in the same place, one after the other, the one that was there at that time.
                starts => {
                    let next = starts.get(starts.partition_point(|start| *start <= *first_ns));
                    (*first_ns, row.unload_ts_ns.unwrap_or(i64::MAX).min(next.map_or(i64::MAX, |next| next - 1)))
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
        self.list.iter().map(of).collect()
    }
}

const IMAGE: &str = "Windows-Kernel-Image";
const IMAGE_ID: &str = "KernelTraceControl-ImageId";

impl Tracker for Modules {
    type Action = ModulesAction;
    const EVENTS: Events<ModulesAction> = &[
        (IMAGE, "Load", ModulesAction::Load),
        (IMAGE, "Unload", ModulesAction::Unload),
        (IMAGE, "DCStart", ModulesAction::Listed),
        (IMAGE, "DCEnd", ModulesAction::Listed),
        (IMAGE_ID, "PdbId", ModulesAction::Symbols),
        (IMAGE_ID, "ILPdbId", ModulesAction::IlSymbols),
        (IMAGE_ID, "DebugEntry", ModulesAction::DebugEntry),
    ];

    fn is_reference(_: ModulesAction) -> bool {
        true
    }

    fn event(&mut self, action: ModulesAction, input: &Input<'_>, _: &mut Shared, _: &mut impl FactSink) {
        let base_address = input.number("ImageBase");
        let key = (input.process(), base_address);
        let known = match action {
            // A module that is loaded where another one was: the unloading of that one was lost.
            ModulesAction::Load => None,
            ModulesAction::Listed => self.loaded.get(&key).copied(),
            ModulesAction::Unload => self.loaded.remove(&key),
            ModulesAction::Symbols | ModulesAction::IlSymbols | ModulesAction::DebugEntry => {
                return self.named(action, input);
            }
        };
        if let Some(module) = known.and_then(|index| self.list.get_mut(index)) {
            if action == ModulesAction::Unload {
                module.row.unload_ts_ns = Some(input.ts_ns());
            }
            return;
        }
        let path = input.text("FileName");
        if self.list.len() >= MAX_MODULES || self.text > MAX_TEXT {
            self.lost += 1;
            return;
        }
        self.text += path.len();
        if action != ModulesAction::Unload {
            self.loaded.insert(key, self.list.len());
        }
        let row = Module {
            module_id: base_address,
            kind: "native",
            base_address,
            size_bytes: input.number("ImageSize"),
            time_date_stamp: input.fields.small("TimeDateStamp").unwrap_or_default(),
            load_ts_ns: (action == ModulesAction::Load).then_some(input.ts_ns()),
            unload_ts_ns: (action == ModulesAction::Unload).then_some(input.ts_ns()),
            ..input.row()
        };
        self.list.push(Listed { row, process: key.0, path: path.to_owned(), first_ns: input.ts_ns() });
    }

    fn finish(&mut self, _: u64, sink: &mut impl FactSink) {
        for (Listed { row, path, .. }, symbols) in self.list.iter().zip(self.symbols()) {
            let mut module = Module { path, portable_pdb_stamp: symbols.portable_stamp, ..*row };
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
        vec![Dropped::modules(self.lost)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;
    use crate::tests::made_up::{Each, Given, event};

    fn load(modules: &mut Modules, base: u64) {
        let fields = [("ImageBase", Given::Number(base)), ("FileName", Given::Text("a.dll"))];
        event(ModulesAction::Load, 1, &fields, |input| {
            modules.event(ModulesAction::Load, input, &mut Shared::default(), &mut Each(|_: &Fact<'_>| {}))
        });
    }

    #[test]
    fn modules_and_their_paths_have_a_bound() {
        let mut modules = Modules { text: 32 << 20, ..Modules::default() };
        load(&mut modules, 1);
        load(&mut modules, 2);
        assert_eq!((modules.list.len(), modules.lost), (1, 1), "32 MB of paths");

        let mut modules = Modules::default();
        let listed =
            || Listed { row: Module::default(), process: ProcessKey::default(), path: String::new(), first_ns: 0 };
        modules.list.extend((1..1 << 17).map(|_| listed()));
        load(&mut modules, 1);
        load(&mut modules, 2);
        assert_eq!((modules.list.len(), modules.lost), (1 << 17, 1));
    }
}
