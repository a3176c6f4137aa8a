//! What became of an object: the command, the function and the SQL macros give one answer, whatever the dataset's form.

use std::path::{Path, PathBuf};
use std::process::Command;

use tracequet::analyze::survived::Fate;
use tracequet::trace::reader::callback::format;
use tracequet::{AddressType, Convert, DatasetLayout, Format, convert};

use crate::support::callbacks::{MONITOR_SUSPENDS, Making, header};
use crate::support::dataset::survived;

const CLAMP: u64 = 0xFFFF_FFFF;
const GIB4: u64 = 1 << 32;
const GEN0: [u64; 3] = [0, 0x1000, 0x1000];
const GEN1: [u64; 3] = [1, 0x2000, 0x1000];
const GEN2: [u64; 3] = [2, 0x3000, 0x1000];
const LARGE: [u64; 3] = [3, 0x100_0000_0000, 0x8_0000_0000];
/// Another part of generation 0, behind the large objects.
const FAR0: [u64; 3] = [0, 0x200_0000_0000, 0x1000];
/// Where addresses have their highest bit, which is the sign of an int64.
const HIGH: [u64; 3] = [4, 0xFFFF_8000_0000_0000, 0x1000];
const NON_GC: [u64; 3] = [0x9000, 0x800, 0x1000];

fn recording() -> Vec<u8> {
    let all = [GEN0, GEN1, GEN2, LARGE, FAR0, HIGH];
    let after = [[1, 0x1000, 0x1000], [2, 0x2000, 0x2000], [0, 0x200_0000_0000, 0x1000]];
    let mut m = Making::new();
    // 1: generations 0 and 1; the bounds of the non-GC heap are not recorded yet.
    m.suspend(1).started(1, &all).surviving(0, 2, &[[0x1000, 0x100]]).moved(1, 2, &[[0x2100, 0x2000, 0x40]]);
    m.surviving(1, 2, &[[0x1800, 0x20]]).surviving(0, 2, &[[0x1200, 0x40]]).finished(&after).resume();
    // 2: all; two ranges of unknown length, one of them before another range; one moves nowhere.
    m.non_gc = vec![NON_GC];
    m.started(2, &all).surviving(0, 1, &[[LARGE[1], CLAMP], [LARGE[1] + 2 * GIB4, 0x40]]);
    m.surviving(1, 1, &[[LARGE[1] + 3 * GIB4, CLAMP], [HIGH[1], 0x18]]);
    m.moved(0, 1, &[[0x2000, 0x3800, 0x40], [0x3000, 0x3000, 0x18]]).finished(&all[..3]);
    // 3: generation 0, and the process ends in it.
    m.started(0, &all);
    m.cut()
}

/// Another recording, in which the same addresses mean other things.
fn other_recording() -> Vec<u8> {
    let mut m = Making::new();
    m.started(0, &[GEN0]).surviving(0, 2, &[[0x1100, 0x10]]).finished(&[GEN0]).bytes()
}

