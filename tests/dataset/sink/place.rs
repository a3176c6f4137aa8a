//! Where a dataset stands, what it may replace, and what is left when it fails.

use std::fs;

use tracequet::dataset::error::{Error, Result};
use tracequet::dataset::write::{Compression, DatasetWriter, Format};

use super::*;

fn overwriting() -> DatasetOptions {
    DatasetOptions { overwrite: true, ..options(Format::Parquet, 1) }
}

/// A dataset of one table with `rows` rows.
fn write(out: &Path, options: DatasetOptions, rows: u64) -> Result<()> {
    let mut dataset = DatasetWriter::create(out, options)?;
    let table = dataset.table(numbers("gc"))?;
    dataset.write(table, number_batch(0..rows))?;
    dataset.close_tables(&[])?;
    dataset.file("manifest.json", MANIFEST)?;
    dataset.commit()
}

fn names(folder: &Path) -> Vec<String> {
    tree(folder).into_keys().collect()
}

#[test]
fn a_dataset_appears_with_its_commit_and_alone() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("set");
    let mut dataset = DatasetWriter::create(&out, options(Format::Parquet, 1)).unwrap();
    dataset.table(numbers("gc")).unwrap();
    dataset.close_tables(&[]).unwrap();
    dataset.file("views.sql", b"-- none\n").unwrap();
    assert!(!out.exists());
    dataset.commit().unwrap();
    assert_eq!(names(folder.path()), ["set/", "set/gc.parquet", "set/views.sql"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::create_dir(folder.path().join("usual")).unwrap();
        let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode("set"), mode("usual"));
    }
}

#[test]
fn without_a_commit_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let mut dataset = DatasetWriter::create(&folder.path().join("a/b/set"), options(Format::Parquet, 2)).unwrap();
    let table = dataset.table(every_kind("t")).unwrap();
    for seed in 0..20 {
        // Half of it is written, half of it waits.
        dataset.write(table, every_kind_batch(seed, 20_000)).unwrap();
    }
    assert_eq!(names(folder.path())[..2], ["a/", "a/b/"]);
    drop(dataset);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn parents_are_made() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a/b/set"), options(Format::Parquet, 1), 1).unwrap();
    assert!(folder.path().join("a/b/set/gc.parquet").exists());
}

#[test]
fn what_stands_there_is_not_replaced_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("set");
    write(&out, options(Format::Parquet, 1), 1).unwrap();
    let before = tree(folder.path());
    assert!(matches!(write(&out, options(Format::Parquet, 1), 2), Err(Error::Exists { replaceable: true, .. })));
    assert_eq!(tree(folder.path()), before);
}

#[test]
fn overwrite_replaces_datasets_and_empty_directories() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("set");
    fs::create_dir(&out).unwrap();
    write(&out, overwriting(), 1).unwrap();
    write(&out, overwriting(), 2).unwrap();
    assert_eq!(read_parquet(&out.join("gc.parquet")).num_rows(), 2);
    assert_eq!(names(folder.path()), ["set/", "set/gc.parquet", "set/manifest.json"]);
}

/// A dataset in which something else lies is kept, and the message names what lies there.
#[test]
fn overwrite_replaces_no_dataset_with_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("set");
    write(&out, overwriting(), 1).unwrap();
    for (path, is_folder) in [("notes.txt", false), ("gc/trace=t1/part-1.parquet", false), ("gc_pause", true)] {
        let stray = out.join(path);
        if is_folder {
            fs::create_dir(&stray).unwrap();
        } else {
            fs::create_dir_all(stray.parent().unwrap()).unwrap();
            fs::write(&stray, b"mine").unwrap();
        }
        let before = tree(folder.path());
        let error = write(&out, overwriting(), 2).unwrap_err();
        let named = path.split('/').next().unwrap();
        assert!(matches!(&error, Error::Usage(message) if message.contains(named)), "{error}");
        assert_eq!(tree(folder.path()), before);
        fs::remove_dir_all(out.join(named)).or_else(|_| fs::remove_file(out.join(named))).unwrap();
    }
    write(&out, overwriting(), 2).unwrap();
}

/// The manifest of many recordings is larger than other small files may be.
#[test]
fn overwrite_replaces_a_dataset_with_a_large_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("set");
    write(&out, overwriting(), 1).unwrap();
    let manifest = out.join("manifest.json");
    let mut text = fs::read(&manifest).unwrap();
    text.resize(65 << 20, b' ');
    fs::write(&manifest, text).unwrap();
    write(&out, overwriting(), 2).unwrap();
    assert_eq!(read_parquet(&out.join("gc.parquet")).num_rows(), 2);
}

