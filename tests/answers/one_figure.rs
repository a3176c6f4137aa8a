//! One figure on every surface: processor time and allocations are the same number in exports, on the page, in views,
//! metrics and differences.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tracequet::analyze::metrics::metrics;
use tracequet::dataset::read::Dataset;

use super::diff::{diff, section};
use super::export::{fields, numbers, sums};
use super::report::nodes;
use crate::support::expected::shared_folder;
use crate::support::files::{files, sample};
use crate::support::program::run;

/// The recordings of `samples/`, without those that are there many times.
fn recordings() -> Vec<PathBuf> {
    let folder = sample("");
    let is_one = |name: &&String| {
        let is_of_many = ["ci/", "figures/", "habits/"].iter().any(|folder| name.starts_with(folder));
        !is_of_many && [".nettrace", ".nettrace.zst", ".etl"].iter().any(|end| name.ends_with(end))
    };
    files(&folder).keys().filter(is_one).map(|name| folder.join(name)).collect()
}

/// What views and tables say of a dataset: samples of processor by site, method and assembly, those without a stack,
/// bytes of allocations by site, those without a stack.
const VIEWS: &str = "
import json, os, sys, duckdb
os.chdir(sys.argv[1])
connection = duckdb.connect()
connection.execute('SET enable_progress_bar = false')
connection.execute(open('views.sql').read())
one = lambda query: connection.execute(query).fetchone()[0] or 0
ran = \"kind IS DISTINCT FROM 'idle' AND kind IS DISTINCT FROM 'external'\"
counted = 'SEMI JOIN allocation_source u ON u.trace_id = a.trace_id AND u.source = a.source'
print(json.dumps([int(one(query)) for query in [
    'SELECT sum(samples) FROM cpu_by_site', 'SELECT sum(exclusive_samples) FROM cpu_by_method',
    'SELECT sum(samples) FROM cpu_by_assembly',
    f'SELECT sum(sample_count) FROM cpu_sample WHERE callsite_id = 0 AND {ran}',
    'SELECT sum(allocation_bytes) FROM allocation_by_site',
    f'SELECT sum(allocation_bytes) FROM allocation a {counted} WHERE callsite_id = 0']]))
";

#[test]
fn processor_time_and_allocations_are_one_number_on_every_surface() {
    let test = "processor_time_and_allocations_are_one_number_on_every_surface";
    let Some(python) = crate::support::python::python(test) else { return };
    let mut compared = [0, 0];
    for recording in recordings() {
        let folder = tempfile::tempdir().unwrap();
        let set = folder.path().join("set").to_str().unwrap().to_owned();
        let made = run(&["convert", "-q", recording.to_str().unwrap(), "-o", &set]);
        assert!(matches!(made.code, Some(0 | 2)), "{recording:?}: {}", made.err);
        // `diff` of a recording with losses warns and exits with 2: those without are enough here.
        if made.code == Some(2) {
            continue;
        }
        let views = Command::new(&python).args(["-c", VIEWS, &set]).output().unwrap();
        assert!(views.status.success(), "{recording:?}: {} {}", views.status, String::from_utf8_lossy(&views.stderr));
        let [by_site, by_method, by_assembly, stackless, bytes_by_site, bytes_stackless]: [u64; 6] =
            serde_json::from_slice(&views.stdout).unwrap();
        assert_eq!([by_method, by_assembly], [by_site; 2], "{recording:?}");
        let dataset = Dataset::open(&set).unwrap();
        let metrics = metrics(&dataset.recording(None).unwrap()).unwrap();
        let metric = |name: &str| metrics.iter().find(|metric| metric.name == name).and_then(|metric| metric.value);
        let page = run(&["report", &set]).out;
        let answer = diff(&[&set, &set]);
        let total = |what: &str, of: &str| section(&answer, what)["base"]["total"][of].as_f64().unwrap_or_default();
        if by_site + stackless > 0 {
            let samples = (by_site + stackless) as f64;
            let found = (metric("cpu.samples"), total("cpu", "count"));
            assert_eq!(found, (Some(samples), samples), "{recording:?}");
        }
        for (place, (what, graph, without, is_there)) in [
            ("cpu", "flame-cpu", stackless, by_site > 0),
            ("allocation", "flame-allocations", bytes_stackless, bytes_by_site > 0),
        ]
        .into_iter()
        .enumerate()
        {
            if !is_there || without > 0 {
                continue;
            }
            let expected = total(what, "amount");
            let exported = sums(&[&set, "--what", what]);
            assert_eq!(exported.map(|sum| sum as f64), [expected; 5], "{recording:?} {what}");
            assert_eq!(nodes(&page, graph)[0].2, expected, "{recording:?} {what}");
            if what == "allocation" {
                assert_eq!(bytes_by_site as f64, expected, "{recording:?}");
            }
            compared[place] += 1;
        }
    }
    assert!(compared.iter().all(|count| *count >= 5), "{compared:?}");
}

/// A thread that sleeps takes no processor time, however often it is sampled.
#[test]
fn threads_that_wait_take_no_processor_time() {
    let path = sample("stacks.nettrace");
    let json = |samples: &str| -> Value {
        let made = run(&["export", path.to_str().unwrap(), "--samples", samples]);
        assert_eq!(made.code, Some(0), "{}", made.err);
        serde_json::from_str(&made.out).unwrap()
    };
    let ns = |json: &Value| json["profiles"][0]["endValue"].as_u64().unwrap();
    let (running, all) = (ns(&json("running")), ns(&json("all")));
    assert!(running > 0 && running < all, "{running} {all}");
}

/// Two processors have at most twice the time of a recording: threads that wait are sampled, too, and run on none.
#[test]
fn no_more_processor_time_is_exported_than_there_is() {
    let test = "no_more_processor_time_is_exported_than_there_is";
    let Some(folder) = shared_folder(test, "nettrace/net10") else { return };
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("cpu.pb");
    let exported = |samples: &str| {
        let recording = folder.join("web-default.nettrace.zst");
        let [recording, file] = [&recording, &file].map(|path| path.to_str().unwrap());
        let arguments = ["export", recording, "--format", "pprof", "--samples", samples, "-o", file, "--overwrite"];
        let made = run(&arguments);
        assert_eq!(made.code, Some(0), "{}", made.err);
        let message = std::fs::read(file).unwrap();
        let number = |field: u64| fields(&message).into_iter().find(|(known, ..)| *known == field).unwrap().1;
        let values = |sample: &[u8]| fields(sample).into_iter().find(|(field, ..)| *field == 2).unwrap().2.to_vec();
        let samples = fields(&message).into_iter().filter(|(field, ..)| *field == 2);
        let ns: u64 = samples.map(|(_, _, sample)| numbers(&values(sample))[1]).sum();
        (ns, 2 * number(10))
    };
    let (running, most) = exported("running");
    assert!(running > most / 4 && running <= most, "{running} of {most}");
    let (all, most) = exported("all");
    assert!(all > 3 * most, "{all} of {most}: what waits is left out above");
}
