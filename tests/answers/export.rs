//! `tracequet export`: what other tools read is what the tables say.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value as Json;

use crate::support::dataset::Dataset;
use crate::support::writer::{Form, Kind, Row, Writer};

const SAMPLE: &str = "samples/stacks.nettrace";

fn sample() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(SAMPLE)
}

/// Output and exit code of the program.
fn export(arguments: &[&str]) -> (Vec<u8>, Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracequet"));
    let output =
        command.current_dir(env!("CARGO_MANIFEST_DIR")).arg("export").args(arguments).output().expect("it runs");
    (output.stdout, output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Each stack of the samples of threads that ran, by thread, the outermost frame first, with how many samples it has: by the tables.
fn expected(dataset: &Dataset) -> BTreeMap<u64, BTreeMap<Vec<String>, u64>> {
    stacks(dataset, |kind| kind != "external")
}

/// The same of the samples of some kinds.
fn stacks(dataset: &Dataset, is_meant: impl Fn(&str) -> bool) -> BTreeMap<u64, BTreeMap<Vec<String>, u64>> {
    let (sites, frames) = (dataset.table("callsite"), dataset.table("frame"));
    let (parents, of_site, names) =
        (sites.numbers("parent_callsite_id"), sites.numbers("frame_id"), frames.texts("name"));
    let samples = dataset.table("cpu_sample");
    let mut stacks: BTreeMap<u64, BTreeMap<Vec<String>, u64>> = BTreeMap::new();
    let threads = samples.numbers("thread_id").into_iter().zip(samples.numbers("callsite_id"));
    for ((thread, mut at), kind) in threads.zip(samples.texts("kind")) {
        if !is_meant(&kind) {
            continue;
        }
        let mut stack = Vec::new();
        while at != 0 {
            stack.insert(0, names[of_site[at as usize - 1] as usize - 1].clone());
            at = parents[at as usize - 1];
        }
        if !stack.is_empty() {
            *stacks.entry(thread).or_default().entry(stack).or_default() += 1;
        }
    }
    assert!(!stacks.is_empty() && stacks.values().flat_map(BTreeMap::values).sum::<u64>() > 100, "{stacks:?}");
    stacks
}

/// The time between two samples: of the thread with the most of them, the time from its first to its last.
fn observed_ns(dataset: &Dataset) -> u64 {
    let samples = dataset.table("cpu_sample");
    let mut of_thread: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (thread, time) in samples.numbers("thread_id").into_iter().zip(samples.signed("ts_ns")) {
        of_thread.entry(thread).or_default().push(time.unwrap() as u64);
    }
    let times = of_thread.into_values().max_by_key(Vec::len).expect("samples");
    let span = times.iter().max().unwrap() - times.iter().min().unwrap();
    // The sampler of the runtime comes less often than it is meant to.
    let meant = dataset.table("trace").numbers("sampling_ns")[0];
    let observed = span / (times.len() as u64 - 1);
    assert!(meant > 0 && observed > meant, "{observed} {meant}");
    observed
}

fn all_threads(stacks: &BTreeMap<u64, BTreeMap<Vec<String>, u64>>) -> BTreeMap<Vec<String>, u64> {
    let mut all = BTreeMap::new();
    for (stack, count) in stacks.values().flatten() {
        *all.entry(stack.clone()).or_default() += count;
    }
    all
}

#[test]
fn speedscope_has_all_threads_and_each_one() {
    let dataset = Dataset::of(&sample());
    let stacks = expected(&dataset);
    let sampling_ns = observed_ns(&dataset);
    let (out, code, _) = export(&[SAMPLE]);
    assert_eq!(code, Some(0));
    let json: Json = serde_json::from_slice(&out).expect("JSON");
    assert_eq!(json["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let frames = json["shared"]["frames"].as_array().unwrap();
    let profiles = json["profiles"].as_array().unwrap();
    let read = |profile: &Json| {
        assert_eq!(profile["type"], "sampled");
        let (samples, weights) = (profile["samples"].as_array().unwrap(), profile["weights"].as_array().unwrap());
        assert_eq!(samples.len(), weights.len());
        let sum: u64 = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
        assert_eq!((profile["startValue"].as_u64(), profile["endValue"].as_u64()), (Some(0), Some(sum)));
        let mut found: BTreeMap<Vec<String>, u64> = BTreeMap::new();
        for (sample, weight) in samples.iter().zip(weights) {
            let name = |frame: &Json| frames[frame.as_u64().unwrap() as usize]["name"].as_str().unwrap().to_owned();
            let stack = sample.as_array().unwrap().iter().map(name).collect();
            *found.entry(stack).or_default() += weight.as_u64().unwrap() / sampling_ns;
        }
        found
    };
    assert_eq!(profiles.len(), 1 + stacks.len());
    assert_eq!(read(&profiles[0]), all_threads(&stacks));
    for (profile, (thread, stacks)) in profiles[1..].iter().zip(&stacks) {
        assert!(profile["name"].as_str().unwrap().contains(&thread.to_string()), "{}", profile["name"]);
        assert_eq!(&read(profile), stacks);
    }
}

#[test]
fn folded_stacks_are_those_of_the_tables() {
    let dataset = Dataset::of(&sample());
    let stacks = expected(&dataset);
    let sampling_ns = observed_ns(&dataset);
    let read = |arguments: &[&str]| -> BTreeMap<String, u64> {
        let (out, code, _) = export(&[&[SAMPLE, "--format", "folded"], arguments].concat());
        assert_eq!(code, Some(0));
        let text = String::from_utf8(out).unwrap();
        let lines = text.lines().map(|line| line.rsplit_once(' ').expect("stack and weight"));
        lines.map(|(stack, weight)| (stack.to_owned(), weight.parse::<u64>().unwrap() / sampling_ns)).collect()
    };
    let joined = |stacks: BTreeMap<Vec<String>, u64>| -> BTreeMap<String, u64> {
        stacks.into_iter().map(|(stack, count)| (stack.join(";"), count)).collect()
    };
    assert_eq!(read(&[]), joined(all_threads(&stacks)));
    // Also what waits, where that is asked for.
    let with_waiting = super::export::stacks(&dataset, |_| true);
    assert!(with_waiting.len() == 3 && with_waiting != stacks);
    assert_eq!(read(&["--samples", "all"]), joined(all_threads(&with_waiting)));
    let by_thread = read(&["--by-thread"]);
    assert_eq!(by_thread.len(), stacks.values().map(BTreeMap::len).sum::<usize>());
    assert_eq!(by_thread.values().sum::<u64>(), stacks.values().flat_map(BTreeMap::values).sum::<u64>());
}

/// The fields of a protocol buffer: number, and a number or bytes.
pub fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (first, rest) = bytes.split_first().expect("a byte");
            *bytes = rest;
            value |= u64::from(first & 0x7F) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        match key & 7 {
            0 => found.push((key >> 3, varint(&mut bytes), &[][..])),
            1 => {
                let (content, rest) = bytes.split_at(8);
                found.push((key >> 3, 0, content));
                bytes = rest;
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (content, rest) = bytes.split_at(length);
                found.push((key >> 3, 0, content));
                bytes = rest;
            }
            other => panic!("wire type {other}"),
        }
    }
    found
}

pub fn numbers(packed: &[u8]) -> Vec<u64> {
    // As fields of number 0 each, so that the same reader serves.
    let mut bytes = Vec::new();
    let mut begins = true;
    for byte in packed {
        if begins {
            bytes.push(0);
        }
        bytes.push(*byte);
        begins = byte & 0x80 == 0;
    }
    fields(&bytes).into_iter().map(|(_, value, _)| value).collect()
}

#[test]
fn pprof_is_the_message_that_its_definition_says() {
    let dataset = Dataset::of(&sample());
    let stacks = expected(&dataset);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cpu.pb");
    let name = path.to_str().unwrap();
    let arguments = [SAMPLE, "--format", "pprof", "-o", name];
    assert_eq!(export(&arguments).1, Some(0));
    // A file is not replaced unasked.
    let (_, code, said) = export(&arguments);
    assert!(code == Some(1) && said.contains("cpu.pb"), "{said}");
    assert_eq!(export(&[&arguments[..], &["--overwrite"]].concat()).1, Some(0));
    let bytes = std::fs::read(&path).unwrap();
    let all = fields(&bytes);
    let of = |number: u64| all.iter().filter(move |(field, ..)| *field == number).map(|(_, _, content)| *content);
    let strings: Vec<&str> = of(6).map(|text| std::str::from_utf8(text).unwrap()).collect();
    assert_eq!(strings[0], "");
    let one = |message: &[u8], field: u64| fields(message).iter().find(|(f, ..)| *f == field).map_or(0, |(_, v, _)| *v);
    let types: Vec<_> = of(1).map(|t| (strings[one(t, 1) as usize], strings[one(t, 2) as usize])).collect();
    assert_eq!(types[0], ("samples", "count"));
    let functions: BTreeMap<u64, &str> = of(5).map(|f| (one(f, 1), strings[one(f, 2) as usize])).collect();
    let line_of = |location: &[u8]| {
        let line = fields(location).into_iter().find(|(field, ..)| *field == 4).expect("a line").2.to_vec();
        functions[&one(&line, 1)].to_owned()
    };
    let locations: BTreeMap<u64, String> = of(4).map(|location| (one(location, 1), line_of(location))).collect();
    let mut found: BTreeMap<u64, BTreeMap<Vec<String>, u64>> = BTreeMap::new();
    for sample in of(2) {
        let parts = fields(sample);
        let content = |field: u64| parts.iter().filter(move |(f, ..)| *f == field).map(|(_, _, content)| *content);
        let mut stack: Vec<_> = numbers(content(1).next().unwrap()).iter().map(|id| locations[id].clone()).collect();
        stack.reverse();
        let values = numbers(content(2).next().unwrap());
        assert_eq!(values.len(), types.len());
        let labels: BTreeMap<&str, u64> =
            content(3).map(|label| (strings[one(label, 1) as usize], one(label, 3))).collect();
        *found.entry(labels["thread_id"]).or_default().entry(stack).or_default() += values[0];
    }
    assert_eq!(found, stacks);
}

/// The messages of a field.
fn messages(message: &[u8], field: u64) -> Vec<&[u8]> {
    fields(message).into_iter().filter(|(number, ..)| *number == field).map(|(.., content)| content).collect()
}

/// The number of a field; 0 when it is not there.
fn number(message: &[u8], field: u64) -> u64 {
    fields(message).iter().find(|(number, ..)| *number == field).map_or(0, |(_, value, _)| *value)
}

/// The profiles of a `ProfilesData`: those of its scopes, which are those of its resources.
fn profiles(data: &[u8]) -> Vec<&[u8]> {
    let scopes = messages(data, 1).into_iter().flat_map(|resource| messages(resource, 2));
    scopes.flat_map(|scope| messages(scope, 2)).collect()
}

/// `.ci/exports` reads such a message by OpenTelemetry's own definitions.
#[test]
fn otlp_is_the_message_that_its_definition_says() {
    let (bytes, code, _) = export(&[SAMPLE, "--format", "otlp"]);
    assert_eq!(code, Some(0));
    let table = |number: u64| messages(messages(&bytes, 2)[0], number);
    // The first item of each table stands for none.
    assert!((1..8).all(|number| table(number)[0].iter().all(|byte| matches!(byte, 0 | 8 | 10 | 16 | 18))));
    let texts: Vec<&str> = table(5).into_iter().map(|text| std::str::from_utf8(text).unwrap()).collect();
    let names: Vec<&str> = table(3).into_iter().map(|function| texts[number(function, 1) as usize]).collect();
    let name_of =
        |location: &[u8]| messages(location, 3).first().map_or("", |line| names[number(line, 1) as usize]).to_owned();
    let locations: Vec<String> = table(2).into_iter().map(name_of).collect();
    let attributes = table(6);
    let thread_of = |at: &u64| {
        let attribute = attributes[*at as usize];
        let value = messages(attribute, 2).first().map_or(0, |value| number(value, 3));
        (texts[number(attribute, 1) as usize] == "thread.id").then_some(value)
    };
    let mut found: BTreeMap<u64, BTreeMap<Vec<String>, u64>> = BTreeMap::new();
    for profile in profiles(&bytes) {
        let eight = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        let (start_ns, length_ns) = (eight(messages(profile, 3)[0]), number(profile, 4));
        for sample in messages(profile, 2) {
            let stack = numbers(messages(table(7)[number(sample, 1) as usize], 1)[0]);
            let stack = stack.iter().rev().map(|at| locations[*at as usize].clone()).collect();
            let thread = numbers(messages(sample, 2)[0]).iter().find_map(thread_of).expect("a thread");
            let times = messages(sample, 5)[0].chunks(8).map(eight);
            let weights = numbers(messages(sample, 4)[0]);
            assert_eq!(
                times.clone().filter(|time| (start_ns..=start_ns + length_ns).contains(time)).count(),
                weights.len()
            );
            *found.entry(thread).or_default().entry(stack).or_default() += weights.len() as u64;
        }
    }
    assert_eq!(found, expected(&Dataset::of(&sample())));
}

#[test]
fn what_is_not_there_is_not_exported() {
    for (what, how) in [("contention", "--for contention"), ("exception", "0x8000"), ("blocked", "/ThreadTime")] {
        let (out, code, said) = export(&[SAMPLE, "--what", what]);
        assert!(out.is_empty() && code == Some(1), "{said}");
        assert!(said.contains("nothing to export") && said.contains(how), "{said}");
    }
    let (out, code, _) = export(&["samples/subjects.nettrace", "--what", "exception", "--format", "folded"]);
    assert_eq!(code, Some(0));
    let sum: u64 =
        String::from_utf8(out).unwrap().lines().map(|l| l.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    let dataset = Dataset::of(&sample().with_file_name("subjects.nettrace"));
    assert_eq!(sum as usize, dataset.table("exception").rows());
}

/// All threads are outside of managed code each time: that is no processor time, and it was recorded.
#[test]
fn samples_that_all_wait_are_said_to_wait() {
    use crate::tables::frames::{SAMPLE, bytes};
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("waits.nettrace");
    let sample = |n: i64| (n * 1_000, SAMPLE, 1, 1u32.to_le_bytes().to_vec());
    std::fs::write(&file, bytes(&[vec![0x1000]], &(1..=50).map(sample).collect::<Vec<_>>())).unwrap();
    let file = file.to_str().unwrap();
    let (_, code, err) = export(&[file, "--format", "folded"]);
    assert_eq!(code, Some(1));
    let expected =
        "all 50 samples are of threads outside of managed code, which nearly always waits; --samples all exports them";
    assert!(err.contains(expected) && !err.contains("--for cpu"), "{err}");
    let (all, code, _) = export(&[file, "--format", "folded", "--samples", "all"]);
    assert!(code == Some(0) && !all.is_empty());
    let page = crate::support::program::run(&["report", file]).out;
    assert!(page.contains("CPU: all 50 samples are of threads outside of managed code"), "{page}");
    assert!(!page.contains("No call stacks are recorded."));
}

/// A recording with these kinds of samples, a hundred of each: a tick of 100,000 bytes, a sampled object of 80 bytes, and 1,000 or
/// 700 bytes of a type at a high and a low rate. All of them in one stack.
fn allocations(kinds: &[u32]) -> Vec<u8> {
    let kind = |id| Kind {
        id,
        provider: "Microsoft-Windows-DotNETRuntime",
        event_id: id,
        version: if id == 10 { 4 } else { 0 },
        name: "",
    };
    let bytes = |parts: &[&[u8]]| parts.concat();
    let payload = |id: u32| match id {
        10 => bytes(&[&100_000u32.to_le_bytes(), &[0; 6], &100_000u64.to_le_bytes(), &[0; 8 + 2 + 4 + 8 + 8]]),
        303 => bytes(&[&[0; 6 + 8 + 2 + 8], &80u64.to_le_bytes(), &[0; 8]]),
        20 => bytes(&[&[0; 16], &10u32.to_le_bytes(), &1_000u64.to_le_bytes(), &[0; 2]]),
        _ => bytes(&[&[0; 16], &10u32.to_le_bytes(), &700u64.to_le_bytes(), &[0; 2]]),
    };
    let rows = (0..100 * kinds.len() as u32).map(|n| {
        let id = kinds[n as usize % kinds.len()];
        let (ticks, sequence) = (i64::from(n) * 10, n + 1);
        Row {
            metadata_id: id,
            sequence,
            capture_thread: 5,
            thread: 5,
            stack_id: 1,
            ticks,
            payload: payload(id),
            ..Row::default()
        }
    });
    let mut writer = Writer::new(Form::V4);
    writer.metadata(&kinds.iter().copied().map(kind).collect::<Vec<_>>()).stacks(1, &[vec![0x1000]]);
    writer.events(&rows.collect::<Vec<_>>()).end()
}

/// Ticks, samples of types and samples of bytes stand for the same allocations: one of them is exported.
#[test]
fn allocations_are_exported_by_one_source() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.nettrace");
    // The chance of an object of 80 bytes is 1 - (1 - 1/102400)^80.
    let sampled = (80.0 / (1.0 - (1.0 - 1.0 / 102_400f64).powi(80))).round() as u64;
    let cases: [(&[u32], u64); 4] =
        [(&[10], 100_000), (&[10, 20, 32], 1_700), (&[32, 10], 700), (&[20, 10, 303], sampled)];
    for (kinds, expected) in cases {
        std::fs::write(&file, allocations(kinds)).unwrap();
        let arguments = [file.to_str().unwrap(), "--what", "allocation", "--format", "folded"];
        let (out, code, said) = export(&arguments);
        assert_eq!(code, Some(0), "{kinds:?}: {said}");
        let text = String::from_utf8(out).unwrap();
        let weights = text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
        assert_eq!(weights.sum::<u64>(), 100 * expected, "{kinds:?}: {text}");
    }
}

/// Every table of the Firefox Profiler's format has as many values in each column as its length says.
fn check_lengths(json: &Json, path: &str) -> usize {
    let mut tables = 0;
    match json {
        Json::Object(fields) => {
            if let Some(length) = fields.get("length").and_then(Json::as_u64) {
                tables += 1;
                let columns = fields.iter().filter_map(|(name, column)| Some((name, column.as_array()?)));
                columns.for_each(|(name, column)| assert_eq!(column.len() as u64, length, "{path}.{name}"));
            }
            tables += fields.iter().map(|(name, inner)| check_lengths(inner, &format!("{path}.{name}"))).sum::<usize>();
        }
        Json::Array(items) => tables += items.iter().map(|inner| check_lengths(inner, path)).sum::<usize>(),
        _ => {}
    }
    tables
}

#[test]
fn firefox_has_each_thread_with_its_pauses_and_lines() {
    let dataset = Dataset::of(&sample());
    let stacks = expected(&dataset);
    let (out, code, _) = export(&[SAMPLE, "--format", "firefox"]);
    assert_eq!(code, Some(0));
    let json: Json = serde_json::from_slice(&out).expect("JSON");
    assert_eq!(json["meta"]["preprocessedProfileVersion"], 61);
    // Stacks, frames, functions, resources, symbols, sources; samples and markers of each thread.
    assert_eq!(check_lengths(&json, ""), 6 + 2 * stacks.len());
    let number = |json: &Json| usize::try_from(json.as_u64().expect("a number")).unwrap();
    let shared = &json["shared"];
    let text = |index: &Json| shared["stringArray"][number(index)].as_str().expect("a text");
    let stack_of = |stack: &Json| {
        let (mut names, mut at) = (Vec::new(), stack.clone());
        while !at.is_null() {
            let stack = number(&at);
            let function = number(&shared["frameTable"]["func"][number(&shared["stackTable"]["frame"][stack])]);
            names.insert(0, text(&shared["funcTable"]["name"][function]).to_owned());
            let parent = shared["stackTable"]["prefix"][stack].clone();
            assert!(parent.is_null() || number(&parent) < stack, "a caller stands before what it called");
            at = parent;
        }
        names
    };
    let mut found: BTreeMap<u64, BTreeMap<Vec<String>, u64>> = BTreeMap::new();
    for thread in json["threads"].as_array().unwrap() {
        let samples = &thread["samples"];
        let times: Vec<f64> = samples["time"].as_array().unwrap().iter().map(|t| t.as_f64().unwrap()).collect();
        assert!(times.is_sorted());
        for stack in samples["stack"].as_array().unwrap() {
            *found.entry(thread["tid"].as_u64().unwrap()).or_default().entry(stack_of(stack)).or_default() += 1;
        }
        // The threads of one process; each frame of a method lies in an assembly.
        assert_eq!(thread["pid"], json["threads"][0]["pid"]);
    }
    assert_eq!(found, stacks);

    // Exceptions: with the lines, which are the program's (tests/tables/lines.rs), and the pauses of the process once.
    let (out, _, _) =
        export(&["samples/subjects.nettrace", "--symbols", "samples", "--what", "exception", "--format", "firefox"]);
    let json: Json = serde_json::from_slice(&out).expect("JSON");
    let shared = &json["shared"];
    let text = |index: &Json| shared["stringArray"][number(index)].as_str().expect("a text");
    let places: Vec<(&str, &str, u64)> = (0..number(&shared["frameTable"]["length"]))
        .filter(|frame| shared["frameTable"]["line"][*frame].is_u64())
        .map(|frame| {
            let function = number(&shared["frameTable"]["func"][frame]);
            let source = number(&shared["funcTable"]["source"][function]);
            let file = text(&shared["sources"]["filename"][source]);
            let name = text(&shared["funcTable"]["name"][function]);
            (name, file, shared["frameTable"]["line"][frame].as_u64().unwrap())
        })
        .collect();
    assert!(places.contains(&("Program.Main(class System.String[])", "/src/Churn.cs", 35)), "{places:?}");

    let (out, _, _) = export(&["samples/gc-churn.nettrace", "--what", "allocation", "--format", "firefox"]);
    let json: Json = serde_json::from_slice(&out).expect("JSON");
    let pauses = Dataset::of(&sample().with_file_name("gc-churn.nettrace")).table("gc_pause");
    let of_gc = pauses.texts("kind").iter().filter(|kind| *kind == "gc").count();
    let markers = json["threads"].as_array().unwrap().iter().map(|thread| number(&thread["markers"]["length"]));
    assert_eq!(markers.sum::<usize>(), of_gc);
    let samples = &json["threads"][0]["samples"];
    assert_eq!(samples["weightType"], "bytes");
}

#[test]
fn pprof_and_speedscope_name_source_files() {
    let arguments = ["samples/subjects.nettrace", "--symbols", "samples", "--what", "exception"];
    let (out, ..) = export(&arguments);
    let json: Json = serde_json::from_slice(&out).expect("JSON");
    let frames = json["shared"]["frames"].as_array().unwrap();
    let main = frames.iter().find(|frame| frame["name"].as_str().unwrap().starts_with("Program.Main(")).unwrap();
    assert_eq!(main["file"], "/src/Churn.cs");
    let (bytes, ..) = export(&[&arguments[..], &["--format", "pprof"]].concat());
    let all = fields(&bytes);
    let of = |number: u64| all.iter().filter(move |(field, ..)| *field == number).map(|(_, _, content)| *content);
    let strings: Vec<&str> = of(6).map(|text| std::str::from_utf8(text).unwrap()).collect();
    let one = |message: &[u8], field: u64| fields(message).iter().find(|(f, ..)| *f == field).map_or(0, |(_, v, _)| *v);
    let main = of(5).find(|function| strings[one(function, 2) as usize].starts_with("Program.Main(")).unwrap();
    assert_eq!(strings[one(main, 4) as usize], "/src/Churn.cs");
    let lines = of(4).map(|location| fields(location).into_iter().find(|(field, ..)| *field == 4).unwrap().2.to_vec());
    let lines: Vec<(u64, u64)> = lines.map(|line| (one(&line, 1), one(&line, 2))).collect();
    assert!(lines.contains(&(one(main, 1), 35)), "{lines:?}");
}

/// Of a made-up machine, whose scheduler knows how long its threads were blocked.
#[test]
fn blocked_time_is_what_the_scheduler_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("switches.etl");
    let (recording, truth) = crate::etl::scheduling::recording();
    std::fs::write(&file, recording).unwrap();
    let rows: Vec<Vec<&str>> = truth.lines().map(|line| line.split(' ').collect()).collect();
    let ticks = |text: &str| text.parse::<u64>().unwrap();
    // A wait has the stack with which the thread goes on: those that the recording ends in have none.
    let goes_on = |row: &[&str]| {
        rows.iter().any(|later| later[0] == row[0] && later[1] == "running" && ticks(later[2]) >= ticks(row[3]))
    };
    let blocked = rows.iter().filter(|row| row[1] == "blocked" && goes_on(row));
    let expected: u64 = blocked.map(|row| (ticks(row[3]) - ticks(row[2])) * 100).sum();
    let (out, code, said) = export(&[file.to_str().unwrap(), "--what", "blocked", "--format", "folded"]);
    assert_eq!(code, Some(0), "{said}");
    let text = String::from_utf8(out).unwrap();
    let found = text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
    assert!(found.sum::<u64>() == expected && expected > 1_000_000, "{text} is not {expected}");
    assert!(text.lines().all(|line| line.starts_with("worker.exe!?;kernel.exe!?")), "{text}");
}

/// The sum of the weights in each format.
pub fn sums(arguments: &[&str]) -> [u64; 5] {
    let written = |format| {
        let (out, code, said) = export(&[arguments, &["--format", format]].concat());
        assert_eq!(code, Some(0), "{arguments:?}: {said}");
        out
    };
    let json = |format| serde_json::from_slice::<Json>(&written(format)).expect("JSON");
    let folded = String::from_utf8(written("folded")).unwrap();
    let folded = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    let speedscope = json("speedscope")["profiles"][0]["endValue"].as_u64().unwrap();
    let pprof = written("pprof");
    let samples = fields(&pprof).into_iter().filter(|(field, ..)| *field == 2);
    let value = |sample: &[u8]| {
        let values = fields(sample).into_iter().find(|(field, ..)| *field == 2).expect("values").2;
        numbers(values).last().copied().unwrap()
    };
    let pprof = samples.map(|(_, _, sample)| value(sample)).sum();
    let firefox = json("firefox");
    let weights = |thread: &Json| {
        let unit = if thread["samples"]["weightType"] == "tracing-ms" { 1e6 } else { 1.0 };
        let weights = thread["samples"]["weight"].as_array().unwrap().iter();
        weights.map(|weight| (weight.as_f64().unwrap() * unit).round() as u64).sum::<u64>()
    };
    let otlp = written("otlp");
    let samples = profiles(&otlp).into_iter().flat_map(|profile| messages(profile, 2));
    let otlp = samples.flat_map(|sample| numbers(messages(sample, 4)[0])).sum();
    [folded, speedscope, pprof, otlp, firefox["threads"].as_array().unwrap().iter().map(weights).sum()]
}

/// What is chosen of a recording by table, time, thread and activity has the weights that DuckDB sums up over the same rows.
#[test]
fn what_is_chosen_has_the_weights_of_its_rows() {
    let Some(python) = crate::support::python::python("what_is_chosen_has_the_weights_of_its_rows") else { return };
    let dataset = Dataset::of(&sample().with_file_name("requests/orders.nettrace.zst"));
    let asked = |query: &str| crate::tables::queries::asked(&python, &dataset, query);
    let one = |query: &str| {
        let answer = asked(query);
        let number = answer.trim().trim_matches(|c: char| !c.is_ascii_digit());
        number.parse::<u64>().unwrap_or_else(|_| panic!("{query}: {answer}"))
    };
    let thread = one("SELECT thread_id FROM wait GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1").to_string();
    // A request that waited for a lock, of a connection that has given its id to others before.
    let request = "SELECT activity_id, start_ts_ns, start_ts_ns + round(duration_ms * 1e6)::BIGINT + 1 FROM request_time \
                   WHERE source = 'Microsoft.AspNetCore.Hosting/Request' AND path = '/lock/1'";
    let request = asked(request);
    let request: Vec<&str> = request.trim().trim_matches(['(', ')']).split(", ").collect();
    let [id, from, to] = request[..] else { panic!("{request:?}") };
    let (id, from_ns, to_ns) = (id.trim_matches('\''), format!("{from}ns"), format!("{to}ns"));
    let during = ["--request", id, "--from", &from_ns, "--to", &to_ns];
    let part = |kind: &str, of: &str| {
        format!(
            "SELECT {of} FROM request_part WHERE kind = '{kind}' AND source LIKE '%Hosting/Request' \
             AND request_start_ts_ns = {from} AND callsite_id <> 0"
        )
    };
    let tick = "event/Microsoft-Windows-DotNETRuntime/GCAllocationTick";
    let cases: Vec<(Vec<&str>, String)> = vec![
        (vec!["--what", "wait"], "SELECT sum(duration_ns) FROM wait WHERE callsite_id <> 0".into()),
        (
            vec!["--what", "jit"],
            "SELECT sum(duration_ns) FROM method_compilation WHERE kind = 'jit' AND callsite_id <> 0".into(),
        ),
        (vec!["--what", tick], format!("SELECT count(*) FROM \"{tick}\" WHERE callsite_id <> 0")),
        (
            vec!["--what", tick, "--weight", "allocation_amount64", "--to", "5s"],
            format!("SELECT sum(allocation_amount64) FROM \"{tick}\" WHERE callsite_id <> 0 AND ts_ns < 5e9"),
        ),
        (
            vec!["--what", "exception", "--weight", "hresult"],
            "SELECT sum(hresult) FROM exception WHERE callsite_id <> 0".into(),
        ),
        (
            vec!["--what", "wait", "--from", "5s", "--to", "5.3s", "--thread", &thread],
            format!(
                "SELECT sum(duration_ns) FROM wait WHERE callsite_id <> 0 AND thread_id = {thread} \
                 AND start_ts_ns >= 5e9 AND start_ts_ns < 5.3e9"
            ),
        ),
        (
            vec!["--what", "contention", "--thread", &thread],
            format!(
                "SELECT coalesce(sum(duration_ns), 0) FROM contention WHERE callsite_id <> 0 AND thread_id = {thread}"
            ),
        ),
        ([&["--what", "contention"], &during[..]].concat(), part("lock", "sum(duration_ns)")),
        ([&["--what", "wait"], &during[..]].concat(), part("wait", "sum(duration_ns)")),
    ];
    let folder = dataset.path();
    let input = folder.to_str().unwrap();
    let mut compared = 0;
    for (arguments, query) in cases {
        let expected = one(&query);
        if expected > 0 {
            assert_eq!(sums(&[&[input], &arguments[..]].concat()), [expected; 5], "{arguments:?}");
            compared += 1;
        }
    }
    assert!(compared >= 8, "{compared}");
}

#[test]
fn choices_of_nothing_and_of_columns_without_numbers_say_so() {
    let of = "samples/subjects.nettrace";
    let refused: [(&[&str], &str); 6] = [
        (&["--what", "waitt"], "did you mean wait?"),
        (&["--what", "gc"], "another table with call stacks"),
        (
            &["--what", "exception", "--weight", "message"],
            "of type Utf8, expected a column of exception with whole numbers",
        ),
        (&["--what", "exception", "--weight", "hresul"], "did you mean hresult?"),
        (&["--what", "exception", "--from", "1h"], "no such exceptions"),
        (&["--what", "exception", "--thread", "nobody"], "no such exceptions"),
    ];
    for (arguments, why) in refused {
        let (out, code, said) = export(&[&[of], arguments].concat());
        assert!(out.is_empty() && code != Some(0) && said.contains(why), "{arguments:?}: {said}");
    }
    // Without activity ids nothing is of a request.
    let (_, code, said) = export(&["samples/gc-churn.nettrace", "--what", "allocation", "--request", "//1/2"]);
    assert!(code == Some(1) && said.contains("no activity ids"), "{code:?} {said}");
}

#[test]
fn a_trace_for_perfetto_needs_no_samples_and_takes_no_others() {
    // What is in it is read by the definition of its messages, in .ci/exports.
    let (out, code, errors) = export(&["samples/gc-churn.nettrace", "--format", "perfetto"]);
    assert_eq!((code, out.first()), (Some(0), Some(&0x0a)), "{errors}");
    let has = |text: &str| out.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has("Collections") && has("gen 0") && has("AllocSmall") && has("Heap after collections"));
    let (out, code, errors) = export(&[SAMPLE, "--format", "perfetto", "--what", "exception"]);
    assert_eq!((out.len(), code), (0, Some(1)));
    assert!(errors.contains("CPU samples"), "{errors}");
}