#[test]
fn overwrite_replaces_nothing_that_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("set");
    write(&out, overwriting(), 1).unwrap();
    // Even a file of the dataset itself.
    let options = DatasetOptions { inputs: vec![out.join("gc.parquet")], ..overwriting() };
    let error = write(&out, options, 2).unwrap_err();
    assert!(matches!(&error, Error::Usage(message) if message.contains("gc.parquet")), "{error}");
    assert_eq!(read_parquet(&out.join("gc.parquet")).num_rows(), 1);
}

#[test]
fn overwrite_replaces_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let refuse = |out: &Path| {
        let before = tree(folder.path());
        assert!(matches!(write(out, overwriting(), 1), Err(Error::Usage(_))));
        assert_eq!(tree(folder.path()), before);
    };
    let file = folder.path().join("file");
    fs::write(&file, b"mine").unwrap();
    refuse(&file);
    let photos = folder.path().join("photos");
    fs::create_dir(&photos).unwrap();
    fs::write(photos.join("cat.jpg"), b"cat").unwrap();
    refuse(&photos);
    for manifest in ["", "[]", r#"{ "tool": "other" }"#, r#"{ "tool": "tracequetish" }"#, r#"{ "name": "tracequet" }"#]
    {
        fs::write(photos.join("manifest.json"), manifest).unwrap();
        refuse(&photos);
    }
    for manifest in [r#"{ "tool": "tracequet 1.2" }"#, r#"{ "tool": { "name": "tracequet", "version": "1" } }"#] {
        fs::write(photos.join("manifest.json"), manifest).unwrap();
        refuse(&photos);
        fs::rename(photos.join("cat.jpg"), folder.path().join("cat.jpg")).unwrap();
        drop(DatasetWriter::create(&photos, overwriting()).unwrap());
        fs::rename(folder.path().join("cat.jpg"), photos.join("cat.jpg")).unwrap();
    }
}

#[test]
fn something_that_appears_in_the_meantime_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("set");
    let dataset = DatasetWriter::create(&out, overwriting()).unwrap();
    fs::create_dir(&out).unwrap();
    fs::write(out.join("cat.jpg"), b"cat").unwrap();
    assert!(matches!(dataset.commit(), Err(Error::Usage(_))));
    assert_eq!(names(folder.path()), ["set/", "set/cat.jpg"]);
}

#[cfg(unix)]
#[test]
fn a_link_to_a_dataset_stays_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    write(&real, options(Format::Parquet, 1), 1).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    write(&link, overwriting(), 3).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(read_parquet(&real.join("gc.parquet")).num_rows(), 3);
}

/// What a link leads to is not ours: nothing that is written is a link.
#[cfg(unix)]
#[test]
fn overwrite_replaces_no_dataset_with_links_inside() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("set");
    write(&out, overwriting(), 1).unwrap();
    let manifest = r#"{ "tool": "tracequet", "tables": [{ "name": "gc" }], "inputs": [{ "trace_id": "a" }] }"#;
    fs::write(out.join("manifest.json"), manifest).unwrap();
    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir_all(elsewhere.join("trace=a")).unwrap();
    fs::write(elsewhere.join("trace=a/part-0.parquet"), b"mine").unwrap();
    // A folder where the dataset has one; a file of that name; itself, in a circle.
    for (target, name) in [
        (elsewhere.clone(), "gc"),
        (elsewhere.join("trace=a/part-0.parquet"), "gc.arrow"),
        (out.clone(), "gc"),
        (folder.path().join("nothing"), "views.sql"),
    ] {
        symlink(&target, out.join(name)).unwrap();
        let error = write(&out, overwriting(), 2).unwrap_err();
        assert!(matches!(&error, Error::Usage(message) if message.contains(name)), "{error}");
        assert!(fs::symlink_metadata(out.join(name)).unwrap().is_symlink());
        fs::remove_file(out.join(name)).unwrap();
    }
    assert_eq!(fs::read(elsewhere.join("trace=a/part-0.parquet")).unwrap(), b"mine");
    write(&out, overwriting(), 2).unwrap();
}

#[test]
fn partitions_lie_below_their_table() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("set");
    for (format, extension) in [(Format::Parquet, "parquet"), (Format::Arrow, "arrow")] {
        let mut dataset =
            DatasetWriter::create(&out, DatasetOptions { overwrite: true, ..options(format, 2) }).unwrap();
        for key in ["a1", "b2"] {
            dataset.set_partition(Some(format!("trace={key}")));
            dataset.table(numbers("gc")).unwrap();
            let event = dataset.table(numbers("event/P/E")).unwrap();
            dataset.write(event, number_batch(0..5)).unwrap();
            let written = dataset.close_tables(&[("source".into(), key.into())]).unwrap();
            let paths: Vec<_> = written.iter().map(|table| table.path.clone()).collect();
            let path = |table: &str| format!("{table}/trace={key}/part-0.{extension}");
            assert_eq!(paths, [path("gc"), path("event/P/E")]);
        }
        dataset.file("manifest.json", MANIFEST).unwrap();
        dataset.commit().unwrap();
        let files = names(&out).into_iter().filter(|name| name.ends_with(extension)).count();
        assert_eq!(files, 4);
    }
}

