//! Converts a live recording into a dataset, while its bytes are spooled to a file.

use std::path::Path;

use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::table::select::Selection;
use tracequet_dataset::write::TableSink;
use tracequet_facts::fact::{FactSink, SessionProvider};
use tracequet_trace::error::{Error as TraceError, Problem, Severity};
use tracequet_trace::event::{EventVisitor, Resolver};
use tracequet_trace::reader::{self, Order};
use tracequet_trace::source::diagnostics::port::{CgroupLimits, EventFilter, Provider};
use tracequet_trace::source::diagnostics::{Ending, PortRecording, Reason};
use tracequet_trace::source::{FileIdentity, Input, RecordingPath};

use super::{append, follow};
use crate::alone::into_dataset;
use crate::hashed::{identity_aside, joined};
use crate::one::Conversion;
use crate::one::{EventRun, Limits, TableOutput};
use crate::one::{Watch, Watched};
use crate::request::{Convert, Progress};
use crate::summary::Summary;

/// A recording that was collected: its summary, and how it ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Collected {
    /// The dataset.
    pub summary: Summary,
    /// The reason for the end of the recording.
    pub ending: Ending,
}

/// Writes what a process records through its diagnostics port into a dataset, as [`crate::convert`] does with a
/// recording that is whole, until the session or the process ends. With [`Convert::append`] it is added to a dataset of
/// several then. `inputs` of the request are not looked at; `name` is the recording's.
///
/// The session is begun by `start` when everything else was found sound. `watch` sees events as they are converted.
pub fn collect_port(
    request: &Convert,
    name: &Path,
    start: impl FnOnce() -> Result<PortRecording>,
    watch: &mut dyn Watch,
    progress: &mut dyn FnMut(Progress),
) -> Result<Collected> {
    let (mut start, mut ending, mut begun) = (Some(start), None, None::<PortRecording>);
    let mut one = |shape, selection: &Selection, dataset: &mut dyn TableSink| {
        let start = start.take().ok_or_else(|| Error::Internal("a recording was begun twice".into()))?;
        let recording = begun.insert(start()?);
        let reader = recording.take_reader().ok_or_else(|| Error::Internal("a recording without bytes".into()))?;
        let path = recording.kept().unwrap_or(name).to_owned();
        let more = reader.more();
        let input_stream = Input::from_live(&path, Box::new(reader), Box::new(more))?;
        if input_stream.head().is_empty() {
            let ended = recording.ending();
            return Err(Error::Usage(format!("nothing was recorded: {}", why_nothing(&ended.reason))));
        }
        let mut progress = |position, total, events| progress(Progress { input: 0, position, total, events });
        let conversion = Conversion { request, selection, shape, dataset, progress: &mut progress, total: None };
        let mut run = EventRun::new(conversion);
        let control = recording.control();
        // A silent process sends nothing at which the reader could stop.
        let give_up_when_failed = |run: &EventRun<'_>| {
            if run.has_failed() {
                control.end_soon();
            }
        };
        let mut watched = Watched::new(&mut run, &mut *watch, &give_up_when_failed);
        let mut resolver = Resolver::new(&mut watched);
        let end = reader::read(input_stream, Order::Time, &mut resolver)?;
        let resolved = resolver.finish();
        if !end.complete && !control.has_ended() {
            // The tables could not be written.
            control.end_soon();
        }
        let ended = recording.ending();
        for compromise in &recording.compromises {
            run.problem(Problem::info("session_option_ignored", 0, *compromise));
        }
        report_end(&ended, &mut run);
        if let Some(out) = run.output() {
            recording.asked.iter().for_each(|provider| report_request(provider, out));
            out.limits = recording
                .cgroup
                .map(|CgroupLimits { memory_bytes, cpu_millicores }| Limits { memory_bytes, cpu_millicores });
        }
        let hashing =
            recording.kept().and_then(|path| identity_aside(&RecordingPath::of_file(path), request.hash_kind()));
        let identity = joined(hashing).filter(|identity| !identity.hash().is_empty());
        let identity = identity.unwrap_or(FileIdentity { size_bytes: ended.bytes, ..FileIdentity::default() });
        ending = Some(ended);
        run.finish(&path, &end, &identity, &resolved)
    };
    let made = match request.follow {
        Some(every) => follow::into_lake(request, name, every, &mut one),
        None if request.append => append::into_lake(request, name, &mut one),
        None => into_dataset(request, name, &mut one),
    };
    let summary = made.map_err(|error| rescued(error, begun, name))?;
    let ending = ending.ok_or_else(|| Error::Internal("a recording without an end".into()))?;
    Ok(Collected { summary, ending })
}

/// The error of a recording that failed, which says where the recording is if it could be kept.
fn rescued(error: Error, begun: Option<PortRecording>, name: &Path) -> Error {
    // Bytes that are no recording are of no use to anybody.
    let is_worth = !error.is_of_request() && !matches!(error, Error::Trace(TraceError::Unreadable { .. }));
    match begun.filter(|_| is_worth).and_then(|mut recording| recording.rescue(name)) {
        Some(Ok(kept)) => Error::NotConverted { kept, cause: Box::new(error) },
        _ => error,
    }
}

/// Reports a provider with what was asked of it.
fn report_request(provider: &Provider, out: &mut TableOutput) {
    let (event_filter, ids) = match &provider.events {
        EventFilter::All => ("all", &[][..]),
        EventFilter::Only(ids) => ("only", ids.as_slice()),
        EventFilter::Except(ids) => ("except", ids.as_slice()),
    };
    let ids = ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let Provider { name, keywords, level, arguments, .. } = provider;
    out.add(&SessionProvider {
        provider_name: name,
        keywords: *keywords,
        level: *level,
        arguments: Some(arguments.as_str()).filter(|text| !text.is_empty()),
        event_filter,
        event_ids: Some(ids.as_str()).filter(|text| !text.is_empty()),
    });
}

/// Reports the reason for the end of the recording, where it is more than its own end.
fn report_end(ended: &Ending, visitor: &mut impl EventVisitor) {
    let (severity, code, message) = match &ended.reason {
        Reason::Process | Reason::Asked | Reason::Duration => return,
        Reason::Size => (Severity::Info, "recording_stopped", "the recording was stopped at its size limit".to_owned()),
        Reason::Trigger(what) => (Severity::Info, "recording_stopped", format!("the recording was stopped by {what}")),
        Reason::GivenUp => {
            let message = "the rest of the recording was discarded: buffers of the runtime and its rundown are missing";
            (Severity::DataLoss, "recording_given_up", message.to_owned())
        }
        Reason::Failed(why) => (Severity::Error, "stream_error", why.clone()),
    };
    visitor.problem(Problem::new(severity, code, ended.bytes, message));
}

fn why_nothing(reason: &Reason) -> String {
    match reason {
        Reason::Process => "the process ended before its runtime sent anything".into(),
        Reason::Failed(why) => why.clone(),
        _ => "the runtime sent nothing before the recording was ended".into(),
    }
}
