//! Several recordings into one dataset: side by side, each for itself, and a failure of one costs only that one.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use super::inputs::{identity_of, stamp, trace_key};
use super::known::{Known, Plan, check_head, head_of};
use super::memory::Memory;
use super::one::{options, read_one};
use super::request::{AddressType, Convert, Progress, Step};
use super::summary::{Done, FailedInput, InputSummary, SkippedInput, Summary, TableSummary};
use super::{failed, manifest};
use crate::error::{Error, Result};
use crate::reader::etl::Manifests;
use crate::sink::{Dataset, Encoders, Format, Lake, Put};
use crate::source::{FileIdentity, RecordingPath};
use crate::table::Shape;
use crate::table::select::Selection;
use crate::table::views;

/// Converts all inputs of a request into a dataset of several recordings.
pub(super) fn run(
    request: &Convert,
    recordings: &[(usize, RecordingPath)],
    watch: &mut dyn FnMut(Step<'_>),
) -> Result<Summary> {
    let started = Instant::now();
    let selection = Selection::new(&request.tables)?;
    let manifests = Manifests::open(&request.manifests)?;
    if request.append {
        check_head(request)?;
    }
    // Without `append` all of it grows in a hidden directory, which takes its name at the end.
    let whole = match request.append {
        true => None,
        false => Some(Dataset::create(&request.output, options(request, &request.inputs))?),
    };
    let encoders = match &whole {
        Some(whole) => whole.encoders(),
        None => Encoders::start(options(request, &[]).threads).map_err(Error::io(&request.output))?,
    };
    let root = whole.as_ref().map_or(request.output.as_path(), Dataset::path);
    let lake = Lake::open(root, request.append)?;
    let known = Known::of(request, &lake.entries()?)?;
    let batch = Batch {
        request,
        recordings,
        selection,
        manifests,
        lake,
        encoders,
        known,
        memory: Memory::new(request.memory),
        hashes: Hashes::new(recordings.len()),
        next: AtomicUsize::new(0),
        stopped: AtomicBool::new(false),
    };
    let mut done = batch.convert_all(watch)?;
    done.sort_by_key(|(index, ..)| *index);
    let mut summary = Summary {
        inputs: Vec::new(),
        failed: Vec::new(),
        skipped: Vec::new(),
        output: request.output.clone(),
        tables: Vec::new(),
        elapsed_ns: 0,
    };
    let mut failures = Vec::new();
    for (_, outcome) in done {
        add_tables(&mut summary.tables, outcome.tables);
        failures.extend(outcome.failure);
        match outcome.done {
            Done::Converted(input) => summary.inputs.push(input),
            Done::Failed(input) => summary.failed.push(input),
            Done::Skipped(input) => summary.skipped.push(input),
        }
    }
    if let (false, true, Some(failure)) = (request.append, summary.has_nothing(), failures.into_iter().next()) {
        return Err(failure);
    }
    describe(request, &batch.lake)?;
    if let Some(whole) = whole {
        whole.commit()?;
    }
    summary.elapsed_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Ok(summary)
}

/// Removes recordings of a dataset of several.
pub(super) fn remove(root: &Path, keys: &[String]) -> Result<()> {
    let (format, address_type) = head_of(root)?;
    let request = Convert { output: root.to_owned(), append: true, format, address_type, ..Convert::default() };
    let lake = Lake::open(root, true)?;
    for key in keys {
        if !lake.remove(key)? {
            return Err(Error::Usage(format!("{}: there is no recording {key}", root.display())));
        }
    }
    describe(&request, &lake)
}

/// Writes the files that sum up the recordings.
pub(super) fn describe(request: &Convert, lake: &Lake) -> Result<()> {
    lake.describe(|entries| {
        let (text, names) = manifest::of_several(request, entries)?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let files = views::Files { only_trace: None, arrow: request.format == Format::Arrow };
        Ok(vec![("manifest.json", text), ("views.sql", views::sql(&names, files))])
    })
}

struct Batch<'b> {
    request: &'b Convert,
    recordings: &'b [(usize, RecordingPath)],
    selection: Selection,
    manifests: Manifests,
    lake: Lake,
    encoders: Arc<Encoders>,
    known: Known,
    memory: Memory,
    hashes: Hashes,
    /// The input that is next to be begun.
    next: AtomicUsize,
    stopped: AtomicBool,
}

