//! `tracequet inspect`: the contents of a recording as text or JSON.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use tracequet::Error;
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
use super::output::{Outcome, print_note, print_result};
use super::progress::Bar;
use super::text::{Columns, clean, count, counted, duration, moment, problem, size};

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
                texts.push(match args.json {
                    true => json::inspection(&inspection, frames)?,
                    false => text(&inspection, frames, args.all),
                });
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
    let text = texts.join(if args.json { "" } else { "\n" });
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

fn text(inspection: &Inspection, frames: Option<&FrameNames>, all: bool) -> String {
    let mut out = String::new();
    header(&mut out, inspection);
    if inspection.heap.is_some() {
        heap(&mut out, inspection, all);
    } else {
        providers(&mut out, inspection);
        event_types(&mut out, inspection, all);
        processes(&mut out, inspection, all);
        threads(&mut out, inspection, all);
    }
    collections(&mut out, inspection, all);
    frames_of_stacks(&mut out, frames);
    notes(&mut out, inspection);
    losses(&mut out, inspection);
    out
}

fn header(out: &mut String, inspection: &Inspection) {
    let Inspection { info, process, end, .. } = inspection;
    let mut line = |name: &str, text: &str| out.push_str(&format!("  {name:<10} {}\n", clean(text)));
    let version = if info.minor == 0 { info.version.to_string() } else { format!("{}.{}", info.version, info.minor) };
    line("format", &format!("{} {version}, {}-bit", info.container, u32::from(info.pointer_size) * 8));
    line("start", if info.start_known { format_utc(info.clock.sync_utc_ns) } else { "unknown".into() }.as_str());
    if inspection.heap.is_none() {
        line("clock", &format!("{} ticks per second", count(info.clock.frequency.unsigned_abs())));
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
        line("process", &of_process.join(", "));
    }
    if let Some(version) = &process.runtime_version {
        line("runtime", &format!("CLR {version}"));
    }
    if let Some(command) = &process.command_line {
        line("command", command);
    }
    if info.sampling_ns != 0 {
        line("sampling", &format!("every {}", duration(i64::try_from(info.sampling_ns).unwrap_or(i64::MAX))));
    }
    for (key, value) in &info.key_values {
        line("key", &format!("{key} = {value}"));
    }
    line("size", &format!("{} ({} bytes)", size(end.bytes), count(end.bytes)));
    if let (Some(first), Some(last)) = (inspection.first_ns, inspection.last_ns) {
        let span = duration(inspection.duration_ns());
        line("duration", &format!("{span}, from {} to {} s after the start", moment(first), moment(last)));
    }
    if let Some(heap) = &inspection.heap {
        let references = counted(heap.references, "reference", "references");
        let roots = counted(heap.roots, "root", "roots");
        line("objects", &format!("{} with {}, {references}, {roots}", count(heap.objects), size(heap.bytes)));
    } else {
        let events = format!("{} with {} of payload", count(inspection.events), size(inspection.payload_bytes));
        line("events", &events);
    }
    out.insert_str(0, &format!("{}\n", clean(&inspection.path.to_string_lossy())));
}

/// The head of a section: `Events (20 of 57, --all shows the others)`.
fn head(out: &mut String, name: &str, shown: usize, all: usize) {
    match shown < all {
        true => out.push_str(&format!("\n{name} ({shown} of {all}, --all shows the others)\n")),
        false => out.push_str(&format!("\n{name} ({all})\n")),
    }
}

/// Types of a heap dump.
fn heap(out: &mut String, inspection: &Inspection, all: bool) {
    let types = inspection.heap.iter().flat_map(|heap| &heap.types);
    let count_of = inspection.heap.as_ref().map_or(0, |heap| heap.types.len());
    let shown = if all { count_of } else { count_of.min(TOP) };
    head(out, "Types", shown, count_of);
    let mut columns = Columns::new(&["type", ">objects", ">bytes"]);
    for found in types.take(shown) {
        columns.row([clean(&found.name), count(found.objects), count(found.bytes)]);
    }
    columns.print(out);
}

