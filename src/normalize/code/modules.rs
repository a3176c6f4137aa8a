//! Which modules are in which process, where and when: files that the loader mapped.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::guid::Guid;
use crate::normalize::fact::{FactSink, Module};
use crate::normalize::tracker::{self, Hears, Input};
use crate::reader::ProcessKey;

/// A recording of a whole machine holds tens of thousands at most; past it modules are left out and counted.
const MAX_MODULES: usize = 1 << 17;

/// Bytes of their paths, at most.
const MAX_TEXT: usize = 32 << 20;

/// What an event tells of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is loaded.
    Load,
    /// It is unloaded.
    Unload,
    /// It is there, at the start or at the end of the session.
    Listed,
    /// Which symbols belong to it.
    Symbols,
}

/// The events: of the kernel, and of who merged the log.
pub const HEARS: &[Hears<Action>] = &[
    Hears {
        provider: "Windows-Kernel-Image",
        events: &[
            ("Load", Action::Load),
            ("Unload", Action::Unload),
            ("DCStart", Action::Listed),
            ("DCEnd", Action::Listed),
        ],
    },
    Hears { provider: "KernelTraceControl-ImageId", events: &[("PdbId", Action::Symbols)] },
];

impl tracker::Action for Action {}

/// The symbols of a module.
struct Pdb {
    guid: Guid,
    age: Option<u32>,
    path: Option<String>,
}

/// A module: its row, but for the path.
struct Listed {
    row: Module<'static>,
    path: String,
}

/// The modules of a recording, in the order of first sight.
#[derive(Default)]
pub struct Modules {
    list: Vec<Listed>,
    loaded: HashMap<(ProcessKey, u64), usize, RandomState>,
    /// By process id and base address: what tells of symbols is written when the recording ends.
    pdbs: HashMap<(u64, u64), Pdb, RandomState>,
    text: usize,
    /// Modules that did not fit.
    pub lost: u64,
}

impl Modules {
    /// An event about a module.
    pub fn event(&mut self, action: Action, input: &Input<'_>) {
        let base_address = input.number("ImageBase");
        let key = (input.process(), base_address);
        let known = match action {
            // What is loaded where another one was: its unloading was lost.
            Action::Load => None,
            Action::Listed => self.loaded.get(&key).copied(),
            Action::Unload => self.loaded.remove(&key),
            Action::Symbols => return self.symbols(input),
        };
        if let Some(module) = known.and_then(|index| self.list.get_mut(index)) {
            if action == Action::Unload {
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
        if action != Action::Unload {
            self.loaded.insert(key, self.list.len());
        }
        let row = Module {
            process_id: input.process_id(),
            module_id: base_address,
            kind: "native",
            base_address,
            size_bytes: input.number("ImageSize"),
            time_date_stamp: input.fields.small("TimeDateStamp").unwrap_or_default(),
            load_ts_ns: (action == Action::Load).then_some(input.ts_ns()),
            unload_ts_ns: (action == Action::Unload).then_some(input.ts_ns()),
            ..Module::default()
        };
        self.list.push(Listed { row, path: path.to_owned() });
    }

    /// An event that names the symbols of a module.
    fn symbols(&mut self, input: &Input<'_>) {
        if self.pdbs.len() < MAX_MODULES
            && self.text <= MAX_TEXT
            && let Some(guid) = input.fields.get("PdbGuid").as_guid()
        {
            let path = input.fields.text("PdbName").map(str::to_owned);
            self.text += path.as_ref().map_or(0, String::len);
            let pdb = Pdb { guid, age: input.fields.small("Age"), path };
            self.pdbs.insert((input.number("ProcessId"), input.number("ImageBase")), pdb);
        }
    }

    /// The end of the recording.
    pub fn finish(&mut self, sink: &mut impl FactSink) {
        let mut places: HashMap<(u64, u64), u32, RandomState> = HashMap::default();
        for Listed { row, .. } in &self.list {
            *places.entry((row.process_id, row.base_address)).or_default() += 1;
        }
        for Listed { row, path } in self.list.drain(..) {
            let mut module = Module { path: &path, ..row };
            let place = (row.process_id, row.base_address);
            // Of several modules that were in the same place, one after the other, it is not said which is meant.
            if let Some(pdb) = self.pdbs.get(&place).filter(|_| places.get(&place) == Some(&1)) {
                (module.pdb_guid, module.pdb_age) = (pdb.guid, pdb.age);
                module.pdb_path = pdb.path.as_deref();
            }
            sink.add(&module);
        }
    }
}
