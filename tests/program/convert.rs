//! `tracequet convert` as a person types it, and the files that it leaves: encodings, footers, order, losses.

use std::path::Path;
use std::process::{Command, Output};

use parquet::basic::Encoding;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value as Json;
use tracequet::dataset::table::schema;
use tracequet::dataset::table_spec::Encoding as ColumnEncoding;
use tracequet::{AddressType, Convert, Format};

use crate::support::dataset::{Dataset, Table};
use crate::support::files::sample;

fn tracequet(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracequet"));
    command.args(arguments).output().expect("the binary runs")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("no signal")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Names of all tables of a dataset, from its manifest.
fn manifest(dataset: &Path) -> Json {
    let text = std::fs::read_to_string(dataset.join("manifest.json")).expect("a manifest");
    serde_json::from_str(&text).expect("valid JSON")
}

fn table_names(dataset: &Path) -> Vec<String> {
    let tables = manifest(dataset)["tables"].as_array().expect("tables").clone();
    tables.iter().map(|t| t["name"].as_str().expect("a name").to_owned()).collect()
}

fn open(dataset: &Path, table: &str) -> SerializedFileReader<std::fs::File> {
    let file = std::fs::File::open(dataset.join(format!("{table}.parquet"))).expect(table);
    SerializedFileReader::new(file).expect(table)
}

#[test]
fn every_table_is_written_even_when_it_is_empty() {
    let dataset = Dataset::of(&sample("events.nettrace"));
    let names = table_names(&dataset.path());
    for table in schema::all().unwrap().iter().filter(|t| t.name != schema::EVENT_HEADER) {
        assert!(names.contains(&table.name), "{} is missing", table.name);
        let metadata = open(&dataset.path(), &table.name);
        let columns: Vec<_> = metadata.metadata().file_metadata().schema_descr().root_schema().get_fields().to_vec();
        let found: Vec<&str> = columns.iter().map(|c| c.name()).collect();
        let wanted: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(found, wanted, "columns of {}", table.name);
    }
    assert_eq!(dataset.table("gc").rows(), 0);
    assert!(dataset.table("event/Tracequet-Churn/Numbers").rows() > 0);
}

/// Encodings of a top-level column's chunks in one row group.
fn encodings(group: &RowGroupMetaData, column: &str) -> Vec<Encoding> {
    let chunks = group.columns().iter().filter(|c| c.column_path().parts().first().is_some_and(|p| p == column));
    chunks.flat_map(|c| c.encodings().collect::<Vec<_>>()).collect()
}

#[test]
fn files_have_the_encodings_footers_and_order_of_their_schemas() {
    let mut checked = 0;
    for name in ["gc-churn.nettrace", "heap.nettrace", "server-gc.nettrace", "gc-churn-3.1.nettrace"] {
        let dataset = Dataset::of(&sample(name));
        for table in schema::all().unwrap().iter().filter(|t| t.name != schema::EVENT_HEADER) {
            let reader = open(&dataset.path(), &table.name);
            let metadata = reader.metadata();
            let pairs = metadata.file_metadata().key_value_metadata().cloned().unwrap_or_default();
            let value = |key: &str| pairs.iter().find(|p| p.key == key).and_then(|p| p.value.clone());
            assert_eq!(value("tracequet.source_name").as_deref(), Some(name));
            assert_eq!(value("tracequet.source_blake3").map(|s| s.len()), Some(64));
            assert_eq!(value("tracequet.pointer_size").as_deref(), Some("8"));
            assert_eq!(value("tracequet.dropped_event_count").as_deref(), Some("0"));
            assert!(value("tracequet.schema_version").is_some() && value("tracequet.trace_start").is_some());
            for group in metadata.row_groups() {
                assert!(group.num_rows() <= 1 << 20);
                for column in &table.columns {
                    let found = encodings(group, &column.name);
                    let dictionary = found.contains(&Encoding::RLE_DICTIONARY);
                    let delta = found.contains(&Encoding::DELTA_BINARY_PACKED);
                    let fits = match column.encoding {
                        ColumnEncoding::Delta => delta && !dictionary,
                        // Truth values have no dictionary in Parquet.
                        ColumnEncoding::Dictionary => dictionary || column.kind == "bool",
                        ColumnEncoding::Plain => !dictionary && !delta,
                    };
                    assert!(fits, "{}.{} of {name}: {found:?}", table.name, column.name);
                    checked += 1;
                }
                let sorting: Vec<i32> = group.sorting_columns().into_iter().flatten().map(|s| s.column_idx).collect();
                let wanted: Vec<i32> = table
                    .sorted_by
                    .iter()
                    .map(|s| table.columns.iter().position(|c| c.name == *s).unwrap() as i32)
                    .collect();
                assert_eq!(sorting, wanted, "sort order of {}", table.name);
            }
        }
        for (table, start) in [("gc_surviving_range", "range_start"), ("gc_moved_range", "old_range_start")] {
            let table = dataset.table(table);
            let keys: Vec<_> = table.numbers("gc_id").into_iter().zip(table.numbers(start)).collect();
            assert!(keys.is_sorted(), "{name}");
        }
    }
    assert!(checked > 300, "{checked}");
}

#[test]
fn payload_tables_begin_with_the_header_and_end_with_what_was_not_decoded() {
    let dataset = Dataset::of(&sample("gc-churn.nettrace"));
    let header = schema::of(schema::EVENT_HEADER).unwrap();
    let mut tables = 0;
    for name in table_names(&dataset.path()).iter().filter(|n| n.starts_with("event/")) {
        let reader = open(&dataset.path(), name);
        let fields = reader.metadata().file_metadata().schema_descr().root_schema().get_fields().to_vec();
        let found: Vec<&str> = fields.iter().map(|f| f.name()).collect();
        let begins: Vec<&str> = header.columns.iter().map(|c| c.name.as_str()).collect();
        assert!(found.starts_with(&begins), "{name}: {found:?}");
        assert!(found.ends_with(&["raw_payload", "decode_problem"]), "{name}: {found:?}");
        tables += 1;
    }
    assert!(tables > 25, "{tables}");
    let start = dataset.table("event/Microsoft-Windows-DotNETRuntime/GCStart");
    assert_eq!(start.numbers("count"), dataset.table("gc").numbers("gc_number"));
}

#[test]
fn versions_of_one_event_share_a_table() {
    let dataset = Dataset::of(&sample("gc-churn-3.1.nettrace"));
    let columns = |d: &Dataset, table: &str| -> Vec<String> {
        let batch = &d.table(table).batches[0];
        batch.schema().fields().iter().map(|f| f.name().clone()).collect()
    };
    // .NET Core 3.1 sends GCHeapStats version 1, .NET 10 version 2, which has the pinned heap: the columns are the
    // same.
    let newer = Dataset::of(&sample("gc-churn.nettrace"));
    let name = "event/Microsoft-Windows-DotNETRuntime/GCHeapStats";
    assert_eq!(columns(&dataset, name), columns(&newer, name));
    assert!(dataset.table(name).rows() > 0 && newer.table(name).rows() > 0);
    assert!(dataset.table(name).optional("generation_size4").iter().all(Option::is_none));
    assert!(newer.table(name).optional("generation_size4").iter().all(Option::is_some));
    assert!(dataset.table(name).numbers("event_version").iter().all(|v| *v == 1));
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let read = |out: &Path| {
        let mut files = Vec::new();
        for name in table_names(out) {
            files.push((name.clone(), std::fs::read(out.join(format!("{name}.parquet"))).unwrap()));
        }
        files.push(("manifest.json".into(), std::fs::read(out.join("manifest.json")).unwrap()));
        files
    };
    let input = sample("gc-churn.nettrace");
    let (a, b) = (directory.path().join("a"), directory.path().join("b"));
    for out in [&a, &b] {
        assert_eq!(code(&tracequet(&["convert", input.to_str().unwrap(), "-o", out.to_str().unwrap()])), 0);
    }
    assert!(read(&a) == read(&b));
}

#[test]
fn selections_leave_out_what_was_not_asked_for() {
    let of = |tables: &[&str], providers: &[&str]| {
        Dataset::with(
            Convert::default()
                .inputs([sample("gc-churn.nettrace")])
                .tables(tables.iter().copied())
                .providers(providers.iter().copied()),
        )
    };
    let some = of(&["gc", "event/Microsoft-DotNETCore-EventPipe"], &[]);
    let names = table_names(&some.path());
    assert_eq!(names, ["trace", "trace_label", "diagnostic", "gc", "event/Microsoft-DotNETCore-EventPipe/ProcessInfo"]);
    let one = of(&[], &["Microsoft-DotNETCore-EventPipe"]);
    assert_eq!((one.summary.inputs[0].events, one.table("gc").rows()), (1, 0));
}

#[test]
fn a_span_of_time_is_half_open() {
    let all = Dataset::of(&sample("gc-churn.nettrace"));
    let starts: Vec<i64> = all.table("gc").signed("start_ts_ns").into_iter().flatten().collect();
    let (from, to) = (starts[3], starts[7]);
    let request =
        |from_ns, to_ns| Convert::default().inputs([sample("gc-churn.nettrace")]).from_ns(from_ns).to_ns(to_ns);
    let part = Dataset::with(request(Some(from), Some(to)));
    let found: Vec<i64> =
        part.table("event/Microsoft-Windows-DotNETRuntime/GCStart").signed("ts_ns").into_iter().flatten().collect();
    assert_eq!(found, starts[3..7]);
    let rest = Dataset::with(request(Some(to), None)).summary.inputs[0].events;
    let begin = Dataset::with(request(None, Some(from))).summary.inputs[0].events;
    assert_eq!(begin + part.summary.inputs[0].events + rest, all.summary.inputs[0].events);
}

#[test]
fn a_cut_recording_gives_its_whole_events_a_row_with_the_offset_and_exit_code_2() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(sample("gc-churn.nettrace")).unwrap();
    let whole = Dataset::of(&sample("gc-churn.nettrace")).summary.inputs[0].events;
    let mut before = 0;
    for cut in [500, 5_000, 40_001, 123_456, bytes.len() - 1] {
        let input = directory.path().join("cut.nettrace");
        std::fs::write(&input, &bytes[..cut]).unwrap();
        let out = directory.path().join("out");
        let (input, out_text) = (input.to_str().unwrap(), out.to_str().unwrap());
        let output = tracequet(&["convert", input, "-o", out_text, "--overwrite", "--json"]);
        assert_eq!(code(&output), 2, "{}", text(&output.stderr));
        let diagnostic = Table::open(&out.join("diagnostic.parquet"));
        let codes = diagnostic.texts("code");
        let row = codes.iter().position(|c| c == "truncated" || c == "no_end_mark").expect("a row for the cut");
        assert_eq!(diagnostic.numbers("byte_offset")[row], cut as u64);
        let trace = Table::open(&out.join("trace.parquet"));
        let events = trace.numbers("event_count")[0];
        assert!(events >= before && events <= whole);
        assert!(!trace.bools("complete")[0]);
        before = events;
    }
    assert_eq!(before, whole, "only the end mark was cut off");
}

