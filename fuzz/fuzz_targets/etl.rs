//! Any bytes as a Windows event log, in both orders; what is read is decoded.
#![no_main]

use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tracequet_trace::error::Problem;
use tracequet_trace::event::{Event, EventVisitor, Resolver};
use tracequet_trace::reader::{Order, etl};
use tracequet_trace::source::Input;

struct Decoding;

impl EventVisitor for Decoding {
    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let _ = event.fields();
        ControlFlow::Continue(())
    }
    fn problem(&mut self, _: Problem) {}
}

fuzz_target!(|bytes: &[u8]| {
    for order in [Order::Time, Order::File] {
        let input = Input::from_reader(Path::new("-"), Box::new(Cursor::new(bytes.to_vec())), None);
        let _ = input.and_then(|input| etl::read(input, order, &mut Resolver::new(&mut Decoding)));
    }
});