/// What became of one input, and the tables that were written for it.
struct Outcome {
    done: Done,
    tables: Vec<TableSummary>,
    failure: Option<Error>,
}

enum Message {
    Progress(Progress),
    Done(usize, Box<Outcome>),
    /// Something that concerns all recordings.
    Broken(Error),
}

impl Batch<'_> {
    /// Runs the jobs; `watch` is called on this thread.
    fn convert_all(&self, watch: &mut dyn FnMut(Step<'_>)) -> Result<Vec<(usize, Outcome)>> {
        let jobs = match self.request.jobs {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
            jobs => jobs,
        };
        let mut done = Vec::new();
        let mut broken = None;
        std::thread::scope(|scope| {
            let (sender, receiver) = channel();
            for job in 0..jobs.min(self.recordings.len()).max(1) {
                let own = sender.clone();
                let thread = std::thread::Builder::new().name(format!("job-{job}"));
                if let Err(source) = thread.spawn_scoped(scope, move || self.work(&own)) {
                    // Those that were started do the rest.
                    if job == 0 {
                        broken = Some(Error::Io { path: self.request.output.clone(), source });
                    }
                    break;
                }
            }
            drop(sender);
            for message in receiver {
                match message {
                    Message::Progress(progress) => watch(Step::Progress(progress)),
                    Message::Done(index, outcome) => {
                        watch(Step::Done { input: self.input(index), done: &outcome.done });
                        done.push((index, *outcome));
                    }
                    Message::Broken(error) => {
                        broken.get_or_insert(error);
                    }
                }
            }
        });
        broken.map_or(Ok(done), Err)
    }

    fn work(&self, messages: &Sender<Message>) {
        while !self.stopped.load(Ordering::Acquire) {
            let index = self.next.fetch_add(1, Ordering::AcqRel);
            let Some((_, recording)) = self.recordings.get(index) else { return };
            let message = match self.one(index, recording, messages) {
                Ok(outcome) => Message::Done(index, Box::new(outcome)),
                Err(error) => {
                    self.stopped.store(true, Ordering::Release);
                    Message::Broken(error)
                }
            };
            // Nobody listens any more when the calling thread has panicked.
            let _ = messages.send(message);
        }
    }

    /// The input that holds a recording.
    fn input(&self, index: usize) -> usize {
        self.recordings.get(index).map_or(0, |(input, _)| *input)
    }

    fn one(&self, index: usize, recording: &RecordingPath, messages: &Sender<Message>) -> Result<Outcome> {
        let path = &recording.name();
        let before = stamp(recording.file());
        let hashed = self.hashes.publish(index, || identity_of(recording));
        let identity = match hashed {
            Ok(identity) => identity,
            Err(error) => return self.failed(recording, FileIdentity::default(), error, Vec::new()),
        };
        if let Some(first) = self.hashes.earlier(index, &identity.sha256) {
            let first = self.recordings.get(first).map(|(_, recording)| recording.name()).unwrap_or_default();
            let trace_id = trace_key(&first, &identity.sha256);
            let skipped = SkippedInput { path: path.to_owned(), trace_id, differs: false };
            return Ok(Outcome { done: Done::Skipped(skipped), tables: Vec::new(), failure: None });
        }
        let replaced = match self.known.plan(self.request, path, &identity) {
            Plan::Skip(skipped) => {
                return Ok(Outcome { done: Done::Skipped(skipped), tables: Vec::new(), failure: None });
            }
            Plan::Convert(replaced) => replaced,
        };
        let _share = self.memory.take(identity.size_bytes);
        let key = trace_key(path, &identity.sha256);
        let mut part = self.part(&key)?;
        let input = self.input(index);
        let mut progress = |position, total, events| {
            let _ = messages.send(Message::Progress(Progress { input, position, total, events }));
        };
        let shape = self.shape(&key);
        let identified = || identity.clone();
        let made = read_one(
            self.request,
            &self.manifests,
            recording,
            (shape, &self.selection),
            &mut part,
            &mut progress,
            identified,
        );
        match made {
            Ok(_) if before != stamp(recording.file()) => {
                let error = Error::Unreadable {
                    path: path.to_owned(),
                    offset: 0,
                    what: "the file changed while it was read".into(),
                    expected: "a recording that is not being written".into(),
                };
                drop(part);
                self.failed(recording, FileIdentity::default(), error, replaced)
            }
            Ok((summary, tables)) => {
                let input = InputSummary { trace_id: key.clone(), ..summary };
                let entry = manifest::entry(self.request, &input, &tables);
                if self.lake.put(&key, part, &entry, &replaced)? == Put::WasThere {
                    let skipped = SkippedInput { path: path.to_owned(), trace_id: key, differs: false };
                    return Ok(Outcome { done: Done::Skipped(skipped), tables: Vec::new(), failure: None });
                }
                Ok(Outcome { done: Done::Converted(input), tables, failure: None })
            }
            Err(error) => {
                drop(part);
                self.failed(recording, identity, error, replaced)
            }
        }
    }

    /// A failure becomes a row, if it is one of the recording alone.
    fn failed(
        &self,
        recording: &RecordingPath,
        identity: FileIdentity,
        error: Error,
        mut replaced: Vec<String>,
    ) -> Result<Outcome> {
        let (path, file) = (recording.name(), recording.file());
        let of_recording = match &error {
            Error::Unreadable { .. } | Error::Usage(_) => true,
            Error::Io { path: at, .. } => *at == path || at == file,
            _ => false,
        };
        if !of_recording || self.request.fail_fast {
            return Err(error);
        }
        let mut input = FailedInput::of(path, &error);
        if !identity.sha256.is_empty() {
            input.trace_id = trace_key(&input.path, &identity.sha256);
            input.identity = identity;
        }
        let mut part = self.part(&input.trace_id)?;
        let tables = failed::write(self.request, &input, self.shape(&input.trace_id), &mut part)?;
        let entry = manifest::failed_entry(self.request, &input, &tables);
        // The same failure of an earlier run.
        replaced.push(input.trace_id.clone());
        self.lake.put(&input.trace_id, part, &entry, &replaced)?;
        Ok(Outcome { done: Done::Failed(input), tables, failure: Some(error) })
    }

    fn part(&self, key: &str) -> Result<Dataset> {
        let mut options = options(self.request, &[]);
        options.partition = Some(format!("trace={key}"));
        Dataset::part_of(self.lake.path(), self.encoders.clone(), options)
    }

    fn shape(&self, key: &str) -> Shape {
        Shape { trace_id: Some(key.to_owned()), signed: self.request.address_type == AddressType::Int64 }
    }
}