#[test]
fn a_recording_of_a_process_that_died_converts() {
    let dataset = Dataset::of(&sample("exit-early.nettrace"));
    let input = &dataset.summary.inputs[0];
    assert!(!input.complete && input.has_losses() && input.events > 0);
    assert!(input.problems.iter().any(|p| p.code == "no_end_mark"));
}

/// .NET 10 describes `WriteEvent(byte[])` as an array with a 16-bit count, writes a 32-bit count and no bytes at all.
#[test]
fn a_payload_shorter_than_its_description_is_a_loss_and_stays_raw() {
    let dataset = Dataset::of(&sample("events.nettrace"));
    let problems = &dataset.summary.inputs[0].problems;
    let short = problems.iter().find(|p| p.code == "short_payload").expect("a short payload");
    assert!(dataset.summary.inputs[0].has_losses());
    let table = dataset.table("event/Tracequet-Churn-Described/Bytes");
    let stated = table.texts("decode_problem").into_iter().filter(|p| p.contains("ends inside")).count() as u64;
    assert_eq!(short.count, stated);
    let types = dataset.table("event_type");
    let row = types.texts("event_name").iter().position(|n| n == "Bytes").unwrap();
    assert_eq!((types.numbers("shorter_count")[row], types.texts("decoded")[row].as_str()), (stated, "partial"));
}

