//! What answers over a dataset hold of its tables in memory is bounded.

use tracequet::analyze::{cohort, heap, lifetime, metrics, profile, survived};
use tracequet::dataset::error::Error;
use tracequet::dataset::read::{Dataset, Recording};
use tracequet::{Convert, convert};

/// The answers of which a table (or its text) has more than is held, with that table.
fn refused(recording: &Recording<'_>) -> Vec<(&'static str, String)> {
    let answers = [
        ("metrics", metrics::metrics(recording).map(drop)),
        ("snapshots", heap::snapshots(recording).map(drop)),
        ("cohorts", cohort::cohorts(recording, |_| ())),
        ("lifetimes", lifetime::lifetimes_by(recording, lifetime::By::Type, |_| true).map(drop)),
        ("survived", survived::survived(recording, 1, 0, true).map(drop)),
        ("profile", profile::read(recording, profile::What::Cpu).map(drop)),
    ];
    let table = |error: Error| {
        let message = error.to_string();
        let (_, rest) = message.split_once(" more than ")?;
        let (_, what) = rest.split_once(" rows of ").or_else(|| rest.split_once(" bytes of "))?;
        Some(what.split(" that are").next()?.to_owned())
    };
    answers.into_iter().filter_map(|(name, answer)| Some((name, table(answer.err()?)?))).collect()
}

#[test]
fn rows_that_are_needed_at_a_time_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    // Walks of the heap; samples; ranges.
    for (sample, expected) in [
        ("heap", &[("snapshots", "gc")][..]),
        ("stacks", &[("profile", "frame"), ("profile", "text in frame"), ("metrics", "metric")]),
        ("gc-churn", &[("cohorts", "gc"), ("cohorts", "ranges"), ("survived", "gc")]),
        ("gc-churn", &[("survived", "ranges"), ("profile", "callsite")]),
    ] {
        let path = folder.path().join(sample);
        if !path.exists() {
            convert(&Convert::new([format!("samples/{sample}.nettrace")], &path), &mut |_| {}).unwrap();
        }
        let dataset = Dataset::open(&path).unwrap();
        let refused = |max_held| refused(&dataset.clone().holding(max_held).recording(None).unwrap());
        assert_eq!(refused(2 << 30), [], "{sample}");
        let found: Vec<_> = (0..24).flat_map(|n| [2, 3].map(|half| refused((half << n) / 2))).flatten().collect();
        for (answer, table) in expected {
            let is_it = |(name, what): &(&str, String)| name == answer && what == table;
            assert!(found.iter().any(is_it), "{answer} {table}: {found:?}");
        }
    }
}
