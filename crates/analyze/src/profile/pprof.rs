//! The protocol buffer of pprof, <https://github.com/google/pprof/blob/main/proto/profile.proto>.

use std::collections::BTreeMap;
use std::io;

use super::model::{Profile, Unit};
use super::protobuf::{bytes, number, packed, string};
use super::strings::Strings;

/// Numbers of the fields of `Profile`.
const SAMPLE_TYPE: u64 = 1;
const SAMPLE: u64 = 2;
const LOCATION: u64 = 4;
const FUNCTION: u64 = 5;
const STRING: u64 = 6;
const TIME_NANOS: u64 = 9;
const DURATION_NANOS: u64 = 10;

/// The largest message of protocol buffers.
pub(super) const MAX_BYTES: usize = 2 << 30;

/// The message, not compressed. Each sample is a call site of a thread with how often it was seen and the sum of its
/// weights.
pub fn encode(profile: &Profile) -> io::Result<Vec<u8>> {
    encode_up_to(MAX_BYTES, profile, None)
}

/// Encodes a profile with the samples of a base as negative ones, which carry the label that `pprof -diff_base` gives
/// them: parts are then parts of the base.
pub fn encode_difference(profile: &Profile, base: &Profile) -> io::Result<Vec<u8>> {
    encode_up_to(MAX_BYTES, profile, Some(base))
}

fn encode_up_to(max_bytes: usize, profile: &Profile, base: Option<&Profile>) -> io::Result<Vec<u8>> {
    let mut strings = Strings::default();
    let mut out = Vec::new();
    strings.index("");
    let (count, weight) = value_types(profile)?;
    for (name, unit) in std::iter::once((count, "count")).chain(weight) {
        let mut message = Vec::new();
        number(&mut message, 1, strings.index(name));
        number(&mut message, 2, strings.index(unit));
        bytes(&mut out, SAMPLE_TYPE, &message);
    }
    let (thread_key, id_key) = (strings.index("thread"), strings.index("thread_id"));
    let mut base_label = Vec::new();
    if base.is_some() {
        number(&mut base_label, 1, strings.index("pprof::base"));
        number(&mut base_label, 2, strings.index("true"));
    }
    // Frames and functions of the base come behind those of the profile.
    let (behind, functions_behind) = (profile.frames.len() as u64, profile.functions.len() as u64);
    let all = || [(profile, 0, 0)].into_iter().chain(base.map(|base| (base, behind, functions_behind)));
    for (number_of, (of, first, _)) in all().enumerate() {
        let is_base = number_of > 0;
        let value = |value: u64| if is_base { value.wrapping_neg() } else { value };
        for thread in &of.threads {
            let mut sums: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
            for sample in &thread.samples {
                let [count, sum] = sums.entry(sample.callsite).or_default();
                *count += 1;
                *sum = sum.saturating_add(sample.weight);
            }
            let mut label = Vec::new();
            number(&mut label, 1, thread_key);
            number(&mut label, 2, strings.index(&thread.label));
            let mut id_label = Vec::new();
            number(&mut id_label, 1, id_key);
            number(&mut id_label, 3, thread.thread_id);
            for (callsite, [count, sum]) in sums {
                let mut message = Vec::new();
                // The innermost frame comes first; ids begin at 1.
                let stack = of.stack_frames(callsite);
                packed(&mut message, 1, stack.iter().rev().map(|frame| u64::from(*frame) + 1 + first));
                packed(&mut message, 2, std::iter::once(value(count)).chain(weight.map(|_| value(sum))));
                bytes(&mut message, 3, &label);
                bytes(&mut message, 3, &id_label);
                if is_base {
                    bytes(&mut message, 3, &base_label);
                }
                bytes(&mut out, SAMPLE, &message);
                bounded(&out, max_bytes)?;
            }
        }
    }
    for (of, first, first_function) in all() {
        for (id, frame) in (first + 1..).zip(&of.frames) {
            let mut line = Vec::new();
            number(&mut line, 1, u64::from(frame.function) + 1 + first_function);
            number(&mut line, 2, u64::from(frame.line));
            let mut location = Vec::new();
            number(&mut location, 1, id);
            bytes(&mut location, 4, &line);
            bytes(&mut out, LOCATION, &location);
        }
    }
    for (of, _, first_function) in all() {
        for (id, function) in (first_function + 1..).zip(&of.functions) {
            let mut message = Vec::new();
            number(&mut message, 1, id);
            number(&mut message, 2, strings.index(&function.name));
            number(&mut message, 3, strings.index(&function.name));
            let file = if function.source.is_empty() { &function.file } else { &function.source };
            number(&mut message, 4, strings.index(file));
            number(&mut message, 5, u64::from(function.start_line));
            bytes(&mut out, FUNCTION, &message);
        }
    }
    for text in &strings.list {
        string(&mut out, STRING, text);
    }
    number(&mut out, TIME_NANOS, profile.start_us.saturating_mul(1000).cast_unsigned());
    number(&mut out, DURATION_NANOS, profile.duration_ns.cast_unsigned());
    bounded(&out, max_bytes)?;
    Ok(out)
}

/// The name of what the samples count, and the name and unit of their weights where each counts for more than one.
pub(super) fn value_types(profile: &Profile) -> io::Result<(&'static str, Option<(&str, &'static str)>)> {
    let of = profile.what.of().map_err(io::Error::other)?;
    let unit = match profile.unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Bytes => "bytes",
        Unit::Count => "count",
    };
    let usual = of.pprof.as_deref().filter(|_| profile.unit != Unit::Count);
    Ok((&of.counted, profile.weight.as_deref().or(usual).map(|name| (name, unit))))
}

/// Fails when there are more bytes than readers of protocol buffers take.
pub(super) fn bounded(out: &[u8], max_bytes: usize) -> io::Result<()> {
    if out.len() <= max_bytes {
        return Ok(());
    }
    Err(io::Error::other(format!("the profile has more than {max_bytes} bytes, which no reader of this format takes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_beyond_the_bound_is_refused() {
        // Many samples, or long names: both count.
        for profile in [Profile::of_chain(&["main"; 50], 50), Profile::of_chain(&["main", &"x".repeat(5000)], 1)] {
            let size = encode(&profile).unwrap().len();
            assert!(size > 2500);
            assert!(encode_up_to(size, &profile, None).is_ok() && encode_up_to(size - 1, &profile, None).is_err());
            let error = encode_up_to(100, &profile, None).unwrap_err().to_string();
            assert!(error.contains("more than 100 bytes"), "{error}");
        }
    }
}
