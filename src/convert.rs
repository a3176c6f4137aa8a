//! `tracequet convert`: checks the request, shows progress, and prints the summary.

use std::fs::File;
use std::io::Read;

use tracequet::trace::error::Severity;
use tracequet::{Compression, Convert, DatasetLayout, Format, InputSummary, Step, Summary, convert_each, expand};

use super::args::{ConvertArgs, OutputArgs};
use super::conversion_bar::ConversionBar;
use super::prelude::*;
use super::text::{clean, count, counted, duration, problem, size};
use super::{freed, interrupt, json};

/// Converts, and prints the summary: as JSON to standard output, or for a person to standard error.
pub fn run(args: ConvertArgs) -> anyhow::Result<Outcome> {
    let (as_json, quiet) = (args.output.json, args.output.quiet);
    let request = request(args)?;
    interrupt::end_at_interrupt()?;
    let mut bar = ConversionBar::of(&request, quiet);
    let as_lines = as_json && bar.is_of_several();
    let (mut printing, mut notes, mut steps) = (Ok(()), Vec::new(), freed::Steps::default());
    let result = convert_each(&request, &mut |step| match step {
        Step::Progress(progress) => {
            bar.progress(&progress);
            steps.read(progress.input, progress.position);
        }
        Step::Done { input, done } => {
            bar.done(input, done);
            if as_lines && printing.is_ok() {
                printing = print_result(&json::recording(done));
            }
        }
        Step::Note(note) => notes.push(note.to_owned()),
        _ => {}
    });
    bar.clear();
    let summary = result?;
    for note in notes {
        print_note(&format!("tracequet: {}\n", clean(&note)))?;
    }
    match as_lines {
        true => {
            note_failures(&summary)?;
            outcome(&summary).printed(printing.and_then(|()| print_result(&json::several(&summary))))
        }
        false => print(&summary, as_json, quiet),
    }
}

/// Prints the summary of a dataset that was made.
pub fn print(summary: &Summary, as_json: bool, quiet: bool) -> anyhow::Result<Outcome> {
    note_failures(summary)?;
    outcome(summary).printed(match (as_json, quiet) {
        (true, _) => print_result(&json::summary(summary)),
        (false, false) => print_note(&text(summary)),
        (false, true) => Ok(()),
    })
}

/// The outcome over all recordings.
fn outcome(summary: &Summary) -> Outcome {
    if summary.has_nothing() { Outcome::Nothing } else { Outcome::with_losses(summary.has_losses()) }
}

/// A line for each recording, and each entry of the dataset, that could not be read.
fn note_failures(summary: &Summary) -> anyhow::Result<()> {
    for damaged in &summary.damaged_entries {
        print_note(&format!("tracequet: {}\n", clean(damaged)))?;
    }
    for failed in &summary.failed {
        print_note(&format!("tracequet: {}; it is left out\n", clean(&failed.error)))?;
    }
    Ok(())
}

/// Makes the request that the options together ask for.
fn request(args: ConvertArgs) -> Result<Convert, Error> {
    let refuse = |message: &str| Err(Error::Usage(message.into()));
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from >= to
    {
        return refuse("the part is empty, expected --from before --to");
    }
    let labels = super::values::labels(&args.label, "--label")?;
    let listed = args.files_from.as_deref().map(listed).transpose()?;
    let from_input = args.files_from.iter().filter(|path| path.as_os_str() == "-").count();
    if args.inputs.iter().filter(|path| path.as_os_str() == "-").count() + from_input > 1 {
        return refuse("standard input (-) can be read only once");
    }
    let mut found = expand(&args.inputs, &args.output.output)?;
    let several = found.several || listed.is_some();
    found.inputs.extend(listed.unwrap_or_default());
    if found.inputs.is_empty() {
        return refuse("--files-from names no recording");
    }
    if args.append && found.inputs.iter().any(|path| path.as_os_str() == "-") {
        return refuse("standard input cannot be added to a dataset: its hash is needed before it is read");
    }
    let output = output(args.output)?;
    let output = if several { output.layout(DatasetLayout::Hive) } else { output };
    let request = output
        .inputs(found.inputs)
        .labels(labels)
        .append(args.append)
        .refresh(args.refresh)
        .sha256(args.sha256)
        .fail_fast(args.fail_fast)
        .jobs(args.jobs)
        .memory(args.memory)
        .providers(args.providers)
        .processes(args.process)
        .manifests(args.manifest)
        .from_ns(args.from)
        .to_ns(args.to)
        .pack(args.pack);
    if args.pack && !request.is_of_several() {
        return refuse(
            "--pack is for datasets of several recordings, expected --append, --layout hive or more recordings",
        );
    }
    Ok(request)
}

/// Bytes and names of a list, at most: each name takes some hundred bytes as long as the program runs.
const MAX_LIST: u64 = 256 << 20;
const MAX_LISTED: usize = 1_000_000;

