//! Converts several recordings into one dataset: in parallel, and independently of each other's failures.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::format::{Format, paths};
use tracequet_dataset::table::select::Selection;
use tracequet_dataset::write::{DatasetOptions, DatasetWriter, Encoders, Shelf};
use tracequet_lake::{self as lake, Directory, Empty, HeldRecording, Lake, NewRecording, Put, check_head, describe};
use tracequet_trace::error::Error as TraceError;
use tracequet_trace::reader::etl::EventManifests;
use tracequet_trace::source::store::shown;
use tracequet_trace::source::{FileIdentity, RecordingPath};

use super::hashes::Hashes;
use super::known::{Known, Plan};
use super::memory::{Budget, Memory};
use super::packs::{self, Arrival, Came, Held};
use super::small::{Grown, Small};
use super::together::Ready;
use super::{failed, together};
use crate::entries;
use crate::hashed::{identity_of, stamp, trace_key, whole_key};
use crate::one::{options, read_one};
use crate::request::{Convert, Progress, Step};
use crate::stored::{self, Ahead, Fetches};
use crate::summary::{Done, FailedInput, InputSummary, SkippedInput, Summary, TableSummary, add_tables, elapsed_ns};

/// Converts all inputs of a request into a dataset of several recordings.
pub(crate) fn run(
    request: &Convert,
    recordings: &[(usize, RecordingPath)],
    fetches: &Fetches,
    watch: &mut dyn FnMut(Step<'_>),
) -> Result<Summary> {
    let started = Instant::now();
    if request.pack && request.format != Format::Parquet {
        let message =
            "only Parquet files hold the rows of many recordings, so small ones cannot be packed as Arrow files";
        return Err(Error::Usage(message.into()));
    }
    let selection = Selection::new(&request.tables)?;
    let manifests = EventManifests::open(&request.manifests)?;
    // Without `append` all of it grows in a hidden directory, which takes its name at the end.
    let whole = match request.append {
        true => None,
        false => Some(DatasetWriter::create(&request.output, options(request, &request.inputs))?),
    };
    let lake = match &whole {
        Some(whole) => lake::of(Directory::new(whole.path(), false)),
        None => lake::at(&request.output)?,
    };
    let version = if request.append { check_head(&lake, request.written())? } else { None };
    let encoders = match &whole {
        Some(whole) => whole.encoders(),
        None => Encoders::start(options(request, &[]).threads),
    };
    lake.storage().open()?;
    let known = Known::of(request, lake.summed(request.refresh)?)?;
    let empty = Empty::of(request.address_type, &selection, options(request, &[]))?;
    empty.put(&lake, &encoders, version)?;
    let jobs = match request.jobs {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
        jobs => jobs,
    };
    let mut options = options(request, &[]);
    options.elsewhere = Arc::new(empty.names().map(str::to_owned).collect());
    options.small_here = jobs.min(recordings.len()) >= options.threads;
    let this = Run {
        request,
        recordings,
        jobs,
        ahead: Ahead::new(recordings, fetches, jobs.min(recordings.len())),
        selection,
        manifests,
        lake,
        encoders,
        known,
        memory: Memory::new(request.memory),
        room: together::room(),
        held: request.pack.then(Held::default),
        options,
        hashes: Hashes::default(),
        next: AtomicUsize::new(0),
        stopped: AtomicBool::new(false),
    };
    let mut done = match this.convert_all(watch) {
        Ok(done) => done,
        Err(error) => {
            if request.append {
                // Recordings that came so far are in the dataset. When this fails, too, the next run describes them.
                let _ = describe(&this.lake, request.written(), request.refresh);
            }
            return Err(error);
        }
    };
    done.sort_by_key(|(index, ..)| *index);
    let mut summary = Summary {
        inputs: Vec::new(),
        failed: Vec::new(),
        skipped: Vec::new(),
        output: shown(&request.output),
        tables: Vec::new(),
        damaged_entries: this.damaged_left(&done),
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
    describe(&this.lake, request.written(), request.refresh)?;
    if let Some(whole) = whole {
        whole.commit()?;
    }
    if let Some(note) = this.lake.storage().note() {
        watch(Step::Note(&note));
    }
    summary.elapsed_ns = elapsed_ns(started);
    Ok(summary)
}

struct Run<'b> {
    request: &'b Convert,
    recordings: &'b [(usize, RecordingPath)],
    jobs: usize,
    /// Recordings that are fetched before it is their turn.
    ahead: Ahead<'b>,
    selection: Selection,
    manifests: EventManifests,
    lake: Lake,
    encoders: Arc<Encoders>,
    known: Known,
    memory: Memory,
    /// Room for recordings that wait to be put.
    room: Budget,
    /// The rows that are in memory until there are enough of them for a pack, where packs are made.
    held: Option<Held>,
    /// The options of the files of a recording.
    options: DatasetOptions,
    hashes: Hashes,
    /// The input that is next to be begun.
    next: AtomicUsize,
    stopped: AtomicBool,
}

/// The outcome of one input, and the tables that were written for it.
struct Outcome {
    done: Done,
    tables: Vec<TableSummary>,
    failure: Option<Error>,
}

impl Outcome {
    fn skipped(skipped: SkippedInput) -> Outcome {
        Outcome { done: Done::Skipped(skipped), tables: Vec::new(), failure: None }
    }

    /// The key of the recording, if it was put.
    fn key(&self) -> Option<&str> {
        match &self.done {
            Done::Converted(input) => Some(&input.trace_id),
            Done::Failed(input) => Some(&input.trace_id),
            Done::Skipped(_) => None,
        }
    }

    /// The outcome when the recording was put. Another writer may have put it in the meantime.
    fn after(self, put: Put) -> Outcome {
        match (self.done, put) {
            (Done::Converted(InputSummary { path, trace_id, .. }), Put::WasThere) => {
                Outcome::skipped(SkippedInput { path, trace_id, differs: false, other_labels: false })
            }
            (Done::Converted(InputSummary { path, trace_id, identity, .. }), Put::IsTaken) => {
                let error = format!(
                    "another run has added a recording with the key {trace_id} and other content, expected a free key: \
                     convert this one again"
                );
                let input = FailedInput { path, trace_id, identity, error, offset: None };
                Outcome { done: Done::Failed(input), tables: Vec::new(), failure: None }
            }
            (done, _) => Outcome { done, ..self },
        }
    }
}

/// The result of converting one input.
enum Made {
    /// The recording is in the dataset, or among the inputs, already; or it cannot be read, and the dataset says so.
    Known(Box<Outcome>),
    /// A recording to put into it, and the outcome when that is done.
    New(Box<(NewRecording, Outcome)>),
    /// A recording with its rows in memory, the bytes that they take, and the outcome when it is in the dataset.
    Held(Box<HeldRecording>, u64, Box<Outcome>),
    /// Nothing, since nothing more is to be done.
    Nothing,
}

impl Made {
    fn known(skipped: SkippedInput) -> Made {
        Made::Known(Box::new(Outcome::skipped(skipped)))
    }
}

/// A recording to put into the dataset, which input it is, and the outcome.
type Finished<'b> = Ready<'b, (usize, Outcome)>;

/// Arrivals of recordings that come into packs, and of inputs that do not.
type Arrived = Arrival<(usize, Box<Outcome>)>;

/// Wakes those that wait for a recording whose thread panics.
struct StopAtPanic<'h>(Option<&'h Held>);

