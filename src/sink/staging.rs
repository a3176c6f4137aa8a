//! Where a dataset grows and where it ends up: a hidden sibling directory that takes the final name when all is done.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use tempfile::TempDir;

use crate::error::{Error, Result};

/// File that marks a directory as one of our datasets.
const MANIFEST: &str = "manifest.json";

/// The temporary directory of a dataset. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub(super) struct Staging {
    target: PathBuf,
    overwrite: bool,
    growing: Option<TempDir>,
    /// Parents of the target that had to be made, the outermost first.
    made: Vec<PathBuf>,
}

impl Staging {
    /// Makes the temporary directory beside `out`.
    pub(super) fn new(out: &Path, overwrite: bool) -> Result<Staging> {
        let target = resolve(out)?;
        if exists(&target)? {
            check_replaceable(out, &target, overwrite)?;
        }
        let (parent, name) = parent_and_name(&target)?;
        let mut staging = Staging { target: target.clone(), overwrite, growing: None, made: missing(parent) };
        fs::create_dir_all(parent).map_err(Error::io(parent))?;
        staging.growing = Some(hidden_sibling(parent, &name, "partial").map_err(Error::io(&staging.target))?);
        Ok(staging)
    }

    /// The directory to write into.
    pub(super) fn path(&self) -> &Path {
        self.growing.as_ref().map_or(&self.target, TempDir::path)
    }

    /// Gives the directory its final name. What stood there is first moved aside, so that it survives a failure.
    pub(super) fn commit(mut self) -> Result<()> {
        let Some(growing) = self.growing.take() else {
            return Err(Error::Internal("dataset without a directory".into()));
        };
        let (parent, name) = parent_and_name(&self.target)?;
        let mut aside = None;
        if exists(&self.target)? {
            // Looked at again: a long conversion leaves time for something else to appear here.
            check_replaceable(&self.target, &self.target, self.overwrite)?;
            let folder = hidden_sibling(parent, &name, "old").map_err(Error::io(&self.target))?;
            fs::rename(&self.target, folder.path().join(&name)).map_err(Error::io(&self.target))?;
            aside = Some(folder);
        }
        if let Err(source) = fs::rename(growing.path(), &self.target) {
            if let Some(folder) = aside {
                let kept = folder.path().join(&name);
                if fs::rename(&kept, &self.target).is_err() {
                    // Rather a stray directory than a lost dataset.
                    let _ = folder.keep();
                }
            }
            return Err(Error::Io { path: self.target.clone(), source });
        }
        // Renamed away: there is nothing left to remove.
        let _ = growing.keep();
        self.made.clear();
        sync_directory(parent);
        // The dataset stands. Failing to delete the old one is a nuisance, not a failure of this one.
        drop(aside);
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.growing = None;
        for folder in self.made.iter().rev() {
            // Fails, rightly, when something else has moved in.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// The path of a table or file inside a dataset, refused when it could lead out of it.
pub(super) fn relative(name: &str) -> Result<PathBuf> {
    let plain = |part: &str| {
        let mut components = Path::new(part).components();
        matches!((components.next(), components.next()), (Some(Component::Normal(_)), None))
            && !part.contains(['\\', ':'])
            && !part.contains(char::is_control)
    };
    if name.split('/').all(plain) {
        Ok(name.split('/').collect())
    } else {
        Err(Error::Internal(format!("{name:?} is no safe name inside a dataset")))
    }
}

/// Follows links, so that a link to a dataset stays a link; a path that does not exist stays as it is.
fn resolve(out: &Path) -> Result<PathBuf> {
    match fs::canonicalize(out) {
        Ok(path) => Ok(path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(out.to_owned()),
        Err(source) => Err(Error::Io { path: out.to_owned(), source }),
    }
}

fn exists(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(source) => Err(Error::Io { path: path.to_owned(), source }),
    }
}

fn check_replaceable(shown: &Path, target: &Path, overwrite: bool) -> Result<()> {
    let shown = shown.display();
    if !overwrite {
        return Err(Error::Usage(format!("{shown} exists already; --overwrite replaces a dataset that stands there")));
    }
    if !target.is_dir() {
        return Err(Error::Usage(format!("{shown} is no directory, so it is not replaced")));
    }
    let mut entries = fs::read_dir(target).map_err(Error::io(target))?;
    if entries.next().is_none() || is_dataset(target) {
        return Ok(());
    }
    Err(Error::Usage(format!("{shown} holds something else than a dataset of tracequet, so it is not replaced")))
}

/// Whether the manifest there says that tracequet wrote it: `"tool": "tracequet…"`, or an object with such a `"name"`.
fn is_dataset(folder: &Path) -> bool {
    let Ok(bytes) = fs::read(folder.join(MANIFEST)) else { return false };
    let Ok(manifest) = serde_json::from_slice::<serde_json::Value>(&bytes) else { return false };
    let Some(tool) = manifest.get("tool") else { return false };
    let name = tool.get("name").unwrap_or(tool);
    name.as_str().is_some_and(|name| name.split([' ', '/']).next() == Some("tracequet"))
}

fn parent_and_name(target: &Path) -> Result<(&Path, String)> {
    let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
        return Err(Error::Usage(format!("{} cannot be the directory of a dataset", target.display())));
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    Ok((parent, name.to_string_lossy().into_owned()))
}

/// The folders that `create_dir_all(parent)` will make, the outermost first.
fn missing(parent: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = parent.ancestors().take_while(|f| !f.exists()).map(Path::to_owned).collect();
    folders.retain(|folder| !folder.as_os_str().is_empty());
    folders.reverse();
    folders
}

fn hidden_sibling(parent: &Path, name: &str, role: &str) -> std::io::Result<TempDir> {
    let prefix = format!(".{name}.{role}-");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).rand_bytes(8);
    // The default is for secrets (0700); a dataset is as readable as any directory its owner makes.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
    builder.tempdir_in(parent)
}

/// Makes the rename last. Best effort: not every system can sync a directory.
fn sync_directory(folder: &Path) {
    #[cfg(unix)]
    if let Ok(handle) = fs::File::open(folder) {
        let _ = handle.sync_all();
    }
    #[cfg(not(unix))]
    let _ = folder;
}
