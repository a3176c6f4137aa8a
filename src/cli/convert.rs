//! `tracequet convert`: checks the request, shows progress, and reports what came of it.

use std::path::Path;

use tracequet::error::{Error, Severity};
use tracequet::pipeline::{Compression, Convert, Format, InputSummary, Progress, Summary, convert};

use super::args::{ConvertArgs, OutputArgs};
use super::output::{Outcome, print_note, print_result};
use super::progress::Bar;
use super::text::{clean, count, counted, duration, problem, size};
use super::{interrupt, json};

/// Converts, and prints the summary: as JSON to standard output, or for a person to standard error.
pub fn run(args: ConvertArgs) -> anyhow::Result<Outcome> {
    let (as_json, quiet) = (args.output.json, args.output.quiet);
    let request = request(args)?;
    interrupt::end_at_interrupt()?;
    let mut bar = Bar::new(quiet);
    let result = convert(&request, &mut |progress| show(&mut bar, &request, progress));
    bar.clear();
    print(&result?, as_json, quiet)
}

/// Prints the summary of a dataset that was made.
pub fn print(summary: &Summary, as_json: bool, quiet: bool) -> anyhow::Result<Outcome> {
    for failed in &summary.failed {
        print_note(&format!("tracequet: {}; it is left out\n", clean(&failed.error)))?;
    }
    let outcome = Outcome::with_losses(summary.has_losses());
    outcome.printed(match (as_json, quiet) {
        (true, _) => print_result(&json::summary(summary)?),
        (false, false) => print_note(&text(summary)),
        (false, true) => Ok(()),
    })
}

/// What the options mean together.
fn request(args: ConvertArgs) -> Result<Convert, Error> {
    let refuse = |message: &str| Err(Error::Usage(message.into()));
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from >= to
    {
        return refuse("nothing lies between --from and --to, expected --from to be less");
    }
    if args.inputs.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
        return refuse("standard input (-) can be read only once");
    }
    Ok(output(args.output)?
        .inputs(args.inputs)
        .providers(args.providers)
        .processes(args.process)
        .manifests(args.manifest)
        .from_ns(args.from)
        .to_ns(args.to))
}

/// What the options about the dataset mean together.
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
        .retained(args.retained)
        .strict(args.strict))
}

fn show(bar: &mut Bar, request: &Convert, progress: Progress) {
    let path = request.inputs.get(progress.input).map_or(Path::new(""), |p| p.as_path());
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let name = match request.inputs.len() {
        0 | 1 => clean(&name),
        all => format!("{}/{all} {}", progress.input + 1, clean(&name)),
    };
    bar.show(&name, progress.position, progress.total);
}

fn text(summary: &Summary) -> String {
    let mut out = String::new();
    for input in &summary.inputs {
        one_input(&mut out, input);
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
    }
    if !input.has_losses() {
        return;
    }
    out.push_str("  LOSSES\n");
    let before = out.len();
    for p in input.problems.iter().filter(|p| p.severity > Severity::Info) {
        out.push_str(&format!("    {}\n", problem(p)));
    }
    if out.len() == before {
        out.push_str("    the recording does not reach its end mark\n");
    }
}