#[test]
fn no_name_leads_out_of_the_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let mut dataset = DatasetWriter::create(&folder.path().join("set"), options(Format::Parquet, 1)).unwrap();
    for name in ["", "/gc", "../gc", "event/../gc", "event//gc", "event/", ".", "a\\b", "C:", "a\0b", "a\nb"] {
        assert!(matches!(dataset.table(numbers(name)), Err(Error::Internal(_))), "{name:?}");
        assert!(name == "/gc" || dataset.file(name, b"").is_err(), "{name:?}");
    }
    dataset.table(numbers("gc")).unwrap();
    assert!(dataset.table(numbers("gc")).is_err());
    assert!(dataset.file("gc.parquet", b"").is_err());
    dataset.set_partition(Some("..".into()));
    assert!(dataset.table(numbers("gc")).is_err());
}

#[test]
fn what_no_file_can_be_written_with_is_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    let create = |format, compression| {
        DatasetWriter::create(&folder.path().join("set"), DatasetOptions { compression, ..options(format, 1) })
    };
    assert!(matches!(create(Format::Arrow, Compression::Snappy), Err(Error::Usage(_))));
    assert!(matches!(create(Format::Parquet, Compression::Zstd(23)), Err(Error::Usage(_))));
    assert!(matches!(create(Format::Arrow, Compression::Zstd(0)), Err(Error::Usage(_))));
    assert!(names(folder.path()).is_empty());
}

#[test]
fn misuse_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut dataset = DatasetWriter::create(&folder.path().join("set"), options(Format::Parquet, 1)).unwrap();
    let table = dataset.table(numbers("gc")).unwrap();
    assert!(dataset.write(table, every_kind_batch(0, 1)).is_err());
    dataset.close_tables(&[]).unwrap();
    assert!(dataset.write(table, number_batch(0..1)).is_err());
    dataset.table(numbers("gc_pause")).unwrap();
    assert!(dataset.commit().is_err());
    assert!(names(folder.path()).is_empty());
}

/// The hidden directory in which a dataset grows.
fn growing(folder: &Path) -> std::path::PathBuf {
    fs::read_dir(folder).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn a_file_that_cannot_be_written_fails_the_dataset() {
    for format in [Format::Parquet, Format::Arrow] {
        let folder = tempfile::tempdir().unwrap();
        let mut dataset = DatasetWriter::create(&folder.path().join("set"), options(format, 2)).unwrap();
        let table = dataset.table(numbers("gc")).unwrap();
        for in_the_way in ["gc.parquet", "gc.arrow"] {
            fs::create_dir(growing(folder.path()).join(in_the_way)).unwrap();
        }
        let outcome = dataset.write(table, number_batch(0..9)).and_then(|()| dataset.close_tables(&[]).map(drop));
        assert!(
            matches!(&outcome, Err(Error::Io { path, .. }) if path.to_str().unwrap().contains("gc.")),
            "{outcome:?}"
        );
        assert!(dataset.write(table, number_batch(0..9)).is_err());
        assert!(dataset.commit().is_err());
        assert!(names(folder.path()).is_empty());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_io_error_and_nothing_is_committed() {
    let folder = tempfile::tempdir().unwrap();
    let mut dataset = DatasetWriter::create(&folder.path().join("set"), options(Format::Parquet, 1)).unwrap();
    let table = dataset.table(numbers("gc")).unwrap();
    // Random, so that no buffer can hold the compressed rows.
    let mut random = 1u64;
    let mut rows = || {
        number_batch((0..600_000).map(|_| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        }))
    };
    dataset.write(table, rows()).unwrap();
    // These are not behind the first ones: a row group of their own.
    dataset.write(table, rows()).unwrap();
    // Between two row groups the device that is always full takes the place of the file.
    let file = growing(folder.path()).join("gc.parquet");
    for _ in 0..10_000 {
        if file.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/full", &file).unwrap();
    let outcome = dataset.close_tables(&[]);
    let full = |source: &std::io::Error| source.kind() == std::io::ErrorKind::StorageFull;
    assert!(matches!(&outcome, Err(Error::Io { source, .. }) if full(source)), "{outcome:?}");
    assert!(dataset.commit().is_err());
    assert!(names(folder.path()).is_empty());
}
