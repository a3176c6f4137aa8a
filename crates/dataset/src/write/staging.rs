//! The place of a dataset in the making: a hidden sibling directory that gets the final name at the end.

use std::fs;
use std::io::{self, ErrorKind};

use super::growing::{self, Growing};
use super::leftovers::{self, Hidden, Role};
use super::{durable, replaceable};
use crate::format::paths;
use crate::prelude::*;

/// Replaces the dataset's name in the names of hidden directories inside of one.
pub const PART: &str = "recording";

/// The hidden directory of a dataset in the making. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub struct Staging {
    target: PathBuf,
    overwrite: bool,
    inputs: Vec<PathBuf>,
    growing: Option<Hidden>,
    /// On the list of what this process has not finished.
    listed: Option<Growing>,
    /// Parents of the target that had to be made, the outermost first.
    made: Vec<PathBuf>,
}

impl Staging {
    /// Makes the hidden directory beside `out`. With `overwrite`, a dataset at `out` will be replaced, unless one
    /// of `inputs` is in it.
    pub fn new(out: &Path, overwrite: bool, inputs: &[PathBuf]) -> Result<Staging> {
        let target = resolve(out)?;
        let (parent, name) = parent_and_name(&target)?;
        leftovers::remove(parent, &name);
        if exists(&target)? {
            if overwrite {
                leftovers::remove(&target, PART);
            }
            replaceable::check(out, &target, overwrite, inputs)?;
        }
        let (target, inputs, made) = (target.clone(), inputs.to_vec(), missing(parent));
        let mut staging = Staging { target, overwrite, inputs, growing: None, listed: None, made };
        let (growing, listed) = Growing::make(&staging.made, || {
            fs::create_dir_all(parent).map_err(Error::io(parent))?;
            Hidden::beside(parent, &name, Role::New).map_err(Error::io(&staging.target))
        })?;
        (staging.growing, staging.listed) = (Some(growing), Some(listed));
        Ok(staging)
    }

    /// Makes a hidden directory in `folder`, for files that move from there to places in the folder.
    pub fn inside(folder: &Path) -> Result<Staging> {
        let make = || Hidden::beside(folder, PART, Role::New).map_err(Error::io(folder));
        let (growing, listed) = Growing::make(&[], make)?;
        let (growing, listed, target) = (Some(growing), Some(listed), folder.to_owned());
        Ok(Staging { target, overwrite: false, inputs: Vec::new(), growing, listed, made: Vec::new() })
    }

    /// The directory to write into.
    pub fn path(&self) -> &Path {
        self.growing.as_ref().map_or(&self.target, Hidden::path)
    }

    /// Gives the directory its final name.
    pub fn commit(self) -> Result<()> {
        self.commit_with(exchange)
    }

