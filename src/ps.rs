//! `tracequet ps`: the .NET processes that can be recorded, and those that cannot be reached.

use tracequet::trace::source::diagnostics::port::{Candidate, Target, candidates, process_info};

use super::live::args::PsArgs;
use super::live::process::{program_name, trouble};
use super::prelude::*;

/// One line of the list.
#[derive(Default)]
struct Row {
    process: u32,
    name: String,
    user: String,
    version: String,
    command_line: String,
    port: Option<String>,
    trouble: Option<String>,
}

/// Prints the list.
pub fn run(args: &PsArgs) -> anyhow::Result<Outcome> {
    // A process that does not answer delays no other.
    let ask = |candidate| std::thread::Builder::new().spawn(move || row(candidate));
    let asking: Vec<_> = candidates()
        .map_err(tracequet::trace::error::Error::from)?
        .into_iter()
        .map(ask)
        .collect::<std::io::Result<_>>()
        .map_err(tracequet::trace::error::Error::io("starting a thread"))?;
    let rows: Vec<Row> = asking.into_iter().filter_map(|thread| thread.join().ok()).collect();
    args.format.print(&Processes(rows), Outcome::Whole)
}

fn row(candidate: Candidate) -> Row {
    let mut row = Row {
        process: candidate.process,
        name: candidate.name,
        user: candidate.user,
        command_line: candidate.command_line,
        ..Row::default()
    };
    match candidate.port {
        Err(error) => row.trouble = Some(trouble(&error)),
        Ok(port) => {
            row.port = Some(port.to_string());
            match process_info(&Target::Port(port)) {
                Ok(info) => {
                    row.name = program_name(&info);
                    row.version = info.runtime_version;
                    if row.command_line.is_empty() {
                        row.command_line = info.command_line;
                    }
                }
                // A runtime before .NET 5 can be recorded, but does not say its version.
                Err(error) if error.is_unknown_command() => row.version = "3.x".into(),
                // Nor does one whose arguments are longer than an answer may be.
                Err(error) if error.is_refusal() => {}
                Err(error) => row.trouble = Some(trouble(&error)),
            }
        }
    }
    row
}

/// The list.
struct Processes(Vec<Row>);

impl Answer for Processes {
    fn document(&self) -> Document {
        let mut out = Document::default();
        match self.0.is_empty() {
            true => out.line("no .NET process was found"),
            false => out.table(self.rows()),
        }
        out
    }

    fn rows(&self) -> Table {
        table!("processes", &self.0, |row| {
            let port = Cell::optional(row.port.as_deref());
            let shown = row.trouble.as_ref().map_or_else(|| port.clone(), |why| Cell::text(&format!("({why})")));
        } {
            words("pid", "").key("process_id") => Cell::id(u64::from(row.process)),
            words("name", "").key("name") => Cell::text(&row.name),
            words("user", "").key("user") => Cell::text(&row.user),
            words("runtime", "").key("runtime_version") => Cell::text(&row.version),
            words("port", "").key("port") => port.shown_as(shown),
            Column::raw("problem") => Cell::optional(row.trouble.as_deref()),
            words("command", "").key("command_line") => Cell::sentence(&row.command_line),
        })
    }
}
