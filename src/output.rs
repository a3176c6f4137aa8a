//! Output and exit codes of commands.
//!
//! Results go to standard output, everything about them (progress, summaries, errors) to standard error. Both are
//! written with checks: a reader that has seen enough and closes the pipe is no failure.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::Path;

use anyhow::Context;

use super::failure;

/// The end of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was read.
    Whole,
    /// Everything that is left was read; something was lost.
    Losses,
    /// Nothing could be read, and that is in the dataset.
    Nothing,
    /// A rule of `check` is broken.
    RuleBroken,
}

impl Outcome {
    /// The outcome of reading something that has losses or not.
    pub fn with_losses(losses: bool) -> Outcome {
        if losses { Outcome::Losses } else { Outcome::Whole }
    }

    /// The outcome when the result was printed, or could not be. Losses stay losses whatever became of the output:
    /// a closed pipe or a full device must not hide them.
    pub fn printed(self, printing: anyhow::Result<()>) -> anyhow::Result<Outcome> {
        match printing {
            Ok(()) => Ok(self),
            Err(error) if failure::is_closed_pipe(&error) => Ok(self),
            Err(error) if self != Outcome::Whole => {
                failure::print(&error);
                Ok(self)
            }
            Err(error) => Err(error),
        }
    }
}

/// A page or a profile has hundreds of kilobytes in lines without end: a pipe gets it, a terminal does not.
fn printable(is_terminal: bool) -> anyhow::Result<()> {
    if is_terminal {
        anyhow::bail!("the result is not for a terminal, expected -o FILE or a pipe");
    }
    Ok(())
}

/// Fails when standard output is a terminal, when a file is there already, or its directory is missing, so that
/// [`create_output`] would fail. Commands call it before the work whose result they write.
pub fn check_output(output: Option<&Path>, overwrite: bool) -> anyhow::Result<()> {
    let Some(path) = output else { return printable(std::io::stdout().is_terminal()) };
    if path.is_dir() {
        anyhow::bail!("{} is a directory, expected the name of a file", path.display());
    }
    if !overwrite && path.symlink_metadata().is_ok() {
        anyhow::bail!("{} is there already: use --overwrite to replace it", path.display());
    }
    match path.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.is_dir()) {
        Some(parent) => anyhow::bail!("{} cannot be made: there is no directory {}", path.display(), parent.display()),
        None => Ok(()),
    }
}

/// Creates the file for a result. Replaces a file that is there only with `overwrite`.
pub fn create_output(path: &Path, overwrite: bool) -> anyhow::Result<File> {
    let mut options = File::options();
    options.write(true).create(overwrite).create_new(!overwrite).truncate(overwrite);
    options.open(path).with_context(|| format!("{} cannot be made", path.display()))
}

/// Writes a result to standard output, whole.
pub fn print_result(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    write_all(&mut out, text).context(failure::Output("standard output"))
}

/// Writes something about a result to standard error.
pub fn print_note(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stderr().lock();
    write_all(&mut out, text).context(failure::Output("standard error"))
}

fn write_all(out: &mut impl Write, text: &str) -> std::io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_goes_into_a_file_or_a_pipe() {
        assert!(printable(true).is_err_and(|why| why.to_string().contains("-o FILE")));
        assert!(printable(false).is_ok());
        let folder = tempfile::tempdir().unwrap();
        for overwrite in [false, true] {
            let refused = check_output(Some(folder.path()), overwrite).unwrap_err().to_string();
            assert!(refused.contains("is a directory") && !refused.contains("--overwrite"), "{refused}");
        }
    }
}
