//! `tracequet inspect`: the contents of a recording as text or JSON.

use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};
use tracequet::analyze::present::Format;
use tracequet::analyze::present::units::{count, counted, duration, moment, share, size};
use tracequet::inspect::{
    Collection, CollectionKind, DecodedBy, EventTypeCount, FrameNames, Inspection, frame_names, inspect_recording,
};
use tracequet::trace::error::Severity;
use tracequet::trace::reader::NO_SUBJECT;
use tracequet::trace::reader::etl::EventManifests;
use tracequet::trace::source::RecordingPath;
use tracequet::trace::source::store::{Address, fetch};
use tracequet::trace::time::format_utc;

use super::args::InspectArgs;
use super::interrupt;
use super::json;
use super::prelude::*;
use super::progress::Bar;
use super::terminal::{self, ColorArg};
use super::text::problem;

/// Rows of a list that are shown without `--all`.
const TOP: usize = 20;
const TOP_THREADS: usize = 10;

/// Reads the recording and prints what is in it; of an archive with several, of one after the other.
pub fn run(args: &InspectArgs) -> anyhow::Result<Outcome> {
    if args.frames && args.file.as_os_str() == "-" {
        return Err(Error::Usage("--frames reads the recording twice, expected a file and not -".into()).into());
    }
    let mut bar = Bar::new(false);
    let manifests = EventManifests::open(&args.manifest)?;
    let (recordings, _folder) = recordings(&args.file)?;
    let (mut texts, mut failed) = (Vec::new(), Vec::new());
    let mut losses = false;
    for recording in &recordings {
        let name = recording.name().to_string_lossy().into_owned();
        let result = inspect_recording(recording, &manifests, &mut |position, total| bar.show(&name, position, total));
        bar.clear();
        match result {
            Ok(inspection) => {
                losses |= inspection.has_losses();
                let frames = if args.frames { frame_names(recording, &manifests)? } else { None };
                let frames = frames.as_ref();
                let answer = Inspected { inspection: &inspection, frames, all: args.all };
                texts.push(answer.written(args.format.format(), terminal::standard_output(ColorArg::Never)));
            }
            Err(error) => failed.push(error),
        }
    }
    if texts.is_empty() && !failed.is_empty() {
        return Err(failed.swap_remove(0).into());
    }
    for error in &failed {
        print_note(&format!("tracequet: {}; it is left out\n", clean(&error.to_string())))?;
    }
    let text = texts.join(if args.format.format() == Format::Json { "" } else { "\n" });
    Outcome::with_losses(losses || !failed.is_empty()).printed(print_result(&text))
}

/// The recordings of a file, or of a copy of an object, with the directory where it lies.
fn recordings(file: &Path) -> anyhow::Result<(Vec<RecordingPath>, Option<tempfile::TempDir>)> {
    let Some(address) = Address::parse(file) else { return Ok((RecordingPath::all_in(file), None)) };
    interrupt::end_at_interrupt()?;
    let folder = tempfile::tempdir()?;
    interrupt::remove_at_end(folder.path());
    let copy = fetch(&address?, None, folder.path(), &AtomicBool::new(false))?;
    Ok((copy.map(RecordingPath::all_of_copy).unwrap_or_default(), Some(folder)))
}

/// The contents of a recording.
struct Inspected<'i> {
    inspection: &'i Inspection,
    frames: Option<&'i FrameNames>,
    /// Whether lists are whole for people.
    all: bool,
}

