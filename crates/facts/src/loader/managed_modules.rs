//! Modules of assemblies, with the keys of their symbols.

use tracequet_trace::reader::symbols::{self, NativeKey};

use crate::fact::ManagedModule;
use crate::listed::{Lifecycle, Listed, Timed};
use crate::prelude::*;

/// A module: its row, but for the text.
#[derive(Debug)]
struct Known {
    process: ProcessKey,
    row: ManagedModule<'static>,
    flags: String,
    path: String,
    native_path: String,
    pdb_path: Option<String>,
    native_pdb_path: Option<String>,
    native_build_id: Option<String>,
}

/// The bit of a module's flags that says that its code was compiled before it ran.
const NATIVE: u32 = 2;

/// A program or library of NativeAOT: a native file whose code is all that the runtime knows.
#[derive(Clone, Copy, Debug)]
pub struct AotImage<'m> {
    /// The process that has it.
    pub process: ProcessKey,
    /// Address of its first page.
    pub base: u64,
    /// Where it lies.
    pub path: &'m str,
    /// The key by which its symbols are found, if the recording says it.
    pub key: Option<NativeKey<'m>>,
}

/// The modules of a recording.
#[derive(Debug, Default)]
pub struct ManagedModules {
    list: Listed<Known>,
}

impl ManagedModules {
    /// The assembly of a module and the path of its file.
    pub fn assembly_of(&self, id: (ProcessKey, u64)) -> Option<(u64, &str)> {
        self.list.get(id).map(|known| (known.row.assembly_id, known.path.as_str()))
    }

    /// The programs and libraries of NativeAOT. Their event has the address of the file as the id of the module, its
    /// path, and no IL. Source: dotnet/runtime, `nativeaot/Runtime/eventtrace.cpp`.
    pub fn aot_images(&self) -> impl Iterator<Item = AotImage<'_>> {
        self.list.each().filter(|known| known.is_aot()).map(|known| AotImage {
            process: known.process,
            base: known.row.module_id,
            path: &known.native_path,
            key: known.native_key(),
        })
    }

    /// Images of NGEN and the like, whose code has a native PDB: process, path, and what finds it.
    pub fn precompiled(&self) -> impl Iterator<Item = (ProcessKey, &str, NativeKey<'_>)> {
        let images = self.list.each().filter(|known| !known.path.is_empty() && !known.native_path.is_empty());
        images.filter_map(|known| Some((known.process, known.native_path.as_str(), known.native_key()?)))
    }

    /// The key that finds the symbols of a module.
    pub fn symbols_of(&self, id: (ProcessKey, u64)) -> Option<symbols::ManagedModule<'_>> {
        let Known { row, path, pdb_path, .. } = self.list.get(id)?;
        Some(symbols::ManagedModule { path, pdb_guid: row.pdb_guid, pdb_path: pdb_path.as_deref() })
    }
}

impl Known {
    fn is_aot(&self) -> bool {
        self.row.flags & NATIVE != 0 && self.path.is_empty() && !self.native_path.is_empty() && self.row.module_id != 0
    }

    fn native_key(&self) -> Option<NativeKey<'_>> {
        let Known { row, native_pdb_path, native_build_id, .. } = self;
        if let Some(id) = native_build_id {
            return Some(NativeKey::LoadedBuildId(id));
        }
        let (guid, age) = (row.native_pdb_guid, row.native_pdb_age);
        (!guid.is_none()).then_some(NativeKey::Pdb { guid, age, path: native_pdb_path.as_deref() })
    }
}

impl Tracker for ManagedModules {
    type Action = Lifecycle;
    const EVENTS: Events<Lifecycle> = &[
        (RUNTIME, "ModuleLoad", Lifecycle::Begin),
        (RUNTIME, "ModuleUnload", Lifecycle::End),
        (RUNTIME, "ModuleDCStartV2", Lifecycle::Rundown),
        (RUNTIME, "ModuleDCEndV2", Lifecycle::Rundown),
        (RUNDOWN, "ModuleDCStart", Lifecycle::Rundown),
        (RUNDOWN, "ModuleDCEnd", Lifecycle::Rundown),
    ];

    fn is_reference(_: Lifecycle) -> bool {
        true
    }

    fn event(&mut self, step: Lifecycle, input: &Input<'_>, _: &mut Shared, _: &mut impl FactSink) {
        let id = (input.process(), input.number("ModuleID"));
        let path = input.text("ModuleILPath");
        // The rundown lists once more what was unloaded just before, at the end of a process.
        let texts = ["ModuleILPath", "ModuleNativePath", "ManagedPdbBuildPath", "NativePdbBuildPath", "NativeBuildID"];
        let text = texts.iter().map(|name| input.text(name).len()).sum();
        self.list.note(step, (id, input.ts_ns()), |known| known.path == path, text, || new(input));
    }

    fn finish(&mut self, _: u64, sink: &mut impl FactSink) {
        for Timed { item: known, begun_ns, ended_ns } in self.list.take() {
            sink.add(&ManagedModule {
                load_ts_ns: begun_ns,
                unload_ts_ns: ended_ns,
                flags_text: &known.flags,
                path: &known.path,
                native_path: &known.native_path,
                pdb_path: known.pdb_path.as_deref(),
                native_pdb_path: known.native_pdb_path.as_deref(),
                native_build_id: known.native_build_id.as_deref(),
                ..known.row
            });
        }
    }

    fn dropped(&self) -> Vec<Dropped> {
        vec![Dropped::modules(self.list.lost)]
    }
}

fn new(input: &Input<'_>) -> Known {
    let guid = |name| input.fields.get(name).as_guid().unwrap_or_default();
    let (pdb_guid, native_pdb_guid) = (guid("ManagedPdbSignature"), guid("NativePdbSignature"));
    let text = |name: &str| input.fields.text(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let age = |name: &str, guid: Guid| input.fields.small(name).filter(|_| !guid.is_none());
    Known {
        process: input.process(),
        row: ManagedModule {
            module_id: input.number("ModuleID"),
            assembly_id: input.number("AssemblyID"),
            flags: input.number("ModuleFlags") as u32,
            pdb_guid,
            pdb_age: age("ManagedPdbAge", pdb_guid),
            native_pdb_guid,
            native_pdb_age: age("NativePdbAge", native_pdb_guid),
            ..input.row()
        },
        flags: input.words_of("ModuleFlagsMap", "ModuleFlags"),
        path: input.text("ModuleILPath").to_owned(),
        native_path: input.text("ModuleNativePath").to_owned(),
        pdb_path: text("ManagedPdbBuildPath"),
        native_pdb_path: text("NativePdbBuildPath"),
        native_build_id: text("NativeBuildID"),
    }
}
