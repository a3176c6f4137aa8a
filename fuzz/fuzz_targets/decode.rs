//! Any bytes as the payload of any event of the catalogue: two bytes choose the event and the pointer size.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracequet::event::{catalog, decode::decode, value::ValueColumn};

fuzz_target!(|bytes: &[u8]| {
    let Some(([a, b], payload)) = bytes.split_first_chunk() else { return };
    let layouts = catalog::provider_names().filter_map(|n| catalog::provider(n)?.as_ref().ok());
    let all: Vec<_> = layouts.flat_map(|p| p.layouts()).collect();
    let layout = all[(usize::from(*a) << 7 | usize::from(*b >> 1)) % all.len()];
    let Ok(plan) = layout.plan(if b & 1 == 0 { 4 } else { 8 }) else { return };
    decode(&plan, payload, &mut ValueColumn::for_fields(&plan.fields));
});
