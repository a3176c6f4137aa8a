//! Folded stacks: `outermost;...;innermost weight`, a line for each stack.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::model::Profile;

/// Bytes of all lines, which are put together to be sorted.
const MAX_BYTES: usize = 2 << 30;

/// Writes the stacks in the order of their text. Stacks of different call sites that read the same are one line.
pub fn write(profile: &Profile, by_thread: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    let mut bytes = 0usize;
    let mut add = |thread: Option<&str>, callsite: u32, weight: u64| {
        let stack = profile.stack(callsite);
        let names = stack.iter().filter_map(|function| profile.functions.get(*function as usize));
        let parts: Vec<String> =
            thread.into_iter().chain(names.map(|function| function.name.as_str())).map(part).collect();
        let line = parts.join(";");
        bytes = bytes.saturating_add(line.len());
        if bytes > MAX_BYTES {
            return Err(io::Error::other("the stacks have more than 2 GiB of text"));
        }
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
    for (stack, weight) in lines {
        writeln!(out, "{stack} {weight}")?;
    }
    Ok(())
}

/// A name without what has a meaning in the format.
fn part(name: &str) -> String {
    let plain = |c: char| {
        if c == ';' {
            ':'
        } else if c.is_control() {
            ' '
        } else {
            c
        }
    };
    name.chars().map(plain).collect()
}
