//! Recordings as batches in memory, without files, and which tables there are in a recording.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::table::names::safe;
use tracequet_dataset::table::select::Selection;
use tracequet_dataset::table::{Shape, Tables};
use tracequet_dataset::write::BatchSink;
use tracequet_trace::error::{Error as TraceError, Problem};
use tracequet_trace::event::{Event, EventInfo, EventVisitor, Resolver};
use tracequet_trace::reader::callback::{self, Record};
use tracequet_trace::reader::etl::EventManifests;
use tracequet_trace::reader::{self, Order, Thread, ThreadIndex, TraceInfo, TypeId};
use tracequet_trace::source::{RecordingPath, store};

use super::hashed;
use super::inputs;
use super::request::{Convert, DatasetLayout, Progress};
use super::stored::Fetches;
use super::summary::{FailedInput, InputSummary, Summary, TableSummary, add_tables, elapsed_ns};
use crate::one::read_one;

/// Rows of one table of one recording.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rows<'a> {
    /// Which of the inputs.
    pub input: usize,
    /// The table, such as `gc` or `event/<provider>/<event>`.
    pub table: &'a str,
    /// The rows, at most some thousands. Those of a batch are in the order of the table; a batch may begin before the
    /// one in front of it ends.
    pub rows: RecordBatch,
}

