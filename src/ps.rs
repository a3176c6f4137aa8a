//! `tracequet ps`: the .NET processes that can be recorded, and those that cannot be reached.

use std::io::IsTerminal;

use serde_json::json;
use tracequet::trace::source::diagnostics::port::{Candidate, Target, candidates, process_info};

use super::live::args::PsArgs;
use super::live::process::{program_name, trouble};
use super::output::{Outcome, print_result};
use super::terminal;
use super::text::{Columns, clean};

/// One line of the list.
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
    print_result(&if args.json { as_json(&rows)? } else { as_text(&rows) })?;
    Ok(Outcome::Whole)
}

fn row(candidate: Candidate) -> Row {
    let mut row = Row {
        process: candidate.process,
        name: candidate.name,
        user: candidate.user,
        version: String::new(),
        command_line: candidate.command_line,
        port: None,
        trouble: None,
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
                // It can be recorded, but does not say its version: before .NET 5.
                Err(error) if error.is_unknown_command() => row.version = "3.x".into(),
                // Nor does one whose arguments are longer than an answer may be.
                Err(error) if error.is_refusal() => {}
                Err(error) => row.trouble = Some(trouble(&error)),
            }
        }
    }
    row
}

fn as_text(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "no .NET process was found\n".into();
    }
    let mut columns = Columns::new(&["pid", "name", "user", "runtime", "port", "command"]);
    for row in rows {
        let port = match (&row.trouble, &row.port) {
            (Some(trouble), _) => format!("({trouble})"),
            (None, port) => port.clone().unwrap_or_default(),
        };
        columns.row([
            row.process.to_string(),
            clean(&row.name),
            clean(&row.user),
            clean(&row.version),
            clean(&port),
            clean(&row.command_line),
        ]);
    }
    let mut text = String::new();
    // A pipe gets every line whole.
    let is_shown = std::io::stdout().is_terminal() || std::env::var_os("COLUMNS").is_some();
    columns.fitting(&[5, 4, 1], 0).print_within(if is_shown { terminal::width() } else { usize::MAX }, &mut text);
    text
}

fn as_json(rows: &[Row]) -> anyhow::Result<String> {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            json!({
                "process_id": row.process, "name": text(&row.name), "user": text(&row.user),
                "runtime_version": text(&row.version), "command_line": text(&row.command_line),
                "port": row.port, "problem": row.trouble,
            })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&rows)? + "\n")
}
