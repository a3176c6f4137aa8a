//! Figures in the sentences of findings.

/// `12.3 %` of a share.
pub(super) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value > 0.0 && value < 10.0 { format!("{value:.1} %") } else { format!("{value:.0} %") }
}

/// `12.3 ms` of nanoseconds.
pub(super) fn time(ns: f64) -> String {
    match ns.abs() {
        n if n < 1e6 => format!("{} µs", three(ns / 1e3)),
        n if n < 1e9 => format!("{} ms", three(ns / 1e6)),
        _ => format!("{} s", three(ns / 1e9)),
    }
}

/// `12.3 MB`.
pub(super) fn size(bytes: f64) -> String {
    match bytes.abs() {
        n if n < 1e3 => format!("{bytes:.0} B"),
        n if n < 1e6 => format!("{} kB", three(bytes / 1e3)),
        n if n < 1e9 => format!("{} MB", three(bytes / 1e6)),
        _ => format!("{} GB", three(bytes / 1e9)),
    }
}

/// A number with three digits.
pub(super) fn three(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
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
    fn figures_have_three_digits_and_their_unit() {
        assert_eq!((percent(0.051), percent(0.5), percent(0.0)), ("5.1 %".into(), "50 %".into(), "0 %".into()));
        assert_eq!((time(1500.0), time(2.5e6), time(3e9)), ("1.50 µs".into(), "2.50 ms".into(), "3.00 s".into()));
        assert_eq!((size(12.0), size(1.5e6)), ("12 B".into(), "1.50 MB".into()));
        assert_eq!(quoted("it's\n"), "'it''s '");
        assert_eq!(short("SELECT  *\nFROM t", 10), "SELECT * F...");
    }
}
