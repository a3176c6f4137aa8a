//! Prints errors: one line with the whole chain of causes, and the bytes around the place.

use std::io::{ErrorKind, Write};

use tracequet::Error;
use tracequet::dataset::error::{Difference, Evidence, Named};
use tracequet::dataset::format::paths::ENTRIES;
use tracequet::trace::error::{Error as TraceError, Named as Subject};
use tracequet::trace::source::Input;

use super::text::clean;

/// Standard output or standard error could not be written.
#[derive(Debug)]
pub struct Output(pub &'static str);

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// Whether the reader of our output has gone: it has what it wanted.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let is_closed = |error: &std::io::Error| error.kind() == ErrorKind::BrokenPipe;
    error.is::<Output>() && error.downcast_ref().is_some_and(is_closed)
}

/// Prints an error. A closed standard error is ignored.
pub fn print(error: &anyhow::Error) {
    let mut text = format!("tracequet: {}", shown(&chain(error)));
    let of_trace = of_trace(error);
    if let Some(advice) = error.downcast_ref().and_then(advice).or_else(|| of_trace.and_then(trace_advice)) {
        text.push_str("; ");
        text.push_str(&advice);
    }
    text.push('\n');
    if let Some(TraceError::Unreadable { path, offset, .. }) = of_trace
        && path.as_os_str() != "-"
        && let Ok(Input::Mapped(file)) = Input::open(path)
    {
        text.push_str(&window(file.bytes(), *offset));
    }
    let mut out = std::io::stderr().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
}

/// The advice what to type instead.
fn advice(error: &Error) -> Option<String> {
    let advice = match error {
        Error::Exists { replaceable: true, .. } => "use --overwrite to replace the dataset",
        Error::Exists { replaceable: false, path } if tracequet::trace::source::store::is_address(path) => {
            "add to it with --append, or choose another address"
        }
        Error::Exists { replaceable: false, .. } => "choose another name: it is no dataset that could be replaced",
        Error::OtherVersion { .. } => "convert its recording again with --append --refresh",
        Error::Incompatible { difference, .. } => {
            return Some(match difference {
                Difference::Format(name) => format!("expected --format {name}"),
                Difference::AddressType(name) => format!("expected --address-type {name}"),
                _ => "expected a dataset made with --append or --layout hive".to_owned(),
            });
        }
        Error::Dataset { path, .. } if path.parent().is_some_and(|parent| parent.ends_with(ENTRIES)) => {
            "`tracequet convert --append` with its recording, or `tracequet dataset remove`, mends the dataset"
        }
        Error::NotFound { what: Named::Recording, .. } => "choose one with --trace",
        Error::NotRecorded { what: Evidence::SurvivingRanges, .. } => {
            "`tracequet collect --for gc-survival` records them"
        }
        Error::NotRecorded { what: Evidence::HeapWalk, .. } => "`tracequet collect --heap` records one",
        Error::NotRecorded { what: Evidence::AllocatedObjects, .. } => {
            "`tracequet collect --for lifetimes` records them"
        }
        Error::OverMemory(_) => "raise --memory",
        Error::NotConverted { cause, .. } => return advice(cause),
        Error::Trace(error) => return trace_advice(error),
        _ => return None,
    };
    Some(advice.to_owned())
}

fn trace_advice(error: &TraceError) -> Option<String> {
    let advice = match error {
        TraceError::NotFound { what: Subject::Process, .. } => {
            "`tracequet ps` lists the processes that can be recorded"
        }
        TraceError::NotFound { what: Subject::Events, .. } => "`tracequet inspect` lists processes and providers",
        TraceError::Damaged { .. } => "--strict treats damage as an error",
        _ => return None,
    };
    Some(advice.to_owned())
}

/// The error of a recording or a process, alone or as one of the library.
fn of_trace(error: &anyhow::Error) -> Option<&TraceError> {
    if let Some(Error::Trace(error)) = error.downcast_ref() { Some(error) } else { error.downcast_ref() }
}

/// A message as it is shown: names in it may come from a recording, and must not steer the terminal.
fn shown(message: &str) -> String {
    message.split('\n').map(clean).collect::<Vec<_>>().join("\n")
}

/// The messages of an error and its causes. Those that repeat the end of the one before say nothing new.
fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let message = cause.to_string();
        if text.is_empty() {
            text = message;
        } else if !text.ends_with(&message) {
            text = format!("{text}: {message}");
        }
    }
    text
}

/// Sixteen bytes around `offset` in hexadecimal and as text, with a caret under the one.
fn window(bytes: &[u8], offset: u64) -> String {
    let Ok(at) = usize::try_from(offset) else { return String::new() };
    let at = at.min(bytes.len());
    let start = at.saturating_sub(8).min(bytes.len().saturating_sub(16));
    let shown: Vec<u8> = bytes.iter().skip(start).take(16).copied().collect();
    if shown.is_empty() {
        return String::new();
    }
    let hex: Vec<String> = shown.iter().map(|b| format!("{b:02x}")).collect();
    let text: String = shown.iter().map(|b| if b.is_ascii_graphic() { char::from(*b) } else { '.' }).collect();
    let label = format!("{start:>10}  ");
    // One past the last byte means the end of the file.
    let caret = label.len() + 3 * (at - start);
    let end = if at == bytes.len() { " end of file" } else { "" };
    format!("{label}{:<47}  {text}\n{:caret$}^{end}\n", hex.join(" "), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_byte() {
        let bytes: Vec<u8> = (b'A'..=b'Z').collect();
        let text = window(&bytes, 10);
        let lines: Vec<&str> = text.lines().collect();
        let caret = lines[1].find('^').unwrap();
        assert_eq!(&lines[0][caret..caret + 2], "4b");
        assert!(lines[0].ends_with("CDEFGHIJKLMNOPQR"), "{text}");
        assert!(window(&bytes, 26).contains("^ end of file"));
        assert!(window(&[], 0).is_empty());
        assert_eq!(window(b"ab", 0).lines().next(), Some(&*format!("         0  {:<47}  ab", "61 62")));
        assert!(!window(&bytes, u64::MAX).is_empty());
    }

    #[test]
    fn names_in_messages_do_not_steer_the_terminal() {
        assert_eq!(shown("no \u{1B}]0;owned\u{7}\nsecond line"), "no \\u{1b}]0;owned\\u{7}\nsecond line");
    }

    #[test]
    fn causes_are_told_once() {
        let io = std::io::Error::new(ErrorKind::NotFound, "not there");
        let error = anyhow::Error::from(Error::io("a.nettrace")(io));
        assert_eq!(chain(&error), "a.nettrace: not there");
        let error = error.context("cannot convert");
        assert_eq!(chain(&error), "cannot convert: a.nettrace: not there");
    }
}
