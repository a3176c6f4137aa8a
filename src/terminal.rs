//! The width of the terminal, and its colours.

use std::ffi::OsString;
use std::io::IsTerminal;

use clap::ValueEnum;
use tracequet::analyze::present::Terminal;

/// Columns where nothing says how many there are.
const WIDTH: usize = 80;
/// Tables are not made narrower.
const NARROWEST: usize = 40;

/// When verdicts are coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorArg {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl ColorArg {
    /// Whether standard output gets colours.
    pub fn is_wanted(self) -> bool {
        self.is_wanted_of(std::io::stdout().is_terminal(), |name| std::env::var_os(name))
    }

    fn is_wanted_of(self, is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
        match self {
            ColorArg::Always => true,
            ColorArg::Never => false,
            ColorArg::Auto => {
                is_terminal
                    && variable("NO_COLOR").is_none_or(|value| value.is_empty())
                    && variable("TERM").is_none_or(|value| value != "dumb")
            }
        }
    }
}

/// Width of a table on standard output, in columns of the terminal: those that `COLUMNS` says, else those of the terminal, else
/// 80.
fn width() -> usize {
    let terminal = || terminal_size::terminal_size_of(std::io::stdout());
    width_of(std::env::var("COLUMNS").ok().as_deref(), || terminal().map(|(width, _)| usize::from(width.0)))
}

/// Standard output: a person at a terminal gets rows of tables that fit, a pipe gets them whole.
pub fn standard_output(color: ColorArg) -> Terminal {
    let is_shown = std::io::stdout().is_terminal() || std::env::var_os("COLUMNS").is_some();
    Terminal { line: width(), row: if is_shown { width() } else { usize::MAX }, is_colored: color.is_wanted() }
}

fn width_of(columns: Option<&str>, terminal: impl FnOnce() -> Option<usize>) -> usize {
    let said = columns.and_then(|columns| columns.trim().parse().ok()).filter(|columns| *columns > 0);
    said.or_else(terminal).unwrap_or(WIDTH).max(NARROWEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_said_or_those_of_the_terminal() {
        assert_eq!(width_of(None, || None), 80);
        assert_eq!(width_of(None, || Some(133)), 133);
        assert_eq!((width_of(Some("200"), || Some(133)), width_of(Some("5"), || None)), (200, NARROWEST));
        for nothing in ["", "0", "wide", "-1"] {
            assert_eq!(width_of(Some(nothing), || Some(133)), 133, "{nothing}");
        }
    }

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        let of = |color: ColorArg, is_terminal, set: &'static str| {
            let value = move |name: &str| {
                let (known, value) = set.split_once('=')?;
                (known == name).then(|| OsString::from(value))
            };
            color.is_wanted_of(is_terminal, value)
        };
        assert!(of(ColorArg::Auto, true, "") && of(ColorArg::Auto, true, "NO_COLOR="));
        assert!(!of(ColorArg::Auto, false, "") && !of(ColorArg::Auto, true, "NO_COLOR=1"));
        assert!(!of(ColorArg::Auto, true, "TERM=dumb") && of(ColorArg::Auto, true, "TERM=xterm"));
        assert!(of(ColorArg::Always, false, "NO_COLOR=1") && !of(ColorArg::Never, true, ""));
    }
}
