//! Any bytes as a recording, through the normaliser.
#![no_main]

use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tracequet_facts::Normalizer;
use tracequet_facts::fact::{Fact, FactSink};
use tracequet_trace::error::Problem;
use tracequet_trace::event::{Event, EventInfo, EventVisitor, Resolver};
use tracequet_trace::reader::{Order, TraceInfo, TypeId, nettrace};
use tracequet_trace::source::Input;

struct Null;

impl FactSink for Null {
    fn fact(&mut self, _: Fact<'_>) {}
}

#[derive(Default)]
struct Run {
    normalizer: Normalizer,
}

impl EventVisitor for Run {
    fn trace(&mut self, info: &TraceInfo) {
        self.normalizer = Normalizer::new(info.pointer_size);
    }
    fn event_type(&mut self, id: TypeId, info: &EventInfo) -> bool {
        self.normalizer.event_type(id, info);
        true
    }
    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let callsite = self.normalizer.callsite(&event.raw.stack, event.thread.process(), event.ts_ns);
        self.normalizer.event(event, callsite, &mut Null);
        ControlFlow::Continue(())
    }
    fn stacks_forgotten(&mut self) {
        self.normalizer.stacks_forgotten();
    }
    fn problem(&mut self, _: Problem) {}
}

fuzz_target!(|bytes: &[u8]| {
    let mut run = Run::default();
    let input = Input::from_reader(Path::new("-"), Box::new(Cursor::new(bytes.to_vec())), None);
    if let Ok(end) = input.and_then(|input| nettrace::read(input, Order::Time, &mut Resolver::new(&mut run))) {
        run.normalizer.finish(end.bytes, &mut Null);
    }
});
