//! Values of rows: words, and sums of which nothing may be known.

/// A text that is not empty.
pub(crate) fn word(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// Adds to a sum, which is `None` until something is recorded.
pub(crate) fn add(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or_default().saturating_add(more));
    }
}

/// A duration as the page has it: nothing ends before it begins.
pub(crate) fn span(ns: i64) -> u64 {
    ns.max(0).cast_unsigned()
}
