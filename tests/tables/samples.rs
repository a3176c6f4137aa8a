//! Every sample against its snapshot: tables, columns, rows, and a checksum of each column's values.
//!
//! A change of a snapshot is a change of what users get: review it (`cargo insta review`, or set INSTA_UPDATE=always),
//! and say in the commit why it is right.

use std::fmt::Write;
use std::path::Path;

use arrow_array::{Array, ArrayRef};
use sha2::{Digest, Sha256};

use crate::support::dataset::Dataset;

/// The first bytes of the SHA-256 over the values as text: free of encodings and batch sizes.
fn checksum<'c>(chunks: impl Iterator<Item = &'c ArrayRef>) -> String {
    let mut hash = Sha256::new();
    let mut nulls = 0;
    for array in chunks {
        nulls += array.null_count();
        for row in 0..array.len() {
            let value = array.slice(row, 1);
            hash.update(format!("{value:?}"));
        }
    }
    let short: String = hash.finalize().iter().take(4).map(|b| format!("{b:02x}")).collect();
    if nulls > 0 { format!("{short} {nulls} null") } else { short }
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
            let sum = checksum(read.batches.iter().map(|b| b.column(index)));
            writeln!(out, "  {} {} {sum}", field.name(), field.data_type()).unwrap();
        }
    }
    out
}

#[test]
fn every_sample_gives_the_tables_of_its_snapshot() {
    insta::glob!("../../samples", "*.{nettrace,corprof}", |path| {
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
