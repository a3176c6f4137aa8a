//! What a rule is, what it looks at, and what it finds.

use super::picture::{Picture, Process};
use super::verdict::Verdict;
use super::words;
use crate::present::units::count;
use crate::samples::{least_part, least_share};

/// Commands, each with the kind of events that it needs, as `schemas/metrics.toml` calls them; `""`: none. The first one whose
/// events were recorded is printed. `IN` stands for the recording or dataset, `PID` for the process, `TYPE` for the subject.
pub(super) type Closer = &'static [(&'static str, &'static str)];

/// The page has the rows behind each finding.
pub(super) const PAGE: (&str, &str) = ("", "tracequet report IN -o report.html");

/// A rule: what stands in its file.
#[derive(Debug)]
pub struct Rule {
    /// Identifier, as in the table `finding`.
    pub name: &'static str,
    /// What is wrong, as the heading of a finding.
    pub title: &'static str,
    /// What is wrong and why it matters, in a sentence or two.
    pub about: &'static str,
    /// What is measured, and from how many rows on there is a verdict.
    pub measure: &'static str,
    /// Unit of the figure: `ns`, `bytes`, `count`, `share` (1 is all) or `count/s`.
    pub unit: &'static str,
    /// From this figure on it is of interest; 0: any.
    pub info: f64,
    /// From this figure on it is a warning.
    pub warning: f64,
    /// Where the limits are from.
    pub source: &'static str,
    /// The lists of events of `schemas/metrics.toml`, of which one has to be recorded; with none it can always be asked.
    pub needs: &'static [&'static str],
    /// How these are recorded: a name of `collect --for`.
    pub record: &'static str,
    /// What to change, in terms of code.
    pub advice: &'static str,
    /// What shows more.
    pub(super) closer: Closer,
    /// The rules that find what this may come from, the likeliest first.
    pub causes: &'static [&'static str],
    /// Whether it is about the recording, and not about each process.
    pub of_recording: bool,
    /// A list of events of `schemas/metrics.toml`: where they were recorded, the way of recording makes what the rule would find.
    pub(super) made_by: Option<&'static str>,
    /// Where the page shows the rows.
    pub evidence: Evidence,
    /// SQL of the rows. `{recording}` and `{process}` stand for their conditions, `{process of g}` for that of the table `g`.
    /// Empty where it depends on what is found.
    pub(super) query: &'static str,
    /// Recordings with and without it.
    pub example: Example,
    /// Makes a recording with its defect: how much of it, from 0 (none) to 1 (more than the limit of a warning).
    #[cfg(test)]
    pub(super) story: fn(&mut super::tests::story::Made, f64),
    pub(super) judge: fn(&Look<'_>) -> Judged,
}

/// Where the page shows the rows behind a finding.
#[derive(Debug)]
pub struct Evidence {
    /// Sections of the page; the first one that a page has.
    pub sections: &'static [&'static str],
    /// The column that its table is sorted by.
    pub sort: Option<&'static str>,
}

/// Recordings of `samples/` that a rule is held against, by their names without an ending.
#[derive(Debug)]
pub struct Example {
    /// A program with the defect.
    pub with: &'static str,
    /// The same work without it.
    pub without: &'static str,
    /// The least verdict with it; the verdict without it is a lesser one.
    pub verdict: Verdict,
    /// The own method that is named.
    pub own_method: Option<&'static str>,
    /// What the subject begins with.
    pub subject: Option<&'static str>,
    /// A recording without its events; `None` of a rule that needs none.
    pub unrecorded: Option<&'static str>,
}

impl Example {
    pub(super) const fn of(with: &'static str, without: &'static str, verdict: Verdict) -> Example {
        Example { with, without, verdict, own_method: None, subject: None, unrecorded: Some("habits/formulas") }
    }

    pub(super) const fn by(self, own_method: &'static str) -> Example {
        Example { own_method: Some(own_method), ..self }
    }

    pub(super) const fn about(self, subject: &'static str) -> Example {
        Example { subject: Some(subject), ..self }
    }
}

