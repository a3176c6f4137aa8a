//! Events of providers of Windows whose manifests ship: real recordings that do not describe them, what Windows itself
//! wrote into others, and made payloads.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use tracequet::inspect::{DecodedBy, inspect_with};
use tracequet::trace::error::Problem;
use tracequet::trace::event::Value;
use tracequet::trace::reader::etl::{Describes, EventManifests, complete};
use tracequet::trace::reader::{
    EtwForm, EtwLayout, EventType, Field, FieldType, Layout, Order, RawEvent, Thread, TraceInfo, TypeId, Visitor,
};
use tracequet::trace::source::Input;

use super::expected::{shared, shared_file};
use super::writer::*;
use crate::support::collect::Recording;
use crate::support::dataset::Dataset;
use tracequet::Convert;

/// {7dd42a49-5329-4832-8dfd-43d979153a88}
const KERNEL_NETWORK: [u8; 16] =
    [0x49, 0x2A, 0xD4, 0x7D, 0x29, 0x53, 0x32, 0x48, 0x8D, 0xFD, 0x43, 0xD9, 0x79, 0x15, 0x3A, 0x88];
/// {a68ca8b7-004f-d7b6-a698-07e2de0f1f5d}, Microsoft-Windows-Kernel-General: its name ships, its events do not.
const KERNEL_GENERAL: [u8; 16] =
    [0xB7, 0xA8, 0x8C, 0xA6, 0x4F, 0x00, 0xB6, 0xD7, 0xA6, 0x98, 0x07, 0xE2, 0xDE, 0x0F, 0x1F, 0x5D];

/// Kinds of events as the recording has them.
#[derive(Default)]
struct Kinds(Vec<EventType>);