impl Answer for Inspected<'_> {
    fn document(&self) -> Document {
        let mut out = Document::default();
        self.header(&mut out);
        if self.inspection.heap.is_some() {
            self.list(&mut out, "Types", self.heap_types(), TOP);
        } else {
            self.list(&mut out, "Providers", self.providers(), usize::MAX);
            self.list(&mut out, "Kinds of events", self.event_types(), TOP);
            // Only of recordings that hold several.
            if self.inspection.processes.len() > 1 {
                self.list(&mut out, "Processes", self.processes(), TOP);
            }
            self.list(&mut out, "Threads", self.threads(), TOP_THREADS);
        }
        self.collections(&mut out);
        self.frames_of_stacks(&mut out);
        self.notes(&mut out);
        self.losses(&mut out);
        out
    }

    /// Kinds of events; of a heap dump types.
    fn rows(&self) -> Table {
        if self.inspection.heap.is_some() { self.heap_types() } else { self.event_types() }
    }

    /// Everything as one object.
    fn json(&self) -> Value {
        let Inspection { process, end, .. } = self.inspection;
        let i = self.inspection;
        let all: Vec<&Collection> = i.collections.list.iter().collect();
        let mut object = json!({
            "path": i.path.to_string_lossy(), "command_line": process.command_line, "os": process.os, "arch": process.arch,
            "runtime_version": process.runtime_version, "bytes": end.bytes, "trailing_bytes": end.trailing_bytes,
            "complete": i.is_complete(), "has_losses": i.has_losses(), "dropped_events": end.dropped_events,
            "event_count": i.events, "payload_bytes": i.payload_bytes, "first_ns": i.first_ns, "last_ns": i.last_ns,
            "duration_ns": i.duration_ns(), "providers": self.providers().json(), "event_types": self.event_types().json(),
            "processes": self.processes().json(), "threads": self.threads().json(),
            "collection_count": i.collections.list.len(), "collections_by_generation": by_generation(i),
            "collections": listed(&all).json(), "unlisted_collection_marks": i.collections.unlisted_marks,
            "problems": json::problems(&i.problems),
        });
        let Some(members) = object.as_object_mut() else { return object };
        members.extend(json::header(&i.info));
        if let Some(heap) = &i.heap {
            let heap = json!({
                "object_count": heap.objects, "object_bytes": heap.bytes, "reference_count": heap.references,
                "root_count": heap.roots, "types": self.heap_types().json(),
            });
            members.insert("heap".into(), heap);
        }
        if let Some(FrameNames { counts, unnamed, .. }) = self.frames {
            let frames = json!({ "frame_count": counts.frames, "named_frame_count": counts.named, "unnamed": unnamed });
            members.insert("frames".into(), frames);
        }
        object
    }
}

/// Collections of a generation and a kind together.
fn by_generation(inspection: &Inspection) -> Vec<Value> {
    let mut groups = std::collections::BTreeMap::new();
    for c in &inspection.collections.list {
        let (count, duration) = groups.entry((c.generation, c.kind)).or_insert((0usize, 0i64));
        *count += 1;
        *duration = duration.saturating_add(c.duration_ns.unwrap_or_default());
    }
    let one = |((generation, kind), (count, duration_ns)): ((Option<u64>, Option<CollectionKind>), _)| {
        let kind = kind.map(CollectionKind::as_str);
        json!({ "generation": generation, "kind": kind, "count": count, "duration_ns": duration_ns })
    };
    groups.into_iter().map(one).collect()
}