#[test]
fn unreadable_input_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let garbage = directory.path().join("garbage.nettrace");
    std::fs::write(&garbage, b"this is no recording at all").unwrap();
    let out = directory.path().join("out");
    let output = tracequet(&["convert", garbage.to_str().unwrap(), "-o", out.to_str().unwrap()]);
    assert_eq!(code(&output), 1);
    assert!(text(&output.stderr).contains("garbage.nettrace"), "{}", text(&output.stderr));
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["garbage.nettrace"]);
    // What is there already stays, unless asked otherwise.
    let input = sample("gc-churn.nettrace");
    let arguments = ["convert", input.to_str().unwrap(), "-o", out.to_str().unwrap()];
    assert_eq!(code(&tracequet(&arguments)), 0);
    let again = tracequet(&arguments);
    assert_eq!(code(&again), 1);
    assert!(text(&again.stderr).contains("--overwrite"), "{}", text(&again.stderr));
}

#[test]
fn overwrite_keeps_its_own_input_and_what_others_put_there() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let run = |input: &Path| {
        tracequet(&["convert", input.to_str().unwrap(), "-o", out.to_str().unwrap(), "--overwrite", "--quiet"])
    };
    assert_eq!(code(&run(&sample("gc-churn.nettrace"))), 0);
    // Nothing of its own is in the way. (2: not all of these events are decoded.)
    assert_eq!(code(&run(&sample("events.nettrace"))), 2);
    let (inside, notes) = (out.join("mine.nettrace"), out.join("event/notes.txt"));
    std::fs::copy(sample("gc-churn.nettrace"), &inside).unwrap();
    let refused = run(&inside);
    assert!(code(&refused) == 1 && text(&refused.stderr).contains("holds the input"), "{}", text(&refused.stderr));
    std::fs::remove_file(&inside).unwrap();
    std::fs::write(&notes, b"mine").unwrap();
    let refused = run(&sample("gc-churn.nettrace"));
    assert!(code(&refused) == 1 && text(&refused.stderr).contains("notes.txt"), "{}", text(&refused.stderr));
    std::fs::remove_file(&notes).unwrap();
    assert_eq!(code(&run(&sample("gc-churn.nettrace"))), 0);
}

