//! Requests to the loader for assemblies, with their duration and result.

use crate::fact::{AssemblyLoad, FactSink};
use crate::nested::{Item, Nested};
use crate::tracker::{self, Hears, Input, RUNTIME};

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// An assembly is requested.
    Start,
    /// The answer.
    Stop,
}

/// The events.
pub const HEARS: &[Hears<Action>] =
    &[Hears { provider: RUNTIME, events: &[("AssemblyLoadStart", Action::Start), ("AssemblyLoadStop", Action::Stop)] }];

impl tracker::Action for Action {}

/// A request: its row, but for the text.
#[derive(Debug)]
struct Open {
    row: AssemblyLoad<'static>,
    name: String,
    path: String,
    requesting: String,
    context: String,
}

impl Item for Open {
    fn start_ts_ns(&self) -> i64 {
        self.row.start_ts_ns
    }

    fn text_bytes(&self) -> usize {
        self.name.len() + self.path.len() + self.requesting.len() + self.context.len()
    }
}

impl Open {
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
    open: Nested<Open, 512>,
}

impl AssemblyLoads {
    /// Those whose end was not looked for any more, because too many were open.
    pub fn given_up(&self) -> u64 {
        self.open.given_up()
    }

    /// An event of a request.
    pub fn event(&mut self, action: Action, input: &Input<'_>, sink: &mut impl FactSink) {
        let thread = input.capture_thread();
        match action {
            Action::Start => {
                let text = |name| input.text(name).to_owned();
                let open = Open {
                    row: AssemblyLoad {
                        start_ts_ns: input.ts_ns(),
                        process_id: input.process_id(),
                        thread_id: input.thread_id(),
                        callsite_id: input.callsite_id,
                        ..AssemblyLoad::default()
                    },
                    name: text("AssemblyName"),
                    path: text("AssemblyPath"),
                    requesting: text("RequestingAssembly"),
                    context: text("AssemblyLoadContext"),
                };
                self.open.begin(thread, open, |evicted| sink.add(&evicted.row()));
            }
            Action::Stop => {
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

    /// Events of a thread (`None`: of any) were lost (`is_lost`), or the recording ends: what is open may have ended in the gap.
    pub fn events_lost(&mut self, thread: Option<u32>, is_lost: bool, sink: &mut impl FactSink) {
        for mut open in self.open.take(thread) {
            open.row.touches_gap |= is_lost;
            sink.add(&open.row());
        }
    }
}
