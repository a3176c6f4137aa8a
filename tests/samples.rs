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
    insta::glob!("../samples", "*.nettrace", |path| {
        let text = describe(path);
        insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => "snapshots" }, {
            insta::assert_snapshot!(text);
        });
    });
}
