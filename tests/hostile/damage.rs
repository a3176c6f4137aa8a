//! Recordings that are cut or flipped anywhere: never a panic, every whole event, and a word on what is missing.

use std::path::{Path, PathBuf};

use tracequet::trace::reader::Order;
use tracequet::trace::source::{Input, MappedFile};

use crate::support::collect::{Recording, Seen, mapped, piped};
use crate::support::expected::shared_traces;
use crate::support::mutate::Random;
use crate::support::writer::{Form, Kind, Row, Writer};

fn samples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let paths = std::fs::read_dir(folder).expect("the samples").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|e| e == "nettrace")).collect();
    paths.sort();
    assert!(paths.len() >= 9, "{paths:?}");
    paths
}

/// The recording cut at `cut`, as a file in memory of which only the front is mapped.
fn cut_mapped(file: &std::fs::File, cut: usize, order: Order) -> Recording {
    file.set_len(cut as u64).expect("a shorter file");
    let file = file.try_clone().expect("a second handle");
    Recording::read_in(Input::Mapped(MappedFile::from_file(Path::new("cut"), file).expect("a map")), order)
}

/// Whether `part` is `whole` with some events left out, in the order of time.
fn is_subsequence(part: &[Seen], whole: &[Seen], blind: bool) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|event| rest.any(|other| same(event, other, blind)))
}

/// Whether two events are the same; `blind` to what a block behind the cut would have added (names and stacks).
fn same(a: &Seen, b: &Seen, blind: bool) -> bool {
    (a.ticks, a.offset, &a.payload, a.processor) == (b.ticks, b.offset, &b.payload, b.processor)
        && (blind || a.stack == b.stack && a.labels == b.labels)
}

/// Cuts a whole recording at the given offsets, from the last to the first.
fn check_cuts(name: &str, bytes: &[u8], cuts: impl DoubleEndedIterator<Item = usize>) {
    let whole = Recording::mapped(bytes);
    assert!(whole.refused.is_none(), "{name}: {:?}", whole.refused);
    let version = whole.info.as_ref().map_or(0, |info| info.version);
    // The end of each event in the file. Up to V3 the stack is part of it, in V3 also padding to 4 bytes.
    let end_of = |event: &Seen| match (event.offset + event.payload.len() as u64, version) {
        (end, 4..) => end,
        (end, 3) => (end + 4 + event.stack.len() as u64).next_multiple_of(4),
        (end, _) => end + 4 + event.stack.len() as u64,
    };
    let whole_ends: Vec<u64> = whole.events.iter().map(end_of).collect();
    let end = whole.end.bytes as usize;
    let mut file = tempfile::tempfile().expect("a temporary file");
    std::io::Write::write_all(&mut file, bytes).expect("room");
    let mut read = 0;
    for (nth, cut) in cuts.rev().filter(|cut| *cut < bytes.len()).enumerate() {
        let recording = cut_mapped(&file, cut, Order::Time);
        let at = format!("{name} cut at {cut}");
        if recording.refused.is_some() {
            assert!(recording.info.is_none() && recording.events.is_empty(), "{at}: refused behind the header");
            continue;
        }
        read += 1;
        // Every event that is whole before the cut, each as in the whole recording.
        let expected = whole_ends.iter().filter(|end| **end <= cut as u64).count();
        assert_eq!(recording.events.len(), expected, "{at}");
        assert!(is_subsequence(&recording.events, &whole.events, false), "{at}: other events");
        if cut < end {
            assert!(!recording.end.complete, "{at}: complete");
            assert!(!recording.problems.is_empty(), "{at}: no problem");
            let last = recording.problems.iter().map(|p| p.offset).max();
            assert!(last.is_some_and(|offset| offset <= cut as u64), "{at}: {:?}", recording.problems);
            let reported = recording.problems.iter().filter(|p| matches!(p.code, "truncated" | "no_end_mark"));
            assert_eq!(reported.count(), 1, "{at}: {:?}", recording.problems);
        }
        // A pipe does not know its length: the slower way, so not at every offset.
        if nth % 16 == 0 {
            let stream = Recording::read(piped(&bytes[..cut]));
            assert_eq!(stream.events, recording.events, "{at}: a pipe");
            assert_eq!(stream.codes(), recording.codes(), "{at}: a pipe");
            let in_file_order = cut_mapped(&file, cut, Order::File);
            assert_eq!(in_file_order.events.len(), recording.events.len(), "{at}: in file order");
        }
    }
    assert!(read > 0, "{name}: refused wherever it is cut");
}

