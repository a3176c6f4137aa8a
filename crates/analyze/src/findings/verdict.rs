//! The verdict of a rule, and its score.

use super::score::{INFO, WARNING};

/// The verdict of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Verdict {
    /// The events of the rule were not recorded: nothing is known.
    NotRecorded,
    /// There is too little for a verdict.
    TooLittle,
    /// Nothing is wrong.
    Fine,
    /// Worth a look.
    Info,
    /// Something is wrong.
    Warning,
}

impl Verdict {
    /// The word, as the table has it.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::NotRecorded => "not_recorded",
            Verdict::TooLittle => "too_little",
            Verdict::Fine => "fine",
            Verdict::Info => "info",
            Verdict::Warning => "warning",
        }
    }

    /// The one that a word stands for; of an unknown word none is given.
    pub(super) fn of_word(word: &str) -> Verdict {
        let all = [Verdict::Warning, Verdict::Info, Verdict::Fine, Verdict::TooLittle];
        all.into_iter().find(|verdict| verdict.word() == word).unwrap_or(Verdict::NotRecorded)
    }

    pub(super) fn of_score(score: f64) -> Verdict {
        match score {
            score if score >= WARNING => Verdict::Warning,
            score if score >= INFO => Verdict::Info,
            _ => Verdict::Fine,
        }
    }
}
