//! The .etl files in `samples/`: this test writes them, and holds that they are what it writes.
//!
//!     TRACEQUET_WRITE_SAMPLES=1 cargo test --test tests etl::samples

use super::sample::{self, MANIFEST};
use super::writer::*;

const K: u64 = 0xFFFF_F800_0000_0000;
const SOURCE: [u8; 16] = [10; 16];
/// Bytes of a buffer.
const SIZE: u32 = 8192;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn longs(longs: &[u64]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_le_bytes()).collect()
}

/// Buffers of two processors behind a header.
fn log(processors: [&[Vec<u8>]; 2]) -> Vec<u8> {
    let mut header = log_file_header();
    patch(&mut header, 0, SIZE.to_le_bytes());
    patch(&mut header, 0x24, 3u32.to_le_bytes());
    let mut log = Writer::with_header(&header);
    for (processor, events) in (0..).zip(processors) {
        let head = Head { sequence: i64::from(processor) + 1, processor, ..Head::default() };
        let buffer = sized_buffer(&head, events, SIZE);
        assert_eq!(buffer.len(), SIZE as usize, "too many events");
        log = log.raw(&buffer);
    }
    log.bytes
}

/// A process and its threads, its images with their symbols, samples of two processors with their stacks.
fn kernel() -> Vec<u8> {
    let at = |ms: i64| TICKS + ms * 10_000;
    let interval = [words(&[0, 10_000, 10_000]), vec![b'T', 0, 0, 0]].concat();
    let first = [
        perf_info(0x0F, 73, 3, at(0), &interval),
        image(3, at(0), 0, K, r"\SystemRoot\system32\ntoskrnl.exe"),
        process(3, at(0), 4, "System", 259),
        process(39, at(0), 3, "before.exe", -1),
        by(process(1, at(1), 5, "app.exe", 259), 4, 9),
        thread(1, at(1), 5, 7),
        image(10, at(2), 5, 0x40_0000, r"\Device\HarddiskVolume1\app.exe"),
        stack_walk(at(2) + 3, at(2), 7, &[K + 0x100, K + 0x200]),
        image(10, at(2) + 9, 5, 0x50_0000, r"\Device\HarddiskVolume1\lib.dll"),
        sample(at(3), 7, 0x40_0010, 8 << 3),
        stack_key(38, at(3) + 2, at(3), 7, 0xAA),
        sample(at(4), 7, K + 0x110, 8 << 3),
        stack_key(37, at(4) + 1, at(4), 7, 0xBB),
        stack_key(38, at(4) + 2, at(4), 7, 0xAA),
        sample(at(5), 0, K + 1, 0),
        stack_walk(at(5) + 6, at(5), 0, &[K + 1, K + 2]),
        image(2, at(6), 5, 0x50_0000, r"\Device\HarddiskVolume1\lib.dll"),
        thread(2, at(7), 5, 7),
        process(2, at(7), 5, "app.exe", 3),
        stack_definition(at(8), 0xAA, &[0x40_0010, 0x40_0004]),
        stack_definition(at(8), 0xBB, &[K + 0x110, K + 0x120]),
        pdb_id(at(2), 5, 0x40_0000),
    ];
    let second = [
        sample(at(5), 0, K + 5, 0),
        stack_walk(at(5) + 3, at(5), 0, &[K + 5, K + 6]),
        sample(at(6), 8, 0x40_0020, 1),
        thread(4, at(9), 4, 8),
    ];
    log([&first, &second])
}

/// Two collections with their ranges, pauses and heap sizes (with a number more than the layout has, as newer runtimes
/// write).
fn clr() -> Vec<u8> {
    let at = |us: i64| TICKS + us * 10;
    let clr = |us, id, version, payload: &[u8]| {
        let by = By { form: 19, process_id: 5, thread_id: 7, ticks: at(us) };
        event_by(by, RUNTIME, id, version, &[], payload)
    };
    let instance: &[u8] = &[8, 0];
    let collection = |us: i64, number: u32, generation: u32| {
        let range =
            |generation: u8, start: u64| [&[generation][..], &longs(&[start, 0x1000, 0x4000]), instance].concat();
        let sizes = longs(&[0x1000, 0x100, 0x2000, 0x200, 0x3000, 0x300, 0x4000, 0x400, 0x10, 1]);
        vec![
            clr(us, 9, 1, &[&words(&[1, number]), instance].concat()),
            clr(us + 5, 8, 1, instance),
            clr(us + 10, 1, 2, &[&words(&[number, generation, 0, 0]), instance, &longs(&[0])].concat()),
            clr(us + 11, 23, 0, &range(0, 0x10_0000)),
            clr(us + 12, 23, 0, &range(1, 0x20_0000)),
            clr(us + 20, 21, 0, &[&words(&[0, 2]), instance, &longs(&[0x10_0000, 0x40, 0x10_0100, 0x80])].concat()),
            clr(us + 30, 22, 0, &[&words(&[0, 1]), instance, &longs(&[0x10_0200, 0x20_0000, 0x60])].concat()),
            clr(us + 40, 23, 0, &range(0, 0x30_0000)),
            clr(us + 41, 23, 0, &range(1, 0x20_0000)),
            clr(us + 50, 2, 1, &[&words(&[number, generation]), instance].concat()),
            clr(us + 55, 4, 1, &[&sizes, &words(&[3, 4, 5, 6]), instance].concat()),
            clr(us + 60, 7, 1, instance),
            clr(us + 70, 3, 1, instance),
        ]
    };
    let first = [vec![process(3, at(0), 5, "app.exe", 259)], collection(100, 1, 0), collection(1000, 2, 1)].concat();
    log([&first, &[]])
}

/// Events that the recording describes itself: TraceLogging, the manifest of an EventSource, a schema that was
/// embedded.
fn described() -> Vec<u8> {
    let manifest = [&[1, 1, 0, 0x5B, 1, 0, 0, 0][..], MANIFEST.as_bytes()].concat();
    let of_source = |ticks, text: &str| {
        let text: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let count = [(text.len() / 2) as u8];
        let rows: Vec<u8> = (0..count[0]).flat_map(|n| [n, 0]).collect();
        event(19, SOURCE, 1, ticks, &[], &[&count[..], &text, &rows].concat())
    };
    let first = [sample::events(), vec![of_source(TICKS + 20, "hello"), of_source(TICKS + 21, "")]].concat();
    let second = [event(19, SOURCE, 0xFFFE, TICKS + 30, &[], &manifest)];
    log([&first, &second])
}

#[test]
fn the_samples_are_what_is_written_here() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    for (name, bytes) in [("kernel.etl", kernel()), ("clr.etl", clr()), ("described.etl", described())] {
        let path = folder.join(name);
        if std::env::var_os("TRACEQUET_WRITE_SAMPLES").is_some() {
            std::fs::write(&path, &bytes).expect("room");
        }
        assert!(std::fs::read(&path).is_ok_and(|found| found == bytes), "{name} is another; see the head of this file");
    }
}