/// Collection, address, and what is expected: the fate and the address after.
const CASES: &[(u32, u64, &str, Option<u64>)] = &[
    (1, 0x0FFF, "unknown", None),
    (1, 0x1000, "alive", Some(0x1000)),
    (1, 0x10FF, "alive", Some(0x10FF)),
    (1, 0x1100, "dead", None),
    // Ranges of other calls, and of another thread.
    (1, 0x1200, "alive", Some(0x1200)),
    (1, 0x181F, "alive", Some(0x181F)),
    (1, 0x1820, "dead", None),
    (1, 0x2100, "moved", Some(0x2000)),
    (1, 0x213F, "moved", Some(0x203F)),
    (1, 0x2140, "dead", None),
    (1, 0x3000, "not_collected", Some(0x3000)),
    (1, LARGE[1], "not_collected", Some(LARGE[1])),
    (1, HIGH[1], "not_collected", Some(HIGH[1])),
    // In no bounds: nothing is known of it before those of the non-GC heap are recorded.
    (1, NON_GC[0], "unknown", None),
    (2, NON_GC[0], "never_collected", Some(NON_GC[0])),
    (2, NON_GC[0] + NON_GC[1] - 1, "never_collected", Some(NON_GC[0] + NON_GC[1] - 1)),
    (2, NON_GC[0] + NON_GC[1], "unknown", None),
    (2, 0x1000, "dead", None),
    (2, 0x3000, "alive", Some(0x3000)),
    (2, 0x3018, "dead", None),
    (2, HIGH[1] + 0x17, "alive", Some(HIGH[1] + 0x17)),
    (2, HIGH[1] + 0x18, "dead", None),
    // Of a clamped range 4 GiB are proven. What lies behind may belong to it, up to the next range or another part.
    (2, LARGE[1] + GIB4 - 1, "alive", Some(LARGE[1] + GIB4 - 1)),
    (2, LARGE[1] + GIB4, "unknown", None),
    (2, LARGE[1] + 2 * GIB4 - 1, "unknown", None),
    (2, LARGE[1] + 2 * GIB4, "alive", Some(LARGE[1] + 2 * GIB4)),
    (2, LARGE[1] + 2 * GIB4 + 0x40, "dead", None),
    (2, LARGE[1] + 4 * GIB4, "unknown", None),
    (2, FAR0[1], "dead", None),
    (3, 0x1000, "unknown", None),
    (3, 0x2000, "not_collected", Some(0x2000)),
    (3, NON_GC[0], "never_collected", Some(NON_GC[0])),
];

/// A dataset in one of its forms, and the recording to ask for in it.
struct Made {
    path: PathBuf,
    trace: Option<&'static str>,
    name: String,
}

fn every_form(folder: &Path) -> Vec<Made> {
    let (one, two) = (folder.join("made.corprof"), folder.join("other.corprof"));
    std::fs::write(&one, recording()).unwrap();
    std::fs::write(&two, other_recording()).unwrap();
    let mut all = Vec::new();
    for format in [Format::Parquet, Format::Arrow] {
        for address_type in [AddressType::Uint64, AddressType::Int64] {
            for (inputs, layout, trace) in [
                (vec![one.clone()], DatasetLayout::Auto, None),
                (vec![one.clone()], DatasetLayout::Hive, None),
                (vec![two.clone(), one.clone()], DatasetLayout::Auto, Some("made")),
            ] {
                let name = format!("{format:?}-{address_type:?}-{layout:?}-{}", inputs.len());
                let path = folder.join(&name);
                let output = path.clone();
                let request = Convert::new(inputs, output).format(format).layout(layout).address_type(address_type);
                convert(&request, &mut |_| {}).unwrap();
                all.push(Made { path, trace, name });
            }
        }
    }
    all
}

/// Rule 1: ranges are half open. Rule 3: not listed is not dead. Rule 6: a clamped length is a lower bound.
#[test]
fn an_object_survives_in_a_half_open_range_and_not_listed_is_not_dead() {
    let folder = tempfile::tempdir().unwrap();
    for made in every_form(folder.path()) {
        for (gc, address, fate, after) in CASES {
            let steps = survived(&made.path, made.trace, *gc, *address, false).unwrap();
            let seen = (steps[0].fate.as_str(), steps[0].address_after);
            assert_eq!(seen, (*fate, *after), "{}: {gc} {address:#x}", made.name);
        }
        let none = survived(&made.path, made.trace, 4, 0x1000, false).unwrap_err().to_string();
        assert!(none.contains("it has 1 to 3"), "{none}");
    }
}

#[test]
fn of_several_recordings_one_has_to_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let all = every_form(folder.path());
    let [flat, .., two] = &all[..3] else { panic!() };
    let ask = |made: &Made, trace| survived(&made.path, trace, 1, 0x1100, false);
    assert_eq!(ask(two, Some("made")).unwrap()[0].fate, Fate::Dead);
    assert_eq!(ask(two, Some("other")).unwrap()[0].fate, Fate::Alive);
    for trace in [None, Some("neither")] {
        let error = ask(two, trace).unwrap_err().to_string();
        assert!(error.contains("expected one of made-") && error.contains(", other-"), "{error}");
    }
    assert_eq!(ask(flat, Some("made")).unwrap()[0].fate, Fate::Dead);
    assert!(ask(flat, Some("other")).is_err());
    assert!(survived(folder.path(), None, 1, 0x1100, false).unwrap_err().to_string().contains("manifest.json"));
}