/// Reads recordings and hands the rows of their tables to `receive`: the tables that [`crate::convert`] writes, with
/// the same rows and columns, and no files. Nothing is copied; what `receive` does not keep is gone.
///
/// The first batch of each table of a recording has no rows: it says which columns the table has. `output`, `format`,
/// `compression` and `overwrite` of the request are not looked at. The tables `trace` and `diagnostic` come only if
/// `tables` names them, or nothing.
///
/// A recording in a store is fetched when it is its turn. `receive` ends it by [`ControlFlow::Break`], `progress` by
/// `false`; the result is then `None`. Of several recordings one that cannot be read is in [`Summary::failed`]. Fails
/// as [`crate::convert`] does.
///
/// The key of a recording has digits of its hash, so that of several each is hashed before it is read;
/// [`Convert::identities`] spares that when recordings are read again.
///
/// ```
/// use std::ops::ControlFlow;
/// use tracequet_convert::{Convert, batches};
///
/// let request = Convert::default().inputs(["../../samples/gc-churn.nettrace"]).tables(["gc_moved_range"]);
/// let mut rows = 0;
/// let summary = batches(
///     &request,
///     &mut |batch| {
///         rows += batch.rows.num_rows();
///         ControlFlow::Continue(())
///     },
///     &mut |_| true,
/// )?;
/// assert_eq!(rows, 3400);
/// assert!(!summary.is_some_and(|summary| summary.has_losses()));
/// # Ok::<(), tracequet_dataset::error::Error>(())
/// ```
pub fn batches(
    request: &Convert,
    receive: &mut dyn FnMut(Rows<'_>) -> ControlFlow<()>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Option<Summary>> {
    if request.inputs.is_empty() {
        return Err(Error::Usage("no recording was given".into()));
    }
    let started = Instant::now();
    let manifests = EventManifests::open(&request.manifests)?;
    let selection = Selection::new(&request.tables)?;
    let wants = |table: &str| {
        let is_extra = matches!(table, "trace" | "trace_label" | "diagnostic");
        !is_extra || request.tables.is_empty() || request.tables.iter().any(|name| name == table)
    };
    let fetches = Fetches::default();
    let recordings = recordings(request, &fetches)?;
    let has_keys = has_keys(request, &recordings);
    let is_alone = recordings.len() == 1;
    // Hashes of the recordings that have these keys.
    let mut keys: HashMap<String, String> = HashMap::new();
    let (mut converted, mut failed, mut tables) = (Vec::new(), Vec::new(), Vec::<TableSummary>::new());
    for (input, recording) in &recordings {
        let input = *input;
        // Fetched when it is its turn, and gone when it was read.
        let recording = &match fetches.here(recording) {
            Ok(here) => here,
            Err(error) if !is_alone && is_about(&error, &recording.name()) => {
                failed.push((recording.name(), error));
                continue;
            }
            Err(error) => return Err(error),
        };
        // A recording that cannot be hashed cannot be read either, which is reported then.
        let known = if has_keys {
            Some(request.identities.identity_of(recording, request.hash_kind()))
        } else {
            request.identities.known(recording, request.hash_kind())
        };
        let trace_id = known.as_ref().filter(|_| has_keys).map(|known| key(&mut keys, recording, known.hash()));
        let shape = request.shape(trace_id);
        let stop = Cell::new(false);
        let mut has_rows = false;
        let mut receive_rows = |table: &str, rows: RecordBatch| {
            if wants(table) {
                has_rows |= rows.num_rows() > 0;
                stop.set(stop.get() || receive(Rows { input, table, rows }).is_break());
            }
            !stop.get()
        };
        let go_on = || !stop.get();
        let mut on_progress = |position, total, events| {
            if !progress(Progress { input, position, total, events }) {
                stop.set(true);
            }
        };
        let mut sink = BatchSink::new(&mut receive_rows, &go_on);
        // The hash is taken while the recording is read: both are in the page cache then.
        let is_hashed = wants("trace") && known.is_none();
        let hashing = if is_hashed { request.identities.aside(recording, request.hash_kind()) } else { None };
        let identity = || known.or_else(|| request.identities.joined(recording, hashing)).unwrap_or_default();
        let how = (shape.clone(), &selection);
        let made = read_one(request, &manifests, recording, how, &mut sink, &mut on_progress, identity);
        if stop.get() {
            return Ok(None);
        }
        match made {
            Ok((summary, written)) => {
                let trace_id = shape.trace_id.clone();
                let trace_id =
                    trace_id.unwrap_or_else(|| hashed::trace_key(&recording.name(), summary.identity.hash()));
                converted.push(InputSummary { trace_id, ..summary });
                add_tables(&mut tables, written.into_iter().filter(|table| wants(&table.name)));
            }
            Err(error) if !is_alone && !has_rows && is_about(&error, &recording.name()) => {
                failed.push((recording.name(), error));
            }
            Err(error) => return Err(error),
        }
    }
    if converted.is_empty() && !failed.is_empty() {
        return Err(failed.swap_remove(0).1);
    }
    let failed = failed.into_iter().map(|(path, error)| FailedInput::of(path, &error)).collect();
    let elapsed_ns = elapsed_ns(started);
    let skipped = Vec::new();
    let (output, damaged_entries) = (PathBuf::new(), Vec::new());
    Ok(Some(Summary { inputs: converted, failed, skipped, output, tables, damaged_entries, elapsed_ns }))
}

/// Whether rows have the key of their recording.
fn has_keys(request: &Convert, recordings: &[(usize, RecordingPath)]) -> bool {
    request.layout == DatasetLayout::Hive || recordings.len() > 1
}

/// The key of a recording. Another one if `keys` has it for another content.
fn key(keys: &mut HashMap<String, String>, recording: &RecordingPath, hash: &str) -> String {
    let key = hashed::trace_key(&recording.name(), hash);
    match keys.entry(key.clone()).or_insert_with(|| hash.to_owned()) == hash {
        true => key,
        false => hashed::whole_key(&recording.name(), hash),
    }
}

/// The recordings of a request. An invalid address, or one of a kind that cannot be read, fails the request.
fn recordings(request: &Convert, fetches: &Fetches) -> Result<Vec<(usize, RecordingPath)>> {
    for address in request.inputs.iter().filter_map(|input| RecordingPath::of_file(input).address()) {
        if let Err(error @ TraceError::Usage(_)) = store::open(&address?) {
            return Err(error.into());
        }
    }
    Ok(inputs::recordings(&request.inputs, fetches))
}

/// Whether an error is about the recording, and not about the request.
fn is_about(error: &Error, recording: &Path) -> bool {
    matches!(error, Error::Trace(TraceError::Unreadable { path, .. }) | Error::Io { path, .. } if path == recording)
}

/// A table that a recording has.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FoundTable {
    /// Name, such as `gc` or `event/<provider>/<event>`.
    pub name: String,
    /// The name for [`Convert::tables`] that selects it; other tables may come with it.
    pub selection: String,
    /// The columns.
    pub schema: SchemaRef,
}