    /// `exchange` swaps two directories in one step, where the system can.
    fn commit_with(mut self, exchange: fn(&Path, &Path) -> io::Result<()>) -> Result<()> {
        let Some(growing) = self.growing.take() else {
            return Err(Error::Internal("dataset without a directory".into()));
        };
        durable::sync_tree(growing.path())?;
        let _committing = growing::commit();
        let (parent, name) = parent_and_name(&self.target)?;
        let mut old = None;
        if exists(&self.target)? {
            // Looked at again: a long conversion leaves time for something else to appear here.
            self.check(&self.target)?;
            match exchange(growing.path(), &self.target) {
                Ok(()) => old = Some(self.check_exchanged(growing, exchange)?),
                Err(e) if matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::InvalidInput) => {
                    old = Some(self.move_aside(parent, &name)?);
                    self.move_in(growing, old.as_ref().map(|old| old.path().join(&name)).as_deref())?;
                }
                Err(source) => return Err(Error::Io { path: self.target.clone(), source }),
            }
        } else {
            self.move_in(growing, None)?;
        }
        self.made.clear();
        durable::sync_folder(parent);
        // The new dataset is in place. Failing to delete the old one is a nuisance, not a failure of this one.
        drop(old);
        Ok(())
    }

    fn check(&self, folder: &Path) -> Result<()> {
        replaceable::check(&self.target, folder, self.overwrite, &self.inputs)
    }

    /// The old dataset is now where no writer adds to it: what was added in the last moment is seen now.
    fn check_exchanged(&self, old: Hidden, exchange: fn(&Path, &Path) -> io::Result<()>) -> Result<Hidden> {
        let Err(refused) = self.check(old.path()) else { return Ok(old) };
        if exchange(old.path(), &self.target).is_err() {
            // Rather a stray directory than a lost file.
            let _ = old.keep();
        }
        Err(refused)
    }

    /// Moves the old dataset into a hidden directory, where the next run finds it if this one is killed.
    fn move_aside(&self, parent: &Path, name: &str) -> Result<Hidden> {
        let aside = Hidden::beside(parent, name, Role::Old).map_err(Error::io(&self.target))?;
        fs::rename(&self.target, aside.path().join(name)).map_err(Error::io(&self.target))?;
        let kept = aside.path().join(name);
        if let Err(refused) = self.check(&kept) {
            if fs::rename(&kept, &self.target).is_err() {
                let _ = aside.keep();
            }
            return Err(refused);
        }
        Ok(aside)
    }

    /// Gives the directory the name that nothing has now; if that fails, `old` gets its name back.
    fn move_in(&self, growing: Hidden, old: Option<&Path>) -> Result<()> {
        if let Err(source) = fs::rename(growing.path(), &self.target) {
            if let Some(old) = old {
                let _ = fs::rename(old, &self.target);
            }
            return Err(Error::Io { path: self.target.clone(), source });
        }
        // Renamed away: there is nothing left to remove.
        let _ = growing.keep();
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

/// Swaps two directories in one step, so that a kill leaves the one or the other.
#[cfg(any(target_os = "linux", target_vendor = "apple"))]
pub fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};

    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
pub fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// The path of a table or file inside a dataset, refused when it could lead out of it.
pub fn relative(name: &str) -> Result<PathBuf> {
    paths::relative(name).ok_or_else(|| Error::Internal(format!("{name:?} is not a safe name inside a dataset")))
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

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"{ "tool": "tracequet", "tables": [{ "name": "gc" }] }"#;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn unsupported(_: &Path, _: &Path) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    #[test]
    fn a_dataset_is_replaced_with_and_without_an_exchange_in_one_step() {
        for exchange in [exchange, unsupported] {
            let parent = tempfile::tempdir().unwrap();
            let out = parent.path().join("set");
            for content in ["old", "new"] {
                let staging = Staging::new(&out, true, &[]).unwrap();
                fs::write(staging.path().join("gc.parquet"), content).unwrap();
                fs::write(staging.path().join("manifest.json"), MANIFEST).unwrap();
                staging.commit_with(exchange).unwrap();
                assert_eq!(fs::read_to_string(out.join("gc.parquet")).unwrap(), content);
                assert_eq!(names(parent.path()), ["set"]);
            }
        }
    }

    #[test]
    fn a_file_that_comes_in_the_last_moment_is_kept() {
        fn adds_a_file(a: &Path, b: &Path) -> io::Result<()> {
            let added = b.join("cat.jpg");
            if b.join("gc.parquet").metadata()?.len() == 3 && !added.exists() {
                fs::write(added, "cat")?;
            }
            exchange(a, b)
        }
        fn adds_a_file_and_fails(_: &Path, b: &Path) -> io::Result<()> {
            fs::write(b.join("cat.jpg"), "cat")?;
            Err(ErrorKind::Unsupported.into())
        }
        for exchange in [adds_a_file as fn(&Path, &Path) -> io::Result<()>, adds_a_file_and_fails] {
            let parent = tempfile::tempdir().unwrap();
            let out = parent.path().join("set");
            fs::create_dir(&out).unwrap();
            fs::write(out.join("gc.parquet"), "old").unwrap();
            fs::write(out.join("manifest.json"), MANIFEST).unwrap();
            let staging = Staging::new(&out, true, &[]).unwrap();
            fs::write(staging.path().join("gc.parquet"), "newer").unwrap();
            let error = staging.commit_with(exchange).unwrap_err().to_string();
            assert!(error.contains("cat.jpg") || cfg!(windows), "{error}");
            assert_eq!(names(parent.path()), ["set"]);
            assert_eq!(names(&out), ["cat.jpg", "gc.parquet", "manifest.json"]);
            assert_eq!(fs::read(out.join("gc.parquet")).unwrap(), b"old");
        }
    }
}
