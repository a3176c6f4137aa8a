//! `tracequet survived`: the fate of an object.

use std::path::PathBuf;

use clap::Args;
use tracequet::Error;
use tracequet::analyze::survived::{Fate, Step, TABLES, survived};

use super::output::{Outcome, print_result};
use super::text::{Columns, moment};
use super::{opened, values};

#[derive(Debug, Args)]
pub struct SurvivedArgs {
    /// Dataset (a directory) or recording
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// Collection: its gc_id
    #[arg(value_name = "GC", value_parser = collection)]
    pub gc: u32,
    /// Address before the collection, as 0x7f00... or in decimal
    #[arg(value_name = "ADDRESS", value_parser = values::address)]
    pub address: u64,
    /// Continue with later collections, as long as the address of the object is known
    #[arg(long)]
    pub follow: bool,
    /// Recording in a dataset of several: its trace_id
    #[arg(long, value_name = "KEY")]
    pub trace: Option<String>,
    /// Print a JSON array, one object for each collection
    #[arg(long)]
    pub json: bool,
}

/// Answers from a dataset, or from a recording that is converted for it.
pub fn run(args: &SurvivedArgs) -> anyhow::Result<Outcome> {
    let opened = opened::open(&args.input, &TABLES)?;
    let recording = opened.dataset.recording(args.trace.as_deref())?;
    match survived(&recording, args.gc, args.address, args.follow) {
        Ok(steps) => print(args, &steps, opened.losses),
        Err(error) => match u32::try_from(args.address) {
            // A low address of a small heap can be typed as a collection.
            Ok(gc) if survived(&recording, gc, args.gc.into(), false).is_ok() => {
                Err(Error::Usage(format!("{error}; {SWAPPED} {gc} is a collection, which comes before the address"))
                    .into())
            }
            _ => Err(error.into()),
        },
    }
}

/// What is said when an address stands where the collection belongs.
const SWAPPED: &str = "the arguments seem to be swapped:";

/// Reads the number of a collection.
fn collection(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| match values::number(text) {
        Ok(_) => format!("{SWAPPED} an address comes behind the number of the collection"),
        Err(_) => "expected the number of a collection, its gc_id".to_owned(),
    })
}

fn print(args: &SurvivedArgs, steps: &[Step], losses: bool) -> anyhow::Result<Outcome> {
    let text = if args.json { json(steps)? } else { text(steps) };
    Outcome::with_losses(losses).printed(print_result(&text))
}

fn json(steps: &[Step]) -> anyhow::Result<String> {
    let rows: Vec<_> = steps
        .iter()
        .map(|s| {
            serde_json::json!({
                "gc_id": s.gc_id, "generation": s.generation, "kind": s.kind, "start_ts_ns": s.start_ns,
                "address": s.address, "fate": s.fate.as_str(), "address_after": s.address_after,
                "generation_before": s.generation_before, "generation_after": s.generation_after,
                "reason": match s.fate { Fate::Unknown(why) => Some(why.text()), _ => None },
            })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&rows)? + "\n")
}

fn text(steps: &[Step]) -> String {
    let mut columns = Columns::new(&[">gc", ">collects", "kind", ">start s", ">address", "fate", ">now", "generation"]);
    let or_dash = |g: Option<u8>| g.map_or_else(|| "-".into(), |g| g.to_string());
    for s in steps {
        columns.row([
            s.gc_id.to_string(),
            or_dash(s.generation),
            s.kind.clone().unwrap_or_else(|| "-".into()),
            moment(s.start_ns),
            format!("{:#x}", s.address),
            s.fate.as_str().replace('_', " "),
            s.address_after.map_or_else(|| "-".into(), |after| format!("{after:#x}")),
            format!("{} -> {}", or_dash(s.generation_before), or_dash(s.generation_after)),
        ]);
    }
    let mut out = String::new();
    columns.print(&mut out);
    if let Some(Step { fate: Fate::Unknown(why), .. }) = steps.last() {
        out.push_str(&format!("\n  unknown: {}\n", why.text()));
    }
    out
}
