//! One recording gives the same events however it arrives.

use std::io::Write;
use std::path::Path;

use tracequet::source::Input;

use crate::support::collect::Recording;

fn same(packed: &Recording, plain: &Recording, how: &str) {
    assert_eq!(packed.events, plain.events, "{how}");
    assert_eq!(packed.threads, plain.threads, "{how}");
    assert_eq!(packed.codes(), plain.codes(), "{how}");
    assert_eq!((packed.end.complete, packed.end.bytes), (plain.end.complete, plain.end.bytes), "{how}");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn zip(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, bytes) in [("readme.txt", b"not this one".as_slice()), (name, bytes)] {
        archive.start_file(name, options).expect("an entry");
        archive.write_all(bytes).expect("memory");
    }
    archive.finish().expect("memory").into_inner()
}

#[test]
fn files_pipes_and_packings_give_the_same_events() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["events.nettrace", "gc-churn.nettrace", "exit-early.nettrace"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name);
        let bytes = std::fs::read(&path).expect("a sample");
        let plain = Recording::open(&path);
        assert!(!plain.events.is_empty());
        same(&Recording::piped(&bytes), &plain, "a pipe");
        let two_parts = [gzip(&bytes[..1000]), gzip(&bytes[1000..])].concat();
        let packed = [
            ("gz", gzip(&bytes)),
            ("two.gz", two_parts),
            ("zst", zstd::encode_all(bytes.as_slice(), 1).expect("memory")),
            ("zip", zip(name, &bytes)),
        ];
        for (ending, packed) in packed {
            // The first bytes tell what it is, not the name.
            for file in [format!("{name}.{ending}"), format!("{ending}.bin")] {
                let path = folder.path().join(file);
                std::fs::write(&path, &packed).expect("room");
                same(&Recording::open(&path), &plain, &path.display().to_string());
            }
            if ending != "zip" {
                let input = Input::from_reader(Path::new("-"), Box::new(std::io::Cursor::new(packed)), None);
                same(&Recording::read(input.expect("a pipe")), &plain, ending);
            }
        }
    }
}

#[test]
fn a_packed_file_that_is_cut_gives_what_came() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/gc-churn.nettrace");
    let bytes = std::fs::read(&path).expect("a sample");
    let plain = Recording::open(&path);
    for packed in [gzip(&bytes), zstd::encode_all(bytes.as_slice(), 1).expect("memory")] {
        let front = packed[..packed.len() / 4 * 3].to_vec();
        let input = Input::from_reader(Path::new("-"), Box::new(std::io::Cursor::new(front)), None);
        let recording = Recording::read(input.expect("a pipe"));
        assert_eq!(recording.refused, None);
        assert!(!recording.end.complete);
        assert!(recording.codes().contains(&"stream_error"), "{:?}", recording.codes());
        assert!(!recording.events.is_empty() && recording.events.len() < plain.events.len());
        assert!(recording.events.is_sorted_by_key(|event| event.ticks));
    }
}

#[test]
fn what_is_no_recording_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases: [(&str, &[u8], &str); 5] = [
        ("empty", b"", "0 bytes in all"),
        ("text", b"Hello, this is no recording", "no recording that tracequet knows"),
        ("half", b"Nettrace\x14\0\0\0!Fast", "damaged stream header"),
        ("other", b"Nettrace\x15\0\0\0!FastSerialization.1", "no stream header behind the magic"),
        ("gz", &[0x1F, 0x8B, 8, 0, 0, 0], ""),
    ];
    for (name, bytes, message) in cases {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("room");
        let refused = Recording::open(&path).refused.expect("a refusal");
        assert!(refused.contains(message) && refused.contains(name), "{name}: {refused}");
    }
    assert!(Input::open(folder.path()).is_err(), "a folder is no recording");
    assert!(Input::open(&folder.path().join("missing")).is_err());
    let broken = folder.path().join("broken.zip");
    std::fs::write(&broken, b"PK\x03\x04 and nothing else").expect("room");
    assert!(Input::open(&broken).is_err());
    let unrelated = folder.path().join("unrelated.zip");
    std::fs::write(&unrelated, zip("picture.png", b"PNG")).expect("room");
    let error = Input::open(&unrelated).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("no .nettrace, .netperf or .etl in this .zip"), "{error}");
}
