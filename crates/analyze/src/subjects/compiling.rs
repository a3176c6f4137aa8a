//! Compiling: methods that the JIT compiled, and whether a thread waited for the code.

use tracequet_dataset::row;

row! {
    /// A method got code, by the JIT or from a precompiled image.
    pub struct Compilation of method_compilation {
        process_id, thread_id, callsite_id, start_ts_ns, end_ts_ns, duration_ns, kind, namespace, name, tier
    }
}

/// Tiers of code that is made on a thread of its own while the old code runs, as the metrics `jit.tier_up.*` have them.
pub const BACKGROUND: [&str; 3] = ["OptimizedTier1", "QuickJittedInstrumented", "OptimizedTier1Instrumented"];

impl Compilation<'_> {
    /// Whether the JIT compiled it; the others are lookups of precompiled code.
    pub fn is_jit(&self) -> bool {
        self.kind == "jit"
    }

    /// Whether a thread waited for the code.
    pub fn is_foreground(&self) -> bool {
        self.is_jit() && !self.tier.is_some_and(|tier| BACKGROUND.contains(&tier))
    }

    /// The name with its namespace.
    pub fn method(&self) -> String {
        [self.namespace, self.name].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::definition_of;

    #[test]
    fn metrics_of_the_jit_have_the_same_tiers() {
        for (metric, is_behind) in [("jit.tier_up", true), ("jit.foreground", false)] {
            for figure in ["count", "duration"] {
                let definition = definition_of(&format!("{metric}.{figure}")).unwrap().unwrap();
                let lists = if is_behind { &definition.only } else { &definition.except };
                assert_eq!(lists.get("tier").unwrap().all(), BACKGROUND, "{metric}.{figure}");
            }
        }
    }
}
