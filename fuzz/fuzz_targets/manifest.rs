//! Any text as an instrumentation manifest; what it says of a few events becomes plans.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tracequet_trace::event::EventInfo;
use tracequet_trace::guid::Guid;
use tracequet_trace::reader::{EtwForm, EtwLayout, EventType, Layout, etl::EventManifests};

fuzz_target!(|text: &str| {
    let mut manifests = EventManifests::default();
    if manifests.add(Path::new("a.man"), text).is_err() {
        return;
    }
    for event_id in 0..4 {
        let layout = Layout::Etw(EtwLayout::new(4, EtwForm::Manifest));
        let mut event_type = EventType::new("", event_id, 0, layout);
        event_type.provider_guid = Some(Guid([10; 16]));
        EventInfo::resolve(&manifests.complete(&event_type), 4);
    }
});
