//! Diagnostics of one kind, counted.

use tracequet_trace::error::Severity;

use crate::fact::Diagnostic;

/// All diagnostics of one kind.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProblemSummary {
    /// The code.
    pub code: &'static str,
    /// The worst severity.
    pub severity: Severity,
    /// Rows of the `diagnostic` table.
    pub rows: u64,
    /// Sum of their counts.
    pub count: u64,
    /// The first message.
    pub message: String,
    /// Where the first one is.
    pub offset: u64,
}

impl ProblemSummary {
    /// Rows of the kind of this one, not counted yet.
    pub fn of(row: &Diagnostic<'_>) -> ProblemSummary {
        ProblemSummary {
            code: row.code,
            severity: row.level(),
            rows: 0,
            count: 0,
            message: row.message.to_owned(),
            offset: row.byte_offset,
        }
    }

    /// Counts one more.
    pub fn add(&mut self, row: &Diagnostic<'_>) {
        self.severity = self.severity.max(row.level());
        self.rows += 1;
        self.count = self.count.saturating_add(row.count);
    }

    /// Counts one more in a list in the order of first sight.
    pub fn note(list: &mut Vec<ProblemSummary>, row: &Diagnostic<'_>) {
        match list.iter_mut().find(|known| known.code == row.code) {
            Some(known) => known.add(row),
            None => {
                let mut first = ProblemSummary::of(row);
                first.add(row);
                list.push(first);
            }
        }
    }
}
