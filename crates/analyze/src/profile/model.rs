//! A profile: threads with samples, samples with call stacks and weights.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::prelude::*;
use crate::subjects::pauses::Pause;

tracequet_trace::worded! {
    /// Kind of samples in a profile.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum What {
        /// CPU samples. Their weight is the time between two samples, where the recording says how long that is: of the
        /// runtime's sampler the one that is observed, which is longer than the one that it is meant to keep.
        #[default]
        Cpu = "cpu",
        /// Sampled allocations, by the bytes that each represents.
        Allocation = "allocation",
        /// Allocations of objects that survived their first collection.
        Survivors = "survivors",
        /// Allocations of objects that died in generation 2, or among large or pinned objects.
        Gen2Deaths = "gen2-deaths",
        /// Allocations of objects that are alive at the end.
        Live = "live",
        /// Exceptions that were thrown.
        Exception = "exception",
        /// Waits for locks, by their time.
        Contention = "contention",
        /// Waits in WaitHandle, Monitor.Wait and the like, by their time.
        Wait = "wait",
        /// Time in which threads were blocked, with the stack at which they resumed (.etl with context switches).
        Blocked = "blocked",
        /// Methods that were compiled while the program ran, by the time that it took.
        Jit = "jit",
        /// Bytes of the last heap dump, by the types of the objects that keep them alive: a stack is what holds what.
        Heap = "heap",
        /// The rows of any table with call stacks, each counting once.
        Rows = "rows",
    }
    /// The word of the command line.
    pub fn as_str;
}

/// An entry of `schemas/profiles.toml`, which says what the keys mean.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the file says it")]
pub struct OfWhat {
    name: String,
    pub table: String,
    pub weight: Option<String>,
    pub unit: Unit,
    pub kind: Option<String>,
    pub only: Option<String>,
    pub counted: String,
    pub pprof: Option<String>,
    pub title: String,
    pub how: String,
}

#[derive(Debug, Deserialize)]
struct ProfilesFile {
    profile: Vec<OfWhat>,
}

impl What {
    /// The entry of `schemas/profiles.toml`.
    ///
    /// # Errors
    ///
    /// The shipped file is wrong, which is a defect.
    pub fn of(self) -> Result<&'static OfWhat> {
        static ALL: OnceLock<std::result::Result<ProfilesFile, String>> = OnceLock::new();
        let all =
            ALL.get_or_init(|| serde_json::from_str(tracequet_schemas::PROFILES).map_err(|error| error.to_string()));
        let found =
            all.as_ref().map_err(Clone::clone).map(|all| all.profile.iter().find(|of| of.name == self.as_str()));
        found.and_then(|of| of.ok_or_else(|| format!("no profile {}", self.as_str()))).map_err(Error::Internal)
    }
}

tracequet_trace::worded! {
    /// The unit of weights.
    #[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
    #[serde(rename_all = "lowercase")]
    pub enum Unit {
        /// Nanoseconds.
        #[serde(rename = "ns")]
        Nanoseconds = "ns",
        /// Bytes.
        Bytes = "bytes",
        /// A number of things.
        #[default]
        Count = "count",
    }
    /// The word in JSON and on pages.
    pub fn word;
}

tracequet_trace::worded! {
    /// The format of a profile.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ProfileFormat {
        /// JSON of <https://www.speedscope.app>: all threads together, then each thread in the order of time.
        Speedscope = "speedscope": "JSON for speedscope.app",
        /// A line for each stack, `outermost;...;innermost weight`: what flame graph programs read.
        Folded = "folded": "A line for each stack, for flame graphs",
        /// The protocol buffer of pprof, not compressed; a label names the thread of each sample.
        Pprof = "pprof": "Protocol buffer of pprof, not compressed",
        /// JSON of <https://profiler.firefox.com> (the processed profile format): each thread in the order of time, with
        /// the pauses of its process.
        Firefox = "firefox": "JSON for profiler.firefox.com",
        /// A trace of <https://ui.perfetto.dev>: CPU samples, pauses, collections, activities and counters.
        Perfetto = "perfetto":
            "Trace for ui.perfetto.dev: CPU samples, pauses, collections, requests and other activities, counters",
        /// The profiles of OpenTelemetry's protocol, which is still in development: a `ProfilesData`, not compressed, with the span of each
        /// sample.
        Otlp = "otlp": "Profiles of OpenTelemetry (OTLP, v1development), not compressed, with the span of each sample",
    }
    /// The word of the command line.
    pub fn as_str;
    /// A short description.
    pub fn about;
}