#[test]
fn an_object_is_followed_to_where_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    for made in every_form(folder.path()) {
        let steps = survived(&made.path, made.trace, 1, 0x2108, true).unwrap();
        let seen: Vec<_> = steps.iter().map(|s| (s.gc_id, s.fate, s.address_after)).collect();
        let expected =
            [(1, Fate::Moved, Some(0x2008)), (2, Fate::Moved, Some(0x3808)), (3, Fate::NotCollected, Some(0x3808))];
        assert_eq!(seen, expected, "{}", made.name);
        assert_eq!((steps[0].generation_before, steps[0].generation_after), (Some(1), Some(2)));
    }
}

/// Moved without moving, foreground collections in a background one, a hidden one, and one that never ends.
#[test]
fn an_object_is_followed_through_collections_of_every_kind() {
    let part = |generation, start| [generation, start, 0x1000];
    let (young, old) = ([part(0, 0x1000), part(2, 0x5000)], [part(1, 0x2000), part(2, 0x5000)]);
    let oldest = [part(2, 0x2000), part(2, 0x5000)];
    let mut m = Making::with(&format::Header { granted: [MONITOR_SUSPENDS, 0x10], ..header() });
    m.suspend(1).started(2, &young).resume();
    m.suspend(1).started(0, &young).moved(0, 2, &[[0x1000, 0x2000, 0x80]]).finished(&old).resume();
    m.suspend(7).resume().finished(&old);
    m.suspend(1).started(1, &old).moved(0, 2, &[[0x2040, 0x2040, 0x18]]).finished(&oldest).resume();
    m.suspend(1).started(0, &oldest).finished(&oldest).resume();
    m.suspend(1).started(2, &oldest).moved(1, 2, &[[0x2000, 0x5000, 0x80]]).finished(&oldest[1..]).resume();
    m.suspend(1).started(2, &oldest[1..]);
    let bytes = m.cut();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.corprof");
    std::fs::write(&path, bytes).unwrap();
    let output = folder.path().join("out");
    convert(&Convert::new([path], output.clone()), &mut |_| {}).unwrap();
    let steps = survived(&output, None, 1, 0x1048, true).unwrap();
    let seen: Vec<_> = steps.iter().map(|s| (s.kind.as_deref(), s.fate.as_str(), s.address_after)).collect();
    let expected = [
        (Some("background"), "not_collected", Some(0x1048)),
        (Some("foreground"), "moved", Some(0x2048)),
        (Some("blocking"), "alive", Some(0x2048)),
        (Some("blocking"), "not_collected", Some(0x2048)),
        (Some("blocking"), "moved", Some(0x5048)),
        (Some("blocking"), "unknown", None),
    ];
    assert_eq!(seen, expected);
    // Rule 14: a background collection reports no ranges; no object is dead by it.
    let steps = survived(&output, None, 1, 0x5000, false).unwrap();
    assert_eq!(steps[0].fate.as_str(), "unknown");
}

#[test]
fn a_hidden_collection_says_nothing_of_an_object() {
    let mut m = Making::with(&format::Header { granted: [MONITOR_SUSPENDS, 0x10], ..header() });
    m.suspend(1).started(2, &[GEN0]).finished(&[GEN0]).resume();
    let bytes = m.suspend(7).resume().finished(&[GEN0]).bytes();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.corprof");
    std::fs::write(&path, bytes).unwrap();
    let output = folder.path().join("out");
    convert(&Convert::new([path], output.clone()), &mut |_| {}).unwrap();
    let steps = survived(&output, None, 1, 0x1000, true).unwrap();
    let seen: Vec<_> = steps.iter().map(|s| (s.generation, s.fate.as_str())).collect();
    assert_eq!(seen, [(Some(2), "not_collected"), (None, "unknown")]);
}

