//! The JSON of speedscope, <https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources>: profiles of type
//! `sampled`, which need no pairs of begin and end.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::model::{Profile, ThreadSamples, Unit};

/// Bytes of the stacks. The format writes a stack anew for each sample, so that a small recording could become a file
/// without bound; and a browser cannot open a longer text (V8 holds 512 MB).
const MAX_BYTES: u64 = 500_000_000;

/// All threads together, each stack once; then each thread in the order of time, where equal stacks that follow each
/// other are one sample.
pub fn write(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    write_up_to(MAX_BYTES, profile, out)
}

fn write_up_to(max_bytes: u64, profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let bytes = stack_bytes(profile);
    if bytes > max_bytes {
        return Err(io::Error::other(format!(
            "the stacks of the samples have {} MB as speedscope reads them, where one is said again and again, and it \
             opens {} MB at most; the formats pprof and firefox say a stack once",
            bytes / 1_000_000,
            max_bytes / 1_000_000
        )));
    }
    // No lines: speedscope takes a method at another line for another method.
    let frame = |function: &super::model::Function| {
        let file = if function.source.is_empty() { &function.file } else { &function.source };
        match file.is_empty() {
            true => json!({ "name": function.name }),
            false => json!({ "name": function.name, "file": file }),
        }
    };
    let frames: Vec<Value> = profile.functions.iter().map(frame).collect();
    // Written piece by piece: the stacks of all threads are many.
    write!(
        out,
        "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"tracequet {}\",\"name\":{},\
         \"activeProfileIndex\":0,\"shared\":{{\"frames\":{}}},\"profiles\":[",
        env!("CARGO_PKG_VERSION"),
        json!(profile.title()),
        json!(frames),
    )?;
    one(profile, "All threads", profile.by_callsite().iter().map(|(callsite, sum)| (*callsite, *sum)), out)?;
    for thread in &profile.threads {
        let runs = runs(thread);
        out.write_all(b",")?;
        one(profile, &thread.label, runs.iter().copied(), out)?;
    }
    out.write_all(b"]}\n")
}

/// The samples of a thread, those of one stack that follow each other as one.
fn runs(thread: &ThreadSamples) -> Vec<(u32, u64)> {
    let mut runs: Vec<(u32, u64)> = Vec::new();
    for sample in &thread.samples {
        match runs.last_mut() {
            Some((callsite, weight)) if *callsite == sample.callsite => {
                *weight = weight.saturating_add(sample.weight);
            }
            _ => runs.push((sample.callsite, sample.weight)),
        }
    }
    runs
}

/// Bytes of all stacks that will be written, some more rather than less.
fn stack_bytes(profile: &Profile) -> u64 {
    // Of a stack: brackets, and for each frame a comma and its number. A caller stands before what it called.
    let mut of_stack: Vec<u64> = Vec::with_capacity(profile.callsites.len());
    for (at, (parent, frame)) in profile.callsites.iter().enumerate() {
        let function = profile.frames.get(*frame as usize).map_or(0, |frame| frame.function);
        let caller = of_stack.get(*parent as usize).copied().unwrap_or_default();
        let own = u64::from(function.checked_ilog10().unwrap_or_default()) + 2;
        of_stack.push(if at == 0 { 3 } else { caller.saturating_add(own) });
    }
    let of = |callsite: u32| of_stack.get(callsite as usize).copied().unwrap_or_default();
    let together: u64 = profile.by_callsite().keys().map(|callsite| of(*callsite)).fold(0, u64::saturating_add);
    let alone = profile.threads.iter().flat_map(runs).map(|(callsite, _)| of(callsite));
    alone.fold(together, u64::saturating_add)
}

fn one(
    profile: &Profile,
    name: &str,
    samples: impl Iterator<Item = (u32, u64)> + Clone,
    out: &mut dyn Write,
) -> io::Result<()> {
    let unit = match profile.unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Bytes => "bytes",
        Unit::Count => "none",
    };
    let end = samples.clone().fold(0u64, |sum, (_, weight)| sum.saturating_add(weight));
    write!(out, "{{\"type\":\"sampled\",\"name\":{},\"unit\":\"{unit}\",", json!(name))?;
    write!(out, "\"startValue\":0,\"endValue\":{end},\"samples\":[")?;
    for (number, (callsite, _)) in samples.clone().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        write!(out, "{comma}{}", json!(profile.stack(callsite)))?;
    }
    out.write_all(b"],\"weights\":[")?;
    for (number, (_, weight)) in samples.enumerate() {
        let comma = if number == 0 { "" } else { "," };
        write!(out, "{comma}{weight}")?;
    }
    out.write_all(b"]}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_beyond_the_bound_are_refused_before_they_are_written() {
        let names: Vec<String> = (0..300).map(|n| format!("f{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let profile = Profile::of_chain(&names, 7);
        let bytes = stack_bytes(&profile);
        // One for all threads and one for each; ten numbers of one digit, ninety of two, two hundred of three.
        let stack = 10 + 2 * 90 + 3 * 200 + 299 + 2;
        assert!((8 * stack..8 * (stack + 8)).contains(&bytes), "{bytes}");
        let mut out = Vec::new();
        let error = write_up_to(bytes - 1, &profile, &mut out).unwrap_err().to_string();
        assert!(out.is_empty() && error.contains("pprof and firefox"), "{error}");
        write_up_to(bytes, &profile, &mut out).unwrap();
        let written: usize = String::from_utf8(out).unwrap().matches("[0,1,2,").map(str::len).sum();
        assert_eq!(written, 8 * 7);
    }

    #[test]
    fn equal_stacks_that_follow_each_other_are_one_sample() {
        let mut profile = Profile::of_chain(&["main", "work"], 1);
        let sample = |ts_ns, callsite| crate::profile::Sample { ts_ns, callsite, weight: 3 };
        profile.threads[0].samples = [1, 1, 1, 2, 2, 1].iter().zip(0..).map(|(site, at)| sample(at, *site)).collect();
        let mut out = Vec::new();
        write(&profile, &mut out).unwrap();
        let json: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(json["profiles"][1]["samples"], json!([[0], [0, 1], [0]]));
        assert_eq!(json["profiles"][1]["weights"], json!([9, 6, 3]));
        // Together each stack is there once.
        assert_eq!(json["profiles"][0]["weights"], json!([12, 6]));
    }
}