fn providers(out: &mut String, inspection: &Inspection) {
    let providers = &inspection.providers;
    head(out, "Providers", providers.len(), providers.len());
    let mut columns = Columns::new(&["provider", ">kinds", ">events", ">payload"]);
    for p in providers {
        columns.row([clean(&p.name), count(p.event_types), count(p.events), size(p.payload_bytes)]);
    }
    columns.print(out);
}

fn event_types(out: &mut String, inspection: &Inspection, all: bool) {
    let types = &inspection.event_types;
    let shown = if all { types.len() } else { types.len().min(TOP) };
    head(out, "Kinds of events", shown, types.len());
    let heads = ["provider", ">id", ">version", "name", ">level", ">keywords", ">events", ">payload", "decoded by"];
    let mut columns = Columns::new(&heads);
    for t in types.iter().take(shown) {
        columns.row([
            clean(&t.provider),
            t.event_id.to_string(),
            t.version.to_string(),
            clean(&t.name),
            t.level.to_string(),
            format!("{:#x}", t.keywords),
            count(t.events),
            size(t.payload_bytes),
            decoded_by(t),
        ]);
    }
    columns.print(out);
}

fn decoded_by(kind: &EventTypeCount) -> String {
    match kind.decoded_by {
        DecodedBy::Recording => "recording".into(),
        DecodedBy::Manifest => "manifest".into(),
        DecodedBy::Catalogue(version) if version == kind.version => "catalogue".into(),
        DecodedBy::Catalogue(version) => format!("catalogue, version {version}"),
        DecodedBy::Raw(why) => format!("raw: {why}"),
        other => format!("{other:?}"),
    }
}

/// Only of recordings that hold several.
fn processes(out: &mut String, inspection: &Inspection, all: bool) {
    let processes = &inspection.processes;
    if processes.len() < 2 {
        return;
    }
    let shown = if all { processes.len() } else { processes.len().min(TOP) };
    head(out, "Processes", shown, processes.len());
    let mut columns = Columns::new(&[">process", "name", ">threads", ">events"]);
    for p in processes.iter().take(shown) {
        // Events that the kernel files under no process.
        let none = p.process_id == NO_SUBJECT;
        let id = if none { "none".to_owned() } else { p.process_id.to_string() };
        columns.row([id, clean(&p.name), count(p.threads), count(p.events)]);
    }
    columns.print(out);
}

fn threads(out: &mut String, inspection: &Inspection, all: bool) {
    let threads = &inspection.threads;
    let shown = if all { threads.len() } else { threads.len().min(TOP_THREADS) };
    head(out, "Threads", shown, threads.len());
    let mut columns = Columns::new(&[">process", ">thread", "name", ">events"]);
    for t in threads.iter().take(shown) {
        let name = clean(t.thread.name.as_deref().unwrap_or_default());
        columns.row([t.thread.process_id.to_string(), t.thread.thread_id.to_string(), name, count(t.events)]);
    }
    columns.print(out);
}

