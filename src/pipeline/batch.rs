//! Several recordings into one dataset: side by side, each for itself, and a failure of one costs only that one.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
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
use crate::sink::{Dataset, Encoders, Format, Lake, NewRecording, Put};
use crate::source::{FileIdentity, RecordingPath};
use crate::table::Shape;
use crate::table::select::Selection;
use crate::table::views;

/// Recordings that are put into the dataset together, at most. So many more may wait for that.
const TOGETHER: usize = 64;

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
    let mut done = match batch.convert_all(watch) {
        Ok(done) => done,
        Err(error) => {
            if request.append {
                // What came so far is in the dataset. When this fails, too, the next run does it.
                let _ = describe(request, &batch.lake);
            }
            return Err(error);
        }
    };
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
fn describe(request: &Convert, lake: &Lake) -> Result<()> {
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

impl Outcome {
    fn skipped(skipped: SkippedInput) -> Outcome {
        Outcome { done: Done::Skipped(skipped), tables: Vec::new(), failure: None }
    }

    /// The same when somebody else put the recording in the meantime.
    fn was_there(self) -> Outcome {
        match self.done {
            Done::Converted(input) => {
                let InputSummary { path, trace_id, .. } = input;
                Outcome::skipped(SkippedInput { path, trace_id, differs: false })
            }
            _ => self,
        }
    }
}

/// What the conversion of one input gave.
enum Made {
    /// Nothing that is put into the dataset.
    Known(Outcome),
    /// A recording to put into it, and the outcome when that is done.
    New(NewRecording, Outcome),
}

/// A recording that is to be put into the dataset.
struct Finished {
    index: usize,
    new: NewRecording,
    outcome: Outcome,
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
            let (finished, to_put) = sync_channel(TOGETHER);
            let own = sender.clone();
            let thread = std::thread::Builder::new().name("put".into());
            let mut started = thread.spawn_scoped(scope, move || self.put(&to_put, &own)).map(|_| ());
            for job in 0..jobs.min(self.recordings.len()).max(1) {
                if started.is_err() {
                    break;
                }
                let (own, finished) = (sender.clone(), finished.clone());
                let thread = std::thread::Builder::new().name(format!("job-{job}"));
                let spawned = thread.spawn_scoped(scope, move || self.work(&own, &finished)).map(|_| ());
                if job > 0 && spawned.is_err() {
                    // Those that were started do the rest.
                    break;
                }
                started = spawned;
            }
            if let Err(source) = started {
                broken = Some(Error::Io { path: self.request.output.clone(), source });
            }
            drop((sender, finished));
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

    fn work(&self, messages: &Sender<Message>, finished: &SyncSender<Finished>) {
        while !self.stopped.load(Ordering::Acquire) {
            let index = self.next.fetch_add(1, Ordering::AcqRel);
            let Some((_, recording)) = self.recordings.get(index) else { return };
            let message = match self.one(index, recording, messages) {
                Ok(Made::New(new, outcome)) => {
                    // Nobody takes it any more when the thread that puts has panicked.
                    if finished.send(Finished { index, new, outcome }).is_ok() {
                        continue;
                    }
                    Message::Broken(Error::Internal("the thread that puts recordings is gone".into()))
                }
                Ok(Made::Known(outcome)) => Message::Done(index, Box::new(outcome)),
                Err(error) => {
                    self.stopped.store(true, Ordering::Release);
                    Message::Broken(error)
                }
            };
            // Nobody listens any more when the calling thread has panicked.
            let _ = messages.send(message);
        }
    }

    /// Puts recordings into the dataset as they come: those that came while others were put, together.
    fn put(&self, finished: &Receiver<Finished>, messages: &Sender<Message>) {
        let mut is_broken = false;
        while let Ok(first) = finished.recv() {
            let group = std::iter::once(first).chain(finished.try_iter().take(TOGETHER - 1));
            let (outcomes, news): (Vec<_>, Vec<_>) = group.map(|f| ((f.index, f.outcome), f.new)).unzip();
            if is_broken {
                continue;
            }
            match self.lake.put(&news) {
                Ok(puts) => {
                    for ((index, outcome), put) in outcomes.into_iter().zip(puts) {
                        let outcome = if put == Put::WasThere { outcome.was_there() } else { outcome };
                        let _ = messages.send(Message::Done(index, Box::new(outcome)));
                    }
                }
                Err(error) => {
                    is_broken = true;
                    self.stopped.store(true, Ordering::Release);
                    let _ = messages.send(Message::Broken(error));
                }
            }
        }
    }

    /// The input that holds a recording.
    fn input(&self, index: usize) -> usize {
        self.recordings.get(index).map_or(0, |(input, _)| *input)
    }

    fn one(&self, index: usize, recording: &RecordingPath, messages: &Sender<Message>) -> Result<Made> {
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
            return Ok(Made::Known(Outcome::skipped(skipped)));
        }
        let replaced = match self.known.plan(self.request, path, &identity) {
            Plan::Skip(skipped) => return Ok(Made::Known(Outcome::skipped(skipped))),
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
                let new = NewRecording::new(&key, part, &entry, replaced)?;
                Ok(Made::New(new, Outcome { done: Done::Converted(input), tables, failure: None }))
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
    ) -> Result<Made> {
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
        let new = NewRecording::new(&input.trace_id, part, &entry, replaced)?;
        Ok(Made::New(new, Outcome { done: Done::Failed(input), tables, failure: Some(error) }))
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
