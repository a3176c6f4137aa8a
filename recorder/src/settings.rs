//! What the environment (or the client that attaches) asks for.

use std::collections::HashMap;
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

/// Masks that tell when an id changes its meaning. Not every runtime grants them.
pub const UNLOADS: [u32; 2] = [MONITOR_FUNCTION_UNLOADS | MONITOR_CLASS_LOADS, HIGH_DYNAMIC_FUNCTION_UNLOADS];

/// What is recorded, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Path of the recording, `%p` the process id.
    pub output: String,
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
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// The settings; the environment's, unless [`set_client_data`] came first.
pub fn get() -> &'static Settings {
    SETTINGS.get_or_init(|| Settings::from(|key| std::env::var(key).ok()))
}

/// Settings of a client that attaches: `NAME=VALUE` lines or `;` between, which count more than the environment.
pub fn set_client_data(data: &str) {
    let pairs: HashMap<&str, &str> = data.split(['\n', ';', '\0']).filter_map(|p| p.trim().split_once('=')).collect();
    if !pairs.is_empty() {
        let look = |key: &str| pairs.get(key).map(|v| (*v).to_owned()).or_else(|| std::env::var(key).ok());
        OVERRIDE.set(Settings::from(look)).ok();
    }
}

static OVERRIDE: OnceLock<Settings> = OnceLock::new();

/// The settings that the recording follows.
pub fn of_recording() -> &'static Settings {
    OVERRIDE.get().unwrap_or_else(|| get())
}

impl Settings {
    fn from(look: impl Fn(&str) -> Option<String>) -> Settings {
        let word = |key: &str, default: &str| {
            let value = look(key).map(|v| v.trim().to_ascii_lowercase());
            value.filter(|v| !v.is_empty()).unwrap_or_else(|| default.to_owned())
        };
        let on = |key: &str, default: bool| {
            !matches!(word(key, if default { "1" } else { "0" }).as_str(), "0" | "no" | "off" | "false")
        };
        let mut policy = 0;
        let mut set = |bit: u32, on: bool| policy |= if on { bit } else { 0 };
        let ranges = word("TRACEQUET_RANGES", "v2");
        set(format::POLICY_V1, matches!(ranges.as_str(), "v1" | "both"));
        set(format::POLICY_V2, matches!(ranges.as_str(), "v2" | "both"));
        let v2 = word("TRACEQUET_V2", if ranges == "v2" { "fail" } else { "ok" });
        set(format::POLICY_V2_FAILS, v2 == "fail");
        set(format::POLICY_ROOTS, on("TRACEQUET_ROOTS", true));
        set(format::POLICY_SUSPENDS, on("TRACEQUET_SUSPENDS", true));
        set(format::POLICY_CLASSES, on("TRACEQUET_CLASSES", true));
        set(format::POLICY_HANDLES, on("TRACEQUET_HANDLES", true));
        let objects = word("TRACEQUET_OBJECTS", "stop");
        set(format::POLICY_OBJECTS, matches!(objects.as_str(), "1" | "on" | "yes" | "record" | "true"));
        set(format::POLICY_STOP_WALK, matches!(objects.as_str(), "0" | "off" | "no" | "stop" | "false"));
        let allocations = on("TRACEQUET_ALLOCATIONS", false);
        set(format::POLICY_ALLOCATIONS, allocations);

        let suspends = if policy & format::POLICY_SUSPENDS != 0 { MONITOR_SUSPENDS } else { 0 };
        let names = on("TRACEQUET_NAMES", true);
        let mut low = suspends | MONITOR_THREADS;
        let mut high = 0;
        if names {
            low |= MONITOR_MODULE_LOADS | UNLOADS[0];
            high |= UNLOADS[1];
        }
        if word("TRACEQUET_GC", "monitor") == "basic" {
            high |= HIGH_BASIC_GC;
        } else {
            low |= MONITOR_GC;
        }
        let attach_masks = [low & !MONITOR_FUNCTION_UNLOADS, high]; // granted at the start only
        if allocations {
            low |= ENABLE_OBJECT_ALLOCATED | MONITOR_OBJECT_ALLOCATED;
            high |= HIGH_LARGE_ALLOCATED | HIGH_PINNED_ALLOCATED;
        }
        let number = |text: &str| {
            let text = text.trim();
            match text.strip_prefix("0x") {
                Some(hex) => u32::from_str_radix(hex, 16).ok(),
                None => text.parse().ok(),
            }
        };
        let mut masks = [low, high];
        if let Some((low, high)) = word("TRACEQUET_EVENT_MASK", "").split_once(',')
            && let (Some(low), Some(high)) = (number(low), number(high))
        {
            masks = [low, high];
        }
        Settings {
            output: look("TRACEQUET_OUTPUT").filter(|o| !o.is_empty()).unwrap_or("tracequet-%p.corprof".into()),
            policy,
            interface: number(&word("TRACEQUET_INTERFACE", "11")).unwrap_or(11).clamp(2, 11),
            masks,
            attach_masks,
            names,
            idle: on("TRACEQUET_IDLE", false),
        }
    }

    /// The path of the recording of this process.
    pub fn path(&self) -> String {
        self.output.replace("%p", &std::process::id().to_string())
    }
}
