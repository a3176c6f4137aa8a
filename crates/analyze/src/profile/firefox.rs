//! The JSON of the Firefox Profiler: its processed profile format, version 61. Newer releases of the profiler upgrade
//! it.
//!
//! Source: `docs-developer/CHANGELOG-formats.md` and `src/types/profile.ts` of firefox-devtools/profiler.

use std::io::{self, Write};

use tracequet_trace::map::Map;

use serde_json::{Value, json};

use super::model::{Code, Profile, ThreadSamples, Unit};
use super::strings::Strings;
use crate::subjects::pauses::Pause;

/// `meta.preprocessedProfileVersion`.
const VERSION: u32 = 61;

/// Indices into `meta.categories`, which begin with the one of what has no other.
const CATEGORIES: [(&str, &str, Option<Code>); 5] = [
    ("Other", "grey", Some(Code::Unknown)),
    (".NET", "green", Some(Code::Managed)),
    ("Native", "blue", Some(Code::Native)),
    ("Kernel", "orange", Some(Code::Kernel)),
    ("GC", "yellow", None),
];
const GC: usize = 4;

/// A marker is an interval.
const INTERVAL: u32 = 1;

/// All threads with their samples in the order of time. Each first thread of a process carries the pauses of the
/// process.
pub fn write(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let mut strings = Strings::default();
    let pause = strings.index("GC pause");
    // Written piece by piece: the samples are many.
    write!(out, "{{\"meta\":{},\"libs\":[],\"threads\":[", meta(profile))?;
    let mut pauses: Map<u64, Vec<&Pause>> = Map::default();
    profile.pauses.iter().for_each(|pause| pauses.entry(pause.process_id).or_default().push(pause));
    let mut process = None;
    for (number, thread) in profile.threads.iter().enumerate() {
        let is_first = process.replace(thread.process_id) != Some(thread.process_id);
        let pauses = if is_first { pauses.remove(&thread.process_id) } else { None };
        let comma = if number == 0 { "" } else { "," };
        write!(out, "{comma}{}", of_thread(profile, thread, is_first, pauses.unwrap_or_default(), pause))?;
    }
    write!(out, "],\"shared\":{}}}", shared(profile, strings))?;
    out.write_all(b"\n")
}

fn milliseconds(ns: i64) -> f64 {
    ns as f64 / 1e6
}

fn meta(profile: &Profile) -> Value {
    let categories: Vec<Value> = CATEGORIES
        .iter()
        .map(|(name, color, _)| json!({ "name": name, "color": color, "subcategories": ["Other"] }))
        .collect();
    // The width of a sample in the timeline; without one that of the runtime's own sampler.
    let interval = if profile.sampling_ns > 0 { profile.sampling_ns as f64 / 1e6 } else { 1.0 };
    json!({
        "interval": interval,
        "startTime": profile.start_us as f64 / 1e3,
        "endTime": milliseconds(profile.duration_ns),
        "processType": 0,
        "categories": categories,
        "product": profile.title(),
        "stackwalk": 1,
        "version": 29,
        "preprocessedProfileVersion": VERSION,
        "importedFrom": format!("tracequet {}", env!("CARGO_PKG_VERSION")),
        "symbolicationNotSupported": true,
        "usesOnlyOneStackType": true,
        "sourceCodeIsNotOnSearchfox": true,
        "keepProfileThreadOrder": true,
        "markerSchema": [{
            "name": "GCPause",
            "tooltipLabel": "GC pause",
            "tableLabel": "collection {marker.data.gcId}",
            "chartLabel": "collection {marker.data.gcId}",
            "display": ["marker-chart", "marker-table", "timeline-overview"],
            "fields": [{ "key": "gcId", "label": "Collection (gc_id)", "format": "integer" }],
        }],
    })
}

fn of_thread(profile: &Profile, thread: &ThreadSamples, is_first: bool, pauses: Vec<&Pause>, pause_name: u64) -> Value {
    let samples = &thread.samples;
    // Sorted by time. A call site is its number less one.
    let stacks: Vec<u32> = samples.iter().map(|sample| sample.callsite.saturating_sub(1)).collect();
    let times: Vec<f64> = samples.iter().map(|sample| milliseconds(sample.ts_ns)).collect();
    let (weights, weight_type): (Vec<Value>, _) = match profile.unit {
        Unit::Nanoseconds => (samples.iter().map(|s| json!(s.weight as f64 / 1e6)).collect(), "tracing-ms"),
        Unit::Bytes => (samples.iter().map(|s| json!(s.weight)).collect(), "bytes"),
        Unit::Count => (samples.iter().map(|s| json!(s.weight)).collect(), "samples"),
    };
    let ids: Vec<u64> = pauses.iter().map(|pause| pause.gc_id.into()).collect();
    let starts: Vec<f64> = pauses.iter().map(|pause| milliseconds(pause.start_ns)).collect();
    let ends = pauses.iter().map(|pause| milliseconds(pause.end_ns()));
    json!({
        "processType": "default",
        "processStartupTime": 0,
        "processShutdownTime": null,
        "registerTime": 0,
        "unregisterTime": null,
        "pausedRanges": [],
        "name": thread.label,
        "isMainThread": is_first,
        "showMarkersInTimeline": !ids.is_empty(),
        "pid": thread.process_id.to_string(),
        "tid": thread.thread_id,
        "samples": {
            "length": samples.len(),
            "stack": stacks,
            "time": times,
            "weight": weights,
            "weightType": weight_type,
        },
        "markers": {
            "length": ids.len(),
            "category": vec![GC; ids.len()],
            "data": ids.iter().map(|id| json!({ "type": "GCPause", "gcId": id })).collect::<Vec<_>>(),
            "endTime": ends.collect::<Vec<_>>(),
            "name": vec![pause_name; ids.len()],
            "phase": vec![INTERVAL; ids.len()],
            "startTime": starts,
        },
    })
}