impl ProfileFormat {
    /// The format of a word.
    pub fn parse(word: &str) -> Result<ProfileFormat> {
        let all = ProfileFormat::ALL;
        let expected = || Error::Usage(format!("expected {}", all.map(ProfileFormat::as_str).join(", ")));
        ProfileFormat::named(word).ok_or_else(expected)
    }
}

/// A method or a native function, as a frame names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Name.
    pub name: String,
    /// The name as a person writes it, where it is more than the name without its arguments; else empty.
    pub written: String,
    /// Assembly or file.
    pub file: String,
    /// Source file; empty when it is not known.
    pub source: String,
    /// Line in the source file where the function begins; 0 when it is not known.
    pub start_line: u32,
    /// The kind of code.
    pub code: Code,
    /// Whether it is the framework's; `None` when that is not known.
    pub is_framework: Option<bool>,
}

/// The kind of a function's code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Code {
    /// A method.
    Managed,
    /// In a file that is mapped.
    Native,
    /// In the kernel.
    Kernel,
    /// Nothing is known.
    #[default]
    Unknown,
}

/// A function at a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProfileFrame {
    /// Index of the function.
    pub function: u32,
    /// Line of the call, or of the code that was sampled; 0 when it is not known.
    pub line: u32,
}

/// A call stack of a thread at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When, nanoseconds since the recording began.
    pub ts_ns: i64,
    /// The call site: [`Profile::stack`] has the frames.
    pub callsite: u32,
    /// The weight.
    pub weight: u64,
}

/// The samples of a thread, in the order of time.
#[derive(Clone, Debug)]
pub struct ThreadSamples {
    /// OS process id.
    pub process_id: u64,
    /// OS thread id.
    pub thread_id: u64,
    /// The label: names, as far as they are known, and ids.
    pub label: String,
    /// Samples.
    pub samples: Vec<Sample>,
}

/// The samples of a recording.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Name of the recording.
    pub name: String,
    /// The kind of samples.
    pub what: What,
    /// Of [`What::Rows`] the table.
    pub table: String,
    /// The unit of the weights.
    pub unit: Unit,
    /// The column of the weights, where it was asked for.
    pub weight: Option<String>,
    /// When the recording began, microseconds since 1970.
    pub start_us: i64,
    /// The length of the recording in nanoseconds.
    pub duration_ns: i64,
    /// Functions.
    pub functions: Vec<Function>,
    /// Frames of call sites.
    pub frames: Vec<ProfileFrame>,
    /// Of each call site its caller's and its frame's index; the first one, for no call site, is empty.
    pub(super) callsites: Vec<(u32, u32)>,
    /// Of each call site of the recording the one of the profile.
    pub(super) places: Vec<u32>,
    /// Pauses, where the dataset has them, in the order of time within a process.
    pub pauses: Vec<Pause>,
    /// Nanoseconds between two CPU samples; 0 when the recording does not say.
    pub sampling_ns: u64,
    /// The threads that have samples, by process and id.
    pub threads: Vec<ThreadSamples>,
    /// Samples that are left out because they have no call stack.
    pub without_stack: u64,
    /// Of [`What::Cpu`] samples that are left out because their threads wait, or run native code.
    pub waiting: u64,
}

impl Profile {
    /// The title for people.
    pub fn title(&self) -> String {
        let of = if self.what == What::Rows { &self.table } else { self.what.as_str() };
        format!("{} ({of})", self.name)
    }

    /// The call site of the profile that stands for one of the recording; 0 for none.
    pub fn place_of(&self, callsite_id: u32) -> u32 {
        self.places.get(callsite_id as usize).copied().unwrap_or_default()
    }

    /// Frames of a call site, the outermost first.
    pub fn stack_frames(&self, callsite: u32) -> Vec<u32> {
        let mut frames = Vec::new();
        let mut at = callsite;
        // A caller comes before its callees, so that this ends.
        while let Some((parent, frame)) = self.callsites.get(at as usize).filter(|_| at != 0) {
            frames.push(*frame);
            at = *parent;
        }
        frames.reverse();
        frames
    }