#[test]
fn the_command_answers_from_datasets_and_recordings() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_tracequet")).arg("survived").args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let folder = tempfile::tempdir().unwrap();
    let all = every_form(folder.path());
    let recording = folder.path().join("made.corprof");
    // The recording is cut, which is a loss; a dataset has said so when it was made.
    let (code, out, err) = run(&[recording.to_str().unwrap(), "1", "0x2108", "--follow"]);
    assert_eq!(code, Some(2), "{err}");
    let fates: Vec<_> = out.lines().filter(|line| line.contains("0x")).collect();
    assert_eq!(fates.len(), 3, "{out}");
    assert!(fates[0].contains("moved") && fates[2].contains("not collected"), "{out}");
    for made in &all {
        let mut arguments = vec![made.path.to_str().unwrap(), "2", "0x9000", "--json"];
        arguments.extend(made.trace.iter().flat_map(|key| ["--trace", *key]));
        let (code, out, err) = run(&arguments);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{}", made.name);
        let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&answer[0]["fate"], &answer[0]["generation_before"]), (&"never_collected".into(), &5.into()));
    }
    let (code, _, err) = run(&[all[2].path.to_str().unwrap(), "2", "0x9000"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("--trace"), "{err}");
}

#[test]
fn the_sql_macros_say_the_same() {
    let Some(python) = crate::support::python::python("the_sql_macros_say_the_same") else { return };
    let folder = tempfile::tempdir().unwrap();
    let expected: Vec<_> = CASES
        .iter()
        .map(|(_, _, fate, after)| format!("{fate} {}", after.map_or("None".into(), |a| a.to_string())))
        .collect();
    // DuckDB reads Arrow files with an extension, which not every machine can install.
    let is_parquet =
        |path: &Path| std::fs::read_to_string(path.join("views.sql")).expect("views.sql").contains("read_parquet");
    for made in every_form(folder.path()).iter().filter(|made| is_parquet(&made.path)) {
        // With several recordings the first argument is the recording.
        let key = tracequet::dataset::read::Dataset::open(&made.path)
            .unwrap()
            .recording(Some("made"))
            .unwrap()
            .info()
            .trace_id
            .clone();
        let made_key = format!("'{key}', ");
        let (trace, column) =
            if made.path.join("gc.parquet").is_file() { ("", "") } else { (made_key.as_str(), "trace_id, ") };
        // Each row as `gc fate address`, of objects that are followed from the first collection on.
        let (mut journeys, mut followed) = (Vec::new(), Vec::new());
        for (gc, address, ..) in CASES.iter().filter(|(gc, ..)| *gc == 1).step_by(2) {
            journeys.push(format!("\"SELECT * FROM journey({trace}{gc}, '{address}')\""));
            for step in survived(&made.path, made.trace, *gc, *address, true).unwrap() {
                let after = step.address_after.map_or("None".into(), |address| format!("{address:#x}"));
                followed.push(format!("{} {} {after}", step.gc_id, step.fate.as_str()));
            }
        }
        assert!(followed.len() > 12, "{}", followed.len());
        let asked: Vec<_> = CASES.iter().enumerate().map(|(n, (gc, a, ..))| format!("({n}, {gc}, {a})")).collect();
        let script = format!(
            "c.execute('SET threads = 1')\n\
             for row in c.execute(\"\"\"SELECT survived({trace}gc, o), address_after({trace}gc, o)\n\
             FROM (VALUES {}) q(n, gc, o) ORDER BY n\"\"\").fetchall():\n    print(*row)\n\
             print(c.execute(\"SELECT DISTINCT survived({column}gc_id, range_start) FROM gc_surviving_range\").fetchall())\n\
             print(*c.execute(\"SELECT survived({trace}2, '0x1000'), address_after({trace}2, '0x2000')\").fetchone())\n\
             for journey in [{}]:\n    for row in c.execute(journey).fetchall():\n        print(*row)\n",
            asked.join(", "),
            journeys.join(", "),
        );
        let run = crate::support::python::ask_views(&python, &made.path, &script, "");
        let text = String::from_utf8_lossy(&run.stdout).into_owned();
        let errors = String::from_utf8_lossy(&run.stderr);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines.len() > expected.len() + 2, "{}: {errors}", made.name);
        assert_eq!(lines[..expected.len()], expected, "{}", made.name);
        let (of_forms, of_journeys) = lines[expected.len()..].split_at(2);
        assert_eq!(of_forms, ["[('alive',)]", "dead 14336"], "of columns, and of texts");
        assert_eq!(of_journeys, followed, "{}: journey", made.name);
    }
}
