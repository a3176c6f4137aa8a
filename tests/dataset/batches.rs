//! Batches in memory: the tables and rows of a dataset, chosen tables, an early end, several recordings, and what is
//! damaged.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use tracequet::dataset::error::Error;
use tracequet::dataset::read::Dataset;
use tracequet::dataset::read::arrow_array::cast::AsArray;
use tracequet::dataset::read::arrow_array::types::Int32Type;
use tracequet::dataset::read::arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use tracequet::trace::error::Error as TraceError;
use tracequet::{AddressType, Convert, Format, Identities, Summary, batches, convert, tables};

type Collected = BTreeMap<String, Vec<RecordBatch>>;

fn collect(request: &Convert) -> (Collected, Summary) {
    let mut found = Collected::new();
    let mut receive = |rows: tracequet::Rows<'_>| {
        let known = found.entry(rows.table.to_owned()).or_default();
        assert!(!known.is_empty() || rows.rows.num_rows() == 0, "{}: the first batch has the columns", rows.table);
        known.push(rows.rows);
        ControlFlow::Continue(())
    };
    let summary = batches(request, &mut receive, &mut |_| true).unwrap();
    (found, summary.expect("it was not ended"))
}

#[test]
#[cfg(not(feature = "cloud"))]
fn an_address_without_the_feature_fails_before_anything_is_read() {
    let request = Convert::default().inputs(["samples/gc-churn.nettrace", "https://host/a.nettrace"]).tables(["gc"]);
    let mut count = 0;
    let mut receive = |_: tracequet::Rows<'_>| {
        count += 1;
        ControlFlow::Continue(())
    };
    let refused = batches(&request, &mut receive, &mut |_| true).unwrap_err();
    assert!(matches!(&refused, Error::Usage(text) if text.contains("feature `cloud`")) && count == 0, "{refused}");
}

fn samples() -> Vec<std::path::PathBuf> {
    let all = std::fs::read_dir("samples").unwrap().map(|entry| entry.unwrap().path());
    let is_recording = |path: &std::path::PathBuf| {
        path.extension().is_some_and(|e| ["nettrace", "etl", "corprof"].iter().any(|known| e == *known))
    };
    let mut samples: Vec<_> = all.filter(is_recording).collect();
    samples.sort();
    assert!(samples.len() > 8);
    samples
}

/// An Arrow IPC file has plain text where we have a dictionary, also in lists and structs.
fn same_values(ours: &ArrayRef, theirs: &ArrayRef) -> bool {
    if ours.data_type() == theirs.data_type() {
        return ours == theirs;
    }
    if let Some(labels) = ours.as_dictionary_opt::<Int32Type>() {
        return labels.downcast_dict::<StringArray>().unwrap().into_iter().eq(theirs.as_string::<i32>().iter());
    }
    if let Some(fields) = ours.as_struct_opt() {
        return fields.columns().iter().zip(theirs.as_struct().columns()).all(|(a, b)| same_values(a, b));
    }
    let (ours, theirs) = (ours.as_list::<i32>(), theirs.as_list::<i32>());
    let same_row = |(a, b): (Option<ArrayRef>, Option<ArrayRef>)| match (a, b) {
        (Some(a), Some(b)) => a.len() == b.len() && same_values(&a, &b),
        (a, b) => a.is_none() && b.is_none(),
    };
    ours.len() == theirs.len() && ours.iter().zip(theirs.iter()).all(same_row)
}

/// Whether two lists of batches have the same rows, wherever a batch of theirs ends.
fn same_rows(mut left: Vec<RecordBatch>, mut right: Vec<RecordBatch>) -> bool {
    left.reverse();
    right.reverse();
    loop {
        while left.last().is_some_and(|batch| batch.num_rows() == 0) {
            left.pop();
        }
        while right.last().is_some_and(|batch| batch.num_rows() == 0) {
            right.pop();
        }
        let (a, b) = match (left.pop(), right.pop()) {
            (None, None) => return true,
            (Some(a), Some(b)) => (a, b),
            _ => return false,
        };
        let rows = a.num_rows().min(b.num_rows());
        let (first, second) = (a.slice(0, rows), b.slice(0, rows));
        if !first.columns().iter().zip(second.columns()).all(|(a, b)| same_values(a, b)) {
            return false;
        }
        left.push(a.slice(rows, a.num_rows() - rows));
        right.push(b.slice(rows, b.num_rows() - rows));
    }
}

