//! Assemblies and their application domains.

use crate::fact::Assembly;
use crate::listed::Listed;
use crate::prelude::*;

/// Application domains with a name, at most.
const MAX_DOMAINS: usize = 1 << 12;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssembliesAction {
    /// An assembly is loaded.
    Load,
    /// The assembly is unloaded.
    Unload,
    /// The assembly is there, at the start or at the end of the session.
    Listed,
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
        (RUNTIME, "AssemblyLoad", AssembliesAction::Load),
        (RUNTIME, "AssemblyUnload", AssembliesAction::Unload),
        (RUNTIME, "AppDomainLoad", AssembliesAction::Domain),
        (RUNDOWN, "AssemblyDCStart", AssembliesAction::Listed),
        (RUNDOWN, "AssemblyDCEnd", AssembliesAction::Listed),
        (RUNDOWN, "AppDomainDCStart", AssembliesAction::Domain),
        (RUNDOWN, "AppDomainDCEnd", AssembliesAction::Domain),
    ];

    fn is_reference(_: AssembliesAction) -> bool {
        true
    }

    fn event(&mut self, action: AssembliesAction, input: &Input<'_>, _: &mut Shared, _: &mut impl FactSink) {
        let (process, ts_ns) = (input.process(), input.ts_ns());
        if action == AssembliesAction::Domain {
            if self.domains.len() < MAX_DOMAINS {
                let name = input.text("AppDomainName").to_owned();
                self.domains.insert((process, input.number("AppDomainID")), name);
            }
            return;
        }
        let assembly_id = input.number("AssemblyID");
        let id = (process, assembly_id);
        let name = input.text("FullyQualifiedAssemblyName");
        // The rundown lists once more what was unloaded just before, at the end of a process.
        if action == AssembliesAction::Load || self.list.get(id).is_some_and(|known| known.name != name) {
            self.list.gone(id);
        }
        let known = self.list.known(id, name.len(), || Known {
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
        });
        match (action, known) {
            (AssembliesAction::Load, Some(known)) => known.row.load_ts_ns = Some(ts_ns),
            (AssembliesAction::Unload, Some(known)) => known.row.unload_ts_ns = Some(ts_ns),
            _ => {}
        }
    }

    fn finish(&mut self, _: u64, sink: &mut impl FactSink) {
        for Known { row, process, name, flags } in self.list.take() {
            let domain = self.domains.get(&(process, row.app_domain_id)).map(String::as_str);
            sink.add(&Assembly { name: &name, flags_text: &flags, app_domain_name: domain, ..row });
        }
    }

    fn dropped(&self) -> Vec<Dropped> {
        vec![Dropped::modules(self.list.lost)]
    }
}
