//! Names of payload tables: `event/<provider>/<event>`. They are valid paths on every system, and unique without regard
//! to case.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

/// Provider, event id, event name.
pub type EventKey = (String, u32, String);

/// The names given so far.
#[derive(Default)]
pub struct Names {
    taken: HashSet<String>,
    tables: HashMap<EventKey, Vec<usize>>,
}

impl Names {
    /// The tables that hold events of this key, in the order in which they were made.
    pub fn tables_of(&self, key: &EventKey) -> Vec<usize> {
        self.tables.get(key).cloned().unwrap_or_default()
    }

    /// Gives the table `slot` a name. A second layout of the same event is named after its version; where `layout` is
    /// given, it is a part of the name.
    pub fn add(&mut self, key: &EventKey, version: u32, slot: usize, layout: Option<&str>) -> String {
        let (provider, id, event) = key;
        let mut base = format!("event/{}/{}", safe(provider), safe(event));
        if let Some(layout) = layout {
            base = format!("{base}.{layout}");
        }
        let versioned = format!("{base}.v{version}");
        let numbered = format!("{base}.{id}");
        let counted = (2u32..).map(|n| format!("{versioned}.{n}"));
        let first = if self.tables.contains_key(key) { versioned.clone() } else { base };
        let candidates = [first, numbered, versioned.clone()].into_iter().chain(counted);
        let name = candidates.into_iter().find(|n| !self.taken.contains(&n.to_lowercase())).unwrap_or(versioned);
        self.taken.insert(name.to_lowercase());
        self.tables.entry(key.clone()).or_default().push(slot);
        name
    }
}

/// Characters and bytes of a part of a path, at most: with a suffix and an extension it has to stay below the 255 bytes
/// that most file systems allow.
const MAX_CHARS: usize = 80;
const MAX_BYTES: usize = 160;

/// A part of a path: letters, digits, `.`, `-` and `_`, of bounded length, no device name of Windows. A name that is
/// longer than that is cut, and a hash of the whole takes the place of its end.
pub fn safe(name: &str) -> String {
    let keep = |c: char| if c.is_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    let mut out: String = name.chars().map(keep).take(MAX_CHARS).collect();
    if out.len() > MAX_BYTES {
        let hash: String = Sha256::digest(name).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        while out.len() + 1 + hash.len() > MAX_BYTES {
            out.pop();
        }
        out = format!("{out}-{hash}");
    }
    while out.ends_with('.') {
        out.pop();
    }
    if out.starts_with('.') {
        out.replace_range(..1, "_");
    }
    let stem = out.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_device = matches!(stem.as_str(), "con" | "prn" | "aux" | "nul")
        || (stem.len() == 4
            && (stem.starts_with("com") || stem.starts_with("lpt"))
            && stem.ends_with(|c: char| c.is_ascii_digit()));
    match (out.is_empty(), is_device) {
        (true, _) => "unnamed".to_owned(),
        (_, true) => format!("_{out}"),
        _ => out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_unique() {
        for (from, to) in [
            ("Microsoft-Windows-DotNETRuntime", "Microsoft-Windows-DotNETRuntime"),
            ("../../etc/passwd", "_._.._etc_passwd"),
            ("", "unnamed"),
            ("con", "_con"),
            ("LPT1.txt", "_LPT1.txt"),
            ("a:b*c", "a_b_c"),
            ("Ünïcode", "Ünïcode"),
            ("...", "unnamed"),
        ] {
            assert_eq!(safe(from), to);
        }
        // Two long names that differ at their ends stay apart, and fit into a file name.
        let long = |end: &str| safe(&("\u{20000}".repeat(79) + end));
        assert!(long("a").len() <= MAX_BYTES && long("a") != long("b"), "{}", long("a"));
        assert_eq!(safe(&"x".repeat(200)), "x".repeat(80));
        let mut names = Names::default();
        let key = |id, name: &str| ("P".to_owned(), id, name.to_owned());
        assert_eq!(names.add(&key(1, "E"), 0, 0, None), "event/P/E");
        assert_eq!(names.add(&key(1, "E"), 1, 1, None), "event/P/E.v1");
        assert_eq!(names.add(&key(1, "E"), 1, 2, None), "event/P/E.1");
        assert_eq!(names.add(&key(2, "e"), 0, 3, None), "event/P/e.2");
        assert_eq!(names.tables_of(&key(1, "E")), [0, 1, 2]);
        assert_eq!(names.add(&key(9, "F"), 0, 4, Some("01ab")), "event/P/F.01ab");
    }
}
