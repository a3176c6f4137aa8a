//! The JSON of speedscope, <https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources>: profiles of type
//! `sampled`, which need no pairs of begin and end.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::model::{Profile, Unit};

/// All threads together, each stack once; then each thread in the order of time, where equal stacks that follow each
/// other are one sample.
pub fn write(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
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
        json!(format!("{} ({})", profile.name, profile.what.as_str())),
        json!(frames),
    )?;
    one(profile, "All threads", profile.by_callsite().iter().map(|(callsite, sum)| (*callsite, *sum)), out)?;
    for thread in &profile.threads {
        let mut runs: Vec<(u32, u64)> = Vec::new();
        for sample in &thread.samples {
            match runs.last_mut() {
                Some((callsite, weight)) if *callsite == sample.callsite => {
                    *weight = weight.saturating_add(sample.weight);
                }
                _ => runs.push((sample.callsite, sample.weight)),
            }
        }
        out.write_all(b",")?;
        one(profile, &thread.label, runs.iter().copied(), out)?;
    }
    out.write_all(b"]}\n")
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
