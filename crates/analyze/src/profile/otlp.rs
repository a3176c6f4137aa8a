//! The profiles of OpenTelemetry's protocol (OTLP), a `ProfilesData` of
//! <https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/profiles/v1development/profiles.proto>.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::io;

use tracequet_trace::map::Map;

use super::labels::Labels;
use super::model::{Code, Profile, ThreadSamples};
use super::pprof::{MAX_BYTES, bounded, value_types};
use super::protobuf::{bytes, fixed, message, number, packed, packed_fixed, present, string};
use super::spans::SpanWork;
use super::strings::Strings;

/// Numbers of the fields of `ProfilesDictionary`.
const MAPPINGS: u64 = 1;
const LOCATIONS: u64 = 2;
const FUNCTIONS: u64 = 3;
const LINKS: u64 = 4;
const STRINGS: u64 = 5;
const ATTRIBUTES: u64 = 6;
const STACKS: u64 = 7;

/// Encodes the message. Each process is a resource with one profile; samples of a thread with the same stack and span are one `Sample` with
/// their times and weights.
pub(super) fn encode(profile: &Profile, labels: &Labels, spans: &SpanWork) -> io::Result<Vec<u8>> {
    let mut processes: BTreeMap<u64, Vec<&ThreadSamples>> = BTreeMap::new();
    for thread in &profile.threads {
        processes.entry(thread.process_id).or_default().push(thread);
    }
    let mut dictionary = Dictionary::of(profile);
    let mut out = Vec::new();
    for (process_id, threads) in processes {
        let content = dictionary.profile(&threads, labels, spans)?;
        message(&mut out, 1, |resource_profiles| {
            message(resource_profiles, 1, |resource| {
                attribute(resource, "process.pid", Value::Number(process_id));
                attribute(resource, "process.runtime.name", Value::Text(".NET"));
                if let Some(name) = labels.process(process_id) {
                    attribute(resource, "process.executable.name", Value::Text(name));
                }
            });
            message(resource_profiles, 2, |scope_profiles| {
                message(scope_profiles, 1, |scope| {
                    bytes(scope, 1, b"tracequet");
                    bytes(scope, 2, env!("CARGO_PKG_VERSION").as_bytes());
                });
                bytes(scope_profiles, 2, &content);
            });
        });
        bounded(&out, MAX_BYTES)?;
    }
    message(&mut out, 2, |content| dictionary.write(content));
    bounded(&out, MAX_BYTES)?;
    Ok(out)
}

/// A value of an attribute.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Value<T> {
    Text(T),
    Number(u64),
}

impl<T: AsRef<str>> Value<T> {
    /// The field of an `AnyValue`.
    fn write(&self, out: &mut Vec<u8>, field: u64) {
        message(out, field, |any| match self {
            Value::Text(text) => string(any, 1, text.as_ref()),
            Value::Number(value) => present(any, 3, *value),
        });
    }
}

/// A `KeyValue` of a resource.
fn attribute(out: &mut Vec<u8>, key: &str, value: Value<&str>) {
    message(out, 1, |pair| {
        bytes(pair, 1, key.as_bytes());
        value.write(pair, 2);
    });
}

/// Items of a table of the dictionary, each once. The first one is the empty item, which stands for none.
struct Items<T> {
    list: Vec<T>,
    known: Map<T, u64>,
}

impl<T: Clone + Eq + Hash> Items<T> {
    fn of(empty: T) -> Items<T> {
        Items { list: vec![empty.clone()], known: HashMap::from_iter([(empty, 0)]) }
    }

    /// The index of an item; a new one comes to the end.
    fn index(&mut self, item: T) -> u64 {
        let next = self.list.len() as u64;
        *self.known.entry(item).or_insert_with_key(|item| {
            self.list.push(item.clone());
            next
        })
    }
}

/// The tables that all profiles of the message share. Only what samples refer to is in them.
struct Dictionary<'p> {
    of: &'p Profile,
    strings: Strings,
    /// The indexes of their names.
    mappings: Items<u64>,
    /// Indexes of name and source file, and the first line.
    functions: Items<(u64, u64, u32)>,
    /// Indexes of mapping, function, the line, and the index of the attribute that says the kind of code.
    locations: Items<(u64, u64, u32, u64)>,
    /// Indexes of locations, the innermost first.
    stacks: Items<Vec<u64>>,
    /// The index of the key, and the value.
    attributes: Items<(u64, Value<String>)>,
    links: Items<(u128, u64)>,
    /// The stacks of call sites, and the locations of frames.
    of_callsites: Map<u32, u64>,
    of_frames: Map<u32, u64>,
}

