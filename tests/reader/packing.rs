//! One recording gives the same events however it arrives.

use std::io::Write;
use std::path::Path;

use tracequet::trace::error::Error;
use tracequet::trace::source::Input;

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

fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, bytes) in files {
        archive.start_file(*name, options).expect("an entry");
        archive.write_all(bytes).expect("memory");
    }
    archive.finish().expect("memory").into_inner()
}

fn zip(name: &str, bytes: &[u8]) -> Vec<u8> {
    zip_of(&[("readme.txt", b"not this one"), (name, bytes)])
}

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name)).expect("a sample")
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
            // The first bytes decide what it is, not the name.
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
    let cases: [(&str, &[u8], &str); 7] = [
        ("empty", b"", "0 bytes in all"),
        ("a.etlx", b"\x14\0\0\0!FastSerialization.1\x05\x05\x01\x4A\0\0\0\x4A\0\0\0\x08\0\0\0TraceLog", "an .etlx"),
        ("b.nettrace", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d", "`git lfs pull` fetches it"),
        ("perf.data", b"PERFILE2h\0\0\0\0\0\0\0", "a perf.data of Linux perf"),
        ("text", b"Hello, this is no recording", "no recording that tracequet knows"),
        ("half", b"Nettrace\x14\0\0\0!Fast", "damaged stream header"),
        ("other", b"Nettrace\x15\0\0\0!FastSerialization.1", "no stream header behind the magic"),
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
    let refused = |path: &Path| Input::open(path).err().map(|e| e.to_string()).unwrap_or_default();
    let whole = zip("app.nettrace", &[7; 5000]);
    for cut in [b"PK\x03\x04 and nothing else", whole.get(..whole.len() - 30).expect("a .zip")] {
        std::fs::write(&broken, cut).expect("room");
        assert!(refused(&broken).contains("the .zip is cut off"), "{}", refused(&broken));
    }
    let unrelated = folder.path().join("unrelated.zip");
    std::fs::write(&unrelated, zip("picture.png", b"PNG")).expect("room");
    let error = refused(&unrelated);
    assert!(error.contains("no .nettrace, .netperf, .etl, .gcdump or .corprof in this .zip"), "{error}");
    // An archive of perfcollect, and a dataset in place of a recording.
    std::fs::write(&unrelated, zip_of(&[("a.trace/perf.data.txt", b"x"), ("a.trace/perfinfo-1.map", b"y")]))
        .expect("room");
    assert!(refused(&unrelated).contains("a recording of perfcollect"), "{}", refused(&unrelated));
    std::fs::write(folder.path().join("manifest.json"), r#"{"tool":"tracequet"}"#).expect("room");
    assert!(refused(folder.path()).contains("is a dataset, expected a recording"), "{}", refused(folder.path()));
}

/// Recordings of every format, logs of one session, a broken one, and names that lead out of the archive.
fn archive_of_several() -> Vec<u8> {
    let [events, churn, clr, kernel, callbacks] =
        ["events.nettrace", "gc-churn.nettrace", "clr.etl", "kernel.etl", "callbacks.corprof"].map(sample);
    let packed = gzip(&events);
    let files: [(&str, &[u8]); 8] = [
        ("one/app.nettrace", &events),
        ("readme.txt", b"no recording"),
        ("../../app.nettrace", &churn),
        ("session/clr.etl", &clr),
        ("/etc/broken.nettrace", b"Nettrace, it says"),
        ("callbacks.corprof", &callbacks),
        ("session/kernel.etl", &kernel),
        ("AGAIN.nettrace.gz", &packed),
    ];
    zip_of(&files)
}

#[test]
fn every_recording_of_an_archive_is_converted() {
    use tracequet::{Convert, convert};
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("all.zip");
    std::fs::write(&path, archive_of_several()).expect("room");
    let out = folder.path().join("out");
    let mut of_inputs = Vec::new();
    let request = Convert::new([path.clone()], &out);
    let summary = convert(&request, &mut |progress| of_inputs.push(progress.input)).expect("a dataset");
    assert!(of_inputs.iter().all(|input| *input == 0), "one input was given");
    let names: Vec<_> = summary.inputs.iter().map(|input| (input.trace_id.as_str(), input.path.clone())).collect();
    let inside = |name: &str| std::path::PathBuf::from(format!("{}/{name}", path.display()));
    let wanted = [
        ("app-320cbf0fe8a6e270", inside("one/app.nettrace")),
        ("app-47551c824a692fa9", inside("../../app.nettrace")),
        ("clr-1c23864e30d02b7a", inside("session/clr.etl")),
        ("callbacks-36b97f88617125f0", inside("callbacks.corprof")),
        ("AGAIN", inside("AGAIN.nettrace.gz")),
    ];
    // How well a .gz is packed is up to the library that packs it.
    let plain = |key: &str| if key.starts_with("AGAIN-") { "AGAIN".to_owned() } else { key.to_owned() };
    let names: Vec<_> = names.into_iter().map(|(key, path)| (plain(key), path)).collect();
    assert_eq!(names, wanted.map(|(key, path)| (key.to_owned(), path)));
    let failed: Vec<_> = summary.failed.iter().map(|failed| failed.path.clone()).collect();
    assert_eq!((failed, summary.has_losses()), (vec![inside("/etc/broken.nettrace")], true));
    // Each as it is alone.
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let names = ["events.nettrace", "gc-churn.nettrace", "", "callbacks.corprof", "events.nettrace"];
    for (input, name) in summary.inputs.iter().zip(names).filter(|(_, name)| !name.is_empty()) {
        let out = folder.path().join("alone");
        let request = Convert::new([samples.join(name)], &out).overwrite(true);
        let alone = convert(&request, &mut |_| {}).expect("a dataset");
        let [alone] = alone.inputs.as_slice() else { panic!("one input") };
        assert_eq!((input.events, input.bytes, input.complete), (alone.events, alone.bytes, alone.complete), "{name}");
    }
    let bytes = sample("events.nettrace");
    let hash = blake3::hash(&bytes).to_hex().to_string();
    let identity = &summary.inputs[0].identity;
    assert_eq!((identity.size_bytes, &identity.blake3), (bytes.len() as u64, &hash), "that of the entry");
    let logs = &summary.inputs[2];
    assert_eq!(
        logs.bytes,
        (sample("clr.etl").len() + sample("kernel.etl").len()) as u64,
        "both logs are one recording"
    );
}

/// Else thousands of recordings would take thousands of times as long, each.
#[test]
fn the_directory_of_an_archive_is_read_once_for_all_its_recordings() {
    use tracequet::trace::source::RecordingPath;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("all.zip");
    let bytes = archive_of_several();
    std::fs::write(&path, &bytes).expect("room");
    let changed = std::fs::metadata(&path).and_then(|data| data.modified()).expect("a time");
    let recordings = RecordingPath::all_in(&path);
    assert_eq!(recordings.len(), 6);
    // The directory is overwritten, while the length and the time of the file stay the same.
    let directory = bytes.windows(4).position(|bytes| bytes == b"PK\x01\x02").expect("a directory");
    let mut without = bytes.clone();
    without[directory..].fill(0);
    std::fs::write(&path, &without).expect("room");
    std::fs::File::options().append(true).open(&path).and_then(|file| file.set_modified(changed)).expect("a time");
    assert_eq!(RecordingPath::all_in(&path).len(), 1, "it is no archive any more");
    for recording in &recordings {
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut recording.bytes().expect("a file").expect("bytes"), &mut content)
            .expect("whole");
        assert!(!content.is_empty() && recording.open().is_ok(), "{:?}", recording.name());
    }
    // One that was seen to change is not read by what was known of it.
    std::fs::write(&path, &bytes[1..]).expect("room");
    let mut reader = recordings[0].bytes().expect("a file").expect("bytes");
    assert!(std::io::Read::read_to_end(&mut reader, &mut Vec::new()).is_err());
}

#[test]
fn every_recording_of_an_archive_is_inspected() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("all.zip");
    std::fs::write(&path, archive_of_several()).expect("room");
    let path = path.to_str().expect("text");
    let run = crate::support::program::run(&["inspect", path]);
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert_eq!(run.out.matches("\nProviders (").count(), 5, "{}", run.out);
    assert!(run.err.contains("/etc/broken.nettrace") && run.err.contains("left out"), "{}", run.err);
    let run = crate::support::program::run(&["inspect", "--json", path]);
    let documents = serde_json::Deserializer::from_str(&run.out).into_iter::<serde_json::Value>();
    let paths: Vec<_> = documents.map(|document| document.expect("JSON")["path"].to_string()).collect();
    assert_eq!((paths.len(), run.code), (5, Some(2)), "{paths:?}");
}

