//! Names of recordings, and patterns of names.

use std::path::Path;
use tracequet_trace::pattern;

/// Ends of names that recordings have, packed or not. Whatever is in such a file, it was meant as a recording.
const NAMES: [&str; 7] = [".nettrace", ".netperf", ".etl", ".corprof", ".gcdump", ".etlgz", ".diagsession"];
/// Packings, of which the name in front of the end counts.
const PACKED: [&str; 3] = [".gz", ".zst", ".zip"];

/// Whether a file has the name of a recording, packed or not: `.nettrace`, `.etl.zip`, ...
pub fn is_recording_name(path: &Path) -> bool {
    is_named_so(&path.file_name().unwrap_or_default().to_string_lossy())
}

/// Whether a file of this name was meant as a recording.
pub(super) fn is_named_so(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let inner = PACKED.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    NAMES.iter().any(|end| inner.ends_with(end))
}

/// Whether a name is a pattern.
pub(super) fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// Whether a name fits a pattern of `*`, `?`, `[abc]`, `[a-z]` and `[!a]`. Takes time in proportion to both at worst.
pub(super) fn fits(name: &[char], pattern: &[char]) -> bool {
    pattern::fits(name, pattern, '*', |pattern, letter| match pattern.first()? {
        '?' => Some(1),
        '[' => class(pattern, letter),
        own => (*own == letter).then_some(1),
    })
}

/// The length of the class that a pattern begins with, if it has the character. A `[` that is not closed is itself.
fn class(pattern: &[char], c: char) -> Option<usize> {
    let Some(end) = pattern.iter().skip(2).position(|c| *c == ']').map(|at| at + 2) else {
        return (c == '[').then_some(1);
    };
    let mut inner = pattern.get(1..end).unwrap_or_default();
    let negated = inner.first() == Some(&'!');
    if negated {
        inner = inner.get(1..).unwrap_or_default();
    }
    let mut has = false;
    while let Some((first, rest)) = inner.split_first() {
        inner = rest;
        match rest {
            ['-', last, more @ ..] => {
                has |= (*first..=*last).contains(&c);
                inner = more;
            }
            _ => has |= *first == c,
        }
    }
    (has != negated).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_names() {
        let fits =
            |name: &str, pattern: &str| fits(&name.chars().collect::<Vec<_>>(), &pattern.chars().collect::<Vec<_>>());
        for (name, pattern) in [
            ("a.nettrace", "*.nettrace"),
            ("a.nettrace", "?.net*e"),
            ("run7", "run[0-9]"),
            ("runx", "run[!0-9]"),
            ("a[b", "a[b"),
            ("abcabd", "*abd"),
            ("", "*"),
        ] {
            assert!(fits(name, pattern), "{name} {pattern}");
        }
        for (name, pattern) in [("a.etl", "*.nettrace"), ("run", "run?"), ("runx", "run[0-9]"), ("ab", "a"), ("a", "")]
        {
            assert!(!fits(name, pattern), "{name} {pattern}");
        }
        assert!(!fits(&"a".repeat(200), &("*a".repeat(50) + "b")), "in no time");
    }
}
