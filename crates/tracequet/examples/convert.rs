//! Converts recordings into a dataset and says what came of each: `cargo run -p tracequet --example convert IN... OUT`.

use std::error::Error;
use std::path::PathBuf;

use tracequet::trace::error::Severity;
use tracequet::{Convert, convert};

fn main() -> Result<(), Box<dyn Error>> {
    run(std::env::args_os().skip(1).map(PathBuf::from).collect()).map(|_| ())
}

/// Converts; returns the number of rows of all tables.
pub fn run(mut arguments: Vec<PathBuf>) -> Result<u64, Box<dyn Error>> {
    let output = arguments.pop().ok_or("expected IN... OUT")?;
    let request = Convert::new(arguments, output).tables(["gc", "gc_pause", "gc_moved_range", "event_type"]);
    let summary = convert(&request, &mut |progress| eprint!("\r{} bytes", progress.position))?;
    eprintln!();
    for input in &summary.inputs {
        println!("{}: {} events, {} collections", input.path.display(), input.events, input.collections);
        // Losses and damage are also rows of the table `diagnostic`.
        for problem in input.problems.iter().filter(|problem| problem.severity > Severity::Info) {
            println!("  {} at byte {}: {}", problem.code, problem.offset, problem.message);
        }
    }
    for table in &summary.tables {
        println!("{:<16} {:>8} rows {:>8} bytes", table.name, table.rows, table.bytes);
    }
    Ok(summary.tables.iter().map(|table| table.rows).sum())
}