/// Every offset in small recordings; in larger ones a stride, and every offset around the borders of blocks.
fn cuts(bytes: &[u8]) -> Vec<usize> {
    if bytes.len() <= 6000 {
        return (0..bytes.len()).collect();
    }
    let mut cuts: Vec<usize> = (0..1200).chain((0..bytes.len()).step_by(bytes.len() / 150)).collect();
    let borders = ["EventBlock", "MetadataBlock", "StackBlock", "SPBlock"];
    let found: Vec<usize> = borders
        .iter()
        .flat_map(|name| bytes.windows(name.len()).enumerate().filter(|(_, w)| *w == name.as_bytes()).map(|(at, _)| at))
        .collect();
    let few = found.iter().step_by((found.len() / 12).max(1));
    cuts.extend(few.flat_map(|at| at.saturating_sub(17)..at + 48));
    cuts.extend(bytes.len() - 40..bytes.len());
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

#[test]
fn samples_can_be_cut_anywhere() {
    for path in samples() {
        let bytes = std::fs::read(&path).expect("a sample");
        check_cuts(&path.display().to_string(), &bytes, cuts(&bytes).into_iter());
    }
}

/// A recording with everything in it, in each form.
fn story(form: Form) -> Vec<u8> {
    let guid = |n| tracequet::trace::guid::Guid([n; 16]);
    let row = |metadata_id, thread: u64, sequence, ticks, payload: &[u8]| Row {
        metadata_id,
        sequence,
        capture_thread: thread,
        thread,
        stack_id: (sequence % 3).min(2),
        ticks,
        activity: guid(sequence as u8 % 2),
        related: guid(0),
        label_list: sequence % 2,
        payload: payload.to_vec(),
        ..Row::default()
    };
    let kinds = [1, 2].map(|id| Kind { id, provider: "Shop", event_id: id, version: 0, name: "Order" });
    let mut writer = Writer::new(form);
    writer.metadata(&kinds).threads(&[(1, 77, 11), (2, 77, 12)]);
    for region in 0..3u32 {
        let (start, first) = (i64::from(region) * 100, region * 4 + 1);
        writer.stacks(1, &[vec![1, 2, 3], vec![]]).labels(1, &[(guid(1), guid(0))]);
        writer.events(&[
            row(1, 1, first, start + 10, b"one"),
            row(2, 1, first + 1, start + 15, b""),
            row(1, 2, first, start + 12, b"three"),
            row(2, 2, first + 1, start + 14, &[9; 300]),
        ]);
        writer.events(&[row(1, 1, first + 2, start + 20, b"five"), row(1, 1, first + 3, start + 20, b"six")]);
        writer.events(&[row(1, 2, first + 2, start + 16, b"seven"), row(1, 2, first + 3, start + 17, b"!")]);
        writer.sequence_point(start + 100, &[(1, first + 3), (2, first + 3)]);
    }
    writer.end()
}

/// The same recording in every form.
pub fn stories() -> Vec<Vec<u8>> {
    [Form::V4, Form::V6].map(story).to_vec()
}

#[test]
fn a_story_in_each_form_can_be_cut_anywhere() {
    for form in [Form::V4, Form::V6] {
        let bytes = story(form);
        let whole = Recording::mapped(&bytes);
        assert_eq!((whole.events.len(), whole.codes()), (24, vec![]), "{form:?}");
        assert!(whole.events.is_sorted_by_key(|event| event.ticks));
        check_cuts(&format!("{form:?}"), &bytes, 0..bytes.len());
    }
}

#[test]
fn shared_traces_of_every_version_can_be_cut_anywhere() {
    let Some(folder) = shared_traces("shared_traces_of_every_version_can_be_cut_anywhere") else { return };
    let names = [
        "hello-gc-norundown.nettrace",
        "eventpipe-dotnetcore6.0-win-x64-executioncheckpoints.nettrace",
        "eventpipe-dotnetcore2.1-linux-x64-tracelogging.netperf",
        "es-types-v3.netperf",
        "v6-record-trace-universal.nettrace",
        "damaged/v6-ptr4.nettrace",
        "damaged/v1-from-v2.netperf",
        "v6-writer/V6ParseMultipleThreadBlocks.nettrace",
        "v6-writer/V6ParseEventLabelLists_true.nettrace",
        "v6-writer/WellKnownDiagnosticSourceEventsHavePayloads.nettrace",
    ];
    for name in names {
        let bytes = std::fs::read(folder.join(name)).expect("a recording");
        check_cuts(name, &bytes, cuts(&bytes).into_iter());
    }
}

/// Changes a few bytes many times. What comes out is not known, but it comes, and it stays within bounds.
fn check_flips(name: &str, bytes: &[u8], rounds: usize) {
    let mut random = Random(0x5EED_0001);
    let whole = Recording::mapped(bytes).events.len();
    for round in 0..rounds {
        let mut flipped = bytes.to_vec();
        // Half of them near the front, where headers and metadata are.
        let area = if round % 2 == 0 { flipped.len() } else { flipped.len().min(4096) };
        for _ in 0..1 + random.below(4) {
            let place = random.below(area);
            flipped[place] = match random.below(4) {
                0 => 0,
                1 => 0xFF,
                2 => flipped[place] ^ 1 << random.below(8),
                _ => random.below(256) as u8,
            };
        }
        let recording = Recording::mapped(&flipped);
        let stream = Recording::piped(&flipped);
        assert_eq!(recording.events.len(), stream.events.len(), "{name}, round {round}");
        assert_eq!(recording.codes(), stream.codes(), "{name}, round {round}");
        assert!(recording.problems.iter().all(|p| p.offset <= bytes.len() as u64), "{name}, round {round}");
        // A changed length can cut one payload into several events, but not make events out of nothing.
        assert!(recording.events.len() <= whole + bytes.len() / 2, "{name}, round {round}");
        for event in recording.events.iter().take(2000) {
            // Decoding never fails hard either.
            recording.with_event(event, |event| event.fields().is_ok());
        }
    }
}

#[test]
fn flipped_bytes_do_no_harm() {
    for form in [Form::V4, Form::V6] {
        check_flips(&format!("{form:?}"), &story(form), 3000);
    }
    for path in samples() {
        let bytes = std::fs::read(&path).expect("a sample");
        check_flips(&path.display().to_string(), &bytes, 3_000_000 / bytes.len());
    }
}

#[test]
fn flipped_bytes_do_no_harm_in_other_versions() {
    let Some(folder) = shared_traces("flipped_bytes_do_no_harm_in_other_versions") else { return };
    let names = [
        ("eventpipe-dotnetcore2.1-linux-x64-tracelogging.netperf", 1500),
        ("es-types-v3.netperf", 10),
        ("damaged/v1-from-v2.netperf", 10),
        ("v6-record-trace-universal.nettrace", 30),
        ("v6-writer/V6ParseEventLabelLists_true.nettrace", 1500),
        ("v6-writer/ParseV6RelLocAndDataLoc_false.nettrace", 1500),
        ("v6-writer/ParseV6NestedVarIntsAndStrings.nettrace", 1500),
        ("v6-writer/ParseV6OptionalMetadata.nettrace", 1500),
    ];
    for (name, rounds) in names {
        let bytes = std::fs::read(folder.join(name)).expect("a recording");
        check_flips(name, &bytes, rounds);
    }
}

#[test]
fn a_visitor_can_stop_the_reader() {
    for (form, order) in [(Form::V4, Order::Time), (Form::V6, Order::Time), (Form::V4, Order::File)] {
        let bytes = story(form);
        let mut recording = Recording { stop_after: Some(5), ..Recording::default() };
        let end = tracequet::trace::reader::nettrace::read(mapped(&bytes), order, &mut recording).expect("a recording");
        assert_eq!(recording.events.len(), 5);
        assert!(!end.complete);
        assert!(end.bytes < bytes.len() as u64);
    }
}
