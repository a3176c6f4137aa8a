//! Problems: what was lost, damaged or not understood while the rest of a recording was read.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::cut;

/// Bytes of a message: names in it may be megabytes long, and there may be a problem with each event.
const MAX_MESSAGE: usize = 4 << 10;

crate::worded! {
    /// The weight of a [`Problem`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum Severity {
        /// Worth knowing; nothing is missing.
        Info = "info",
        /// Something the process emitted is not in the tables, or not decoded.
        DataLoss = "data_loss",
        /// The recording is damaged here.
        Error = "error",
    }
    /// The word in the `diagnostic` table.
    pub fn as_str;
}

/// Something that was lost, damaged or not understood while the rest was read: a row of the `diagnostic` table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The weight of the problem.
    pub severity: Severity,
    /// A stable snake_case word for the kind of problem, for queries.
    pub code: &'static str,
    /// One sentence for a person.
    pub message: String,
    /// Byte offset in the (unpacked) stream.
    pub offset: u64,
    /// The number of events, bytes or records that are concerned; 1 when it is a single thing.
    pub count: u64,
    /// The capturing thread's OS id; 0 when it concerns no thread.
    pub thread_id: u64,
}

impl Problem {
    /// A problem that concerns one thing at `offset`. A message of more than 4 KB is cut.
    pub fn new(severity: Severity, code: &'static str, offset: u64, message: impl Into<String>) -> Problem {
        let mut message = message.into();
        if let Cow::Owned(shorter) = cut(&message, MAX_MESSAGE) {
            message = shorter;
        }
        Problem { severity, code, message, offset, count: 1, thread_id: 0 }
    }

    /// Something that is wrong in the recording.
    pub fn error(code: &'static str, offset: u64, message: impl Into<String>) -> Problem {
        Problem::new(Severity::Error, code, offset, message)
    }

    /// Something that was lost.
    pub fn loss(code: &'static str, offset: u64, message: impl Into<String>) -> Problem {
        Problem::new(Severity::DataLoss, code, offset, message)
    }

    /// Something worth knowing.
    pub fn info(code: &'static str, offset: u64, message: impl Into<String>) -> Problem {
        Problem::new(Severity::Info, code, offset, message)
    }

    /// The problem with its count; `None` when the count is 0.
    pub fn counted(self, count: u64) -> Option<Problem> {
        (count > 0).then(|| self.count(count))
    }

    /// Sets the count.
    pub fn count(mut self, count: u64) -> Problem {
        self.count = count;
        self
    }

    /// Sets the thread that is concerned.
    pub fn thread(mut self, thread_id: u64) -> Problem {
        self.thread_id = thread_id;
        self
    }
}

/// Where code reports problems that has no visitor at hand.
pub type Report<'r> = dyn FnMut(Problem) + 'r;

/// Stands between a reader and its visitor, so that a damaged recording cannot flood the `diagnostic` table.
///
/// Of each code, the first [`ProblemLog::MAX_EACH`] problems pass one by one. Those behind them are folded into one
/// problem with the offset of the first of them and the sum of their counts, which [`ProblemLog::finish`] gives.
#[derive(Debug, Default)]
pub struct ProblemLog {
    codes: BTreeMap<&'static str, Tally>,
    /// Codes of which every problem passes.
    unfolded: &'static [&'static str],
}

/// The problems of one code, summed.
#[derive(Debug, Default)]
struct Tally {
    passed: u64,
    folded: Option<Folded>,
}

#[derive(Debug)]
struct Folded {
    severity: Severity,
    offset: u64,
    problems: u64,
    count: u64,
}

impl ProblemLog {
    /// This many problems of one code are reported one by one.
    pub const MAX_EACH: u64 = 1000;

    /// A log that passes every problem of the codes `unfolded`, because each of their rows means something on its own.
    pub fn passing_all(unfolded: &'static [&'static str]) -> ProblemLog {
        ProblemLog { codes: BTreeMap::new(), unfolded }
    }

    /// Counts a problem and hands it to `pass`, or folds it.
    pub fn report(&mut self, problem: Problem, pass: impl FnOnce(Problem)) {
        let tally = self.codes.entry(problem.code).or_default();
        if tally.passed < Self::MAX_EACH || self.unfolded.contains(&problem.code) {
            tally.passed += 1;
            return pass(problem);
        }
        let first = Folded { severity: problem.severity, offset: problem.offset, problems: 0, count: 0 };
        let folded = tally.folded.get_or_insert(first);
        folded.severity = folded.severity.max(problem.severity);
        folded.problems += 1;
        folded.count = folded.count.saturating_add(problem.count);
    }

    /// The end: one problem for each code that was folded, in the order of the codes. The log is empty afterwards.
    pub fn finish(&mut self, mut pass: impl FnMut(Problem)) {
        for (code, tally) in std::mem::take(&mut self.codes) {
            if let Some(Folded { severity, offset, problems, count }) = tally.folded {
                let message = format!("{problems} more of the same kind, the first of them here");
                pass(Problem::new(severity, code, offset, message).count(count));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flood(log: &mut ProblemLog, code: &'static str, problems: u64) -> Vec<Problem> {
        let mut passed = Vec::new();
        for n in 0..problems {
            log.report(Problem::new(Severity::DataLoss, code, 10 * n, "lost").count(3), |p| passed.push(p));
        }
        passed
    }

    #[test]
    fn what_is_folded_keeps_the_sum_of_its_counts_and_its_first_place() {
        let mut log = ProblemLog::default();
        assert_eq!(flood(&mut log, "b", ProblemLog::MAX_EACH + 2).len() as u64, ProblemLog::MAX_EACH);
        assert_eq!(flood(&mut log, "a", 1).len(), 1);
        log.report(Problem::new(Severity::Error, "b", 7, "damage").count(u64::MAX), |_| unreachable!());
        let mut folded = Vec::new();
        log.finish(|p| folded.push(p));
        let [only] = folded.as_slice() else { panic!("one code was folded: {folded:?}") };
        assert_eq!((only.code, only.severity, only.offset, only.count), ("b", Severity::Error, 10_000, u64::MAX));
        assert_eq!(only.message, "3 more of the same kind, the first of them here");
        let mut again = Vec::new();
        log.finish(|p| again.push(p));
        assert_eq!(again, []);
    }

    #[test]
    fn counts_of_folded_problems_are_added_up() {
        let mut log = ProblemLog::default();
        flood(&mut log, "too_many_stacks", ProblemLog::MAX_EACH + 5);
        let mut folded = Vec::new();
        log.finish(|p| folded.push(p));
        assert_eq!(folded.iter().map(|p| p.count).collect::<Vec<_>>(), [15]);
    }

    #[test]
    fn some_codes_are_never_folded() {
        let mut log = ProblemLog::passing_all(&["gap"]);
        let many = ProblemLog::MAX_EACH * 2;
        assert_eq!(flood(&mut log, "gap", many).len() as u64, many);
        log.finish(|p| panic!("nothing was folded: {p:?}"));
    }
}
