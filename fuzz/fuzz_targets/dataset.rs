//! A dataset with one damaged file, for all that reads datasets. The first byte says which file, the rest is its content.
#![no_main]

use std::path::{Path, PathBuf};
use std::sync::{Once, OnceLock};

use libfuzzer_sys::fuzz_target;
use tracequet::analyze::lifetime::By;
use tracequet::analyze::profile::{ProfileFormat, What};
use tracequet::analyze::{check, cohort, heap, lifetime, profile, rules, survived};
use tracequet::dataset::read::{Dataset, Recording};
use tracequet::{Convert, Format, convert};

/// Ranges, a heap, call stacks and what has them.
const RECORDINGS: [(&str, &[u8]); 3] = [
    ("ranges.corprof", include_bytes!("../../samples/callbacks.corprof")),
    ("heap.gcdump", include_bytes!("../../samples/heap-10.gcdump")),
    ("stacks.nettrace", include_bytes!("../../samples/subjects-3.1.nettrace")),
];

/// A file of a dataset.
pub struct Place {
    /// The directory of the dataset.
    pub dataset: PathBuf,
    /// The file.
    pub file: PathBuf,
    /// What is in it.
    pub content: Vec<u8>,
}

/// The tables that are read.
fn tables() -> Vec<&'static str> {
    let mut names =
        ["gc_pause", "gc_heap_generation", "metric", "method_compilation", "event_type", "counter"].to_vec();
    names.extend(survived::TABLES.iter().chain(&cohort::TABLES).chain(&heap::TABLES).chain(&profile::TABLES));
    names.extend(lifetime::TABLES.iter().chain(&lifetime::NAMES));
    names.push("allocation_lifetime");
    names.sort_unstable();
    names.dedup();
    names
}

/// The files of a dataset of each recording and in each format, always in the same order.
pub fn places() -> &'static [Place] {
    static PLACES: OnceLock<Vec<Place>> = OnceLock::new();
    PLACES.get_or_init(|| {
        let base = option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let folder = base.join("tracequet-fuzz-dataset");
        std::fs::remove_dir_all(&folder).ok();
        std::fs::create_dir_all(&folder).expect("room");
        let mut places = Vec::new();
        for (name, bytes) in RECORDINGS {
            let recording = folder.join(name);
            std::fs::write(&recording, bytes).expect("room");
            for format in [Format::Parquet, Format::Arrow] {
                let dataset = folder.join(format!("{name}-{}", format.name()));
                let request = Convert::new([&recording], &dataset).tables(tables()).lifetimes(1 << 20).format(format);
                convert(&request, &mut |_| {}).expect("a dataset");
                let files = std::fs::read_dir(&dataset).expect("files").map(|entry| entry.expect("a file").path());
                let mut files: Vec<PathBuf> = files.filter(|path| path.is_file()).collect();
                files.retain(|path| path.extension().is_some_and(|ending| ending != "sql"));
                files.sort();
                for file in files {
                    let content = std::fs::read(&file).expect("a file");
                    places.push(Place { dataset: dataset.clone(), file, content });
                }
            }
        }
        places
    })
}

/// Asks a dataset all that can be asked. Whether there are answers is not said here.
pub fn ask(path: &Path) {
    let Ok(dataset) = Dataset::open(path) else { return };
    for recording in dataset.each_recording().take(2) {
        ask_recording(&recording);
    }
    if let Ok(runs) = check::runs(&dataset, &[], None) {
        let all = rules::read("rules", "rules = ['gc.* <= 1', '*.* <= baseline * 1.1 + 5']").unwrap_or_default();
        let against = check::Against { base: &runs, ..Default::default() };
        let _ = (check::check(&all, &runs, &against), check::compare(&runs, &runs), check::latest(&dataset));
    }
}

fn ask_recording(recording: &Recording<'_>) {
    for address in [0, 0x7f00_0000_1000, u64::MAX] {
        let _ = survived::survived(recording, 1, address, true);
    }
    let _ = cohort::cohorts(recording, |_| {});
    let _ = (lifetime::found_lifetimes(recording, |_| Ok(())), lifetime::lifetimes_by(recording, By::Site, |_| true));
    let _ = lifetime::live_at(recording, By::Own, 1 << 30, |_| true);
    let _ = lifetime::growth(recording, By::Type, [0, i64::MAX], |_| true);
    if let Ok(snapshot) = heap::snapshot(recording, None)
        && let Ok(graph) = heap::read(recording, &snapshot, 64 << 20)
    {
        let retention = heap::Retention::of(&graph);
        retention.by_type(&graph);
        if !graph.is_empty() {
            heap::explain(&graph, &retention, 0);
            let _ = lifetime::origins(recording, &graph, By::Own, |_| true);
        }
    }
    for what in [What::Cpu, What::Allocation, What::Exception, What::Contention, What::Live] {
        if let Ok(profile) = profile::read(recording, what) {
            for format in
                [ProfileFormat::Speedscope, ProfileFormat::Folded, ProfileFormat::Pprof, ProfileFormat::Firefox]
            {
                let _ = profile.write(format, true, &mut std::io::sink());
            }
        }
    }
}

/// Panics of the readers of files are caught, and are errors for who reads a dataset. The hook of libFuzzer ends the program
/// before anybody can catch one. Without it, the fuzzer ends at the panics that come out of here.
fn let_panics_be_caught() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| drop(std::panic::take_hook()));
}

fuzz_target!(|bytes: &[u8]| {
    let_panics_be_caught();
    let Some((index, content)) = bytes.split_first() else { return };
    let places = places();
    let Some(place) = places.get(usize::from(*index) % places.len()) else { return };
    std::fs::write(&place.file, content).expect("room");
    ask(&place.dataset);
    std::fs::write(&place.file, &place.content).expect("room");
});
