//! The program that runs in the browser's worker: pages, findings, tables and profiles of recordings, over the crates of the program for
//! terminals. It speaks WASI: files that the page lays before it, and standard output.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use tracequet::analyze::diff::{By, Options, compared};
use tracequet::analyze::findings::{Explanation, explained_tables};
use tracequet::analyze::present::{Answer, Format as Form, times};
use tracequet::analyze::profile::{Choice, Export, ProfileFormat};
use tracequet::facts::code::own::OwnCode;
use tracequet::report::{changes, page_of};
use tracequet::{Compression, Convert, DatasetLayout, Format, Keep, LIFETIMES, TemporaryDataset, convert, report};
use tracequet::{Error, Result};

const USAGE: &str = "\
expected one of
  report RECORDING...
  diff RECORDING RECORDING
  explain RECORDING...
  convert RECORDING... -o FOLDER [--format arrow]
  export RECORDING --what KIND --format FORMAT
  processes RECORDING...
with [--process NAME|PID]... [--own GLOB]... [--not-own GLOB]... [--from TIME] [--to TIME]";

fn main() -> ExitCode {
    if cfg!(target_family = "wasm") {
        // WASI has no folder for temporary files of its own.
        tempfile::env::override_temp_dir(Path::new("/tmp")).ok();
    }
    let mut out = std::io::stdout().lock();
    match Arguments::read(std::env::args().skip(1)).and_then(|arguments| arguments.run(&mut out)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// What the page asks for.
#[derive(Default)]
struct Arguments {
    command: String,
    inputs: Vec<String>,
    own: OwnCode,
    processes: Vec<String>,
    from_ns: Option<i64>,
    to_ns: Option<i64>,
    output: String,
    what: String,
    format: String,
}

impl Arguments {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Arguments> {
        let mut read = Arguments { command: words.next().unwrap_or_default(), ..Arguments::default() };
        let time = |word: &str, value: &str| {
            times::parse(value).map(Some).map_err(|expected| Error::Usage(format!("{word} {value}: {expected}")))
        };
        while let Some(word) = words.next() {
            if !word.starts_with('-') {
                read.inputs.push(word);
                continue;
            }
            let value = words.next().ok_or_else(|| Error::Usage(format!("{word} has no value; {USAGE}")))?;
            match word.as_str() {
                "--own" => read.own.own.push(value),
                "--not-own" => read.own.not_own.push(value),
                "--process" => read.processes.push(value),
                "--from" => read.from_ns = time(&word, &value)?,
                "--to" => read.to_ns = time(&word, &value)?,
                "-o" => read.output = value,
                "--what" => read.what = value,
                "--format" => read.format = value,
                _ => return Err(Error::Usage(format!("{word}; {USAGE}"))),
            }
        }
        Ok(read)
    }

    fn run(self, out: &mut dyn Write) -> Result<()> {
        match (self.command.as_str(), self.inputs.as_slice()) {
            (_, []) => Err(Error::Usage(USAGE.into())),
            ("report", _) => print(out, self.page()?.as_bytes()),
            ("diff", [base, new]) => print(out, self.changes(base, new)?.as_bytes()),
            ("explain", _) => print(out, self.findings()?.as_bytes()),
            ("convert", _) => self.tables(),
            ("export", [_]) => self.profile(out),
            ("processes", _) => print(out, self.processes()?.as_bytes()),
            _ => Err(Error::Usage(USAGE.into())),
        }
    }

    fn request(&self, inputs: &[String]) -> Convert {
        let request = Convert::default().inputs(inputs).own(self.own.clone()).processes(self.processes.clone());
        let request = request.unhashed(true);
        let request = request.from_ns(self.from_ns).to_ns(self.to_ns);
        if inputs.len() > 1 { request.layout(DatasetLayout::Hive) } else { request }
    }

    fn converted(&self, request: Convert, tables: &[&str]) -> Result<TemporaryDataset> {
        let folder = tempfile::tempdir().map_err(Error::io("temporary folder"))?;
        TemporaryDataset::convert(folder, request.tables_to_read(tables), &mut |_| {})
    }

    fn page(&self) -> Result<String> {
        let request = self.request(&self.inputs).lifetimes(LIFETIMES);
        let keep = Keep::walk(report::MAX_HEAP, None).with_ranges(LIFETIMES);
        let converted = match self.inputs.len() {
            1 => self.converted(request.keep(keep.clone()), &report::TABLES)?,
            _ => self.converted(request, &report::TABLES)?,
        };
        page_of(&converted.dataset, Path::new("recordings"), None, "", keep.take())
    }

    fn changes(&self, base: &String, new: &String) -> Result<String> {
        let side = |input: &String| {
            // The page names each side by its key.
            let request = self.request(std::slice::from_ref(input)).lifetimes(LIFETIMES).unhashed(false);
            self.converted(request, &changes::tables())
        };
        let (before, now) = (side(base)?, side(new)?);
        let datasets = [&before.dataset, &now.dataset];
        let [of_base, of_new] = datasets.map(|dataset| (dataset, [].as_slice()));
        let mut compared = compared(of_base, of_new, By::Own, Options::default(), report::MAX_HEAP)?;
        compared.name_steps([&|_| (base.clone(), None), &|_| (new.clone(), None)]);
        changes::changes(&format!("{base} and {new}"), datasets, &compared)
    }

    fn findings(&self) -> Result<String> {
        // JSON has the key of the recording, which is made of its hash.
        let request = self.request(&self.inputs).lifetimes(LIFETIMES).unhashed(false);
        let converted = self.converted(request, &explained_tables())?;
        let name = if let [name] = self.inputs.as_slice() { name } else { "recordings" };
        Ok(Explanation::of(&converted.dataset, None, &[], &|_| (name.to_owned(), None))?.written(Form::Json, 0.into()))
    }

    fn tables(&self) -> Result<()> {
        let request = self.request(&self.inputs).lifetimes(LIFETIMES).unhashed(false).output(&self.output);
        // DuckDB-WASM reads no compressed Arrow.
        let request =
            if self.format == "arrow" { request.format(Format::Arrow).compression(Compression::None) } else { request };
        convert(&request, &mut |_| {}).map(|_| ())
    }

    fn profile(&self, out: &mut dyn Write) -> Result<()> {
        let (choice, format) = (Choice::parse(&self.what)?, ProfileFormat::parse(&self.format)?);
        let tables = Export::tables(&choice, format)?;
        let converted = self.converted(self.request(&self.inputs), &tables)?;
        let export = Export::read(&converted.dataset.recording(None)?, &choice, format)?;
        if export.is_empty() {
            return Err(Error::Usage(format!("the recording has no {} with call stacks", self.what)));
        }
        // With a buffer: each write goes through the page's script.
        let mut out = std::io::BufWriter::with_capacity(1 << 20, out);
        export.write(false, &mut out).and_then(|()| out.flush()).map_err(Error::io("the profile"))
    }

    /// The processes that can be chosen, a line for each: its number and its name.
    fn processes(&self) -> Result<String> {
        let converted = self.converted(self.request(&self.inputs), &["process"])?;
        let mut lines = String::new();
        for recording in converted.dataset.each_recording() {
            recording.each_recorded::<Process<'_>>(|row| {
                lines += &format!("{} {}\n", row.process_id, row.name);
            })?;
        }
        Ok(lines)
    }
}

tracequet::dataset::row! {
    struct Process of process { process_id, name }
}

fn print(out: &mut dyn Write, text: &[u8]) -> Result<()> {
    out.write_all(text).and_then(|()| out.flush()).map_err(Error::io("standard output"))
}