/// A stack of a heap dump is what holds what: below a type lies what it retains.
#[test]
fn a_heap_dump_is_exported_with_what_each_type_retains() {
    use tracequet::analyze::heap::{Retention, read, snapshot};

    let mut compared = 0;
    for name in ["samples/heap-10.gcdump", "samples/heap-10.nettrace", "samples/heap.nettrace"] {
        let dataset = Dataset::of(std::path::Path::new(name));
        let opened = tracequet::dataset::read::Dataset::open(dataset.path()).unwrap();
        let recording = opened.recording(None).unwrap();
        let graph = read(&recording, &snapshot(&recording, None).unwrap(), 1 << 30).unwrap();
        let retention = Retention::of(&graph);
        let (_, unreachable) = retention.unreachable(&graph);
        let (out, code, errors) = export(&[name, "--what", "heap", "--format", "folded"]);
        assert_eq!(code, Some(0), "{errors}");
        let text = String::from_utf8(out).unwrap();
        let stacks: Vec<(Vec<&str>, u64)> = text
            .lines()
            .map(|line| line.rsplit_once(' ').unwrap())
            .map(|(stack, bytes)| (stack.split(';').collect(), bytes.parse().unwrap()))
            .collect();
        let all: u64 = stacks.iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(all, graph.size_bytes() - unreachable, "{name}");
        // Objects that no root leads to are of some types only.
        for row in retention.by_type(&graph).iter().filter(|row| row.unreachable == 0) {
            let of_type = stacks.iter().filter(|(stack, _)| stack.iter().any(|kind| *kind == &*row.name));
            assert_eq!(of_type.map(|(_, bytes)| bytes).sum::<u64>(), row.retained_bytes, "{name}: {}", row.name);
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared}");
    let (_, code, errors) = export(&["samples/gc-churn.nettrace", "--what", "heap"]);
    assert!(code == Some(1) && errors.contains("no walk of the heap"), "{errors}");
}
