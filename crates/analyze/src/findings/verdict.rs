//! The verdict of a rule, and its score.

use super::score::{INFO, WARNING};

tracequet_trace::worded! {
    /// The verdict of a rule.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Verdict {
        /// The events of the rule were not recorded: nothing is known.
        NotRecorded = "not_recorded",
        /// There is too little for a verdict.
        TooLittle = "too_little",
        /// Nothing is wrong.
        Fine = "fine",
        /// Worth a look.
        Info = "info",
        /// Something is wrong.
        Warning = "warning",
    }
    /// The word, as the table has it.
    pub fn word;
}

impl Verdict {
    /// The one that a word stands for; of an unknown word none is given.
    pub(super) fn of_word(word: &str) -> Verdict {
        Verdict::named(word).unwrap_or(Verdict::NotRecorded)
    }

    pub(super) fn of_score(score: f64) -> Verdict {
        match score {
            score if score >= WARNING => Verdict::Warning,
            score if score >= INFO => Verdict::Info,
            _ => Verdict::Fine,
        }
    }
}
