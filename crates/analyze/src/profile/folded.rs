//! Folded stacks: `outermost;...;innermost weight`, a line for each stack.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::model::Profile;
use tracequet_trace::error::is_unseen;

/// Bytes of all lines, which are put together to be sorted.
const MAX_BYTES: usize = 2 << 30;

/// Writes the stacks in the order of their text. Stacks of different call sites that read the same are one line.
pub fn write(profile: &Profile, by_thread: bool, out: &mut dyn Write) -> io::Result<()> {
    write_up_to(MAX_BYTES, profile, by_thread, out)
}

/// Writes the stacks with the largest weights, the largest first.
pub fn write_largest(profile: &Profile, by_thread: bool, most: usize, out: &mut dyn Write) -> io::Result<()> {
    let mut lines: Vec<(String, u64)> = lines(MAX_BYTES, profile, by_thread)?.into_iter().collect();
    lines.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    lines.into_iter().take(most).try_for_each(|(stack, weight)| writeln!(out, "{stack} {weight}"))
}

/// Writes each stack with its weights in the base and in the profile, as difffolded.pl of flame graphs does.
pub fn write_difference(profile: &Profile, base: &Profile, by_thread: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut both: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (column, of) in [base, profile].into_iter().enumerate() {
        for (stack, weight) in lines(MAX_BYTES / 2, of, by_thread)? {
            if let Some(place) = both.entry(stack).or_default().get_mut(column) {
                *place = weight;
            }
        }
    }
    for (stack, [before, now]) in both {
        writeln!(out, "{stack} {before} {now}")?;
    }
    Ok(())
}

fn write_up_to(max_bytes: usize, profile: &Profile, by_thread: bool, out: &mut dyn Write) -> io::Result<()> {
    for (stack, weight) in lines(max_bytes, profile, by_thread)? {
        writeln!(out, "{stack} {weight}")?;
    }
    Ok(())
}

/// The stacks with their weights.
fn lines(max_bytes: usize, profile: &Profile, by_thread: bool) -> io::Result<BTreeMap<String, u64>> {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    let mut bytes = 0usize;
    let mut add = |thread: Option<&str>, callsite: u32, weight: u64| {
        let stack = profile.stack(callsite);
        let names = stack.iter().filter_map(|function| profile.functions.get(*function as usize));
        let parts = || thread.into_iter().chain(names.clone().map(|function| function.name.as_str()));
        // Before the line is put together: one alone may be too long.
        bytes = parts().fold(bytes, |bytes, part| bytes.saturating_add(part.len() + 1));
        if bytes > max_bytes {
            return Err(io::Error::other(format!("the stacks have more than {max_bytes} bytes of text")));
        }
        let line = parts().map(part).collect::<Vec<String>>().join(";");
        let sum = lines.entry(line).or_default();
        *sum = sum.saturating_add(weight);
        Ok(())
    };
    if by_thread {
        for thread in &profile.threads {
            let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
            for sample in &thread.samples {
                let sum = sums.entry(sample.callsite).or_default();
                *sum = sum.saturating_add(sample.weight);
            }
            sums.into_iter().try_for_each(|(callsite, weight)| add(Some(&thread.label), callsite, weight))?;
        }
    } else {
        profile.by_callsite().into_iter().try_for_each(|(callsite, weight)| add(None, callsite, weight))?;
    }
    Ok(lines)
}

/// A name without what has a meaning in the format.
fn part(name: &str) -> String {
    let plain = |c: char| {
        if c == ';' {
            ':'
        } else if is_unseen(c) {
            ' '
        } else {
            c
        }
    };
    name.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_a_blank() {
        assert_eq!(part("a;b\u{2028}c\u{200E}d\u{202E}e\nf\u{E0041}g"), "a:b c d e f g");
        assert_eq!(part("Größe<名>\u{1F600}"), "Größe<名>\u{1F600}");
    }

    #[test]
    fn text_beyond_the_bound_is_refused_before_it_is_put_together() {
        let long = "x".repeat(100);
        let profile = Profile::of_chain(&["main", &long, &long], 3);
        let write = |max_bytes, by_thread| {
            let mut out = Vec::new();
            write_up_to(max_bytes, &profile, by_thread, &mut out).map(|()| String::from_utf8(out).unwrap())
        };
        assert_eq!(write(1000, false).unwrap(), format!("main;{long};{long} 6\n"));
        assert_eq!(write(1000, true).unwrap().lines().count(), 3);
        // One stack has 207 bytes, with its thread 216.
        assert_eq!((write(207, false).is_ok(), write(206, false).is_ok()), (true, false));
        assert_eq!((write(3 * 216, true).is_ok(), write(3 * 216 - 1, true).is_ok()), (true, false));
    }
}