impl Rule {
    /// What most rules have.
    pub(super) const DEFAULT: Rule = Rule {
        name: "",
        title: "",
        about: "",
        measure: "",
        unit: "",
        info: 0.0,
        warning: 0.0,
        source: "limits tracequet's own.",
        needs: &[],
        record: "",
        advice: "",
        closer: &[PAGE],
        causes: &[],
        of_recording: false,
        made_by: None,
        evidence: Evidence { sections: &[], sort: None },
        query: "",
        example: Example::of("", "", Verdict::Warning),
        #[cfg(test)]
        story: |_, _| (),
        judge: |_| Judged::TooLittle(Lack::default()),
    };

    /// A limit in its unit, as people write it: `5 %`, `200 ms`, `1,000/s`, `any`.
    pub fn limit(&self, limit: f64) -> String {
        match (self.unit, limit) {
            (_, 0.0) => "any".to_owned(),
            ("share", _) => format!("{} %", (limit * 1000.0).round() / 10.0),
            ("ns", _) if limit < 1e9 => format!("{} ms", limit / 1e6),
            ("ns", _) => format!("{} s", limit / 1e9),
            ("count/s", _) if limit >= 1000.0 => format!("{},{:03}/s", (limit / 1e3).floor(), limit % 1e3),
            ("count/s", _) => format!("{limit}/s"),
            _ => limit.to_string(),
        }
    }

    /// The commands that show more, the best first: one is printed, by what was recorded. `IN`, `PID` and `TYPE` stand for the
    /// recording, the process and the subject.
    pub fn closer(&self) -> impl Iterator<Item = &'static str> {
        self.closer.iter().map(|(_, command)| *command)
    }
}

/// What a rule looks at.
pub(super) struct Look<'p> {
    pub(super) picture: &'p Picture,
    pub(super) process: &'p Process,
    pub(super) id: u64,
    /// The key of the recording in SQL.
    pub(super) trace: &'p str,
    /// The condition of SQL for the rows of the recording, and of the process.
    pub(super) of_trace: String,
    pub(super) of_process: String,
}

/// What a rule found.
pub(super) enum Judged {
    /// Why there is no verdict.
    TooLittle(Lack),
    /// A figure.
    Figure(Box<Figure>),
}

/// What there is too little of for a verdict.
#[derive(Default)]
pub(super) struct Lack {
    /// A sentence with the least that a verdict needs, and with the amount in the recording.
    pub(super) why: String,
    /// How many times as long a recording has enough; 0 where a longer one does not help.
    pub(super) times: f64,
}

impl Lack {
    /// Time, and what else it may be that a shorter one shows.
    pub(super) fn time(there_ns: f64, least_ns: f64, why: &str) -> Lack {
        let [least, there] = [least_ns, there_ns].map(words::time);
        Lack { why: format!("{least} are needed, and there are {there}: {why}."), times: least_ns / there_ns.max(1e8) }
    }

    /// Rows of a kind.
    pub(super) fn rows(there: u64, least: u64, of: &str) -> Lack {
        let why = format!("{} {of} are needed, and there are {}.", count(least), count(there));
        Lack { why, times: least as f64 / there.max(1) as f64 }
    }
}

/// What a figure of fewer rows than are asked for comes to at the least.
pub(super) struct Few {
    /// The end of the interval that has the figure of a long recording in it with a certainty of 95 %.
    pub(super) least: f64,
    pub(super) lack: Lack,
}

impl Few {
    /// A share of `rows`. None where these are enough.
    pub(super) fn share(share: f64, rows: u64, enough: u64, of: &str) -> Option<Few> {
        (rows < enough).then(|| Few { least: least_share(share, rows), lack: Lack::rows(rows, enough, of) })
    }

    /// A sum over `rows` that come by chance. None where these are enough.
    pub(super) fn sum(sum: f64, rows: u64, enough: u64, of: &str) -> Option<Few> {
        (rows < enough).then(|| Few { least: sum * least_part(rows), lack: Lack::rows(rows, enough, of) })
    }
}

