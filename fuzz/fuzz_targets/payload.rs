//! Any payload by any layout of the catalogue: two bytes choose the layout, one the pointer size.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracequet_trace::event::catalog::{provider, provider_names};
use tracequet_trace::event::{decode::decode, rows::RowLayout, value::ValueColumn};

fuzz_target!(|bytes: &[u8]| {
    let [a, b, pointer, payload @ ..] = bytes else { return };
    let catalogues = provider_names().filter_map(|name| provider(name)?.as_ref().ok());
    let layouts: Vec<_> = catalogues.flat_map(|catalogue| &catalogue.events).collect();
    let layout = layouts[usize::from(u16::from_le_bytes([*a, *b])) % layouts.len()];
    let plan = layout.plan(if pointer % 2 == 0 { 8 } else { 4 }).expect("a shipped layout");
    decode(&plan, payload, &mut ValueColumn::for_fields(&plan.fields));
    if let Some(rows) = RowLayout::new(&plan, &[]) {
        rows.fit(payload, plan.fields.len());
    }
});
