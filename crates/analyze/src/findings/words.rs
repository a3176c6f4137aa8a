//! Texts and amounts in the sentences of findings.

pub(super) use crate::present::units::{real as three, share as percent};
use crate::present::{Amount, Unit};

/// `12.3 ms` of nanoseconds.
pub(super) fn time(ns: f64) -> String {
    Amount::new(ns, Unit::Nanoseconds).to_string()
}

/// `12.3 MB`.
pub(super) fn size(bytes: f64) -> String {
    Amount::new(bytes, Unit::Bytes).to_string()
}

/// Text within single quotes of SQL. What steers a terminal or ends a line stays out.
pub(super) fn quoted(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("'{}'", clean.replace('\'', "''"))
}

/// The beginning of a text from the recording.
pub(super) fn short(text: &str, most: usize) -> String {
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

/// The method that a lambda is written in; another one as it is.
pub(super) fn without_lambda(method: &str) -> &str {
    method.split(".<lambda").next().unwrap_or(method)
}

/// A name or path as one word of a command line.
pub(super) fn in_shell(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-+/:".contains(c) || (cfg!(windows) && c == '\\');
    match name.chars().all(is_plain) && !name.is_empty() {
        true => name.to_owned(),
        false if cfg!(windows) => format!("\"{name}\""),
        false => format!("'{}'", name.replace('\'', "'\\''")),
    }
}

/// Whether a type is not one of the framework, as far as its name says. Generic types that lie in others have no namespace.
pub(super) fn is_own_type(name: &str) -> bool {
    let frameworks = ["System.", "Microsoft.", "Interop", "Internal."];
    !frameworks.iter().any(|start| name.starts_with(start)) && !name.trim_end_matches("[]").contains('[')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_one_line() {
        assert_eq!(quoted("it's\n"), "'it''s '");
        assert_eq!(short("SELECT  *\nFROM t", 10), "SELECT * F...");
    }
}