#[test]
fn several_recordings_make_one_dataset() {
    let dataset =
        Dataset::with(Convert::default().inputs([sample("gc-churn.nettrace"), sample("gc-churn-3.1.nettrace")]));
    let one = dataset.path().join("gc/trace=gc-churn-47551c824a692fa9/part-0.parquet");
    let two = dataset.path().join("gc/trace=gc-churn-3.1-10af64f469e6f7db/part-0.parquet");
    assert_eq!(Table::open(&one).texts("trace_id"), vec!["gc-churn-47551c824a692fa9"; 19]);
    assert_eq!(Table::open(&two).texts("trace_id"), vec!["gc-churn-3.1-10af64f469e6f7db"; 19]);
    let rows = dataset.summary.tables.iter().find(|t| t.name == "gc").unwrap().rows;
    assert_eq!(rows, 38);
}

#[test]
fn addresses_keep_their_bits_in_signed_columns() {
    let request = |address_type| Convert::default().inputs([sample("heap.nettrace")]).address_type(address_type);
    let signed = Dataset::with(request(AddressType::Int64)).table("heap_object");
    let plain = Dataset::with(request(AddressType::Uint64)).table("heap_object");
    let bits: Vec<u64> = signed.signed("object_id").into_iter().map(|v| v.unwrap() as u64).collect();
    assert!(!bits.is_empty());
    assert_eq!(bits, plain.numbers("object_id"));
}