/// The tables that threads share.
fn shared(profile: &Profile, mut strings: Strings) -> Value {
    // Number 0 is no call site. A caller comes before its callees.
    let callsites = profile.callsites.get(1..).unwrap_or_default();
    let prefixes: Vec<Option<u32>> = callsites.iter().map(|(parent, _)| parent.checked_sub(1)).collect();
    let stacks = json!({
        "length": callsites.len(),
        "prefix": prefixes,
        "frame": callsites.iter().map(|(_, frame)| *frame).collect::<Vec<_>>(),
    });
    let category = |function: u32| {
        let code = profile.functions.get(function as usize).map(|function| function.code);
        CATEGORIES.iter().position(|(.., of)| of.is_some() && *of == code).unwrap_or_default()
    };
    let count = profile.frames.len();
    let some = |number: u32| Some(number).filter(|number| *number != 0);
    let frames = json!({
        "length": count,
        "address": vec![-1; count],
        "inlineDepth": vec![0; count],
        "category": profile.frames.iter().map(|frame| category(frame.function)).collect::<Vec<_>>(),
        "subcategory": vec![0; count],
        "func": profile.frames.iter().map(|frame| frame.function).collect::<Vec<_>>(),
        "nativeSymbol": vec![Value::Null; count],
        "innerWindowID": vec![Value::Null; count],
        "line": profile.frames.iter().map(|frame| some(frame.line)).collect::<Vec<_>>(),
        "column": vec![Value::Null; count],
    });
    let (mut resources, mut sources) = (Strings::default(), Strings::default());
    let functions = &profile.functions;
    let names: Vec<u64> = functions.iter().map(|function| strings.index(&function.name)).collect();
    let of_resource = |file: &str| if file.is_empty() { -1 } else { resources.index(file) as i64 };
    let of_resource: Vec<i64> = functions.iter().map(|function| &*function.file).map(of_resource).collect();
    let of_source = |source: &str| (!source.is_empty()).then(|| sources.index(source));
    let of_source: Vec<_> = functions.iter().map(|function| &*function.source).map(of_source).collect();
    let functions = json!({
        "length": functions.len(),
        "name": names,
        "isJS": vec![false; functions.len()],
        "relevantForJS": vec![false; functions.len()],
        "resource": of_resource,
        "source": of_source,
        "lineNumber": functions.iter().map(|function| some(function.start_line)).collect::<Vec<_>>(),
        "columnNumber": vec![Value::Null; functions.len()],
    });
    let (resources, sources) = (resources.list, sources.list);
    let mut names = |list: &[String]| -> Vec<u64> { list.iter().map(|name| strings.index(name)).collect() };
    // Kind 1 is a library, of which only the name is known.
    let resources = json!({
        "length": resources.len(),
        "lib": vec![Value::Null; resources.len()],
        "name": names(&resources),
        "host": vec![Value::Null; resources.len()],
        "type": vec![1; resources.len()],
    });
    let sources = json!({
        "length": sources.len(),
        "id": vec![Value::Null; sources.len()],
        "filename": names(&sources),
        "startLine": vec![1; sources.len()],
        "startColumn": vec![1; sources.len()],
        "sourceMapURL": vec![Value::Null; sources.len()],
    });
    json!({
        "stackTable": stacks,
        "frameTable": frames,
        "funcTable": functions,
        "resourceTable": resources,
        "nativeSymbols": { "length": 0, "libIndex": [], "address": [], "name": [], "functionSize": [] },
        "sources": sources,
        "stringArray": strings.list,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thread_of_each_process_has_its_pauses() {
        let mut profile = Profile::of_chain(&["main"], 20);
        let pause = |n: u64| Pause { process_id: n % 5, start_ns: 1, duration_ns: 1, gc_id: 7, suspend_ns: 0 };
        profile.pauses = (0..5_000).map(pause).collect();
        let mut out = Vec::new();
        write(&profile, &mut out).unwrap();
        let json: Value = serde_json::from_slice(&out).unwrap();
        let pauses = |thread: usize| json["threads"][thread]["markers"]["length"].as_u64();
        assert_eq!([0, 1, 2, 9, 10].map(pauses), [Some(1000), Some(0), Some(1000), Some(0), Some(0)]);
        assert_eq!(pauses(8), Some(1000));
    }
}