    /// Functions of a call site, the outermost first.
    pub fn stack(&self, callsite: u32) -> Vec<u32> {
        let frames = self.stack_frames(callsite);
        frames.into_iter().filter_map(|frame| Some(self.frames.get(frame as usize)?.function)).collect()
    }

    /// Weights of all threads together by call site.
    pub fn by_callsite(&self) -> BTreeMap<u32, u64> {
        let mut sums = BTreeMap::new();
        for sample in self.threads.iter().flat_map(|thread| &thread.samples) {
            let sum: &mut u64 = sums.entry(sample.callsite).or_default();
            *sum = sum.saturating_add(sample.weight);
        }
        sums
    }
}

/// The name that stands for frames of the framework that call each other.
const FRAMEWORK: &str = "(framework)";

impl Profile {
    /// Frames of the framework that call each other become one, so that stacks show what the user's own code does.
    pub fn fold_framework(&mut self) {
        let folded = Function { name: FRAMEWORK.to_owned(), is_framework: Some(true), ..Function::default() };
        let place = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        self.frames.push(ProfileFrame { function: u32::try_from(self.functions.len()).unwrap_or(u32::MAX), line: 0 });
        self.functions.push(folded);
        // The new place of each call site, and whether it is one of the framework. A caller comes before its callees.
        let mut becomes: Vec<(u32, bool)> = Vec::with_capacity(self.callsites.len());
        for at in 0..self.callsites.len() {
            let Some((parent, frame)) = self.callsites.get(at).copied().filter(|_| at > 0) else {
                becomes.push((0, false));
                continue;
            };
            let function =
                self.frames.get(frame as usize).and_then(|frame| self.functions.get(frame.function as usize));
            let is_framework = function.is_some_and(|function| function.is_framework == Some(true));
            let (above, is_below) = becomes.get(parent as usize).copied().unwrap_or_default();
            let own = (u32::try_from(at).unwrap_or(u32::MAX), is_framework);
            becomes.push(if is_framework && is_below { (above, true) } else { own });
            if let Some(callsite) = self.callsites.get_mut(at) {
                *callsite = (above, if is_framework { place } else { frame });
            }
        }
        for sample in self.threads.iter_mut().flat_map(|thread| &mut thread.samples) {
            sample.callsite = becomes.get(sample.callsite as usize).map_or(0, |(place, _)| *place);
        }
    }
}

#[cfg(test)]
impl Profile {
    /// A profile of some threads, each with a sample of a chain of functions with these names.
    pub(super) fn of_chain(names: &[&str], threads: u64) -> Profile {
        let function = |name: &&str| Function {
            name: (*name).to_owned(),
            written: String::new(),
            file: String::new(),
            source: String::new(),
            start_line: 0,
            code: Code::Managed,
            is_framework: Some(false),
        };
        let count = names.len() as u32;
        let samples = vec![Sample { ts_ns: 1, callsite: count, weight: 2 }];
        let thread = |id| ThreadSamples {
            process_id: id / 2,
            thread_id: id,
            label: format!("Thread {id}"),
            samples: samples.clone(),
        };
        Profile {
            functions: names.iter().map(function).collect(),
            frames: (0..count).map(|function| ProfileFrame { function, line: 0 }).collect(),
            callsites: [(0, 0)].into_iter().chain((0..count).map(|frame| (frame, frame))).collect(),
            threads: (0..threads).map(thread).collect(),
            ..Profile::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_the_framework_become_one() {
        let names = ["Main", "Linq", "Concat", "Load", "Read", "Memmove"];
        let mut profile = Profile::of_chain(&names, 1);
        [1, 2, 4, 5].into_iter().for_each(|at: usize| profile.functions[at].is_framework = Some(true));
        profile.fold_framework();
        let sample = profile.threads[0].samples[0];
        let stack: Vec<&str> =
            profile.stack(sample.callsite).into_iter().map(|at| profile.functions[at as usize].name.as_str()).collect();
        assert_eq!(stack, ["Main", FRAMEWORK, "Load", FRAMEWORK]);
        assert_eq!(sample.weight, 2);
    }
}