/// An archive in which a thousand entries share the same bytes would expand to a thousand times as much.
#[test]
fn every_heap_dump_of_an_archive_is_converted() {
    use tracequet::{Convert, convert};
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dumps.zip");
    let (dump, other) = (sample("heap-10.gcdump"), &crate::reader::gcdump::seeds()[0]);
    let archive = zip_of(&[("a.gcdump", &dump), ("readme.txt", b"no dump"), ("b.gcdump", other)]);
    std::fs::write(&path, archive).expect("room");
    let request = Convert::new([&path], folder.path().join("set")).tables(["heap_object"]);
    let summary = convert(&request, &mut |_| {}).expect("a dataset");
    let objects = summary.tables.iter().find(|table| table.name == "heap_object").map(|table| table.rows);
    assert_eq!((summary.inputs.len(), objects), (2, Some(2351 + 2)));
}

#[test]
fn entries_that_overlap_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("overlap.zip");
    let mut archive = zip::ZipWriter::new(std::fs::File::create(&path).expect("a file"));
    archive.start_file("a.nettrace", zip::write::SimpleFileOptions::default()).expect("an entry");
    archive.write_all(&sample("events.nettrace")).expect("room");
    archive.shallow_copy_file("a.nettrace", "b.nettrace").expect("an entry");
    archive.finish().expect("room");
    let recordings = tracequet::trace::source::RecordingPath::all_in(&path);
    assert_eq!(recordings.len(), 1, "what is wrong is said once");
    let refused = recordings[0].open().err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("overlap"), "{refused}");
}

#[test]
fn packed_bytes_that_cannot_be_unpacked_are_no_recording() {
    let damaged: [&[u8]; 3] = [
        b"\x28\xb5\x2f\xfdxxxxxxxxxxxxxxxx",
        b"\x1f\x8b\x1f\x8b\x1f\x8b\x1f\x8b\x1f\x8b\x1f\x8b",
        &[0x1F, 0x8B, 8, 0, 0, 0],
    ];
    for bytes in damaged {
        let reader = Box::new(std::io::Cursor::new(bytes.to_vec()));
        match Input::from_reader(Path::new("app.nettrace.zst"), reader, None).err() {
            Some(Error::Unreadable { path, offset: 0, what, .. }) => {
                assert!(path == Path::new("app.nettrace.zst") && what.contains("cannot be unpacked"), "{what}");
            }
            other => panic!("{other:?}"),
        }
    }
}