#[test]
fn arrow_files_hold_the_same_rows() {
    let request = |format| Convert::default().inputs([sample("gc-churn.nettrace")]).format(format);
    let parquet = Dataset::with(request(Format::Parquet));
    let arrow = Dataset::with(request(Format::Arrow));
    for name in table_names(&parquet.path()) {
        let file = std::fs::File::open(arrow.path().join(format!("{name}.arrow"))).unwrap();
        let reader = arrow_ipc::reader::FileReader::try_new(file, None).unwrap();
        let rows: usize = reader.map(|b| b.unwrap().num_rows()).sum();
        assert_eq!(rows, parquet.table(&name).rows(), "{name}");
    }
}

#[test]
fn heap_walks_join_objects_and_references() {
    for name in ["heap.nettrace", "heap-10.nettrace"] {
        let dataset = Dataset::of(&sample(name));
        let objects = dataset.table("heap_object");
        let references = dataset.table("heap_reference");
        let total: u64 = objects.numbers("reference_count").iter().sum();
        assert_eq!(references.rows() as u64, total, "{name}");
        let known: std::collections::BTreeSet<u64> = objects.numbers("object_id").into_iter().collect();
        assert!(references.numbers("object_id").iter().all(|o| known.contains(o)), "{name}");
        let inside = references.numbers("target_object_id").iter().filter(|o| known.contains(o)).count();
        assert!(inside * 10 > references.rows() * 9, "{name}: targets are objects of the same walk");
        // The program's own graph: 202 cities and 400 roads.
        let types = dataset.table("type");
        let names: std::collections::BTreeMap<u64, String> =
            types.numbers("type_id").into_iter().zip(types.texts("name")).collect();
        let count = |end: &str| {
            let ids = objects.numbers("type_id");
            ids.iter().filter(|t| names.get(t).is_some_and(|n| n.ends_with(end))).count()
        };
        assert_eq!((count("City"), count("Road")), (202, 400), "{name}");
        assert!(dataset.table("gc_weak_element").rows() > 0);
    }
}

