//! Any text as an instrumentation manifest, and as formats of trace messages; what it says of a few events becomes plans.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tracequet_trace::event::EventInfo;
use tracequet_trace::guid::Guid;
use tracequet_trace::reader::etl::{EventManifests, complete};
use tracequet_trace::reader::{EtwForm, EtwLayout, EventType, Layout};

fuzz_target!(|text: &str| {
    for (path, form) in [("a.man", EtwForm::Manifest), ("a.tmf", EtwForm::Message)] {
        let mut manifests = EventManifests::default();
        if manifests.add(Path::new(path), text).is_err() {
            continue;
        }
        for event_id in 0..4 {
            let mut event_type = EventType::new("", event_id, 0, Layout::Etw(EtwLayout::new(4, form)));
            event_type.provider_guid = Some(Guid([10; 16]));
            EventInfo::resolve(&complete(Some(&manifests), &event_type).0, 4);
        }
    }
});