impl<'p> Dictionary<'p> {
    fn of(profile: &'p Profile) -> Dictionary<'p> {
        let mut strings = Strings::default();
        strings.index("");
        Dictionary {
            of: profile,
            strings,
            mappings: Items::of(0),
            functions: Items::of((0, 0, 0)),
            locations: Items::of((0, 0, 0, 0)),
            stacks: Items::of(Vec::new()),
            attributes: Items::of((0, Value::Text(String::new()))),
            links: Items::of((0, 0)),
            of_callsites: Map::default(),
            of_frames: Map::default(),
        }
    }

    /// A `Profile` of the samples of some threads.
    fn profile(&mut self, threads: &[&ThreadSamples], labels: &Labels, spans: &SpanWork) -> io::Result<Vec<u8>> {
        let profile = self.of;
        let start_ns = profile.start_us.saturating_mul(1000);
        let (count, weight) = value_types(profile)?;
        let sample_type = self.value_type(weight.unwrap_or((count, "count")));
        let mut out = Vec::new();
        bytes(&mut out, 1, &sample_type);
        for thread in threads {
            let mut attributes = vec![self.attribute("thread.id", Value::Number(thread.thread_id))];
            if let Some(name) = labels.thread((thread.process_id, thread.thread_id)) {
                attributes.push(self.attribute("thread.name", Value::Text(name.clone())));
            }
            let mut by_identity: BTreeMap<(u32, u64), (Vec<u64>, Vec<u64>)> = BTreeMap::new();
            for (sample, span) in thread.samples.iter().zip(spans.of_samples(thread)) {
                let ids = span.and_then(|span| spans.ids.get(span as usize));
                let link = ids.map_or(0, |ids| self.links.index(*ids));
                let (weights, times) = by_identity.entry((sample.callsite, link)).or_default();
                weights.push(if weight.is_some() { sample.weight } else { 1 });
                times.push(start_ns.saturating_add(sample.ts_ns).max(0).cast_unsigned());
            }
            for ((callsite, link), (weights, times)) in by_identity {
                let stack = self.stack(callsite);
                message(&mut out, 2, |sample| {
                    number(sample, 1, stack);
                    packed(sample, 2, attributes.iter().copied());
                    number(sample, 3, link);
                    packed(sample, 4, weights.into_iter());
                    packed_fixed(sample, 5, times.into_iter());
                });
                bounded(&out, MAX_BYTES)?;
            }
        }
        fixed(&mut out, 3, start_ns.max(0).cast_unsigned());
        number(&mut out, 4, profile.duration_ns.max(0).cast_unsigned());
        if profile.sampling_ns > 0 && weight == Some(("cpu", "nanoseconds")) {
            bytes(&mut out, 5, &sample_type);
            number(&mut out, 6, profile.sampling_ns);
        }
        Ok(out)
    }

    /// A `ValueType`.
    fn value_type(&mut self, (name, unit): (&str, &str)) -> Vec<u8> {
        let mut out = Vec::new();
        number(&mut out, 1, self.strings.index(name));
        number(&mut out, 2, self.strings.index(unit));
        out
    }

    fn attribute(&mut self, key: &str, value: Value<String>) -> u64 {
        let key = self.strings.index(key);
        self.attributes.index((key, value))
    }

    /// The index of the stack of a call site.
    fn stack(&mut self, callsite: u32) -> u64 {
        if let Some(known) = self.of_callsites.get(&callsite) {
            return *known;
        }
        let frames = self.of.stack_frames(callsite);
        let mut locations = Vec::with_capacity(frames.len());
        for frame in frames.into_iter().rev() {
            let location = match self.of_frames.get(&frame) {
                Some(known) => *known,
                None => self.location(frame),
            };
            self.of_frames.insert(frame, location);
            locations.push(location);
        }
        let stack = self.stacks.index(locations);
        self.of_callsites.insert(callsite, stack);
        stack
    }

    fn location(&mut self, frame: u32) -> u64 {
        let Some(frame) = self.of.frames.get(frame as usize) else { return 0 };
        let Some(function) = self.of.functions.get(frame.function as usize) else { return 0 };
        let [name, file, source] =
            [&function.name, &function.file, &function.source].map(|text| self.strings.index(text));
        let mapping = self.mappings.index(file);
        // The words of the attribute profile.frame.type in OpenTelemetry's semantic conventions.
        let kind = match function.code {
            Code::Managed => Some("dotnet"),
            Code::Native => Some("native"),
            Code::Kernel => Some("kernel"),
            Code::Unknown => None,
        };
        let kind = kind.map_or(0, |kind| self.attribute("profile.frame.type", Value::Text(kind.to_owned())));
        let function = self.functions.index((name, source, function.start_line));
        self.locations.index((mapping, function, frame.line, kind))
    }

    /// The fields of the `ProfilesDictionary`.
    fn write(&self, out: &mut Vec<u8>) {
        for name in &self.mappings.list {
            message(out, MAPPINGS, |mapping| number(mapping, 4, *name));
        }
        for (at, (mapping, function, line, kind)) in self.locations.list.iter().enumerate() {
            message(out, LOCATIONS, |location| {
                number(location, 1, *mapping);
                if at > 0 {
                    message(location, 3, |content| {
                        number(content, 1, *function);
                        number(content, 2, u64::from(*line));
                    });
                }
                if *kind > 0 {
                    packed(location, 4, std::iter::once(*kind));
                }
            });
        }
        for (name, source, start_line) in &self.functions.list {
            message(out, FUNCTIONS, |function| {
                number(function, 1, *name);
                number(function, 3, *source);
                number(function, 4, u64::from(*start_line));
            });
        }
        for (trace_id, span_id) in &self.links.list {
            message(out, LINKS, |link| {
                bytes(link, 1, &trace_id.to_be_bytes());
                bytes(link, 2, &span_id.to_be_bytes());
            });
        }
        for text in &self.strings.list {
            string(out, STRINGS, text);
        }
        for (at, (key, value)) in self.attributes.list.iter().enumerate() {
            message(out, ATTRIBUTES, |attribute| {
                if at > 0 {
                    number(attribute, 1, *key);
                    value.write(attribute, 2);
                }
            });
        }
        for stack in &self.stacks.list {
            message(out, STACKS, |content| {
                if !stack.is_empty() {
                    packed(content, 1, stack.iter().copied());
                }
            });
        }
    }
}
