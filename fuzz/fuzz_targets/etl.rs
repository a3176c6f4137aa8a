//! Any bytes as a Windows event log, in both orders; what is read is decoded.
#![no_main]

use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tracequet::error::Problem;
use tracequet::event::{EventInfo, decode::decode, value::ValueColumn};
use tracequet::reader::{EventType, Order, RawEvent, TypeId, Visitor, etl};
use tracequet::source::Input;

#[derive(Default)]
struct Decoding {
    kinds: Vec<EventInfo>,
}

impl Visitor for Decoding {
    fn event_type(&mut self, _: TypeId, event_type: &EventType) -> bool {
        self.kinds.push(EventInfo::resolve(event_type, 8));
        true
    }
    fn event(&mut self, event: &RawEvent<'_>) -> ControlFlow<()> {
        if let Ok(plan) = self.kinds[event.event_type.0 as usize].plan(event.payload) {
            decode(plan, event.payload, &mut ValueColumn::for_fields(&plan.fields));
        }
        ControlFlow::Continue(())
    }
    fn problem(&mut self, _: Problem) {}
}

fuzz_target!(|bytes: &[u8]| {
    for order in [Order::Time, Order::File] {
        let input = Input::from_reader(Path::new("-"), Box::new(Cursor::new(bytes.to_vec())), None);
        let _ = input.and_then(|input| etl::read(input, order, &mut Decoding::default()));
    }
});
