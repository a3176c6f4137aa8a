//! The JSON that `--json` prints. Names are those of the tables where the tables have the same thing; names stay, new
//! ones may be added.

use serde::Serialize;
use tracequet::inspect::{CollectionKind, DecodedBy, FrameNames, Inspection};
use tracequet::trace::reader::TraceInfo;
use tracequet::trace::time::format_utc;
use tracequet::{Done, FailedInput, InputSummary, ProblemSummary, Summary};

#[derive(Serialize)]
struct Header<'a> {
    container: &'a str,
    format_version: u32,
    format_minor_version: u32,
    start: Option<String>,
    start_utc_ns: Option<i64>,
    clock_frequency: i64,
    pointer_size: u8,
    process_id: u64,
    processor_count: u64,
    sampling_ns: u64,
    key_values: Vec<KeyValue<'a>>,
}

#[derive(Serialize)]
struct KeyValue<'a> {
    key: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct Problem<'a> {
    code: &'a str,
    severity: &'a str,
    rows: u64,
    count: u64,
    first_message: &'a str,
    first_byte_offset: u64,
}

fn header(info: &TraceInfo) -> Header<'_> {
    Header {
        container: info.container,
        format_version: info.version,
        format_minor_version: info.minor,
        start: info.start_known.then(|| format_utc(info.clock.sync_utc_ns)),
        start_utc_ns: info.start_known.then_some(info.clock.sync_utc_ns),
        clock_frequency: info.clock.frequency,
        pointer_size: info.pointer_size,
        process_id: info.process_id,
        processor_count: info.processor_count,
        sampling_ns: info.sampling_ns,
        key_values: info.key_values.iter().map(|(key, value)| KeyValue { key, value }).collect(),
    }
}

fn problems(problems: &[ProblemSummary]) -> Vec<Problem<'_>> {
    let one = |p: &ProblemSummary| (p.code, p.severity.as_str(), p.rows, p.count, p.offset);
    let all = problems.iter().map(|p| (one(p), p.message.as_str()));
    all.map(|((code, severity, rows, count, first_byte_offset), first_message)| Problem {
        code,
        severity,
        rows,
        count,
        first_message,
        first_byte_offset,
    })
    .collect()
}

fn print(value: &impl Serialize) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(text)
}

/// With `--frames`.
#[derive(Serialize)]
struct FramesView<'a> {
    frame_count: u64,
    named_frame_count: u64,
    unnamed: Option<&'a str>,
}

#[derive(Serialize)]
struct InspectionView<'a> {
    path: String,
    #[serde(flatten)]
    header: Header<'a>,
    command_line: Option<&'a str>,
    os: Option<&'a str>,
    arch: Option<&'a str>,
    runtime_version: Option<&'a str>,
    bytes: u64,
    trailing_bytes: u64,
    complete: bool,
    has_losses: bool,
    dropped_events: u64,
    event_count: u64,
    payload_bytes: u64,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
    duration_ns: i64,
    providers: Vec<ProviderView<'a>>,
    event_types: Vec<EventTypeView<'a>>,
    processes: Vec<ProcessView<'a>>,
    threads: Vec<ThreadView<'a>>,
    collection_count: usize,
    collections_by_generation: Vec<GenerationView>,
    collections: Vec<CollectionView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heap: Option<HeapView<'a>>,
    unlisted_collection_marks: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    frames: Option<FramesView<'a>>,
    problems: Vec<Problem<'a>>,
}

#[derive(Serialize)]
struct HeapView<'a> {
    object_count: u64,
    object_bytes: u64,
    reference_count: u64,
    root_count: u64,
    types: Vec<HeapTypeView<'a>>,
}

#[derive(Serialize)]
struct HeapTypeView<'a> {
    type_name: &'a str,
    object_count: u64,
    object_bytes: u64,
}

#[derive(Serialize)]
struct ProviderView<'a> {
    provider_name: &'a str,
    event_types: u64,
    event_count: u64,
    payload_bytes: u64,
}

#[derive(Serialize)]
struct ProcessView<'a> {
    process_id: u64,
    name: &'a str,
    command_line: &'a str,
    threads: u64,
    event_count: u64,
}

#[derive(Serialize)]
struct EventTypeView<'a> {
    provider_name: &'a str,
    event_id: u32,
    event_version: u32,
    event_name: &'a str,
    opcode: Option<u8>,
    level: u32,
    /// As text: JSON numbers of most readers have 53 bits.
    keywords: String,
    event_count: u64,
    payload_bytes: u64,
    decoded_by: &'static str,
    catalogue_version: Option<u32>,
    raw_reason: Option<&'static str>,
}

#[derive(Serialize)]
struct ThreadView<'a> {
    process_id: u64,
    thread_id: u64,
    thread_name: Option<&'a str>,
    event_count: u64,
}