impl Inspected<'_> {
    fn header(&self, out: &mut Document) {
        let Inspection { info, process, end, .. } = self.inspection;
        let inspection = self.inspection;
        out.line(Cell::sentence(&inspection.path.to_string_lossy()));
        let version =
            if info.minor == 0 { info.version.to_string() } else { format!("{}.{}", info.version, info.minor) };
        let bits = u32::from(info.pointer_size) * 8;
        out.fact("  format     ", format!("{} {version}, {bits}-bit", info.container));
        let start = if info.start_known { format_utc(info.clock.sync_utc_ns) } else { "unknown".into() };
        out.fact("  start      ", start);
        if inspection.heap.is_none() {
            let ticks = count(info.clock.frequency.unsigned_abs());
            out.fact("  clock      ", format!("{ticks} ticks per second"));
        }
        let mut of_process = Vec::new();
        if info.process_id != 0 {
            of_process.push(info.process_id.to_string());
        }
        of_process.extend(process.os.clone());
        of_process.extend(process.arch.clone());
        if info.processor_count != 0 {
            of_process.push(counted(info.processor_count, "processor", "processors"));
        }
        if !of_process.is_empty() {
            out.fact("  process    ", Cell::sentence(&of_process.join(", ")));
        }
        if let Some(version) = &process.runtime_version {
            out.fact("  runtime    ", Sentence::from("CLR ").text(version));
        }
        if let Some(command) = &process.command_line {
            out.fact("  command    ", Cell::sentence(command));
        }
        if info.sampling_ns != 0 {
            let every = Cell::span(info.sampling_ns);
            out.fact("  sampling   ", Sentence::from("every ").cell(every));
        }
        for (key, value) in &info.key_values {
            out.fact("  key        ", Sentence::default().text(key).words(" = ").cell(Cell::sentence(value)));
        }
        out.fact("  size       ", format!("{} ({} bytes)", size(end.bytes), count(end.bytes)));
        if let (Some(first), Some(last)) = (inspection.first_ns, inspection.last_ns) {
            let (span, first, last) = (duration(inspection.duration_ns()), moment(first), moment(last));
            out.fact("  duration   ", format!("{span}, from {first} to {last} s after the start"));
        }
        if let Some(heap) = &inspection.heap {
            let references = counted(heap.references, "reference", "references");
            let roots = counted(heap.roots, "root", "roots");
            let objects = format!("{} with {}, {references}, {roots}", count(heap.objects), size(heap.bytes));
            out.fact("  objects    ", objects);
        } else {
            let payload = size(inspection.payload_bytes);
            out.fact("  events     ", format!("{} with {payload} of payload", count(inspection.events)));
        }
    }

    /// A list of which people see the first rows; the heading says of how many.
    fn list(&self, out: &mut Document, name: &str, table: Table, most: usize) {
        let all = table.len();
        let most = if self.all { all } else { all.min(most) };
        match most < all {
            true => out.heading(format!("{name} ({most} of {all}, --all shows the others)")),
            false => out.heading(format!("{name} ({all})")),
        }
        out.table(table.first(most));
    }

    /// Types of a heap dump.
    fn heap_types(&self) -> Table {
        table!("types", self.inspection.heap.iter().flat_map(|heap| &heap.types), |found| {
            words("type", "").key("type_name") => Cell::text(&found.name),
            numbers("objects", "").key("object_count") => Cell::count(found.objects),
            numbers("bytes", "").key("object_bytes") => Cell::count(found.bytes),
        })
    }

    fn providers(&self) -> Table {
        table!("providers", &self.inspection.providers, |p| {
            let [kinds, events] = [p.event_types, p.events].map(Cell::count);
        } {
            words("provider", "").key("provider_name") => Cell::Text(p.name.clone()),
            numbers("kinds", "").key("event_types") => kinds,
            numbers("events", "").key("event_count") => events,
            numbers("payload", "").key("payload_bytes") => Cell::size(p.payload_bytes),
        })
    }

    fn event_types(&self) -> Table {
        table!("event-types", &self.inspection.event_types, |t| {
            let (by, version, why) = match t.decoded_by {
                DecodedBy::Recording => ("recording", None, None),
                DecodedBy::Manifest => ("manifest", None, None),
                DecodedBy::Catalogue(version) => ("catalogue", Some(version), None),
                DecodedBy::Raw(why) => ("raw", None, Some(why)),
                _ => ("other", None, None),
            };
            let id = |number: u32| Cell::number(Some(number), Unit::Id);
        } {
            words("provider", "").key("provider_name") => Cell::Text(t.provider.clone()),
            numbers("id", "").key("event_id") => id(t.event_id),
            numbers("version", "").key("event_version") => id(t.version),
            words("name", "").key("event_name") => Cell::text(&t.name),
            Column::raw("opcode") => Cell::number(t.opcode, Unit::Id),
            numbers("level", "").key("level") => id(t.level),
            // As text: JSON numbers of most readers have 53 bits.
            numbers("keywords", "").key("keywords") => Cell::words(format!("{:#x}", t.keywords)),
            numbers("events", "").key("event_count") => Cell::count(t.events),
            numbers("payload", "").key("payload_bytes") => Cell::size(t.payload_bytes),
            words("decoded by", "").key("decoded_by") => Cell::words(by).shown_as(decoded_by(t)),
            Column::raw("catalogue_version") => Cell::number(version, Unit::Id),
            Column::raw("raw_reason") => Cell::optional(why),
        })
    }

    fn processes(&self) -> Table {
        table!("processes", &self.inspection.processes, |p| {
            let id = Cell::id(p.process_id);
            // Events that the kernel files under no process.
            let id = if p.process_id == NO_SUBJECT { id.shown_as(Cell::words("none")) } else { id };
            let [threads, events] = [p.threads, p.events].map(Cell::count);
        } {
            numbers("process", "").key("process_id") => id,
            words("name", "").key("name") => Cell::text(&p.name),
            Column::raw("command_line") => Cell::text(&p.command_line),
            numbers("threads", "").key("threads") => threads,
            numbers("events", "").key("event_count") => events,
        })
    }

    fn threads(&self) -> Table {
        table!("threads", &self.inspection.threads, |t| {
            let [process, thread] = [t.thread.process_id, t.thread.thread_id].map(Cell::id);
        } {
            numbers("process", "").key("process_id") => process,
            numbers("thread", "").key("thread_id") => thread,
            words("name", "").key("thread_name") => Cell::optional(t.thread.name.as_deref()),
            numbers("events", "").key("event_count") => Cell::count(t.events),
        })
    }

    fn collections(&self, out: &mut Document) {
        let list = &self.inspection.collections.list;
        if list.is_empty() {
            return;
        }
        out.heading(format!("Collections ({})", list.len()));
        let mut generations: Vec<Option<u64>> = list.iter().map(|c| c.generation).collect();
        generations.sort_unstable();
        generations.dedup();
        let heads = ["blocking", "background", "foreground", "total", "time", "longest"].map(|name| numbers(name, ""));
        let mut table = Table::new("generations", &[&[words("generation", "")], &heads[..]].concat());
        for generation in generations {
            let those: Vec<&Collection> = list.iter().filter(|c| c.generation == generation).collect();
            let of = |kind| Cell::count(those.iter().filter(|c| c.kind == Some(kind)).count() as u64);
            let [blocking, background, foreground] = CollectionKind::ALL.map(of);
            let times = || those.iter().filter_map(|c| c.duration_ns);
            table.row([
                generation.map_or(Cell::words("-"), Cell::id),
                blocking,
                background,
                foreground,
                Cell::count(those.len() as u64),
                Cell::duration(times().fold(0, i64::saturating_add)),
                Cell::duration(times().max()),
            ]);
        }
        out.table(table);
        out.gap();
        let mut shown: Vec<&Collection> = list.iter().collect();
        if !self.all && list.len() > TOP {
            shown.sort_by_key(|c| std::cmp::Reverse(c.duration_ns));
            shown.truncate(TOP);
            shown.sort_by_key(|c| (c.start_ns, c.number));
            out.note(format!("the {TOP} longest (--all shows the others)"));
        }
        out.table(listed(&shown));
    }

    /// The number of frames with a name.
    fn frames_of_stacks(&self, out: &mut Document) {
        let Some(FrameNames { counts, unnamed, .. }) = self.frames else { return };
        let (all, named) = (counts.frames, counts.named);
        let share = share(named as f64 / all.max(1) as f64);
        out.heading("Frames of call stacks");
        out.note(format!("{} of {} have a name ({share})", count(named), count(all)));
        unnamed.iter().for_each(|unnamed| out.note(Cell::sentence(unnamed)));
    }

    fn notes(&self, out: &mut Document) {
        let inspection = self.inspection;
        let mut notes: Vec<Sentence> = Vec::new();
        let raw = inspection.event_types.iter().filter(|t| matches!(t.decoded_by, DecodedBy::Raw(_)));
        let (kinds, events) = raw.fold((0, 0), |(kinds, events), t| (kinds + 1, events + t.events));
        if kinds > 0 {
            let kinds = counted(kinds, "kind of event", "kinds of events");
            let events = counted(events, "event", "events");
            notes.push(format!("{kinds} ({events}) cannot be decoded and would be kept raw").into());
        }
        let open = inspection.collections.list.iter().filter(|c| c.duration_ns.is_none()).count() as u64;
        if open > 0 {
            let open = counted(open, "collection is", "collections are");
            notes.push(format!("start or end of {open} not in the recording").into());
        }
        let unlisted = inspection.collections.unlisted_marks;
        if unlisted > 0 {
            let marks = counted(unlisted, "start or end of a collection is", "starts and ends of collections are");
            notes.push(format!("{marks} not listed").into());
        }
        if inspection.end.trailing_bytes > 0 {
            let trailing = counted(inspection.end.trailing_bytes, "byte", "bytes");
            notes.push(format!("{trailing} behind the end mark").into());
        }
        notes.extend(inspection.problems.iter().filter(|p| p.severity == Severity::Info).map(problem));
        if !notes.is_empty() {
            out.heading("Notes");
            notes.into_iter().for_each(|note| out.note(note));
        }
    }

    fn losses(&self, out: &mut Document) {
        let inspection = self.inspection;
        if !inspection.has_losses() {
            return out.heading("Losses: none, the recording is complete");
        }
        out.heading("LOSSES");
        let mut problems = inspection.problems.iter().filter(|p| p.severity > Severity::Info).peekable();
        if problems.peek().is_none() {
            out.note("the recording does not reach its end mark");
        }
        problems.for_each(|p| out.note(problem(p)));
    }
}