impl Visitor for Kinds {
    fn trace(&mut self, _: &TraceInfo) {}
    fn event_type(&mut self, _: TypeId, event_type: &EventType) -> bool {
        self.0.push(event_type.clone());
        false
    }
    fn thread(&mut self, _: u32, _: &Thread) {}
    fn event(&mut self, _: &RawEvent<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    fn problem(&mut self, _: Problem) {}
}

/// What ships says of the fields of a kind of event.
fn shipped(event_type: &EventType, etw: &EtwLayout) -> Option<Vec<Field>> {
    let mut bare = event_type.clone();
    bare.layout = Layout::Etw(EtwLayout::new(etw.pointer_size, etw.form));
    match complete(None, &bare) {
        (described, Describes::Shipped) => match &described.layout {
            Layout::Etw(etw) => etw.fields.clone(),
            _ => None,
        },
        _ => None,
    }
}

/// Types without the texts that values are shown as, which the public copies of manifests mostly lack.
fn bare(fields: &[Field]) -> Vec<Field> {
    let bare = |kind: &FieldType| match kind {
        FieldType::Shown(value, _) => (**value).clone(),
        other => other.clone(),
    };
    fields.iter().map(|field| Field::new(field.name.clone(), bare(&field.kind))).collect()
}

/// Windows wrote its own description of events into merged recordings, from the manifests of that machine.
#[test]
fn what_ships_is_what_windows_wrote_into_recordings() {
    let mut same = BTreeMap::new();
    for file in shared("what_ships_is_what_windows_wrote_into_recordings") {
        let mut kinds = Kinds::default();
        let input = Input::open(&file.path).expect("a file");
        tracequet::trace::reader::read(input, Order::File, &mut kinds).expect("a recording");
        for kind in &kinds.0 {
            let Layout::Etw(etw) = &kind.layout else { continue };
            if let (Some(ours), Some(theirs), EtwForm::Manifest) = (shipped(kind, etw), &etw.fields, etw.form) {
                assert_eq!(
                    bare(&ours),
                    bare(theirs),
                    "{}: {} {} v{}",
                    file.name,
                    kind.provider,
                    kind.event_id,
                    kind.version
                );
                *same.entry(kind.provider.clone()).or_insert(0) += 1;
            }
        }
    }
    if shared("what_ships_is_what_windows_wrote_into_recordings").is_empty() {
        return;
    }
    println!("{same:?}");
    let providers: Vec<_> = same.keys().map(String::as_str).collect();
    assert!(providers.contains(&"Microsoft-Windows-Kernel-File"), "{providers:?}");
}

/// A recording of Windows 7 of nothing but Microsoft-Windows-Kernel-Process, which describes none of its events.
#[test]
fn a_recording_that_describes_nothing_is_decoded_whole() {
    let Some(file) = shared_file("a_recording_that_describes_nothing_is_decoded_whole", "tx_Process.etl") else {
        return;
    };
    let recording = Recording::open(&file.path);
    let (mut events, mut images, mut of_writer) = (0, 0, 0);
    for seen in &recording.events {
        let info = recording.info_of(seen);
        if info.provider != "Microsoft-Windows-Kernel-Process" {
            continue;
        }
        events += 1;
        let fields: BTreeMap<_, _> = recording.fields(seen).into_iter().collect();
        let number =
            |name: &str| fields.get(name).and_then(Value::as_u64).unwrap_or_else(|| panic!("{name}: {fields:?}"));
        let thread = &recording.threads[seen.capture_thread as usize];
        match info.name.as_str() {
            "ImageLoad" | "ImageUnload" => {
                images += 1;
                let name = fields["ImageName"].as_str().expect("a name");
                assert!(name.starts_with('\\') && !name.contains('\u{FFFD}'), "{name}");
                assert!(number("ImageBase").is_multiple_of(4096) && number("ImageSize").is_multiple_of(4096));
            }
            "CpuPriorityChange" | "CpuBasePriorityChange" => {
                assert!(number("OldPriority") < 32 && number("NewPriority") < 32, "{fields:?}");
                of_writer += u32::from(number("ThreadID") == thread.thread_id);
            }
            "ThreadStart/Start" | "ThreadStop/Stop" => {
                assert!(number("StackBase") > number("StackLimit"), "stacks grow down: {fields:?}");
            }
            "ProcessStart/Start" => {
                let name = fields["ImageName"].as_str().expect("a name");
                assert!(name.starts_with('\\') && name.to_lowercase().ends_with(".exe"), "{name}");
            }
            "ProcessStop/Stop" => assert_ne!(fields["CreateTime"], fields["ExitTime"]),
            "PagePriorityChange" | "IoPriorityChange" => assert!(number("NewPriority") < 8),
            other => panic!("{other}"),
        }
    }
    assert_eq!((events, images), (10_343, 1_153 + 1_115));
    assert!(of_writer > 1_000, "threads that change their own priority: {of_writer}");
}

#[test]
fn addresses_and_ports_of_network_events_are_read() {
    let mut sent = Vec::new();
    for number in [4_242u32, 1_460, u32::from_le_bytes([10, 0, 0, 7]), u32::from_le_bytes([192, 168, 1, 2])] {
        sent.extend(number.to_le_bytes());
    }
    sent.extend(443u16.to_be_bytes());
    sent.extend(51_000u16.to_be_bytes());
    sent.extend([1u32, 2, 3, 4].map(u32::to_le_bytes).concat());
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("network.etl");
    let events = [
        event(19, KERNEL_NETWORK, 10, TICKS + 1, &[], &sent),
        event(19, KERNEL_NETWORK, 4_000, TICKS + 2, &[], &[1]),
        event(19, KERNEL_GENERAL, 1, TICKS + 3, &[], &[1]),
    ];
    std::fs::write(&path, Writer::new().events(1, &events).bytes).expect("room");
    let dataset = Dataset::with(Convert::default().inputs([path.clone()]));
    let table = dataset.table("event/Microsoft-Windows-Kernel-Network/KERNEL_NETWORK_TASK_TCPIP_Datasent");
    assert_eq!((table.numbers("pid"), table.numbers("size")), (vec![4_242], vec![1_460]));
    assert_eq!((table.numbers("dport"), table.numbers("sport")), (vec![443], vec![51_000]));
    // What is not known stays raw, under the name of its provider.
    let of = |event: &str| dataset.table(&format!("event/Microsoft-Windows-{event}")).rows();
    assert_eq!((of("Kernel-Network/event_4000"), of("Kernel-General/event_1")), (1, 1));

    let inspection = inspect_with(&path, &EventManifests::default(), &mut |_, _| {}).expect("an inspection");
    let by = |id| inspection.event_types.iter().find(|t| t.event_id == id).map(|t| t.decoded_by);
    assert_eq!(by(10), Some(DecodedBy::Catalogue(0)));
    assert!(matches!(by(4_000), Some(DecodedBy::Raw(_))));
}

/// Versions of Windows' events insert fields, so that a version that is not known is not read as an older one.
#[test]
fn only_the_very_version_is_read() {
    let mut newer = event(19, KERNEL_NETWORK, 10, TICKS + 1, &[], &[0; 44]);
    newer[0x2A] = 9;
    let recording = Recording::mapped(&Writer::new().events(1, &[newer]).bytes);
    let seen = &recording.events[1];
    assert_eq!(recording.info_of(seen).provider, "Microsoft-Windows-Kernel-Network");
    assert!(recording.with_event(seen, |event| event.fields().is_err()));
}

#[test]
fn a_manifest_of_the_user_goes_before_what_ships() {
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = folder.path().join("mine.man");
    let text = "<m><provider name='Mine' guid='{7dd42a49-5329-4832-8dfd-43d979153a88}'><templates><template tid='t'>\
                <data name='mine' inType='win:UInt32'/></template></templates>\
                <events><event value='10' symbol='Ten' template='t'/></events></provider></m>";
    std::fs::write(&manifest, text).expect("room");
    let recording = folder.path().join("network.etl");
    let event = event(19, KERNEL_NETWORK, 10, TICKS + 1, &[], &7u32.to_le_bytes());
    std::fs::write(&recording, Writer::new().events(1, &[event]).bytes).expect("room");
    let dataset = Dataset::with(Convert::default().inputs([recording]).manifests([manifest]));
    assert_eq!(dataset.table("event/Mine/Ten").numbers("mine"), [7]);
}