fn collections(out: &mut String, inspection: &Inspection, all: bool) {
    let list = &inspection.collections.list;
    if list.is_empty() {
        return;
    }
    out.push_str(&format!("\nCollections ({})\n", list.len()));
    let mut generations: Vec<Option<u64>> = list.iter().map(|c| c.generation).collect();
    generations.sort_unstable();
    generations.dedup();
    let mut columns =
        Columns::new(&["generation", ">blocking", ">background", ">foreground", ">total", ">time", ">longest"]);
    for generation in generations {
        let those: Vec<&Collection> = list.iter().filter(|c| c.generation == generation).collect();
        let of = |kind| count(those.iter().filter(|c| c.kind == Some(kind)).count() as u64);
        let [blocking, background, foreground] = CollectionKind::ALL.map(of);
        let times = || those.iter().filter_map(|c| c.duration_ns);
        columns.row([
            or_dash(generation),
            blocking,
            background,
            foreground,
            count(those.len() as u64),
            duration(times().fold(0, i64::saturating_add)),
            times().max().map_or_else(|| "-".into(), duration),
        ]);
    }
    columns.print(out);

    let mut shown: Vec<&Collection> = list.iter().collect();
    if !all && list.len() > TOP {
        shown.sort_by_key(|c| std::cmp::Reverse(c.duration_ns));
        shown.truncate(TOP);
        shown.sort_by_key(|c| (c.start_ns, c.number));
        out.push_str(&format!("\n  the {TOP} longest (--all shows the others)\n"));
    } else {
        out.push('\n');
    }
    let mut columns = Columns::new(&[">number", ">generation", "kind", "reason", ">start s", ">duration"]);
    for c in shown {
        columns.row([
            c.number.to_string(),
            or_dash(c.generation),
            c.kind.map_or("-", CollectionKind::as_str).to_owned(),
            c.reason_name.map_or_else(|| or_dash(c.reason), str::to_owned),
            c.start_ns.map_or_else(|| "before".into(), moment),
            c.duration_ns.map_or_else(|| "-".into(), duration),
        ]);
    }
    columns.print(out);
}

fn or_dash(value: Option<u64>) -> String {
    value.map_or_else(|| "-".into(), |v| v.to_string())
}

/// What is worth knowing although nothing of the recording is missing.
fn frames_of_stacks(out: &mut String, frames: Option<&FrameNames>) {
    let Some(FrameNames { counts, unnamed, .. }) = frames else { return };
    let (all, named) = (counts.frames, counts.named);
    let share = 100.0 * named as f64 / all.max(1) as f64;
    out.push_str(&format!(
        "\nFrames of call stacks\n  {} of {} have a name ({share:.1} %)\n",
        count(named),
        count(all)
    ));
    if let Some(unnamed) = unnamed {
        out.push_str(&format!("  {unnamed}\n"));
    }
}

fn notes(out: &mut String, inspection: &Inspection) {
    let mut notes = Vec::new();
    let raw = inspection.event_types.iter().filter(|t| matches!(t.decoded_by, DecodedBy::Raw(_)));
    let (kinds, events) = raw.fold((0, 0), |(kinds, events), t| (kinds + 1, events + t.events));
    if kinds > 0 {
        let kinds = counted(kinds, "kind of event", "kinds of events");
        notes.push(format!("{kinds} ({}) cannot be decoded and would be kept raw", counted(events, "event", "events")));
    }
    let open = inspection.collections.list.iter().filter(|c| c.duration_ns.is_none()).count() as u64;
    if open > 0 {
        notes.push(format!(
            "start or end of {} not in the recording",
            counted(open, "collection is", "collections are")
        ));
    }
    let unlisted = inspection.collections.unlisted_marks;
    if unlisted > 0 {
        let marks = counted(unlisted, "start or end of a collection is", "starts and ends of collections are");
        notes.push(format!("{marks} not listed"));
    }
    if inspection.end.trailing_bytes > 0 {
        let trailing = counted(inspection.end.trailing_bytes, "byte", "bytes");
        notes.push(format!("{trailing} behind the end mark"));
    }
    notes.extend(inspection.problems.iter().filter(|p| p.severity == Severity::Info).map(problem));
    if !notes.is_empty() {
        out.push_str("\nNotes\n");
        notes.iter().for_each(|note| out.push_str(&format!("  {note}\n")));
    }
}

fn losses(out: &mut String, inspection: &Inspection) {
    if !inspection.has_losses() {
        return out.push_str("\nLosses: none, the recording is complete\n");
    }
    out.push_str("\nLOSSES\n");
    let before = out.len();
    for p in inspection.problems.iter().filter(|p| p.severity > Severity::Info) {
        out.push_str(&format!("  {}\n", problem(p)));
    }
    if out.len() == before {
        out.push_str("  the recording does not reach its end mark\n");
    }
}
