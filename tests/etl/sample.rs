//! A small recording with something of everything that a log can hold: what tests damage, and where fuzzing begins.

use super::hostile::{PROVIDER, RUNTIME};
use super::writer::*;

const EVENT_INFO: [u8; 16] =
    [0xC1, 0xF6, 0xCC, 0xBB, 0xD1, 0x6C, 0xC4, 0x48, 0x80, 0xFF, 0x83, 0x94, 0x82, 0xE3, 0x76, 0x71];

/// The manifest that a provider in the recording sends.
pub const MANIFEST: &str = "<m xmlns='x'><provider name='P' guid='{0a0a0a0a-0a0a-0a0a-0a0a-0a0a0a0a0a0a}'><events>\
    <event value='1' symbol='One' template='t'/></events><templates><template tid='t'>\
    <data name='n' inType='win:UInt8'/><data name='s' inType='win:UnicodeString' length='n'/>\
    <struct name='r' count='n'><data name='x' inType='win:UInt16'/></struct></template></templates></provider></m>";

/// Events of every form that is read, and those that describe others.
pub fn events() -> Vec<Vec<u8>> {
    let stack = |width: usize| [&[0; 8][..], &[7; 8][..width], &[9; 8][..width]].concat();
    let items = [item(1, true, &[3; 16]), item(6, true, &stack(8)), item(12, false, b"\x05\0Tr\0")].concat();
    let schema = b"\x1C\0\0Ev\0a\0\x08b\0\x41s\0\x98\x02c\0\x01d\0\x53";
    let schema = [&(schema.len() as u16).to_le_bytes(), &schema[2..]].concat();
    let mut blob = vec![0u8; 0x70];
    blob[..16].copy_from_slice(&PROVIDER);
    patch(&mut blob, 0x20, 1u16.to_le_bytes());
    patch(&mut blob, 0x64, 3u32.to_le_bytes());
    patch(&mut blob, 0x68, 2u32.to_le_bytes());
    let properties = [[0, 0, 4, 0, 1, 0], [5, 0, 2 | 1 << 16, 0, 0, 0], [0, 0, 16, 0, 1, 0]];
    properties.iter().flatten().for_each(|word: &u32| blob.extend(word.to_le_bytes()));
    let manifest = [&[1, 1, 0, 0x5B, 1, 0, 0, 0][..], MANIFEST.as_bytes()].concat();
    let mut process = [0x77u64.to_le_bytes().to_vec(), [9u32, 4, 0, 0].map(u32::to_le_bytes).concat()].concat();
    process.extend([&[0; 8][..], &[0; 4], &[0; 4], b"app.exe\0", &[b'a', 0, 0, 0, 0, 0, 0, 0]].concat());
    let ranges = [&[0; 8][..], &[1, 0, 0, 0], &[8, 0], &0x1000u64.to_le_bytes(), &0x20u64.to_le_bytes()].concat();
    let message = [&[0, 0, 0, 0x90][..], &44u16.to_le_bytes(), &0x2Au16.to_le_bytes(), &PROVIDER].concat();
    let message = [&message[..], &(TICKS + 9).to_le_bytes(), &[7, 0, 0, 0, 5, 0, 0, 0], b"more"].concat();
    let mut message = message;
    message[0] = message.len() as u8;
    let mut sample = vec![2, 0, 17, 0xC0, 0x20, 0, 0x2E, 0x0F];
    sample.extend([TICKS + 10, 0x7000].map(i64::to_le_bytes).concat());
    sample.extend([7, 0, 0, 0, 1, 0, 0x58, 0]);
    vec![
        event(19, PROVIDER, 1, TICKS + 1, &items, &[2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]),
        event(18, PROVIDER, 1, TICKS + 2, &item(5, false, &stack(4)), &[1, 2, 3, 4, 5]),
        event(19, [8; 16], 0, TICKS + 3, &item(11, false, &schema), &[1, 0, 0, 0, 1, 0, b'x', 0, 0, 0, 0, 0, 0, 0]),
        full(EVENT_INFO, 32, TICKS + 4, &blob),
        event(19, [10; 16], 0xFFFE, TICKS + 5, &[], &manifest),
        event(19, [10; 16], 1, TICKS + 6, &[], &[1, b'x', 0, 4, 0]),
        system(3, 1, 4, TICKS + 7, &process),
        event(19, RUNTIME, 21, TICKS + 8, &[], &ranges),
        message,
        sample,
        system(
            0x18,
            0x20,
            2,
            TICKS + 11,
            &[&(TICKS + 10).to_le_bytes()[..], &[9, 0, 0, 0, 7, 0, 0, 0], &[1; 16]].concat(),
        ),
    ]
}

/// The recording: a header, a plain buffer and one whose compression is this one, none longer than it must be.
pub fn recording(compression: u32) -> Vec<u8> {
    let mut body = Vec::new();
    for event in events() {
        body.extend(event);
        body.resize(body.len().next_multiple_of(8), 0);
    }
    let valid = 0x48 + body.len() as u32;
    let packed = match compression {
        2 => [&[0, 0x30][..], &body[..1], &[0, 0x30], &body[1..2]].concat(),
        3 => body.chunks(32).flat_map(|part| [&[0; 4], part].concat()).collect(),
        _ => [&[0x99; 256][..], &[0; 64]].concat(),
    };
    let mut header = log_file_header();
    patch(&mut header, 0x24, 3u32.to_le_bytes());
    let header = system(0, 0, 2, TICKS, &header);
    let size = 0x48 + header.len().next_multiple_of(8) as u32;
    let first = Head { kind: 4, sequence: 0, flags: 0x21, state: compression, ..Head::default() };
    let second = Head { sequence: 2, processor: 1, flags: 0x60, ..Head::default() };
    [
        buffer_of(&first, &header, size, size),
        buffer_of(&Head::default(), &body, valid, valid),
        buffer_of(&second, &packed, valid, 0x48 + packed.len() as u32),
    ]
    .concat()
}

/// The same events with each compression.
pub fn seeds() -> Vec<Vec<u8>> {
    [2, 3, 4].map(recording).to_vec()
}

/// Puts the beginnings of fuzzing where `$TRACEQUET_FUZZ_SEEDS` says: a folder for each target.
#[test]
fn fuzzing_begins_here() {
    let recordings = seeds();
    for bytes in &recordings {
        assert!(super::hostile::read(bytes).events.len() >= 12);
    }
    let callbacks = crate::callback::damage::sample();
    let Some(folder) = std::env::var_os("TRACEQUET_FUZZ_SEEDS").map(std::path::PathBuf::from) else { return };
    let seeds = recordings.iter().map(|bytes| ("etl", bytes.as_slice()));
    let others = [("manifest", MANIFEST.as_bytes()), ("corprof", callbacks.as_slice())];
    let (dumps, files) = (crate::reader::gcdump::seeds(), crate::hostile::fuzzing::files_of_datasets());
    let dumps = dumps.iter().map(|bytes| ("gcdump", bytes.as_slice()));
    let files = files.iter().map(|bytes| ("dataset", bytes.as_slice()));
    let symbols = crate::hostile::fuzzing::symbols_of_samples();
    let symbols = symbols.iter().map(|bytes| ("symbols", bytes.as_slice()));
    for (index, (target, bytes)) in seeds.chain(others).chain(dumps).chain(symbols).chain(files).enumerate() {
        std::fs::create_dir_all(folder.join(target)).expect("room");
        std::fs::write(folder.join(target).join(format!("seed{index}")), bytes).expect("room");
    }
}
