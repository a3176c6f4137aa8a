//! Any bytes as a recording, through the normaliser.
#![no_main]

use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tracequet::error::Problem;
use tracequet::event::{Event, EventInfo};
use tracequet::normalize::fact::{Fact, FactSink};
use tracequet::normalize::{Normalizer, code::callsites::Callsites};
use tracequet::reader::{EventType, Order, RawEvent, Thread, TraceInfo, TypeId, Visitor, nettrace};
use tracequet::source::Input;

struct Null;

impl FactSink for Null {
    fn fact(&mut self, _: Fact<'_>) {}
}

#[derive(Default)]
struct Run {
    pointer_size: u8,
    kinds: Vec<EventInfo>,
    threads: Vec<Thread>,
    callsites: Callsites,
    normalizer: Normalizer,
}

impl Visitor for Run {
    fn trace(&mut self, info: &TraceInfo) {
        self.pointer_size = info.pointer_size;
        self.callsites = Callsites::new(info.pointer_size);
    }
    fn event_type(&mut self, id: TypeId, event_type: &EventType) -> bool {
        self.kinds.push(EventInfo::resolve(event_type, self.pointer_size));
        self.normalizer.event_type(id, &self.kinds[id.0 as usize]);
        true
    }
    fn thread(&mut self, _: u32, thread: &Thread) {
        self.threads.push(thread.clone());
    }
    fn event(&mut self, raw: &RawEvent<'_>) -> ControlFlow<()> {
        let (info, thread) = (&self.kinds[raw.event_type.0 as usize], &self.threads[raw.thread as usize]);
        let callsite = self.callsites.intern(&raw.stack, thread.process(), &mut Null);
        self.normalizer.event(&Event { raw, info, thread, ts_ns: raw.ticks }, callsite, &mut Null);
        ControlFlow::Continue(())
    }
    fn stacks_forgotten(&mut self) {
        self.callsites.forget_keys();
    }
    fn problem(&mut self, _: Problem) {}
}

fuzz_target!(|bytes: &[u8]| {
    let mut run = Run::default();
    let input = Input::from_reader(Path::new("-"), Box::new(Cursor::new(bytes.to_vec())), None);
    if let Ok(end) = input.and_then(|input| nettrace::read(input, Order::Time, &mut run)) {
        run.normalizer.finish(end.bytes, &mut Null);
    }
});
