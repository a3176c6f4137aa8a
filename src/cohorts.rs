//! `tracequet cohorts`: how many of the bytes of each collection are alive after each later one.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tracequet::analyze::cohort::{CohortRow, TABLES, UNKNOWN_BIRTH, cohorts};

use super::opened;
use super::output::{Outcome, print_result};
use super::text::{Columns, size};

/// Examples of the command line.
pub const EXAMPLES: &str = "\
Examples:
  tracequet cohorts app.nettrace
  tracequet cohorts app --all
  tracequet cohorts app --csv > gc_cohort.csv
  duckdb -c \"SELECT gc_id - born_gc_id AS age, sum(alive_bytes) FROM 'gc_cohort.csv' GROUP BY ALL ORDER BY age\"";

/// Collections after which bytes are shown.
const AGES: [usize; 7] = [0, 1, 2, 5, 10, 20, 50];

/// Cohorts that are shown without --all.
const SHOWN: usize = 25;

#[derive(Debug, Args)]
pub struct CohortsArgs {
    /// Dataset (a directory) or recording
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// All cohorts, not only the largest
    #[arg(long)]
    pub all: bool,
    /// Recording in a dataset of several: its trace_id
    #[arg(long, value_name = "KEY")]
    pub trace: Option<String>,
    /// Print a JSON array with a row for each cohort, collection and generation
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print the same rows as CSV: born_gc_id, gc_id, generation, alive_bytes, unknown_bytes
    #[arg(long)]
    pub csv: bool,
}

/// Answers from a dataset, or from a recording that is converted for it.
pub fn run(args: &CohortsArgs) -> anyhow::Result<Outcome> {
    let opened = opened::open(&args.input, &TABLES)?;
    let recording = opened.dataset.recording(args.trace.as_deref())?;
    let text = if args.json {
        let mut rows = Vec::new();
        cohorts(&recording, |gc| rows.extend(gc.iter().map(row_json)))?;
        serde_json::to_string_pretty(&rows)? + "\n"
    } else if args.csv {
        let mut out = String::from("born_gc_id,gc_id,generation,alive_bytes,unknown_bytes\n");
        cohorts(&recording, |gc| gc.iter().for_each(|row| csv(row, &mut out)))?;
        out
    } else {
        let mut curves = Curves::default();
        cohorts(&recording, |gc| curves.add(gc))?;
        curves.text(args.all)
    };
    Outcome::with_losses(opened.losses).printed(print_result(&text))
}

fn row_json(row: &CohortRow) -> serde_json::Value {
    json!({
        "born_gc_id": row.born_gc_id, "gc_id": row.gc_id, "generation": row.generation,
        "alive_bytes": row.alive_bytes, "unknown_bytes": row.unknown_bytes,
    })
}

fn csv(row: &CohortRow, out: &mut String) {
    let generation = row.generation.map(|generation| generation.to_string()).unwrap_or_default();
    let CohortRow { born_gc_id, gc_id, alive_bytes, unknown_bytes, .. } = row;
    writeln!(out, "{born_gc_id},{gc_id},{generation},{alive_bytes},{unknown_bytes}").ok();
}

/// Alive and unknown bytes of each cohort, over the collections.
#[derive(Default)]
struct Curves {
    /// Collections so far.
    count: usize,
    /// Place of each collection in the order of their ends.
    places: HashMap<u32, usize>,
    /// By cohort, then by place.
    cohorts: BTreeMap<u32, BTreeMap<usize, (u64, u64)>>,
}

impl Curves {
    fn add(&mut self, rows: &[CohortRow]) {
        for row in rows {
            self.places.insert(row.gc_id, self.count);
            let sums = self.cohorts.entry(row.born_gc_id).or_default().entry(self.count).or_default();
            sums.0 = sums.0.saturating_add(row.alive_bytes);
            sums.1 = sums.1.saturating_add(row.unknown_bytes);
        }
        self.count += 1;
    }

    /// What is alive of a cohort at an age; `None` when the recording ends before.
    fn at(&self, born: u32, age: usize) -> Option<(u64, u64)> {
        let place = self.places.get(&born)?.checked_add(age).filter(|place| *place < self.count)?;
        Some(self.cohorts.get(&born)?.get(&place).copied().unwrap_or_default())
    }

    fn text(&self, all: bool) -> String {
        let mut born: Vec<u32> = self.cohorts.keys().copied().filter(|born| *born != UNKNOWN_BIRTH).collect();
        let mut out = String::from(
            "Bytes allocated before a collection, and how many of them are alive after it and after later ones\n\n",
        );
        let mut columns = Columns::new(&[
            ">born before",
            ">after it",
            ">+1",
            ">+2",
            ">+5",
            ">+10",
            ">+20",
            ">+50",
            ">at the end",
            ">unknown",
        ]);
        let rest = if all { 0 } else { born.len().saturating_sub(SHOWN) };
        if rest > 0 {
            born.sort_by_key(|born| std::cmp::Reverse(self.at(*born, 0)));
            born.truncate(SHOWN);
            born.sort_unstable();
        }
        let cell = |sums: Option<(u64, u64)>| sums.map_or_else(|| "-".into(), |(alive, _)| size(alive));
        for born in &born {
            let [a, b, c, d, e, f, g] = AGES.map(|age| cell(self.at(*born, age)));
            let end = self.last(*born);
            let unknown = if end.1 > 0 { size(end.1) } else { String::new() };
            columns.row([format!("gc {born}"), a, b, c, d, e, f, g, size(end.0), unknown]);
        }
        let [a, b, c, d, e, f, g] = AGES.map(|age| self.share(age));
        columns.row(["in all".into(), a, b, c, d, e, f, g, String::new(), String::new()]);
        columns.print(&mut out);
        if rest > 0 {
            writeln!(out, "  and {rest} smaller ones (--all)").ok();
        }
        let (unborn, unknown) = self.last(UNKNOWN_BIRTH);
        if unborn > 0 || unknown > 0 {
            let text = "at the end is as old as the recording, or older, or of unknown age";
            writeln!(out, "  {} {text}", size(unborn.saturating_add(unknown))).ok();
        }
        out
    }

    /// What is left of a cohort at the end.
    fn last(&self, born: u32) -> (u64, u64) {
        let place = self.count.checked_sub(1);
        let sums = place.and_then(|place| self.cohorts.get(&born)?.get(&place));
        sums.copied().unwrap_or_default()
    }

    /// The share that is alive at an age, of all cohorts that the recording follows so long.
    fn share(&self, age: usize) -> String {
        let (mut first, mut then) = (0u64, 0u64);
        for born in self.cohorts.keys().filter(|born| **born != UNKNOWN_BIRTH) {
            if let (Some((whole, _)), Some((left, _))) = (self.at(*born, 0), self.at(*born, age)) {
                (first, then) = (first.saturating_add(whole), then.saturating_add(left));
            }
        }
        if first == 0 { "-".into() } else { format!("{:.0} %", then as f64 * 100.0 / first as f64) }
    }
}
