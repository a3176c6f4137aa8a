//! The budget for text that is kept until the end of a recording.

use super::report::Reporter;
use crate::error::{Problem, Severity};
use crate::reader::Visitor;

/// So many bytes of names and descriptions of threads and kinds of events are kept of one recording. Each is copied a few
/// times on its way to the tables, so that this is some hundred megabytes. The largest real recording has 3 MB.
const MAX_TEXT: usize = 24 << 20;

/// What is left of the budget.
pub struct TextBudget {
    left: usize,
}

impl Default for TextBudget {
    fn default() -> TextBudget {
        TextBudget { left: MAX_TEXT }
    }
}

impl TextBudget {
    /// Whether `bytes` more may be kept.
    pub fn take(&mut self, bytes: usize) -> bool {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// Reports that something did not fit.
    pub fn report<V: Visitor>(&self, what: &str, out: &mut Reporter<'_, V>, offset: u64) {
        let message = format!("more than {MAX_TEXT} bytes of names of {what}");
        out.problem(Problem::new(Severity::DataLoss, "too_much_text", offset, message));
    }
}
