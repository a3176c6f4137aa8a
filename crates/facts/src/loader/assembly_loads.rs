//! Requests to the loader for assemblies, with their duration and result.

use crate::fact::AssemblyLoad;
use crate::prelude::*;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssemblyLoadsAction {
    /// An assembly is requested.
    Start,
    /// The answer.
    Stop,
}

/// A request: its row, but for the text.
#[derive(Debug)]
struct OpenAssemblyLoad {
    row: AssemblyLoad<'static>,
    name: String,
    path: String,
    requesting: String,
    context: String,
}

impl Item for OpenAssemblyLoad {
    fn start_ts_ns(&self) -> i64 {
        self.row.start_ts_ns
    }

    fn text_bytes(&self) -> usize {
        self.name.len() + self.path.len() + self.requesting.len() + self.context.len()
    }
}

impl OpenAssemblyLoad {
    fn row(&self) -> AssemblyLoad<'_> {
        AssemblyLoad {
            name: &self.name,
            path: &self.path,
            requesting_assembly: &self.requesting,
            load_context: &self.context,
            ..self.row
        }
    }
}

/// The open requests.
#[derive(Debug, Default)]
pub struct AssemblyLoads {
    /// The names may have 64 KB.
    open: Nested<OpenAssemblyLoad, 512>,
}

impl Tracker for AssemblyLoads {
    type Action = AssemblyLoadsAction;
    const EVENTS: Events<AssemblyLoadsAction> = &[
        (RUNTIME, "AssemblyLoadStart", AssemblyLoadsAction::Start),
        (RUNTIME, "AssemblyLoadStop", AssemblyLoadsAction::Stop),
    ];

    fn event(&mut self, action: AssemblyLoadsAction, input: &Input<'_>, _: &mut Shared, sink: &mut impl FactSink) {
        let thread = input.capture_thread();
        match action {
            AssemblyLoadsAction::Start => {
                let text = |name| input.text(name).to_owned();
                let open = OpenAssemblyLoad {
                    row: AssemblyLoad { ..input.row() },
                    name: text("AssemblyName"),
                    path: text("AssemblyPath"),
                    requesting: text("RequestingAssembly"),
                    context: text("AssemblyLoadContext"),
                };
                self.open.begin(thread, open, |evicted| sink.add(&evicted.row()));
            }
            AssemblyLoadsAction::Stop => {
                let name = input.text("AssemblyName");
                let ended =
                    self.open.end(thread, input.ts_ns(), |open| open.name == name, |inner| sink.add(&inner.row()));
                if let Some(open) = ended {
                    let found = |name: &str| input.fields.text(name).filter(|text| !text.is_empty());
                    sink.add(&AssemblyLoad {
                        end_ts_ns: Some(input.ts_ns()),
                        success: input.fields.number("Success").map(|value| value != 0),
                        cached: input.fields.number("Cached").map(|value| value != 0),
                        result_name: found("ResultAssemblyName"),
                        result_path: found("ResultAssemblyPath"),
                        ..open.row()
                    });
                }
            }
        }
    }

    fn cut(&mut self, cut: &Cut, sink: &mut impl FactSink) {
        for mut open in self.open.take(cut.thread) {
            open.row.touches_gap |= cut.is_lost();
            sink.add(&open.row());
        }
    }

    fn dropped(&self) -> Vec<Dropped> {
        let message = "too many concurrent loads of assemblies; ends missing in the table assembly_load";
        vec![Dropped { code: "too_many_loads", count: self.open.dropped(), message }]
    }
}
