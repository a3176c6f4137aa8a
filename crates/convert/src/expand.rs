//! Expands arguments to recordings: files, and the contents of folders and patterns.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use tracequet_dataset::error::{Error, Result};
use tracequet_trace::error::{Error as TraceError, Named};
use tracequet_trace::reader::Format;
use tracequet_trace::source::store::is_address;
use tracequet_trace::source::{A_DATASET, HEAD, is_dataset};

use super::names::{fits, is_pattern, is_recording_name};
use super::stored;

/// Folders in folders; links may lead in circles.
const MAX_DEPTH: usize = 64;

/// Recordings that were found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Expanded {
    /// The recordings: those of a folder or a pattern in the order of their names.
    pub inputs: Vec<PathBuf>,
    /// Whether a folder or a pattern was among the arguments, which means several recordings even if it is one.
    pub several: bool,
}

/// The recordings of arguments. A folder means the recordings in it and below, recognized by their names or their
/// first bytes; what begins with a dot is left out, and so is `output`. A name with `*`, `?` or `[` that is no file is
/// a pattern; `**` stands for folders of any depth. A folder or pattern without a recording is a usage error. The
/// address of a folder in a store stands for the recordings below it, as does one with a pattern; one that cannot be
/// listed stands for itself, so that it fails like a recording that cannot be read.
pub fn expand(arguments: &[PathBuf], output: &Path) -> Result<Expanded> {
    let mut found = Expanded::default();
    let (given, output) = (output, std::fs::canonicalize(output).ok());
    for argument in arguments {
        if argument.as_os_str() == "-" {
            found.inputs.push(argument.clone());
        } else if is_address(argument) {
            let listed = stored::expand(argument, given)?;
            found.several |= listed.is_folder;
            found.inputs.extend(listed.inputs);
        } else if argument.is_dir() {
            found.several = true;
            let before = found.inputs.len();
            walk(argument, output.as_deref(), MAX_DEPTH, &mut found.inputs)?;
            if found.inputs.len() == before {
                let what = match is_dataset(argument) {
                    true => A_DATASET,
                    false => "there is no recording in this directory or below",
                };
                let message = format!("{}: {what}", argument.display());
                return Err(Error::Usage(message));
            }
        } else if !argument.exists() && is_pattern(&argument.to_string_lossy()) {
            found.several = true;
            let before = found.inputs.len();
            let parts: Vec<Component<'_>> = argument.components().collect();
            matching(PathBuf::new(), &parts, MAX_DEPTH, &mut found.inputs)?;
            if found.inputs.len() == before {
                let message = format!("{}: no file has a name like this", argument.display());
                return Err(TraceError::NotFound { what: Named::Path, message }.into());
            }
        } else {
            found.inputs.push(argument.clone());
        }
    }
    Ok(found)
}

/// The entries of a folder in the order of their names.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let shown = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let names: std::io::Result<Vec<_>> = std::fs::read_dir(shown)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| folder.join(entry.file_name()))).collect());
    let mut names = names.map_err(Error::io(shown))?;
    names.retain(|path| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')));
    names.sort();
    Ok(names)
}

fn walk(folder: &Path, output: Option<&Path>, depth: usize, found: &mut Vec<PathBuf>) -> Result<()> {
    let is_output = output.is_some_and(|output| std::fs::canonicalize(folder).is_ok_and(|folder| folder == output));
    if depth == 0 || is_output {
        return Ok(());
    }
    for path in entries(folder)? {
        // A link to a folder is not followed.
        let kind = std::fs::symlink_metadata(&path).map_err(Error::io(&path))?;
        if kind.is_dir() {
            walk(&path, output, depth - 1, found)?;
        } else if path.is_file() && (is_recording_name(&path) || begins_so(&path)) {
            found.push(path);
        }
    }
    Ok(())
}

/// Whether the first bytes are those of a recording. A file that cannot be opened, and is not named like one, is not.
fn begins_so(path: &Path) -> bool {
    let mut head = Vec::with_capacity(HEAD);
    let read = File::open(path).and_then(|file| file.take(HEAD as u64).read_to_end(&mut head));
    read.is_ok() && Format::detect(&head).is_some()
}

/// Adds the files below `at` that match the rest of a pattern.
fn matching(at: PathBuf, rest: &[Component<'_>], depth: usize, found: &mut Vec<PathBuf>) -> Result<()> {
    let Some((part, rest)) = rest.split_first() else {
        if at.is_file() {
            found.push(at);
        }
        return Ok(());
    };
    if !is_pattern(&part.as_os_str().to_string_lossy()) {
        return matching(at.join(part), rest, depth, found);
    }
    if depth == 0 || !(at.as_os_str().is_empty() || at.is_dir()) {
        return Ok(());
    }
    let pattern: Vec<char> = part.as_os_str().to_string_lossy().chars().collect();
    let any_depth = pattern == ['*', '*'];
    if any_depth {
        matching(at.clone(), rest, depth, found)?;
    }
    for path in entries(&at)? {
        let name: Vec<char> = path.file_name().unwrap_or_default().to_string_lossy().chars().collect();
        if any_depth {
            if path.is_dir() && !path.is_symlink() {
                let again: Vec<Component<'_>> = [*part].into_iter().chain(rest.iter().copied()).collect();
                matching(path, &again, depth - 1, found)?;
            }
        } else if fits(&name, &pattern) {
            matching(path, rest, depth - 1, found)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_patterns_stand_for_the_recordings_in_them() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, text) in [
            ("b/2.nettrace", "broken"),
            ("b/1.etl.gz", "broken"),
            ("a", "Nettrace\u{14}\0\0\0!FastSerialization.1"),
            ("notes.txt", "text"),
            (".hidden.nettrace", ""),
            ("out/c.nettrace", ""),
        ] {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), text).unwrap();
        }
        let found = |argument: &str| -> Vec<String> {
            let found = expand(&[at(argument)], &at("out")).unwrap();
            assert!(found.several);
            let names = found.inputs.iter().map(|path| path.strip_prefix(folder.path()).unwrap());
            names.map(|name| name.to_string_lossy().replace('\\', "/")).collect()
        };
        assert_eq!(found(""), ["a", "b/1.etl.gz", "b/2.nettrace"]);
        assert_eq!(found("*/2.net*"), ["b/2.nettrace"]);
        assert_eq!(found("**/[0-9].*"), ["b/1.etl.gz", "b/2.nettrace"]);
        assert_eq!(found("*.txt"), ["notes.txt"], "what is named is taken");
        std::fs::create_dir(at("empty")).unwrap();
        for nothing in ["empty", "*.etl"] {
            assert!(expand(&[at(nothing)], &at("out")).is_err());
        }
    }
}