/// A small file can name more kinds of events than there may be tables: memory stays bounded, and the loss is reported.
#[cfg(target_os = "linux")]
#[test]
fn kinds_of_events_without_end_do_not_take_memory_without_end() {
    use crate::support::writer::{Form, Kind, Row, Writer};
    let names: Vec<String> = (0..6000).map(|i| format!("Kind{i}")).collect();
    let kinds: Vec<Kind<'_>> =
        (1u32..).zip(&names).map(|(id, name)| Kind { id, provider: "Many", event_id: id, version: 0, name }).collect();
    let row = |(id, sequence): (u32, u32)| Row { metadata_id: id, sequence, ticks: i64::from(id), ..Row::default() };
    let rows: Vec<Row> = (1..=6000).zip(1..).map(row).collect();
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("many.nettrace");
    std::fs::write(&input, Writer::new(Form::V4).metadata(&kinds).events(&rows).end()).unwrap();
    // 800 MB of address space, which is more than what is resident: without a bound this took gigabytes.
    let script = format!(
        "ulimit -v 800000; exec {} convert {} -o {} --json",
        env!("CARGO_BIN_EXE_tracequet"),
        input.display(),
        directory.path().join("out").display()
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(code(&output), 2, "{}", text(&output.stderr));
    let types = Table::open(&directory.path().join("out/event_type.parquet"));
    assert_eq!(types.rows(), 6000);
    let diagnostic = Table::open(&directory.path().join("out/diagnostic.parquet"));
    assert!(diagnostic.texts("code").contains(&"too_many_event_tables".to_owned()));
}

#[test]
fn a_process_counts_all_of_its_events() {
    for name in ["events.nettrace", "stacks.nettrace"] {
        let dataset = Dataset::of(&sample(name));
        let counts = dataset.table("process").numbers("event_count");
        assert_eq!(counts.iter().sum::<u64>(), dataset.summary.inputs[0].events, "{name}");
    }
}

/// A session of Visual Studio as DiagnosticsHub packs it: resources by their ids, and metadata that names them.
#[test]
fn the_recordings_of_a_diagsession_are_converted() {
    let folder = tempfile::tempdir().unwrap();
    let packed = |name: &str, files: &[(&str, &str)]| {
        let path = folder.path().join(name);
        let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        let mut resources = String::new();
        let mut file = |name: &str, bytes: &[u8]| {
            zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            std::io::Write::write_all(&mut zip, bytes).unwrap();
        };
        for (resource, of) in files {
            file(resource, &std::fs::read(sample(of)).unwrap());
            let (prefix, name) = resource.split_once('/').unwrap();
            resources += &format!("<Resource Name=\"{name}\" ResourcePackageUriPrefix=\"{prefix}\"/>");
        }
        let head = "<Package xmlns=\"urn:diagnosticshub-package-metadata-2-1\"><Content>";
        file("metadata.xml", format!("{head}{resources}</Content></Package>").as_bytes());
        file("[Content_Types].xml", b"<Types/>");
        zip.finish().unwrap();
        path
    };
    let out = folder.path().join("out");
    let converted = |session: &Path| -> Vec<String> {
        let arguments = ["convert", session.to_str().unwrap(), "--overwrite", "-o", out.to_str().unwrap()];
        let output = tracequet(&arguments);
        assert!(matches!(code(&output), 0 | 2), "{}", text(&output.stderr));
        Dataset::open_paths(&out)
    };
    // The .NET Object Allocation tool packs one recording, here beside a file of another kind.
    let one =
        packed("alloc.diagsession", &[("2C1A/dotnetalloc.nettrace", "events.nettrace"), ("9F00/app.pdb", "Churn.pdb")]);
    assert_eq!(converted(&one), [one.to_str().unwrap()]);
    // Of several tools.
    let several = packed(
        "Report20261127-2010.diagsession",
        &[
            ("1F6D/sc.user_aux.etl", "clr.etl"),
            ("2C1A/app.nettrace", "events.nettrace"),
            ("33E0/1.gcdump", "heap-10.gcdump"),
        ],
    );
    let name = |entry: &str| format!("{}/{entry}", several.display());
    let expected = [name("1F6D/sc.user_aux.etl"), name("2C1A/app.nettrace"), name("33E0/1.gcdump")];
    assert_eq!(converted(&several), expected);
    // dotnet-monitor packs a dump of the process, which is no recording.
    let dump = packed("dump.diagsession", &[("77B6/core_1", "Churn.pdb")]);
    let refused = tracequet(&["convert", dump.to_str().unwrap(), "-o", folder.path().join("none").to_str().unwrap()]);
    assert!(code(&refused) != 0 && text(&refused.stderr).contains("no .nettrace"), "{}", text(&refused.stderr));
}

/// BenchmarkDotNet names a recording after the benchmark with its parameters, which may be any text.
#[test]
fn a_name_may_have_quotes_and_what_patterns_are_made_of() {
    let folder = tempfile::tempdir().unwrap();
    let name = "Shop.Bench.Md5(N_ 1000, Key_ 'a*b' [c]?)-20261127-201000.nettrace";
    let name = if cfg!(windows) {
        name.replace(['*', '?'], "_")
    } else {
        name.replace("_ ", ": ").replace("'a*b'", "\"a*b\"")
    };
    let path = folder.path().join(&name);
    std::fs::copy(sample("gc-churn.nettrace"), &path).unwrap();
    // Beside it is one that the name would fit as a pattern.
    std::fs::copy(sample("stacks.nettrace"), folder.path().join(name.replace('*', "xyz"))).unwrap();
    let out = folder.path().join("out");
    let output = tracequet(&["convert", path.to_str().unwrap(), "-o", out.to_str().unwrap()]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    assert_eq!(Dataset::open_paths(&out), [path.to_str().unwrap()]);
    let opened = tracequet::dataset::read::Dataset::open(&out).unwrap();
    let key = &opened.recordings()[0].trace_id;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    assert!(key.chars().all(is_plain) && key.starts_with("Shop.Bench.Md5_N_"), "{key}");
}
