//! The reader on any bytes, as from a pipe, in both orders.
#![no_main]

use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tracequet_trace::error::Problem;
use tracequet_trace::reader::{Order, RawEvent, Visitor, nettrace};
use tracequet_trace::source::Input;

struct Null;

impl Visitor for Null {
    fn event(&mut self, _: &RawEvent<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    fn problem(&mut self, _: Problem) {}
}

fuzz_target!(|bytes: &[u8]| {
    for order in [Order::Time, Order::File] {
        let input = Input::from_reader(Path::new("-"), Box::new(Cursor::new(bytes.to_vec())), None);
        let _ = input.and_then(|input| nettrace::read(input, order, &mut Null));
    }
});