#[derive(Serialize)]
struct GenerationView {
    generation: Option<u64>,
    kind: Option<&'static str>,
    count: usize,
    duration_ns: i64,
}

#[derive(Serialize)]
struct CollectionView {
    process_id: u64,
    gc_number: u64,
    generation: Option<u64>,
    kind: Option<&'static str>,
    reason: Option<u64>,
    reason_name: Option<&'static str>,
    start_ns: Option<i64>,
    duration_ns: Option<i64>,
}

/// An inspection as one JSON object; with `frames` how many frames of call stacks have a name.
pub fn inspection(i: &Inspection, frames: Option<&FrameNames>) -> anyhow::Result<String> {
    let types = i.event_types.iter().map(|t| {
        let (decoded_by, catalogue_version, raw_reason) = match t.decoded_by {
            DecodedBy::Recording => ("recording", None, None),
            DecodedBy::Manifest => ("manifest", None, None),
            DecodedBy::Catalogue(version) => ("catalogue", Some(version), None),
            DecodedBy::Raw(why) => ("raw", None, Some(why)),
            _ => ("other", None, None),
        };
        EventTypeView {
            provider_name: &t.provider,
            event_id: t.event_id,
            event_version: t.version,
            event_name: &t.name,
            opcode: t.opcode,
            level: t.level,
            keywords: format!("{:#x}", t.keywords),
            event_count: t.events,
            payload_bytes: t.payload_bytes,
            decoded_by,
            catalogue_version,
            raw_reason,
        }
    });
    let providers = i.providers.iter().map(|p| ProviderView {
        provider_name: &p.name,
        event_types: p.event_types,
        event_count: p.events,
        payload_bytes: p.payload_bytes,
    });
    let processes = i.processes.iter().map(|p| ProcessView {
        process_id: p.process_id,
        name: &p.name,
        command_line: &p.command_line,
        threads: p.threads,
        event_count: p.events,
    });
    let threads = i.threads.iter().map(|t| ThreadView {
        process_id: t.thread.process_id,
        thread_id: t.thread.thread_id,
        thread_name: t.thread.name.as_deref(),
        event_count: t.events,
    });
    let collections = i.collections.list.iter().map(|c| CollectionView {
        process_id: c.process_id,
        gc_number: c.number,
        generation: c.generation,
        kind: c.kind.map(CollectionKind::as_str),
        reason: c.reason,
        reason_name: c.reason_name,
        start_ns: c.start_ns,
        duration_ns: c.duration_ns,
    });
    let heap = i.heap.as_ref().map(|heap| {
        let types = heap.types.iter().map(|t| HeapTypeView {
            type_name: &t.name,
            object_count: t.objects,
            object_bytes: t.bytes,
        });
        HeapView {
            object_count: heap.objects,
            object_bytes: heap.bytes,
            reference_count: heap.references,
            root_count: heap.roots,
            types: types.collect(),
        }
    });
    print(&InspectionView {
        heap,
        path: i.path.to_string_lossy().into_owned(),
        header: header(&i.info),
        command_line: i.process.command_line.as_deref(),
        os: i.process.os.as_deref(),
        arch: i.process.arch.as_deref(),
        runtime_version: i.process.runtime_version.as_deref(),
        bytes: i.end.bytes,
        trailing_bytes: i.end.trailing_bytes,
        complete: i.is_complete(),
        has_losses: i.has_losses(),
        dropped_events: i.end.dropped_events,
        event_count: i.events,
        payload_bytes: i.payload_bytes,
        first_ns: i.first_ns,
        last_ns: i.last_ns,
        duration_ns: i.duration_ns(),
        providers: providers.collect(),
        event_types: types.collect(),
        processes: processes.collect(),
        threads: threads.collect(),
        collection_count: i.collections.list.len(),
        collections_by_generation: by_generation(i),
        collections: collections.collect(),
        unlisted_collection_marks: i.collections.unlisted_marks,
        frames: frames.map(|names| FramesView {
            frame_count: names.counts.frames,
            named_frame_count: names.counts.named,
            unnamed: names.unnamed.as_deref(),
        }),
        problems: problems(&i.problems),
    })
}

fn by_generation(inspection: &Inspection) -> Vec<GenerationView> {
    let mut groups = std::collections::BTreeMap::new();
    for c in &inspection.collections.list {
        let (count, duration) = groups.entry((c.generation, c.kind)).or_insert((0usize, 0i64));
        *count += 1;
        *duration = duration.saturating_add(c.duration_ns.unwrap_or_default());
    }
    let view = |((generation, kind), (count, duration_ns)): (_, (usize, i64))| GenerationView {
        generation,
        kind: Option::map(kind, CollectionKind::as_str),
        count,
        duration_ns,
    };
    groups.into_iter().map(view).collect()
}

