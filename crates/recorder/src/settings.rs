//! Settings from the environment, or from the client that attaches.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use corprof as format;

const MONITOR_FUNCTION_UNLOADS: u32 = 0x1;
const MONITOR_CLASS_LOADS: u32 = 0x2;
const MONITOR_MODULE_LOADS: u32 = 0x4;
const MONITOR_GC: u32 = 0x80;
const MONITOR_OBJECT_ALLOCATED: u32 = 0x100;
const MONITOR_THREADS: u32 = 0x200;
const MONITOR_SUSPENDS: u32 = 0x1_0000;
const ENABLE_OBJECT_ALLOCATED: u32 = 0x80_0000;
const HIGH_DYNAMIC_FUNCTION_UNLOADS: u32 = 0x4;
const HIGH_BASIC_GC: u32 = 0x10;
const HIGH_LARGE_ALLOCATED: u32 = 0x40;
const HIGH_PINNED_ALLOCATED: u32 = 0x100;

/// Masks for callbacks about reused ids. Not every runtime grants them.
pub const UNLOADS: [u32; 2] = [MONITOR_FUNCTION_UNLOADS | MONITOR_CLASS_LOADS, HIGH_DYNAMIC_FUNCTION_UNLOADS];

/// The first ICorProfilerCallback with SurvivingReferences2 and MovedReferences2.
const FIRST_WITH_V2: u32 = 4;
/// ICorProfilerCallback that a setting may name: the runtime needs the first, the last is the newest that is known
/// here.
const INTERFACES: std::ops::RangeInclusive<u32> = 2..=11;

/// All settings.
const NAMES: [&str; 14] = [
    "TRACEQUET_OUTPUT", "TRACEQUET_RANGES", "TRACEQUET_V2", "TRACEQUET_GC", "TRACEQUET_OBJECTS", "TRACEQUET_ROOTS",
    "TRACEQUET_HANDLES", "TRACEQUET_CLASSES", "TRACEQUET_SUSPENDS", "TRACEQUET_NAMES", "TRACEQUET_ALLOCATIONS",
    "TRACEQUET_INTERFACE", "TRACEQUET_EVENT_MASK", "TRACEQUET_IDLE",
];
/// The prefix of all settings, so that a misspelt one is noticed.
const PREFIX: &str = "TRACEQUET_";

/// The settings of a recording.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Path of the recording, `%p` the process id.
    output: String,
    /// `POLICY_` bits.
    pub policy: u32,
    /// Newest callback interface that is granted.
    pub interface: u32,
    /// Event masks: low, high.
    pub masks: [u32; 2],
    /// Event masks when attached, where less is allowed.
    pub attach_masks: [u32; 2],
    /// Names of classes, functions and modules are looked up.
    pub names: bool,
    /// Nothing is recorded: callbacks return at once (for measuring what the recording costs).
    pub idle: bool,
    /// Settings that were not understood or cannot be followed, and what is done instead: one sentence each.
    pub problems: Vec<String>,
}

static ENVIRONMENT: OnceLock<Settings> = OnceLock::new();
static CLIENT: OnceLock<Settings> = OnceLock::new();

type Pairs = BTreeMap<String, String>;

fn environment() -> Pairs {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let all = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
    all.filter(|(name, _)| name.starts_with(PREFIX)).collect()
}

/// The settings of the environment.
pub fn of_environment() -> &'static Settings {
    ENVIRONMENT.get_or_init(|| Settings::of(&environment()))
}

/// Settings of a client that attaches: `NAME=VALUE` lines or `;` between, which count more than the environment.
pub fn set_client_data(data: &str) {
    let pairs = data.split(['\n', ';', '\0']).filter_map(|p| p.trim().split_once('='));
    let pairs: Pairs = pairs.map(|(name, value)| (name.trim().to_owned(), value.to_owned())).collect();
    if !pairs.is_empty() {
        let mut all = environment();
        all.extend(pairs);
        CLIENT.set(Settings::of(&all)).ok();
    }
}

/// The settings that the recording follows.
pub fn of_recording() -> &'static Settings {
    CLIENT.get().unwrap_or_else(|| of_environment())
}

/// Values as they were given, and what was wrong with them.
struct Reader<'a> {
    pairs: &'a Pairs,
    problems: Vec<String>,
}

