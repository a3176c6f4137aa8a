//! Any text as an instrumentation manifest; what it says of a few events becomes plans.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tracequet::event::EventInfo;
use tracequet::guid::Guid;
use tracequet::reader::{EtwForm, EtwLayout, EventType, Layout, etl::Manifests};

fuzz_target!(|text: &str| {
    let mut manifests = Manifests::default();
    if manifests.add(Path::new("a.man"), text).is_err() {
        return;
    }
    for event_id in 0..4 {
        let etw = EtwLayout { pointer_size: 4, form: EtwForm::Manifest, fields: None };
        let event_type = EventType {
            provider: String::new(),
            provider_guid: Some(Guid([10; 16])),
            event_id,
            version: 0,
            name: String::new(),
            opcode: None,
            level: 0,
            keywords: 0,
            layout: Layout::Etw(etw),
            message: None,
        };
        EventInfo::resolve(&manifests.complete(&event_type), 4);
    }
});
