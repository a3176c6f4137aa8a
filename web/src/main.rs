//! The program that runs in the browser's worker: `report`, `convert` and `export` of recordings, over the crates of the program for
//! terminals. It speaks WASI: files that the page lays before it, and standard output.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use tracequet::analyze::profile::perfetto::{self, Timeline};
use tracequet::analyze::profile::{Choice, ProfileFormat, What, read_chosen};
use tracequet::facts::code::own::OwnCode;
use tracequet::report::page_of;
use tracequet::{Convert, DatasetLayout, KeepWalk, LIFETIMES, TemporaryDataset, convert, report};
use tracequet::{Error, Result};

const USAGE: &str = "\
expected one of
  report RECORDING... [--own GLOB]... [--not-own GLOB]...
  convert RECORDING... -o FOLDER [--own GLOB]... [--not-own GLOB]...
  export RECORDING --what KIND --format FORMAT [--own GLOB]... [--not-own GLOB]...";

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
    output: String,
    what: String,
    format: String,
}

impl Arguments {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Arguments> {
        let mut read = Arguments { command: words.next().unwrap_or_default(), ..Arguments::default() };
        while let Some(word) = words.next() {
            if !word.starts_with('-') {
                read.inputs.push(word);
                continue;
            }
            let value = words.next().ok_or_else(|| Error::Usage(format!("{word} has no value; {USAGE}")))?;
            match word.as_str() {
                "--own" => read.own.own.push(value),
                "--not-own" => read.own.not_own.push(value),
                "-o" => read.output = value,
                "--what" => read.what = value,
                "--format" => read.format = value,
                _ => return Err(Error::Usage(format!("{word}; {USAGE}"))),
            }
        }
        Ok(read)
    }

    fn run(self, out: &mut dyn Write) -> Result<()> {
        if self.inputs.is_empty() {
            return Err(Error::Usage(USAGE.into()));
        }
        match self.command.as_str() {
            "report" => print(out, |out| out.write_all(self.page()?.as_bytes()).map_err(Error::io("the page"))),
            "convert" => {
                let request = self.request().lifetimes(LIFETIMES).output(&self.output);
                convert(&request, &mut |_| {}).map(|_| ())
            }
            "export" => self.export(out),
            _ => Err(Error::Usage(USAGE.into())),
        }
    }

    fn request(&self) -> Convert {
        let request = Convert::default().inputs(&self.inputs).own(self.own.clone());
        if self.inputs.len() > 1 { request.layout(DatasetLayout::Hive) } else { request }
    }

    fn converted(&self, request: Convert, tables: &[&str]) -> Result<TemporaryDataset> {
        let folder = tempfile::tempdir().map_err(Error::io("temporary folder"))?;
        TemporaryDataset::convert(folder, request.tables_to_read(tables), &mut |_| {})
    }

    fn page(&self) -> Result<String> {
        let request = self.request().lifetimes(LIFETIMES);
        let walk = KeepWalk::new(report::MAX_HEAP, None);
        let converted = match self.inputs.len() {
            1 => self.converted(request.keep_walk(walk.clone()), &report::TABLES)?,
            _ => self.converted(request, &report::TABLES)?,
        };
        page_of(&converted.dataset, Path::new("recordings"), None, "", walk.take())
    }

    fn export(&self, out: &mut dyn Write) -> Result<()> {
        let what = match self.what.as_str() {
            "cpu" => What::Cpu,
            "allocation" => What::Allocation,
            "wait" => What::Wait,
            "contention" => What::Contention,
            "exception" => What::Exception,
            other => return Err(Error::Usage(format!("--what {other}; {USAGE}"))),
        };
        let format = match self.format.as_str() {
            "speedscope" => Some(ProfileFormat::Speedscope),
            "folded" => Some(ProfileFormat::Folded),
            "pprof" => Some(ProfileFormat::Pprof),
            "firefox" => Some(ProfileFormat::Firefox),
            "perfetto" => None,
            other => return Err(Error::Usage(format!("--format {other}; {USAGE}"))),
        };
        let choice = Choice::of(if format.is_some() { what } else { What::Cpu });
        let mut tables = choice.tables();
        tables.extend(format.is_none().then_some(perfetto::TABLES).into_iter().flatten());
        let converted = self.converted(self.request().unhashed(true), &tables)?;
        let recording = converted.dataset.recording(None)?;
        let profile = read_chosen(&recording, &choice)?;
        let timeline = format.is_none().then(|| Timeline::read(&recording)).transpose()?;
        if profile.threads.is_empty() && timeline.as_ref().is_none_or(Timeline::is_empty) {
            return Err(Error::Usage(format!("the recording has no {} with call stacks", self.what)));
        }
        match (format, timeline) {
            (Some(format), _) => print(out, |out| profile.write(format, false, out).map_err(Error::io("the profile"))),
            (None, Some(timeline)) => print(out, |out| timeline.write(&profile, out).map_err(Error::io("the profile"))),
            (None, None) => Ok(()),
        }
    }
}

/// Prints with a buffer: each write goes through the page's script.
fn print(out: &mut dyn Write, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut out = std::io::BufWriter::with_capacity(1 << 20, out);
    write(&mut out)?;
    out.flush().map_err(Error::io("standard output"))
}
