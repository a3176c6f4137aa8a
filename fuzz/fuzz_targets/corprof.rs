//! Any bytes as a recording of profiler callbacks.
#![no_main]

use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tracequet_trace::error::Problem;
use tracequet_trace::reader::callback::{Record, Visitor, read};
use tracequet_trace::source::Input;

struct Null;

impl Visitor for Null {
    fn record(&mut self, _: &Record<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    fn problem(&mut self, _: Problem) {}
}

fuzz_target!(|bytes: &[u8]| {
    let input = Input::from_reader(Path::new("-"), Box::new(Cursor::new(bytes.to_vec())), None);
    let _ = input.and_then(|input| read(input, &mut Null));
});