fn decoded_by(kind: &EventTypeCount) -> Cell {
    match kind.decoded_by {
        DecodedBy::Recording => Cell::words("recording"),
        DecodedBy::Manifest => Cell::words("manifest"),
        DecodedBy::Catalogue(version) if version == kind.version => Cell::words("catalogue"),
        DecodedBy::Catalogue(version) => Cell::words(format!("catalogue, version {version}")),
        DecodedBy::Raw(why) => Cell::words(format!("raw: {why}")),
        other => Cell::words(format!("{other:?}")),
    }
}

/// A row for each of some collections.
fn listed(collections: &[&Collection]) -> Table {
    table!("collections", collections, |c| {
        let reason = Cell::optional(c.reason_name);
        let start = Cell::moment(c.start_ns);
    } {
        Column::raw("process_id") => Cell::id(c.process_id),
        numbers("number", "").key("gc_number") => Cell::id(c.number),
        numbers("generation", "").key("generation") => Cell::id(c.generation),
        words("kind", "").key("kind") => Cell::optional(c.kind.map(CollectionKind::as_str)),
        Column::raw("reason") => Cell::id(c.reason),
        words("reason", "").key("reason_name") =>
            if reason.is_missing() { reason.shown_as(Cell::id(c.reason)) } else { reason },
        numbers("start s", "").key("start_ns") =>
            if c.start_ns.is_none() { start.shown_as(Cell::words("before")) } else { start },
        numbers("duration", "").key("duration_ns") => Cell::duration(c.duration_ns),
    })
}
