//! `tracequet cohorts`: how many of the bytes of each collection are alive after each later one.

use std::collections::{BTreeMap, HashMap};

use tracequet::analyze::cohort::{CohortRow, TABLES, UNKNOWN_BIRTH, cohorts};
use tracequet::analyze::present::Format;
use tracequet::analyze::present::units::size;

use super::prelude::*;

/// Examples of the command line.
pub const EXAMPLES: &str = "\
Examples:
  tracequet cohorts app.nettrace
  tracequet cohorts app --all
  tracequet cohorts app --format csv > gc_cohort.csv
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
    #[command(flatten)]
    pub asked: AskedArgs,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// Answers from a dataset, or from a recording that is converted for it.
pub fn run(args: &CohortsArgs) -> anyhow::Result<Outcome> {
    let opened = opened::open(&args.input, &TABLES, &args.asked, args.asked.request())?;
    let recording = opened.dataset.recording(args.asked.trace())?;
    let mut answer =
        Cohorts { all: args.all, curves: Curves::default(), rows: Table::new("cohorts", &ROW.map(Column::raw)) };
    // Rows are only held for programs: a long recording has millions.
    let is_for_people = matches!(args.format.format(), Format::Text | Format::Markdown);
    cohorts(&recording, |gc| match is_for_people {
        true => answer.curves.add(gc),
        false => gc.iter().for_each(|row| answer.rows.row(cells(row))),
    })?;
    args.format.print(&answer, Outcome::with_losses(opened.losses))
}

/// A row for each cohort, collection and generation.
const ROW: [&str; 5] = ["born_gc_id", "gc_id", "generation", "alive_bytes", "unknown_bytes"];

fn cells(row: &CohortRow) -> [Cell; 5] {
    let CohortRow { born_gc_id, gc_id, generation, alive_bytes, unknown_bytes, .. } = *row;
    let id = |id: u32| Cell::id(u64::from(id));
    let generation = Cell::id(generation.map(u64::from));
    [id(born_gc_id), id(gc_id), generation, Cell::size(alive_bytes), Cell::size(unknown_bytes)]
}

struct Cohorts {
    all: bool,
    curves: Curves,
    rows: Table,
}

impl Answer for Cohorts {
    fn document(&self) -> Document {
        self.curves.document(self.all)
    }

    fn rows(&self) -> Table {
        self.rows.clone()
    }
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

    /// The bytes of a cohort that are alive at an age; `None` when the recording ends before.
    fn at(&self, born: u32, age: usize) -> Option<(u64, u64)> {
        let place = self.places.get(&born)?.checked_add(age).filter(|place| *place < self.count)?;
        Some(self.cohorts.get(&born)?.get(&place).copied().unwrap_or_default())
    }

    fn document(&self, all: bool) -> Document {
        let mut born: Vec<u32> = self.cohorts.keys().copied().filter(|born| *born != UNKNOWN_BIRTH).collect();
        let mut out = Document::default();
        out.line("Bytes allocated before a collection, and how many of them are alive after it and after later ones");
        out.gap();
        let heads =
            ["after it", "+1", "+2", "+5", "+10", "+20", "+50", "at the end", "unknown"].map(|name| numbers(name, ""));
        let mut table = Table::new("cohorts", &[&[words("born before", "")], &heads[..]].concat());
        let rest = if all { 0 } else { born.len().saturating_sub(SHOWN) };
        if rest > 0 {
            born.sort_by_key(|born| std::cmp::Reverse(self.at(*born, 0)));
            born.truncate(SHOWN);
            born.sort_unstable();
        }
        for born in &born {
            let ages = AGES.map(|age| Cell::size(self.at(*born, age).map(|(alive, _)| alive)));
            let (end, unknown) = self.last(*born);
            let unknown = Cell::size(Some(unknown).filter(|unknown| *unknown > 0));
            let name = Cell::words(format!("gc {born}"));
            table.row([&[name], &ages[..], &[Cell::size(end), unknown]].concat());
        }
        let shares = AGES.map(|age| Cell::share(self.share(age)));
        table.row([&[Cell::words("in all")], &shares[..], &[Cell::Missing, Cell::Missing]].concat());
        out.table(table);
        if rest > 0 {
            out.note(format!("and {rest} smaller ones (--all)"));
        }
        let (unborn, unknown) = self.last(UNKNOWN_BIRTH);
        if unborn > 0 || unknown > 0 {
            let text = "at the end is as old as the recording, or older, or of unknown age";
            out.note(format!("{} {text}", size(unborn.saturating_add(unknown))));
        }
        out
    }

    /// The bytes of a cohort at the end.
    fn last(&self, born: u32) -> (u64, u64) {
        let place = self.count.checked_sub(1);
        let sums = place.and_then(|place| self.cohorts.get(&born)?.get(&place));
        sums.copied().unwrap_or_default()
    }

    /// The share that is alive at an age, of all cohorts that the recording follows so long.
    fn share(&self, age: usize) -> Option<f64> {
        let (mut first, mut then) = (0u64, 0u64);
        for born in self.cohorts.keys().filter(|born| **born != UNKNOWN_BIRTH) {
            if let (Some((whole, _)), Some((left, _))) = (self.at(*born, 0), self.at(*born, age)) {
                (first, then) = (first.saturating_add(whole), then.saturating_add(left));
            }
        }
        Some(then as f64 / first as f64).filter(|_| first > 0)
    }
}