/// The recordings that a file names, one a line. Names are whatever bytes the system allows; one that leads nowhere
/// fails by itself.
fn listed(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let file: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(std::io::stdin()),
        false => Box::new(File::open(path).map_err(Error::io(path))?),
    };
    let mut text = Vec::new();
    file.take(MAX_LIST + 1).read_to_end(&mut text).map_err(Error::io(path))?;
    let lines = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&text).split(|byte| *byte == b'\n');
    let names = || lines.clone().map(<[u8]>::trim_ascii_end).filter(|name| !name.is_empty());
    if text.len() as u64 > MAX_LIST || names().nth(MAX_LISTED).is_some() {
        let most = "a list has a million names at most, and 256 MB; convert the rest by another run with --append";
        return Err(Error::Usage(format!("{}: {most}", path.display())));
    }
    Ok(names().map(named).collect())
}

/// A name as written in a list.
fn named(bytes: &[u8]) -> PathBuf {
    #[cfg(unix)]
    return PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes));
    #[cfg(not(unix))]
    return PathBuf::from(String::from_utf8_lossy(bytes).into_owned());
}

/// Adds to the request what the options about the dataset ask for.
pub fn output(args: OutputArgs) -> Result<Convert, Error> {
    let refuse = |message: &str| Err(Error::Usage(message.into()));
    let format = Format::from(args.format);
    if format == Format::Arrow && args.compression == Compression::Snappy {
        return refuse("Arrow files cannot be compressed with snappy, expected --compression zstd or none");
    }
    if args.output.as_os_str() == "-" {
        return refuse("tables cannot be written to standard output, expected a directory");
    }
    Ok(Convert::default()
        .output(args.output)
        .format(format)
        .compression(args.compression)
        .layout(args.layout.into())
        .tables(args.tables)
        .address_type(args.address_type.into())
        .overwrite(args.overwrite)
        .dominators(args.dominators)
        .cohorts(args.cohorts)
        .lifetimes(args.lifetimes)
        .symbols(args.symbols)
        .own(args.own.patterns())
        .strict(args.strict))
}

fn text(summary: &Summary) -> String {
    let mut out = String::new();
    for input in &summary.inputs {
        one_input(&mut out, input);
    }
    for input in &summary.skipped {
        let options = if input.differs { ", converted with other options (--refresh)" } else { "" };
        let labels = if input.other_labels { ", with other labels, which stay" } else { "" };
        let path = clean(&input.path.to_string_lossy());
        out.push_str(&format!("{path}: is in the dataset already as {}{options}{labels}\n", clean(&input.trace_id)));
    }
    let tables = &summary.tables;
    let seconds = summary.elapsed_ns as f64 / 1e9;
    let read: u64 = summary.inputs.iter().map(|i| i.bytes).sum();
    out.push_str(&format!(
        "{}: {} of {} with {}, in {} ({}/s)\n",
        clean(&summary.output.to_string_lossy()),
        size(tables.iter().map(|t| t.bytes).sum()),
        counted(tables.len() as u64, "table", "tables"),
        counted(tables.iter().map(|t| t.rows).sum(), "row", "rows"),
        duration(i64::try_from(summary.elapsed_ns).unwrap_or(i64::MAX)),
        size((read as f64 / seconds.max(1e-9)) as u64),
    ));
    out
}

fn one_input(out: &mut String, input: &InputSummary) {
    let span = duration(input.last_ns.saturating_sub(input.first_ns));
    out.push_str(&format!(
        "{}: {}, {} of {} in {span}\n",
        clean(&input.path.to_string_lossy()),
        size(input.bytes),
        counted(input.events, "event", "events"),
        counted(input.event_types, "kind", "kinds"),
    ));
    if input.decoded_partial + input.raw > 0 {
        out.push_str(&format!(
            "  decoded {}, in part {}, kept raw {}\n",
            count(input.decoded_full),
            count(input.decoded_partial),
            count(input.raw),
        ));
    }
    if input.collections > 0 {
        let incomplete = match input.incomplete_collections {
            0 => String::new(),
            n => format!(", {} of them incomplete", count(n)),
        };
        out.push_str(&format!("  {}{incomplete}\n", counted(input.collections, "collection", "collections")));
    }
    if input.frames.frames > 0 {
        let (named, why) = (input.frames.named, input.problems.iter().find(|p| p.code == "unnamed_frames"));
        let all = counted(input.frames.frames, "frame", "frames");
        let why = why.and_then(|p| p.message.split_once(": ")).map_or(String::new(), |(_, why)| format!("; {why}"));
        out.push_str(&format!("  call stacks of {all}, {} of them with a name{why}\n", count(named)));
        if input.frames.with_line > 0 {
            out.push_str(&format!("  {} with a source line\n", counted(input.frames.with_line, "frame", "frames")));
        }
    }
    let of_choice = ["provider_not_recorded", "table_not_recorded", "nothing_in_window"];
    for p in input.problems.iter().filter(|p| of_choice.contains(&p.code)) {
        out.push_str(&format!("  note: {}\n", clean(&p.message)));
    }
    if !input.has_losses() {
        return;
    }
    out.push_str("  LOSSES\n");
    let before = out.len();
    for p in input.problems.iter().filter(|p| p.severity > Severity::Info) {
        out.push_str(&format!("    {}\n", problem(p).in_text()));
    }
    if out.len() == before {
        out.push_str("    the recording does not reach its end mark\n");
    }
}
