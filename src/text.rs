//! Numbers, sizes, durations and problems in words.

use tracequet::ProblemSummary;
pub use tracequet::analyze::present::clean;
pub use tracequet::analyze::present::units::{count, counted, duration, moment, size};
use tracequet::analyze::present::{Cell, Sentence};

/// One line about all problems of a kind.
pub fn problem(p: &ProblemSummary) -> Sentence {
    let first = if p.rows > 1 { format!("in {} places, first ", count(p.rows)) } else { String::new() };
    let times = if p.count > p.rows { format!("{} in all, ", count(p.count)) } else { String::new() };
    Sentence::from(format!("{}: {times}{first}at byte {}: ", p.code, p.offset)).cell(Cell::sentence(&p.message))
}