/// The hashes of the inputs as they become known, so that of two equal ones the first is converted, whoever is faster.
struct Hashes {
    known: Mutex<Vec<Option<String>>>,
    published: Condvar,
}

impl Hashes {
    fn new(inputs: usize) -> Hashes {
        Hashes { known: Mutex::new(vec![None; inputs]), published: Condvar::new() }
    }

    /// Takes a hash, and says it to all, whatever comes of it.
    fn publish(&self, index: usize, hash: impl FnOnce() -> Result<FileIdentity>) -> Result<FileIdentity> {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(hash))
            .unwrap_or_else(|_| Err(Error::Internal("hashing a file panicked".into())));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = known.get_mut(index) {
            *place = Some(result.as_ref().map_or_else(|_| String::new(), |identity| identity.sha256.clone()));
        }
        self.published.notify_all();
        result
    }

    /// The first of the inputs before this one that has the same content. Waits until theirs are known; they were begun
    /// before this one.
    fn earlier(&self, index: usize, sha256: &str) -> Option<usize> {
        if sha256.is_empty() {
            return None;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let before = known.get(..index).unwrap_or_default();
            if before.iter().all(Option::is_some) {
                return before.iter().position(|hash| hash.as_deref() == Some(sha256));
            }
            known = self.published.wait(known).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn add_tables(all: &mut Vec<TableSummary>, more: Vec<TableSummary>) {
    for table in more {
        match all.iter_mut().find(|known| known.name == table.name) {
            Some(known) => {
                known.rows += table.rows;
                known.bytes += table.bytes;
            }
            None => all.push(table),
        }
    }
}
