//! Every sample against its snapshot: tables with their columns, of each column the first rows, the last one, the range of
//! its values, and a checksum where that is not all.
//!
//! A change of a snapshot is a change of what users get: review it (`cargo insta review`, or set INSTA_UPDATE=always),
//! and say in the commit why it is right.

use std::cmp::Ordering;
use std::fmt::Write;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use sha2::{Digest, Sha256};

use crate::support::dataset::Dataset;

/// Rows up to which a column is written in full.
const FEW: usize = 4;
/// Characters of a value.
const LONG: usize = 60;

/// A value as a person reads it; `-` is null.
fn cell(array: &ArrayRef, row: usize, debug: &str) -> String {
    if array.is_null(row) {
        return "-".to_owned();
    }
    if let DataType::Dictionary(..) = array.data_type() {
        let dictionary = array.as_any_dictionary();
        let key = dictionary.normalized_keys()[row];
        return dictionary.values().as_string::<i32>().value(key).to_owned();
    }
    // The name of the type, a bracket, the value with a comma, a bracket.
    let lines: Vec<&str> = debug.lines().skip(2).map(str::trim).collect();
    let value = lines[..lines.len() - 1].join(" ");
    value.strip_suffix(',').unwrap_or(&value).to_owned()
}

fn by_value(a: &String, b: &String) -> Ordering {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) if x != y => x.total_cmp(&y),
        _ => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
    }
}

/// The values of a column: all where they are few or the same, or else the first two, the last, the least, the largest, and
/// the first bytes of the SHA-256 over all, free of encodings and batch sizes.
fn column(chunks: &[&ArrayRef]) -> String {
    let mut hash = Sha256::new();
    let mut values = Vec::new();
    for array in chunks {
        for row in 0..array.len() {
            let debug = format!("{:?}", array.slice(row, 1));
            values.push(cell(array, row, &debug));
            hash.update(debug);
        }
    }
    let nulls = chunks.iter().map(|array| array.null_count()).sum::<usize>();
    let short = |value: &String| {
        let plain = value.escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'");
        match plain.char_indices().nth(LONG) {
            Some((at, _)) => format!("{}... of {} characters", &plain[..at], plain.chars().count()),
            None => plain,
        }
    };
    let is_whole = |value: &&String| value.chars().count() <= LONG;
    let all_same = values.iter().all(|value| *value == values[0]);
    if (all_same || values.len() <= FEW) && values.iter().all(|value| is_whole(&value)) {
        return match all_same {
            true if values.len() > 1 => format!("all {}", short(&values[0])),
            _ => values.iter().map(short).collect::<Vec<_>>().join(", "),
        };
    }
    let mut out = values.iter().take(2).map(short).collect::<Vec<_>>().join(", ");
    if let Some(last) = values.get(2..).and_then(<[String]>::last) {
        write!(out, " .. {}", short(last)).unwrap();
    }
    let known = || values.iter().filter(|value| *value != "-");
    if let (Some(least), Some(most)) = (known().min_by(|a, b| by_value(a, b)), known().max_by(|a, b| by_value(a, b)))
        && values.len() > 1
    {
        write!(out, " | {} to {}", short(least), short(most)).unwrap();
    }
    if nulls > 0 {
        write!(out, " | {nulls} null").unwrap();
    }
    let checksum: String = hash.finalize().iter().take(4).map(|b| format!("{b:02x}")).collect();
    out + " | " + &checksum
}

fn describe(recording: &Path) -> String {
    let dataset = Dataset::of(recording);
    let mut out = String::new();
    let input = &dataset.summary.inputs[0];
    writeln!(
        out,
        "{} events, {} full, {} partial, {} raw, {} collections, complete {}",
        input.events, input.decoded_full, input.decoded_partial, input.raw, input.collections, input.complete
    )
    .unwrap();
    for p in &input.problems {
        writeln!(out, "{} {} rows {} count {}: {}", p.severity.as_str(), p.code, p.rows, p.count, p.message).unwrap();
    }
    for table in &dataset.summary.tables {
        writeln!(out, "\n{} {} rows", table.name, table.rows).unwrap();
        let read = dataset.table(&table.name);
        let Some(first) = read.batches.first() else { continue };
        for (index, field) in first.schema().fields().iter().enumerate() {
            // The path of the recording depends on where the project lies.
            if table.name == "trace" && field.name() == "path" {
                continue;
            }
            let kind = match field.data_type() {
                DataType::Dictionary(..) => "word".to_owned(),
                other => other.to_string(),
            };
            let chunks: Vec<&ArrayRef> = read.batches.iter().map(|batch| batch.column(index)).collect();
            writeln!(out, "  {} {kind}: {}", field.name(), column(&chunks)).unwrap();
        }
    }
    out
}

#[test]
fn every_sample_gives_the_tables_of_its_snapshot() {
    insta::glob!("../../samples", "*.{nettrace,corprof,etl}", |path| {
        let text = describe(path);
        insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => "../snapshots" }, {
            insta::assert_snapshot!(text);
        });
    });
}

/// Rows of `method`, or of the payload table of an event about methods: numbers and texts.
fn methods(dataset: &Dataset, table: &str, numbers: [&str; 3], texts: [&str; 3]) -> Vec<([u64; 3], [String; 3])> {
    let table = dataset.table(table);
    let [id, start, module] = numbers.map(|name| table.numbers(name));
    let [namespace, name, signature] = texts.map(|name| table.texts(name));
    let row =
        |at: usize| ([id[at], start[at], module[at]], [&namespace, &name, &signature].map(|column| column[at].clone()));
    (0..table.rows()).map(row).collect()
}

#[test]
fn methods_are_those_that_events_tell_each_once() {
    let dataset = Dataset::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/stacks.nettrace"));
    let ours = ["method_id", "start_address", "module_id"];
    let mut ours = methods(&dataset, "method", ours, ["namespace", "name", "signature"]);
    let mut reported = Vec::new();
    let events = [
        "DotNETRuntime/MethodLoadVerbose",
        "DotNETRuntime/MethodUnloadVerbose",
        "DotNETRuntimeRundown/MethodDCEndVerbose",
    ];
    for event in events {
        let numbers = ["method_id", "method_start_address", "module_id"];
        let texts = ["method_namespace", "method_name", "method_signature"];
        reported.extend(methods(&dataset, &format!("event/Microsoft-Windows-{event}"), numbers, texts));
    }
    assert!(reported.len() > 800);
    ours.sort();
    reported.sort();
    reported.dedup();
    assert_eq!(ours, reported);
    let main = ours.iter().find(|(_, [_, name, _])| name == "Main").expect("the program's Main");
    assert!(main.0[1] > 0 && main.1[2].contains("System.String[]"), "{main:?}");
}
