//! Any bytes as a recording, to the last event. Seeds: samples/*.nettrace.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use tracequet::error::Problem;
use tracequet::reader::{Order, RawEvent, Visitor, nettrace};
use tracequet::source::Input;

struct Nothing;

impl Visitor for Nothing {
    fn event(&mut self, _: &RawEvent<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    fn problem(&mut self, _: Problem) {}
}

fuzz_target!(|bytes: &[u8]| {
    let reader = Box::new(std::io::Cursor::new(bytes.to_vec()));
    let Ok(input) = Input::from_reader("fuzz".as_ref(), reader, None) else { return };
    let _ = nettrace::read(input, Order::Time, &mut Nothing);
});