/// A figure with what belongs to it.
#[derive(Default)]
pub(super) struct Figure {
    pub(super) value: f64,
    /// Rows that it was made of.
    pub(super) rows: u64,
    /// The score is no higher than this: a large share of next to nothing is no matter.
    pub(super) at_most: Option<f64>,
    /// Of few rows: the score is that of the least, and where that is of no interest, there is no verdict.
    pub(super) few: Option<Few>,
    pub(super) subject: Option<String>,
    pub(super) own_method: Option<String>,
    pub(super) sentence: String,
    /// SQL of the rows, of a rule whose query depends on what is found.
    pub(super) evidence: String,
}

impl From<Figure> for Judged {
    fn from(figure: Figure) -> Judged {
        Judged::Figure(Box::new(figure))
    }
}

impl Judged {
    /// A lack that a longer recording does not mend.
    pub(super) fn too_little(why: impl Into<String>) -> Judged {
        Judged::TooLittle(Lack { why: why.into(), times: 0.0 })
    }

    /// No row of a kind, of which a longer recording may have some.
    pub(super) fn none(of: &str) -> Judged {
        Judged::TooLittle(Lack { why: format!("There is no {of}."), times: 10.0 })
    }

    /// There are fewer rows than are needed for a verdict.
    pub(super) fn too_few(there: u64, least: u64, of: &str) -> Judged {
        Judged::TooLittle(Lack::rows(there, least, of))
    }
}

impl Look<'_> {
    /// The condition for the rows of the process in a table of this name in the query.
    pub(super) fn of(&self, table: &str) -> String {
        match self.id {
            0 => format!("{table}.trace_id = {}", self.trace),
            id => format!("{table}.trace_id = {} AND {table}.process_id = {id}", self.trace),
        }
    }

    /// A query of a rule, for the recording or the process.
    pub(super) fn sql(&self, query: &str) -> String {
        let sql = query.replace("{recording}", &self.of_trace).replace("{process}", &self.of_process);
        let table = sql.split_once("{process of ").and_then(|(_, rest)| rest.split_once('}')).map(|(table, _)| table);
        match table {
            Some(table) => sql.replace(&format!("{{process of {table}}}"), &self.of(table)),
            None => sql,
        }
    }

    /// A collection as the runtime numbers it: `GC #12`.
    pub(super) fn gc(&self, gc_id: u32) -> String {
        let number = self.picture.collections.of(self.id).find(|gc| gc.id == gc_id).map_or(0, |gc| gc.number);
        format!("GC #{}", if number > 0 { number } else { gc_id })
    }

    /// How long was recorded.
    pub(super) fn recording_ns(&self) -> i64 {
        self.picture.recording_ns
    }

    /// Threads that ran or wanted to, on average.
    pub(super) fn threads_running(&self) -> f64 {
        self.threads(self.process.running.values().sum::<u64>() as f64)
    }

    /// Threads for which this number of samples stands, on average.
    pub(super) fn threads(&self, samples: f64) -> f64 {
        match self.process.is_sampled_by_runtime {
            true => samples / (self.process.rounds() as f64).max(1.0),
            false => samples * self.picture.sampling_ns as f64 / (self.recording_ns() as f64).max(1.0),
        }
    }

    /// The recording is shorter than a rule needs.
    pub(super) fn too_short(&self, least_ns: f64, why: &str) -> Lack {
        Lack::time(self.recording_ns() as f64, least_ns, why)
    }

    /// The time that the worst half minute is looked for in, as a part of a sentence.
    pub(super) fn worst(&self) -> &'static str {
        if self.seconds() > 30.0 { "the worst half minute" } else { "the time" }
    }

    /// How long was recorded, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.picture.recording_ns as f64 / 1e9
    }

    /// How much of an amount of the whole recording there is in a second.
    pub(super) fn per_second(&self, amount: f64) -> f64 {
        amount / self.seconds().max(1e-9)
    }
}
