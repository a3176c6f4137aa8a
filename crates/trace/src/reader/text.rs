//! The budget for text that is kept until the end of a recording.

use super::{EtwLayout, EventType, Field, FieldType, Layout};
use crate::error::Problem;

/// Bytes of names and descriptions of processes, threads and kinds of events that are kept of one recording. Each is
/// copied a few times on its way to the tables, so that this is some hundred megabytes. The largest real recording has
/// 3 MB.
const MAX_TEXT: usize = 24 << 20;

/// The memory for texts that is left of a budget.
#[derive(Debug)]
pub struct TextBudget {
    left: usize,
    /// Bytes that did not fit.
    refused: usize,
}

impl Default for TextBudget {
    fn default() -> TextBudget {
        TextBudget { left: MAX_TEXT, refused: 0 }
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
            None => {
                self.refused = self.refused.saturating_add(bytes);
                false
            }
        }
    }

    /// Whether so much did not fit that it is no use to make more: a text that is copied for nothing takes time.
    pub fn is_spent(&self) -> bool {
        self.refused > MAX_TEXT
    }

    /// Says that `bytes` that were kept are no longer.
    pub fn give_back(&mut self, bytes: usize) {
        self.left = (self.left + bytes).min(MAX_TEXT);
    }

    /// The problem to report when something did not fit.
    pub fn exceeded(&self, what: &str, offset: u64) -> Problem {
        Problem::loss("too_much_text", offset, format!("more than {MAX_TEXT} bytes of names of {what}"))
    }
}

/// Bytes of memory that the texts of a kind of event take, and its fields: `field` bytes each, beside their names; 0
/// where the number of fields has a bound of its own.
pub fn text_of(event_type: &EventType, field: usize) -> usize {
    let fields = match &event_type.layout {
        Layout::Fields(fields) | Layout::Etw(EtwLayout { fields: Some(fields), .. }) => fields_of(fields, field),
        _ => 0,
    };
    event_type.provider.len() + event_type.name.len() + event_type.message.as_deref().map_or(0, str::len) + fields
}

fn fields_of(fields: &[Field], field: usize) -> usize {
    fields.iter().map(|f| field + f.name.len() + parts_of(&f.kind, field)).sum()
}

fn parts_of(kind: &FieldType, field: usize) -> usize {
    match kind {
        FieldType::Object(fields) => fields_of(fields, field),
        FieldType::Array(of)
        | FieldType::FixedArray(of, _)
        | FieldType::Counted(of, _)
        | FieldType::RelLoc(of)
        | FieldType::DataLoc(of)
        | FieldType::Shown(of, _) => field + parts_of(of, field),
        _ => 0,
    }
}
