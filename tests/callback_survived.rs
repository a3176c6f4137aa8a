//! What became of an object: the command and the SQL macros give one answer.

use std::path::Path;
use std::process::Command;

use tracequet::pipeline::{Convert, convert};
use tracequet::survived::{Fate, survived};

use crate::support::callbacks::Making;

const CLAMP: u64 = 0xFFFF_FFFF;
const GEN0: [u64; 3] = [0, 0x1000, 0x1000];
const GEN1: [u64; 3] = [1, 0x2000, 0x1000];
const GEN2: [u64; 3] = [2, 0x3000, 0x1000];
const LARGE: [u64; 3] = [3, 0x100_0000_0000, 0x4_0000_0000];

fn dataset(folder: &Path) -> std::path::PathBuf {
    let all = [GEN0, GEN1, GEN2, LARGE];
    let mut m = Making::new();
    m.suspend(1).started(1, &all).surviving(0, 2, &[[0x1000, 0x100]]).moved(1, 2, &[[0x2100, 0x2000, 0x40]]);
    m.finished(&[[1, 0x1000, 0x1000], [2, 0x2000, 0x2000]]).resume();
    m.started(2, &all).surviving(0, 1, &[[LARGE[1], CLAMP]]).moved(0, 1, &[[0x2000, 0x3800, 0x40]]).finished(&all[..3]);
    m.started(0, &all);
    let recording = folder.join("made.corprof");
    std::fs::write(&recording, m.cut()).unwrap();
    let output = folder.join("out");
    let request = Convert { inputs: vec![recording], output: output.clone(), ..Convert::default() };
    convert(&request, &mut |_| {}).unwrap();
    output
}

/// Collection, address, and what is expected: the fate and the address after.
const CASES: &[(u32, u64, &str, Option<u64>)] = &[
    (1, 0x0FFF, "unknown", None),
    (1, 0x1000, "alive", Some(0x1000)),
    (1, 0x10FF, "alive", Some(0x10FF)),
    (1, 0x1100, "dead", None),
    (1, 0x2100, "moved", Some(0x2000)),
    (1, 0x213F, "moved", Some(0x203F)),
    (1, 0x2140, "dead", None),
    (1, 0x3000, "not_collected", Some(0x3000)),
    (1, LARGE[1], "not_collected", Some(LARGE[1])),
    (2, 0x1000, "dead", None),
    (2, LARGE[1] + 0xFFFF_FFFF, "alive", Some(LARGE[1] + 0xFFFF_FFFF)),
    (2, LARGE[1] + 0x1_0000_0000, "unknown", None),
    (3, 0x1000, "unknown", None),
    (3, 0x2000, "not_collected", Some(0x2000)),
];

#[test]
fn an_object_survives_in_a_half_open_range_and_not_listed_is_not_dead() {
    let folder = tempfile::tempdir().unwrap();
    let output = dataset(folder.path());
    for (gc, address, fate, after) in CASES {
        let steps = survived(&output, *gc, *address, false).unwrap();
        assert_eq!((steps[0].fate.as_str(), steps[0].address_after), (*fate, *after), "{gc} {address:#x}");
    }
    assert!(survived(&output, 4, 0x1000, false).unwrap_err().to_string().contains("it has 1 to 3"));
}

#[test]
fn an_object_is_followed_to_where_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let steps = survived(&dataset(folder.path()), 1, 0x2108, true).unwrap();
    let seen: Vec<_> = steps.iter().map(|s| (s.gc_id, s.fate, s.address_after)).collect();
    let expected =
        [(1, Fate::Moved, Some(0x2008)), (2, Fate::Moved, Some(0x3808)), (3, Fate::NotCollected, Some(0x3808))];
    assert_eq!(seen, expected);
    assert_eq!((steps[0].generation_before, steps[0].generation_after), (Some(1), Some(2)));
}

#[test]
fn the_sql_macros_say_the_same() {
    if !Command::new("python3").args(["-c", "import duckdb"]).output().is_ok_and(|o| o.status.success()) {
        println!("the_sql_macros_say_the_same: skipped, there is no DuckDB (pip install duckdb)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = dataset(folder.path());
    let questions: Vec<_> =
        CASES.iter().map(|(gc, a, ..)| format!("SELECT survived({gc}, {a}), address_after({gc}, {a})")).collect();
    let script = format!(
        "import duckdb\nc = duckdb.connect()\nc.execute(open('views.sql').read())\n\
         for q in '{}'.split(';'):\n    print(*c.execute(q).fetchone())\n",
        questions.join(";")
    );
    let run = Command::new("python3").args(["-c", &script]).current_dir(&output).output().unwrap();
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    let expected: Vec<_> = CASES
        .iter()
        .map(|(_, _, fate, after)| format!("{fate} {}", after.map_or("None".into(), |a| a.to_string())))
        .collect();
    assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{}", String::from_utf8_lossy(&run.stderr));
}