impl Reader<'_> {
    /// The value of a setting: lower case, without blanks around it; `None` when it is missing or empty.
    fn value(&self, name: &str) -> Option<String> {
        self.pairs.get(name).map(|value| value.trim().to_ascii_lowercase()).filter(|value| !value.is_empty())
    }

    fn wrong(&mut self, name: &str, expected: &str, instead: &str) {
        let given = self.pairs.get(name).map_or("", |value| value.trim());
        self.problems.push(format!("{name}={given} is not understood: expected {expected}; {instead} is taken"));
    }

    /// One of some words, of which the first is the default. Each may be written in several ways.
    fn word(&mut self, name: &str, words: &[&[&'static str]]) -> &'static str {
        let names = || words.iter().filter_map(|ways| ways.first()).copied();
        let default = names().next().unwrap_or_default();
        let Some(value) = self.value(name) else { return default };
        if let Some(word) = words.iter().find(|ways| ways.contains(&&*value)).and_then(|ways| ways.first()) {
            return word;
        }
        self.wrong(name, &names().collect::<Vec<_>>().join(" or "), default);
        default
    }

    fn on(&mut self, name: &str, default: bool) -> bool {
        const ON: &[&str] = &["1", "yes", "on", "true"];
        const OFF: &[&str] = &["0", "no", "off", "false"];
        self.word(name, &if default { [ON, OFF] } else { [OFF, ON] }) == "1"
    }

    fn masks(&mut self, name: &str) -> Option<[u32; 2]> {
        let value = self.value(name)?;
        let masks = value.split_once(',').and_then(|(low, high)| Some([number(low)?, number(high)?]));
        if masks.is_none() {
            self.wrong(name, "LOW,HIGH", "what follows from the other settings");
        }
        masks
    }
}

/// A decimal number, or a hexadecimal one behind `0x`.
fn number(text: &str) -> Option<u32> {
    let text = text.trim();
    if let Some(hex) = text.strip_prefix("0x") { u32::from_str_radix(hex, 16).ok() } else { text.parse().ok() }
}

impl Settings {
    fn of(pairs: &Pairs) -> Settings {
        let mut read = Reader { pairs, problems: Vec::new() };
        for name in pairs.keys().filter(|name| !NAMES.contains(&name.as_str())) {
            read.problems.push(format!("{name} is not a setting of the recorder (docs/PROFILER.md has a list)"));
        }
        let mut policy = 0;
        let mut set = |bit: u32, on: bool| policy |= if on { bit } else { 0 };

        let interface = match read.value("TRACEQUET_INTERFACE").map(|value| number(&value)) {
            None => *INTERFACES.end(),
            Some(Some(version)) if INTERFACES.contains(&version) => version,
            Some(_) => {
                read.wrong("TRACEQUET_INTERFACE", "2 to 11", "11");
                *INTERFACES.end()
            }
        };
        let mut ranges = read.word("TRACEQUET_RANGES", &[&["v2"], &["v1"], &["both"]]);
        if interface < FIRST_WITH_V2 && ranges != "v1" {
            read.problems.push(format!(
                "TRACEQUET_INTERFACE={interface} has no second version of the ranges: TRACEQUET_RANGES=v1 is taken"
            ));
            ranges = "v1";
        }
        set(format::POLICY_V1, ranges != "v2");
        set(format::POLICY_V2, ranges != "v1");
        let default: [&[&str]; 2] = if ranges == "v2" { [&["fail"], &["ok"]] } else { [&["ok"], &["fail"]] };
        let mut v2 = read.word("TRACEQUET_V2", &default);
        if v2 == "fail" && ranges != "v2" {
            let why = "after a failure of the second version the runtime does not call the first";
            read.problems.push(format!("TRACEQUET_V2=fail with TRACEQUET_RANGES={ranges}: {why}; ok is taken"));
            v2 = "ok";
        }
        set(format::POLICY_V2_FAILS, v2 == "fail");
        set(format::POLICY_ROOTS, read.on("TRACEQUET_ROOTS", true));
        set(format::POLICY_SUSPENDS, read.on("TRACEQUET_SUSPENDS", true));
        set(format::POLICY_CLASSES, read.on("TRACEQUET_CLASSES", true));
        set(format::POLICY_HANDLES, read.on("TRACEQUET_HANDLES", true));
        let words: [&[&str]; 3] =
            [&["stop", "0", "no", "off", "false"], &["record", "1", "yes", "on", "true"], &["walk"]];
        let objects = read.word("TRACEQUET_OBJECTS", &words);
        set(format::POLICY_OBJECTS, objects == "record");
        set(format::POLICY_STOP_WALK, objects == "stop");
        let allocations = read.on("TRACEQUET_ALLOCATIONS", false);
        set(format::POLICY_ALLOCATIONS, allocations);

        let suspends = if policy & format::POLICY_SUSPENDS != 0 { MONITOR_SUSPENDS } else { 0 };
        let names = read.on("TRACEQUET_NAMES", true);
        let mut low = suspends | MONITOR_THREADS;
        let mut high = 0;
        if names {
            low |= MONITOR_MODULE_LOADS | UNLOADS[0];
            high |= UNLOADS[1];
        }
        if read.word("TRACEQUET_GC", &[&["monitor"], &["basic"]]) == "basic" {
            high |= HIGH_BASIC_GC;
        } else {
            low |= MONITOR_GC;
        }
        let attach_masks = [low & !MONITOR_FUNCTION_UNLOADS, high]; // granted at the start only
        if allocations {
            low |= ENABLE_OBJECT_ALLOCATED | MONITOR_OBJECT_ALLOCATED;
            high |= HIGH_LARGE_ALLOCATED | HIGH_PINNED_ALLOCATED;
        }
        let masks = read.masks("TRACEQUET_EVENT_MASK").unwrap_or([low, high]);
        let idle = read.on("TRACEQUET_IDLE", false);
        let output = pairs.get("TRACEQUET_OUTPUT").filter(|output| !output.is_empty());
        Settings {
            output: output.map_or_else(|| "tracequet-%p.corprof".to_owned(), String::clone),
            policy,
            interface,
            masks,
            attach_masks,
            names,
            idle,
            problems: read.problems,
        }
    }

    /// The path of the recording of this process.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(self.output.replace("%p", &std::process::id().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        Settings::of(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn settings_that_are_understood_have_no_problems() {
        let given = [("TRACEQUET_RANGES", " Both "), ("TRACEQUET_ROOTS", "off"), ("TRACEQUET_EVENT_MASK", "0x80,16")];
        let read = settings(&given);
        assert_eq!((read.problems.len(), read.masks), (0, [0x80, 16]), "{:?}", read.problems);
        assert_eq!(read.policy & (format::POLICY_V1 | format::POLICY_V2 | format::POLICY_V2_FAILS), 3);
        assert_eq!(read.policy & format::POLICY_ROOTS, 0);
        assert_eq!(settings(&[]).problems.len(), 0);
        let v1 = settings(&[("TRACEQUET_INTERFACE", "3"), ("TRACEQUET_RANGES", "v1")]);
        assert_eq!((v1.problems.len(), v1.interface), (0, 3), "{:?}", v1.problems);
    }

    /// Each of these recorded nothing, or something else than was asked for, and said nothing of it.
    #[test]
    fn settings_that_cannot_be_followed_are_said_and_ranges_are_recorded_nevertheless() {
        let cases = [
            (&[("TRACEQUET_RANGES", "v9")][..], "TRACEQUET_RANGES=v9", format::POLICY_V2),
            (&[("TRACEQUET_INTERFACE", "2")], "TRACEQUET_INTERFACE=2", format::POLICY_V1),
            (&[("TRACEQUET_INTERFACE", "twelve")], "TRACEQUET_INTERFACE=twelve", format::POLICY_V2),
            (&[("TRACEQUET_RANGE", "v1")], "TRACEQUET_RANGE is not a setting", format::POLICY_V2),
            (&[("TRACEQUET_ROOTS", "maybe")], "TRACEQUET_ROOTS=maybe", format::POLICY_ROOTS),
            (&[("TRACEQUET_EVENT_MASK", "128")], "TRACEQUET_EVENT_MASK=128", format::POLICY_V2),
            (&[("TRACEQUET_RANGES", "v1"), ("TRACEQUET_V2", "fail")], "TRACEQUET_V2=fail", format::POLICY_V1),
        ];
        for (given, said, recorded) in cases {
            let read = settings(given);
            assert!(read.problems.len() == 1 && read.problems[0].starts_with(said), "{:?}", read.problems);
            assert_eq!(read.policy & recorded, recorded, "{said}");
            let called = read.policy & format::POLICY_V1 == 0 || read.policy & format::POLICY_V2_FAILS == 0;
            assert!(called && read.masks[0] & MONITOR_GC != 0, "{said}: the runtime would not call");
        }
    }
}
