//! Any bytes as a heap dump, and its facts.
#![no_main]

use std::io::Cursor;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tracequet_facts::fact::{Fact, FactSink};
use tracequet_facts::heap_dump;
use tracequet_trace::reader::gcdump::read;
use tracequet_trace::source::Input;

#[derive(Default)]
struct Count(u64);

impl FactSink for Count {
    fn fact(&mut self, _: Fact<'_>) {
        self.0 += 1;
    }
}

fuzz_target!(|bytes: &[u8]| {
    let input = Input::from_reader(Path::new("-"), Box::new(Cursor::new(bytes.to_vec())), None);
    if let Ok(dump) = input.and_then(read) {
        let mut count = Count::default();
        heap_dump::facts(&dump, &mut count);
        // A type has 12 bytes; a node 4, and a reference one.
        assert!(count.0 <= 4 + 3 * bytes.len() as u64, "{} facts of {} bytes", count.0, bytes.len());
    }
});