impl Drop for StopAtPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.inspect(|held| held.stop());
        }
    }
}

enum Message {
    Progress(Progress),
    Done(usize, Box<Outcome>),
    /// Something that concerns all recordings.
    Broken(Error),
}

impl Run<'_> {
    /// Runs the jobs; `watch` is called on this thread.
    fn convert_all(&self, watch: &mut dyn FnMut(Step<'_>)) -> Result<Vec<(usize, Outcome)>> {
        let mut done = Vec::new();
        let mut broken = None;
        std::thread::scope(|scope| {
            let (sender, receiver) = channel();
            for fetcher in 0..self.ahead.threads() {
                let thread = std::thread::Builder::new().name(format!("fetch-{fetcher}"));
                self.ahead.add_thread();
                if thread.spawn_scoped(scope, || self.ahead.work(&|recording| self.known_tag(recording))).is_err() {
                    self.ahead.remove_thread();
                    break;
                }
            }
            let (finished, to_put) = channel();
            let own = sender.clone();
            let thread = std::thread::Builder::new().name("put".into());
            let is_putting = thread.spawn_scoped(scope, move || self.put_as_they_come(&to_put, &own)).is_ok();
            // Otherwise each job puts its own.
            let finished = Some(finished).filter(|_| is_putting && self.lake.storage().puts_together());
            let mut started = Ok(());
            let (arrived, to_pack) = channel();
            if let Some(held) = &self.held {
                let own = sender.clone();
                let thread = std::thread::Builder::new().name("pack".into());
                started = thread.spawn_scoped(scope, move || self.put_packs(held, &to_pack, &own)).map(|_| ());
            }
            for job in 0..self.jobs.min(self.recordings.len()).max(1) {
                if started.is_err() {
                    break;
                }
                let (own, finished, arrived) = (sender.clone(), finished.clone(), arrived.clone());
                let thread = std::thread::Builder::new().name(format!("job-{job}"));
                let here = (own.clone(), finished.clone(), arrived.clone());
                if thread.spawn_scoped(scope, move || self.work(&own, finished.as_ref(), &arrived)).is_err() {
                    if job == 0 {
                        self.work(&here.0, here.1.as_ref(), &here.2);
                    }
                    // Threads that were started do the rest.
                    break;
                }
            }
            if let Err(source) = started {
                broken = Some(Error::Io { path: self.request.output.clone(), source });
            }
            drop((sender, finished, arrived));
            for message in receiver {
                match message {
                    Message::Progress(progress) => watch(Step::Progress(progress)),
                    Message::Done(index, outcome) => {
                        watch(Step::Done { input: self.input(index), done: &outcome.done });
                        done.push((index, *outcome));
                    }
                    Message::Broken(error) => {
                        broken.get_or_insert(error);
                        self.ahead.stop();
                    }
                }
            }
            self.ahead.stop();
        });
        broken.map_or(Ok(done), Err)
    }

    fn work<'s>(
        &'s self,
        messages: &Sender<Message>,
        finished: Option<&Sender<Finished<'s>>>,
        arrived: &Sender<Arrived>,
    ) {
        let _waking = StopAtPanic(self.held.as_ref());
        let mut failures = Shelf::new(self.lake.storage().folder());
        while !self.stopped.load(Ordering::Acquire) {
            let index = self.next.fetch_add(1, Ordering::AcqRel);
            let Some((_, recording)) = self.recordings.get(index) else { return };
            let made = self.one(index, recording, messages, &mut failures);
            if let (Some(_), Ok(Made::Known(_) | Made::New(_))) = (&self.held, &made) {
                // Where nothing is received any more the batch was stopped, which is said elsewhere; here and below.
                let _ = arrived.send((index, Came::Apart));
            }
            let message = match made {
                Ok(Made::Held(recording, bytes, outcome)) => {
                    let _ = arrived.send((index, Came::Held(recording, bytes, (index, outcome))));
                    continue;
                }
                Ok(Made::Nothing) => return,
                Ok(Made::New(made)) => {
                    let (new, outcome) = *made;
                    match finished {
                        Some(finished) => {
                            if finished.send(Ready::new(new, (index, outcome), &self.room)).is_ok() {
                                continue;
                            }
                            // The thread that puts recordings panicked.
                            self.broken(Error::Internal("the thread that puts recordings is gone".into()))
                        }
                        None => self.put(&new, index, outcome),
                    }
                }
                Ok(Made::Known(outcome)) => Message::Done(index, outcome),
                Err(error) => self.broken(error),
            };
            // The receiver is gone when the calling thread has panicked.
            let _ = messages.send(message);
        }
    }

    /// Nothing more is begun.
    fn broken(&self, error: Error) -> Message {
        self.stopped.store(true, Ordering::Release);
        self.held.as_ref().inspect(|held| held.stop());
        Message::Broken(error)
    }

    fn put_as_they_come(&self, finished: &Receiver<Finished<'_>>, messages: &Sender<Message>) {
        let done = |(index, outcome): (usize, Outcome), put| {
            let _ = messages.send(Message::Done(index, Box::new(outcome.after(put))));
        };
        let broken = |error| {
            let _ = messages.send(self.broken(error));
        };
        together::put(|recordings| lake::put(&self.lake, recordings), finished, done, broken);
    }

    fn put_packs(&self, held: &Held, arrived: &Receiver<Arrived>, messages: &Sender<Message>) {
        let _waking = StopAtPanic(Some(held));
        let done = |(index, outcome): (usize, Box<Outcome>), put, tables| {
            let outcome = Outcome { tables, ..outcome.after(put) };
            let _ = messages.send(Message::Done(index, Box::new(outcome)));
        };
        let put_pack = |recordings: &[HeldRecording]| {
            let (puts, tables) = lake::put_held(&self.lake, recordings, self.options.compression)?;
            Ok((puts, tables.into_iter().map(TableSummary::from).collect()))
        };
        if let Err(error) = packs::put(self.recordings.len(), held, arrived, put_pack, done) {
            let _ = messages.send(self.broken(error));
        }
    }

    /// Puts a recording by itself.
    fn put(&self, new: &NewRecording, index: usize, outcome: Outcome) -> Message {
        match lake::put(&self.lake, std::slice::from_ref(new)) {
            Ok(puts) => {
                let put = puts.first().copied().unwrap_or(Put::Done);
                Message::Done(index, Box::new(outcome.after(put)))
            }
            Err(error) => self.broken(error),
        }
    }

    /// The entries that cannot be read, but for those that were replaced now.
    fn damaged_left(&self, done: &[(usize, Outcome)]) -> Vec<String> {
        let root = shown(&self.request.output);
        let is_replaced = |key: &str| done.iter().any(|(_, outcome)| outcome.key() == Some(key));
        let left = self.known.damaged().iter().filter(|damaged| !is_replaced(&damaged.key));
        left.map(|damaged| damaged.at(&root).to_string()).collect()
    }

    /// The input that holds a recording.
    fn input(&self, index: usize) -> usize {
        self.recordings.get(index).map_or(0, |(input, _)| *input)
    }

    /// `failures` is where the files go of a recording that cannot be read.
    fn one(
        &self,
        index: usize,
        recording: &RecordingPath,
        messages: &Sender<Message>,
        failures: &mut Shelf,
    ) -> Result<Made> {
        let mut here = None;
        let mut before = None;
        let key_of = |hash: &str| trace_key(&recording.name(), hash);
        let hashed = self.hashes.publish(index, key_of, || match self.ahead.take(index, &|r| self.known_tag(r))? {
            stored::Came::Here(recording) => {
                before = stamp(recording.file());
                let identity = identity_of(&recording, self.known.hash_kind(self.request));
                here = Some(recording);
                identity
            }
            stored::Came::Same => Ok(FileIdentity::default()),
        });
        if here.is_none()
            && hashed.is_ok()
            && let Some(skipped) = self.known.unchanged(&self.lake, self.request, &recording.name())
        {
            return Ok(Made::known(skipped));
        }
        let recording = here.as_ref().unwrap_or(recording);
        let path = &recording.name();
        let identity = match hashed {
            Ok(identity) => identity,
            Err(error) => return self.failed((index, recording, FileIdentity::default()), error, Vec::new(), failures),
        };
        if let Some(first) = self.hashes.earlier(index, identity.hash()) {
            let name = self.recordings.get(first).map(|(_, recording)| recording.name()).unwrap_or_default();
            let trace_id = self.key(first, &name, identity.hash())?;
            let skipped = SkippedInput { path: path.to_owned(), trace_id, differs: false, other_labels: false };
            return Ok(Made::known(skipped));
        }
        let replaced = match self.known.plan(&self.lake, self.request, path, &identity)? {
            Plan::Skip(skipped) => return Ok(Made::known(skipped)),
            Plan::Convert(replaced) => replaced,
        };
        if self.held.as_ref().is_some_and(|held| !held.enter(index)) {
            return Ok(Made::Nothing);
        }
        let _share = self.memory.take(identity.size_bytes);
        let key = self.key(index, path, identity.hash())?;
        let request = &*self.known.with_own_labels(&self.lake, self.request, &key, &identity)?;
        let make = || DatasetWriter::part_of(self.lake.storage().folder(), self.encoders.clone(), self.options(&key));
        let mut rows = Small::new(&make, self.held.is_some());
        let input = self.input(index);
        let mut progress = |position, total, events| {
            let _ = messages.send(Message::Progress(Progress { input, position, total, events }));
        };
        let shape = self.request.shape(Some(key.to_owned()));
        let identified = || identity.clone();
        let made = read_one(
            request,
            &self.manifests,
            recording,
            (shape, &self.selection),
            &mut rows,
            &mut progress,
            identified,
        );
        match made {
            Ok(_) if before != stamp(recording.file()) => {
                let error = TraceError::Unreadable {
                    path: path.to_owned(),
                    offset: 0,
                    what: "the file changed while it was read".into(),
                    expected: "a recording that is not being written".into(),
                };
                drop(rows);
                self.failed((index, recording, FileIdentity::default()), error.into(), replaced, failures)
            }
            Ok((summary, tables)) => {
                let input = InputSummary { trace_id: key.clone(), ..summary };
                let files = match rows.into_grown()? {
                    Grown::Small(tables, bytes) => {
                        let recorded = entries::recorded(request, &input, recording.etag());
                        let outcome = Outcome { done: Done::Converted(input), tables: Vec::new(), failure: None };
                        let held = HeldRecording { recorded, tables, replaced };
                        return Ok(Made::Held(Box::new(held), bytes, Box::new(outcome)));
                    }
                    Grown::Large(files) => files,
                };
                let entry = entries::entry(request, &input, &tables, recording.etag());
                let new = NewRecording::new(&key, files, &entry, replaced)?;
                let outcome = Outcome { done: Done::Converted(input), tables, failure: None };
                Ok(Made::New(Box::new((new, outcome))))
            }
            Err(error) => {
                drop(rows);
                self.failed((index, recording, identity), error, replaced, failures)
            }
        }
    }

    /// A failure becomes a row, if it is one of the recording alone.
    fn failed(
        &self,
        (index, recording, identity): (usize, &RecordingPath, FileIdentity),
        error: Error,
        mut replaced: Vec<String>,
        failures: &mut Shelf,
    ) -> Result<Made> {
        let (path, file) = (recording.name(), recording.file());
        let of_recording = match &error {
            Error::Trace(TraceError::Unreadable { .. }) | Error::OverMemory(_) | Error::TooLarge(_) => true,
            error if error.is_of_request() => true,
            Error::Io { path: at, .. } => *at == path || at == file,
            _ => false,
        };
        if !of_recording || self.request.fail_fast {
            return Err(error);
        }
        let mut input = FailedInput::of(path, &error);
        if !identity.hash().is_empty() {
            input.trace_id = self.key(index, &input.path, identity.hash())?;
            input.identity = identity;
        }
        let request = &*self.known.with_own_labels(&self.lake, self.request, &input.trace_id, &input.identity)?;
        if replaced.iter().all(|old| *old == input.trace_id)
            && self.known.failed(&input.trace_id, input.identity.hash()).is_some()
            && let Some(tables) = failed::known(request, &input, &self.lake, self.options.format)?
        {
            return Ok(Made::Known(Box::new(Outcome { done: Done::Failed(input), tables, failure: Some(error) })));
        }
        let mut part = DatasetWriter::part_beside(failures, self.encoders.clone(), self.options(&input.trace_id))?;
        let tables = failed::write(request, &input, self.request.shape(Some(input.trace_id.clone())), &mut part)?;
        let entry = entries::failed_entry(request, &input, &tables);
        // An earlier run had the same failure.
        replaced.push(input.trace_id.clone());
        let new = NewRecording::new(&input.trace_id, part, &entry, replaced)?;
        let outcome = Outcome { done: Done::Failed(input), tables, failure: Some(error) };
        Ok(Made::New(Box::new((new, outcome))))
    }

    /// The tag of what the dataset has of a recording that comes from a store, if it need not be fetched for anything
    /// else.
    fn known_tag(&self, recording: &RecordingPath) -> Option<String> {
        let path = recording.name();
        self.known.unchanged(&self.lake, self.request, &path)?;
        self.known.tag(&self.lake, &path)
    }

    /// The key of a recording: that of its name and its hash, unless it belongs to a recording with other content.
    fn key(&self, index: usize, path: &Path, hash: &str) -> Result<String> {
        let key = trace_key(path, hash);
        Ok(match self.known.is_taken(&self.lake, &key, hash)? || self.hashes.is_taken(index, &key, hash) {
            true => whole_key(path, hash),
            false => key,
        })
    }

    fn options(&self, key: &str) -> DatasetOptions {
        DatasetOptions { partition: Some(paths::partition(key)), ..self.options.clone() }
    }
}