/// The tables that each input of a request has, in the order in which [`batches`] begins them. Payload tables are found
/// by reading the recording to its end without decoding it, which is as quick as [`crate::inspect::inspect`]; `tables`
/// of the request restricts what is looked for, and without payload tables only the header is read.
///
/// Of an archive that holds several recordings, each table is listed once. Fails for the first recording that cannot be
/// read.
pub fn tables(request: &Convert) -> Result<Vec<Vec<FoundTable>>> {
    let manifests = EventManifests::open(&request.manifests)?;
    let selection = Selection::new(&request.tables)?;
    let list = |recording: &RecordingPath, shape: Shape| {
        let mut lister =
            Lister { request, selection: &selection, shape, tables: None, keys: HashMap::new(), failure: None };
        let input = recording.open()?;
        let read = match reader::Format::detect(input.head()) {
            Some(reader::Format::Callbacks) => callback::read(input, &mut lister).map(drop),
            Some(reader::Format::GcDump) => reader::gcdump::read(input).map(|dump| lister.begin(&dump.info())),
            _ => {
                let mut resolver = Resolver::new(&mut lister).with_manifests(&manifests);
                reader::read(input, Order::File, &mut resolver).map(drop)
            }
        };
        read?;
        lister.finish()
    };
    let fetches = Fetches::default();
    let recordings = recordings(request, &fetches)?;
    let mut found: Vec<Vec<FoundTable>> = request.inputs.iter().map(|_| Vec::new()).collect();
    // Without rows there is no need of the hash in a key.
    let has_keys = has_keys(request, &recordings);
    for (input, recording) in &recordings {
        let recording = fetches.here(recording)?;
        let trace_id = has_keys.then(|| hashed::trace_key(&recording.name(), ""));
        let listed = list(&recording, request.shape(trace_id))?;
        let Some(known) = found.get_mut(*input) else { continue };
        // The recordings of an archive have most of their tables in common.
        let is_new = |table: &FoundTable| known.iter().all(|other| other.name != table.name);
        let new: Vec<FoundTable> = listed.into_iter().filter(is_new).collect();
        known.extend(new);
    }
    Ok(found)
}

/// Gives each kind of event its table, and looks at nothing else.
struct Lister<'r> {
    request: &'r Convert,
    selection: &'r Selection,
    shape: Shape,
    tables: Option<Tables>,
    /// Provider and name of the events of a payload table, by its name.
    keys: HashMap<String, (String, String)>,
    failure: Option<Error>,
}

impl Lister<'_> {
    fn begin(&mut self, info: &TraceInfo) {
        match Tables::new(self.selection.clone(), info.clock, info.pointer_size, self.shape.clone()) {
            Ok(tables) => self.tables = Some(tables),
            Err(e) => self.failure = Some(e),
        }
    }

    fn finish(self) -> Result<Vec<FoundTable>> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        // Names of tables are unique; what their events are called may differ by letters that a name cannot have.
        let plain = |(provider, event): &(String, String)| (safe(provider).to_lowercase(), safe(event).to_lowercase());
        let mut owners = HashMap::<_, Vec<&(String, String)>>::new();
        for key in self.keys.values() {
            let same = owners.entry(plain(key)).or_default();
            if !same.contains(&key) {
                same.push(key);
            }
        }
        let specs = self.tables.as_ref().map_or(&[][..], Tables::specs);
        let found = specs.iter().map(|spec| {
            let selection = match self.keys.get(&spec.name) {
                None => spec.name.clone(),
                Some(key) if owners.get(&plain(key)).is_some_and(|same| same.len() > 1) => "event".to_owned(),
                Some((provider, event)) => format!("event/{provider}/{event}"),
            };
            FoundTable { name: spec.name.clone(), selection, schema: spec.schema.clone() }
        });
        Ok(found.collect())
    }
}

impl EventVisitor for Lister<'_> {
    fn trace(&mut self, info: &TraceInfo) {
        self.begin(info);
    }

    fn event_type(&mut self, _: TypeId, info: &EventInfo) -> bool {
        let Some(tables) = &mut self.tables else { return false };
        let providers = &self.request.providers;
        if !providers.is_empty() && !providers.iter().any(|name| name.eq_ignore_ascii_case(&info.provider)) {
            return false;
        }
        match tables.route(info) {
            Ok(Some(route)) => {
                let key = || (info.provider.clone(), info.name.clone());
                if let Some(name) = tables.route_name(&route) {
                    self.keys.entry(name.to_owned()).or_insert_with(key);
                }
            }
            Ok(None) => {}
            Err(e) => self.failure = Some(e),
        }
        // Where no payload tables are looked for, the first event ends the reading.
        !self.selection.wants_events()
    }

    fn event(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn problem(&mut self, _: Problem) {}
}

impl callback::Visitor for Lister<'_> {
    fn trace(&mut self, _: &callback::format::Header, info: &TraceInfo) {
        self.begin(info);
    }

    fn thread(&mut self, _: ThreadIndex, _: &Thread) {}

    fn record(&mut self, _: &Record<'_>) -> ControlFlow<()> {
        // Callbacks have no payload tables.
        ControlFlow::Break(())
    }

    fn problem(&mut self, _: Problem) {}
}
