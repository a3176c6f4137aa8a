//! Assemblies and their application domains.

use crate::fact::Assembly;
use crate::listed::{Lifecycle, Listed, Timed};
use crate::prelude::*;

/// Application domains with a name, at most.
const MAX_DOMAINS: usize = 1 << 12;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssembliesAction {
    /// An assembly is loaded, unloaded, or listed by a rundown.
    Assembly(Lifecycle),
    /// A domain has a name.
    Domain,
}

/// An assembly: its row, but for the text.
#[derive(Debug)]
struct Known {
    row: Assembly<'static>,
    process: ProcessKey,
    name: String,
    flags: String,
}

/// The assemblies of a recording.
#[derive(Debug, Default)]
pub struct Assemblies {
    list: Listed<Known>,
    domains: Map<(ProcessKey, u64), String>,
}

impl Assemblies {
    /// The full name of an assembly.
    pub fn name_of(&self, id: (ProcessKey, u64)) -> Option<&str> {
        self.list.get(id).map(|known| known.name.as_str())
    }
}

impl Tracker for Assemblies {
    type Action = AssembliesAction;
    const EVENTS: Events<AssembliesAction> = &[
        (RUNTIME, "AssemblyLoad", AssembliesAction::Assembly(Lifecycle::Begin)),
        (RUNTIME, "AssemblyUnload", AssembliesAction::Assembly(Lifecycle::End)),
        (RUNTIME, "AppDomainLoad", AssembliesAction::Domain),
        (RUNDOWN, "AssemblyDCStart", AssembliesAction::Assembly(Lifecycle::Rundown)),
        (RUNDOWN, "AssemblyDCEnd", AssembliesAction::Assembly(Lifecycle::Rundown)),
        (RUNDOWN, "AppDomainDCStart", AssembliesAction::Domain),
        (RUNDOWN, "AppDomainDCEnd", AssembliesAction::Domain),
    ];

    fn is_reference(_: AssembliesAction) -> bool {
        true
    }

    fn event(&mut self, action: AssembliesAction, input: &Input<'_>, _: &mut Shared, _: &mut impl FactSink) {
        let (process, ts_ns) = (input.process(), input.ts_ns());
        let AssembliesAction::Assembly(step) = action else {
            if self.domains.len() < MAX_DOMAINS {
                let name = input.text("AppDomainName").to_owned();
                self.domains.insert((process, input.number("AppDomainID")), name);
            }
            return;
        };
        let assembly_id = input.number("AssemblyID");
        let at = ((process, assembly_id), ts_ns);
        let name = input.text("FullyQualifiedAssemblyName");
        // The rundown lists once more what was unloaded just before, at the end of a process.
        self.list.note(
            step,
            at,
            |known| known.name == name,
            name.len(),
            || Known {
                row: Assembly {
                    process_id: process.id,
                    assembly_id,
                    flags: input.number("AssemblyFlags") as u32,
                    app_domain_id: input.number("AppDomainID"),
                    binding_id: input.number("BindingID"),
                    ..Assembly::default()
                },
                process,
                name: name.to_owned(),
                flags: input.words_of("AssemblyFlagsMap", "AssemblyFlags"),
            },
        );
    }

    fn finish(&mut self, _: u64, sink: &mut impl FactSink) {
        for Timed { item: Known { row, process, name, flags }, begun_ns, ended_ns } in self.list.take() {
            let domain = self.domains.get(&(process, row.app_domain_id)).map(String::as_str);
            let row = Assembly { load_ts_ns: begun_ns, unload_ts_ns: ended_ns, app_domain_name: domain, ..row };
            sink.add(&Assembly { name: &name, flags_text: &flags, ..row });
        }
    }

    fn dropped(&self) -> Vec<Dropped> {
        vec![Dropped::modules(self.list.lost)]
    }
}