#[derive(Serialize)]
struct SummaryView<'a> {
    output: String,
    elapsed_ns: u64,
    has_losses: bool,
    failed: Vec<FailedView<'a>>,
    inputs: Vec<InputView<'a>>,
    tables: Vec<TableView<'a>>,
}

#[derive(Serialize)]
struct FailedView<'a> {
    path: String,
    trace_id: &'a str,
    error: &'a str,
    offset: Option<u64>,
}

#[derive(Serialize)]
struct InputView<'a> {
    path: String,
    trace_id: &'a str,
    #[serde(flatten)]
    header: Header<'a>,
    bytes: u64,
    complete: bool,
    has_losses: bool,
    event_count: u64,
    dropped_events: u64,
    first_ns: i64,
    last_ns: i64,
    event_types: u64,
    decoded_full: u64,
    decoded_partial: u64,
    raw: u64,
    collection_count: u64,
    incomplete_collection_count: u64,
    frame_count: u64,
    named_frame_count: u64,
    problems: Vec<Problem<'a>>,
}

#[derive(Serialize)]
struct TableView<'a> {
    name: &'a str,
    rows: u64,
    bytes: u64,
}

/// What a conversion made, as one JSON object.
pub fn summary(summary: &Summary) -> anyhow::Result<String> {
    print(&SummaryView {
        output: summary.output.to_string_lossy().into_owned(),
        elapsed_ns: summary.elapsed_ns,
        has_losses: summary.has_losses(),
        failed: summary.failed.iter().map(failed_view).collect(),
        inputs: summary.inputs.iter().map(input_view).collect(),
        tables: table_views(summary),
    })
}

/// What became of one of several recordings, as one line.
pub fn recording(done: &Done) -> anyhow::Result<String> {
    line(&match done {
        Done::Converted(input) => LineView::Converted(input_view(input)),
        Done::Failed(input) => LineView::Failed(failed_view(input)),
        Done::Skipped(input) => LineView::Skipped(SkippedView {
            path: input.path.to_string_lossy().into_owned(),
            trace_id: &input.trace_id,
            other_options: input.differs,
            other_labels: input.other_labels,
        }),
        _ => return Ok(String::new()),
    })
}

/// What a conversion made of several recordings, as the last line.
pub fn several(summary: &Summary) -> anyhow::Result<String> {
    line(&LineView::Summary(SeveralView {
        output: summary.output.to_string_lossy().into_owned(),
        elapsed_ns: summary.elapsed_ns,
        has_losses: summary.has_losses(),
        converted_count: summary.inputs.len(),
        failed_count: summary.failed.len(),
        skipped_count: summary.skipped.len(),
        damaged_entries: &summary.damaged_entries,
        tables: table_views(summary),
    }))
}

/// A line of the output about several recordings: `outcome` says what it is about.
#[derive(Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "one at a time")]
enum LineView<'a> {
    Converted(InputView<'a>),
    Failed(FailedView<'a>),
    Skipped(SkippedView<'a>),
    Summary(SeveralView<'a>),
}

#[derive(Serialize)]
struct SkippedView<'a> {
    path: String,
    trace_id: &'a str,
    other_options: bool,
    other_labels: bool,
}

#[derive(Serialize)]
struct SeveralView<'a> {
    output: String,
    elapsed_ns: u64,
    has_losses: bool,
    converted_count: usize,
    failed_count: usize,
    skipped_count: usize,
    damaged_entries: &'a [String],
    tables: Vec<TableView<'a>>,
}

fn line(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string(value)? + "\n")
}

fn table_views(summary: &Summary) -> Vec<TableView<'_>> {
    summary.tables.iter().map(|t| TableView { name: &t.name, rows: t.rows, bytes: t.bytes }).collect()
}

fn failed_view(f: &FailedInput) -> FailedView<'_> {
    FailedView { path: f.path.to_string_lossy().into_owned(), trace_id: &f.trace_id, error: &f.error, offset: f.offset }
}

fn input_view(i: &InputSummary) -> InputView<'_> {
    InputView {
        path: i.path.to_string_lossy().into_owned(),
        trace_id: &i.trace_id,
        header: header(&i.info),
        bytes: i.bytes,
        complete: i.complete,
        has_losses: i.has_losses(),
        event_count: i.events,
        dropped_events: i.dropped_events,
        first_ns: i.first_ns,
        last_ns: i.last_ns,
        event_types: i.event_types,
        decoded_full: i.decoded_full,
        decoded_partial: i.decoded_partial,
        raw: i.raw,
        collection_count: i.collections,
        incomplete_collection_count: i.incomplete_collections,
        frame_count: i.frames.frames,
        named_frame_count: i.frames.named,
        problems: problems(&i.problems),
    }
}
