//! Reports problems to the visitor.

use crate::bytes::ParseError;
use crate::error::{Problem, ProblemLog};
use crate::reader::Visitor;

/// The visitor, and the log that keeps a damaged recording from flooding it with problems.
pub struct Reporter<'v> {
    pub visitor: &'v mut dyn Visitor,
    log: ProblemLog,
    /// The block at hand is damaged, which was reported or will be: what is torn in it is no news.
    pub damage_known: bool,
}

impl<'v> Reporter<'v> {
    pub fn new(visitor: &'v mut dyn Visitor) -> Reporter<'v> {
        // Each gap in the sequence of a thread has a row of its own.
        Reporter { visitor, log: ProblemLog::passing_all(&["dropped_events"]), damage_known: false }
    }

    pub fn problem(&mut self, problem: Problem) {
        self.log.report(problem, |problem| self.visitor.problem(problem));
    }

    /// Reports a problem with its count, unless the count is 0.
    pub fn problems(&mut self, problem: Problem, count: u64) {
        problem.counted(count).into_iter().for_each(|problem| self.problem(problem));
    }

    /// Reports a parse error inside `block`, which begins at `start`.
    pub fn parse_problem(&mut self, code: &'static str, what: &str, start: u64, block: &[u8], error: &ParseError) {
        if self.damage_known {
            return;
        }
        self.problem(Problem::error(code, error.offset_in(start, block), format!("{what}: {error}")));
    }

    /// The end: reports what was folded.
    pub fn finish(&mut self) {
        self.log.finish(|problem| self.visitor.problem(problem));
    }
}
