//! Compilations of methods, and lookups of precompiled code, with their duration and result.

use std::collections::BTreeSet;

use crate::fact::MethodCompilation;
use crate::prelude::*;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompilationAction {
    /// The compiler begins.
    JitStart,
    /// The code is there.
    Loaded,
    /// A lookup begins.
    LookupStart,
    /// The end of a lookup, with its result.
    LookupStop,
}

/// A compilation: its row, but for the text.
#[derive(Debug)]
struct OpenCompilation {
    row: MethodCompilation<'static>,
    namespace: String,
    name: String,
    signature: String,
}

impl Item for OpenCompilation {
    fn start_ts_ns(&self) -> i64 {
        self.row.start_ts_ns
    }

    fn text_bytes(&self) -> usize {
        self.namespace.len() + self.name.len() + self.signature.len()
    }
}

impl OpenCompilation {
    fn new(kind: &'static str, input: &Input<'_>) -> OpenCompilation {
        let text = |name| input.text(name).to_owned();
        OpenCompilation {
            row: MethodCompilation { kind, ..about(input) },
            namespace: text("MethodNamespace"),
            name: text("MethodName"),
            signature: text("MethodSignature"),
        }
    }

    fn row(&self) -> MethodCompilation<'_> {
        MethodCompilation { namespace: &self.namespace, name: &self.name, signature: &self.signature, ..self.row }
    }
}

/// The method and its compiler, and since when it is compiled.
fn about(input: &Input<'_>) -> MethodCompilation<'static> {
    MethodCompilation {
        method_id: input.number("MethodID"),
        module_id: input.number("ModuleID"),
        token: input.number("MethodToken") as u32,
        il_size_bytes: input.fields.small("MethodILSize"),
        ..input.row()
    }
}

const JIT: &str = "jit";
const LOOKUP: &str = "r2r";

/// The open compilations.
#[derive(Debug, Default)]
pub struct Compilations {
    /// The names may have 64 KB.
    open: Nested<OpenCompilation, 512>,
    lossy: LossyThreads,
    /// Whether the beginnings of lookups are reported (from .NET 5 on).
    lookups_begin: bool,
}

/// Threads of which events were lost, at most.
const MAX_LOSSY: usize = 1 << 16;

/// The threads of which events were lost.
#[derive(Debug, Default)]
struct LossyThreads {
    are_all: bool,
    some: BTreeSet<u32>,
}

impl LossyThreads {
    fn lost(&mut self, thread: Option<u32>, is_lost: bool) {
        match thread.filter(|_| self.some.len() < MAX_LOSSY) {
            Some(thread) => _ = self.some.insert(thread),
            None => self.are_all |= is_lost,
        }
    }

    fn contain(&self, thread: u32) -> bool {
        self.are_all || self.some.contains(&thread)
    }
}

impl Tracker for Compilations {
    type Action = CompilationAction;
    const EVENTS: Events<CompilationAction> = &[
        (RUNTIME, "MethodJittingStarted", CompilationAction::JitStart),
        (RUNTIME, "MethodLoadVerbose", CompilationAction::Loaded),
        (RUNTIME, "MethodLoad", CompilationAction::Loaded),
        (RUNTIME, "R2RGetEntryPointStart", CompilationAction::LookupStart),
        (RUNTIME, "R2RGetEntryPoint", CompilationAction::LookupStop),
    ];

    fn event(&mut self, action: CompilationAction, input: &Input<'_>, _: &mut Shared, sink: &mut impl FactSink) {
        let (thread, ts_ns) = (input.capture_thread(), input.ts_ns());
        let method_id = input.number("MethodID");
        let is_it =
            |kind: &'static str| move |open: &OpenCompilation| (open.row.kind, open.row.method_id) == (kind, method_id);
        match action {
            CompilationAction::JitStart | CompilationAction::LookupStart => {
                let kind = if action == CompilationAction::JitStart { JIT } else { LOOKUP };
                self.lookups_begin |= action == CompilationAction::LookupStart;
                self.open.begin(thread, OpenCompilation::new(kind, input), |evicted| sink.add(&evicted.row()));
            }
            CompilationAction::Loaded => {
                let ended = self.open.end(thread, ts_ns, is_it(JIT), |inner| sink.add(&inner.row()));
                if let Some(open) = ended {
                    let tier = enum_names::optimization_tier(input.number("MethodFlags"));
                    sink.add(&MethodCompilation {
                        end_ts_ns: Some(ts_ns),
                        tier_number: Some(tier),
                        tier: input.name_in("OptimizationTier", u64::from(tier)),
                        rejit_id: input.number("ReJITID"),
                        native_size_bytes: input.fields.small("MethodSize"),
                        start_address: input.number("MethodStartAddress"),
                        ..open.row()
                    });
                }
            }
            CompilationAction::LookupStop => {
                let ended = self.open.end(thread, ts_ns, is_it(LOOKUP), |inner| sink.add(&inner.row()));
                // Before .NET 5 only the end of a lookup is recorded. Later, its beginning is missing.
                let is_lost = ended.is_none() && self.lookups_begin && self.lossy.contain(thread);
                let begun = ended.map_or_else(|| about(input), |open| open.row);
                let start_address = input.number("EntryPoint");
                sink.add(&MethodCompilation {
                    kind: LOOKUP,
                    end_ts_ns: (begun.kind == LOOKUP).then_some(ts_ns),
                    touches_gap: begun.touches_gap || is_lost,
                    namespace: input.text("MethodNamespace"),
                    name: input.text("MethodName"),
                    signature: input.text("MethodSignature"),
                    tier: (start_address != 0).then_some("ReadyToRun"),
                    native_size_bytes: input.fields.small("MethodSize"),
                    start_address,
                    ..begun
                });
            }
        }
    }

    fn cut(&mut self, cut: &Cut, sink: &mut impl FactSink) {
        self.lossy.lost(cut.thread, cut.is_lost());
        for mut open in self.open.take(cut.thread) {
            open.row.touches_gap |= cut.is_lost();
            sink.add(&open.row());
        }
    }

    fn dropped(&self) -> Vec<Dropped> {
        let message = "too many concurrent compilations; ends missing in the table method_compilation";
        vec![Dropped { code: "too_many_compilations", count: self.open.dropped(), message }]
    }
}
