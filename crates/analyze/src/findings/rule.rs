//! What a rule is, what it looks at, and what it finds.

use super::picture::{Picture, Process};

/// A rule.
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    /// From this figure on it is of interest; 0: any.
    pub(super) info: f64,
    /// From this figure on it is a warning.
    pub(super) warning: f64,
    /// The lists of events of `schemas/metrics.toml`, of which one has to be recorded; with none it can always be asked.
    pub(super) needs: &'static [&'static str],
    /// How these are recorded: a name of `collect --for`.
    pub(super) record: &'static str,
    /// What shows more.
    pub(super) next: &'static str,
    /// The rules that find what this may come from, the likeliest first.
    pub(super) causes: &'static [&'static str],
    /// Whether it is about the recording, and not about each process.
    pub(super) of_recording: bool,
    pub(super) judge: fn(&Look<'_>) -> Judged,
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
    TooLittle(String),
    /// A figure.
    Figure(Box<Figure>),
}

/// A figure with what belongs to it.
#[derive(Default)]
pub(super) struct Figure {
    pub(super) value: f64,
    /// Rows that it was made of.
    pub(super) rows: u64,
    /// The score is no higher than this: a large share of next to nothing is no matter.
    pub(super) at_most: Option<f64>,
    pub(super) subject: Option<String>,
    pub(super) own_method: Option<String>,
    pub(super) sentence: String,
    pub(super) evidence: String,
}

impl From<Figure> for Judged {
    fn from(figure: Figure) -> Judged {
        Judged::Figure(Box::new(figure))
    }
}

impl Judged {
    pub(super) fn too_little(why: impl Into<String>) -> Judged {
        Judged::TooLittle(why.into())
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

    /// How long was recorded.
    pub(super) fn recording_ns(&self) -> i64 {
        self.picture.recording_ns
    }

    /// The same in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.picture.recording_ns as f64 / 1e9
    }
}