#[test]
fn the_batches_of_every_sample_are_the_tables_of_its_dataset() {
    for sample in samples() {
        let folder = tempfile::tempdir().unwrap();
        let request = Convert::new([&sample], folder.path().join("out")).format(Format::Arrow);
        let written = convert(&request, &mut |_| {}).unwrap();
        let (mut found, summary) = collect(&request);
        let listed = tables(&request).unwrap().remove(0);
        let dataset = Dataset::open(request.output_path()).unwrap();
        assert_eq!(summary.has_losses(), written.has_losses(), "{}", sample.display());
        assert_eq!(summary.tables.len(), written.tables.len());
        assert_eq!(found.len(), written.tables.len(), "{}", sample.display());
        assert_eq!(listed.len(), written.tables.len(), "{}", sample.display());
        for (table, listed) in written.tables.iter().zip(&listed) {
            let ours = found.remove(&table.name).unwrap();
            assert_eq!((&listed.name, listed.schema.fields()), (&table.name, ours[0].schema_ref().fields()));
            let theirs = dataset.recording(None).unwrap().table(&table.name).unwrap().scan().batches().unwrap();
            let theirs: Vec<_> = theirs.map(Result::unwrap).collect();
            assert!(
                same_rows(ours.clone(), theirs.clone()),
                "{}: {}\n{ours:?}\n{theirs:?}",
                sample.display(),
                table.name
            );
            // Alone, it has the same rows. Tried where reading it again is quick.
            let is_quick =
                ["gc-churn.nettrace", "described.etl", "callbacks.corprof"].iter().any(|n| sample.ends_with(n));
            if is_quick && table.rows > 0 && (table.name.starts_with("event/") || table.name.starts_with("gc")) {
                let one = Convert::default().inputs([&sample]).tables([listed.selection.clone()]);
                let (mut alone, _) = collect(&one);
                assert!(!alone.contains_key("trace") && !alone.contains_key("diagnostic"));
                let alone = alone.remove(&table.name).unwrap();
                assert!(same_rows(alone, ours), "{}: {} alone", sample.display(), table.name);
            }
        }
    }
}

#[test]
fn several_recordings_are_told_apart_and_a_broken_one_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.nettrace");
    std::fs::write(&broken, b"no recording").unwrap();
    let inputs = [Path::new("samples/gc-churn.nettrace"), &broken, Path::new("samples/events.nettrace")];
    let request = Convert::default().inputs(inputs).tables(["gc"]).address_type(AddressType::Int64);
    let mut counts = [0; 3];
    let mut receive = |rows: tracequet::Rows<'_>| {
        assert_eq!(rows.table, "gc");
        assert_eq!(rows.rows.schema_ref().field(0).name(), "trace_id");
        let has_unsigned = rows.rows.schema_ref().fields().iter().any(|f| f.data_type().to_string() == "UInt64");
        assert!(!has_unsigned);
        counts[rows.input] += rows.rows.num_rows();
        ControlFlow::Continue(())
    };
    let summary = batches(&request, &mut receive, &mut |_| true).unwrap().unwrap();
    assert_eq!(counts[0], 19);
    assert_eq!(counts[1], 0);
    assert_eq!(summary.failed.len(), 1);
    assert!(summary.failed[0].error.contains("at byte 0"), "{}", summary.failed[0].error);
    assert!(summary.has_losses());
    let alone = Convert::default().inputs([&broken]);
    assert!(matches!(
        batches(&alone, &mut |_| ControlFlow::Continue(()), &mut |_| true),
        Err(Error::Trace(TraceError::Unreadable { .. }))
    ));
    assert!(matches!(tables(&alone), Err(Error::Trace(TraceError::Unreadable { .. }))));
    let nothing = Convert::default();
    assert!(matches!(batches(&nothing, &mut |_| ControlFlow::Continue(()), &mut |_| true), Err(Error::Usage(_))));
}

#[test]
fn whoever_receives_or_watches_can_end_it() {
    for sample in ["samples/gc-churn.nettrace", "samples/callbacks.corprof"] {
        let request = Convert::default().inputs([sample]).tables(["gc_surviving_range"]);
        let mut batches_seen = 0;
        let mut receive = |rows: tracequet::Rows<'_>| {
            batches_seen += 1;
            if rows.rows.num_rows() > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        assert!(batches(&request, &mut receive, &mut |_| true).unwrap().is_none(), "{sample}");
        assert_eq!(batches_seen, 2, "{sample}");
        let mut reported = 0;
        let mut progress = |_| {
            reported += 1;
            false
        };
        assert!(batches(&request, &mut |_| ControlFlow::Continue(()), &mut progress).unwrap().is_none(), "{sample}");
        assert!(reported > 0, "{sample}");
    }
}

#[test]
fn recordings_that_are_read_again_are_hashed_once() {
    let identities = Identities::default();
    let request = Convert::default()
        .inputs(["samples/gc-churn.nettrace", "samples/events.nettrace"])
        .tables(["gc"])
        .identities(identities.clone());
    let keys =
        |request: &Convert| -> Vec<String> { collect(request).1.inputs.iter().map(|i| i.trace_id.clone()).collect() };
    assert!(identities.is_empty());
    let first = keys(&request);
    assert_eq!((identities.len(), first.len()), (2, 2));
    assert!(first[0].starts_with("gc-churn-"), "{first:?}");
    assert_eq!(keys(&request), first);
    // Whoever does not look at keys has no hash to wait for.
    assert_eq!(keys(&request.clone().identities(Identities::none())), ["gc-churn", "events"]);
    // The hash that the table `trace` has is the same one.
    let alone = Convert::default().inputs(["samples/gc-churn.nettrace"]).tables(["trace"]).identities(identities);
    assert_eq!(keys(&alone), first[..1]);
}
