//! Writes a dataset to a store: first to a local folder, then uploaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tracequet_dataset::format::paths::{ENTRIES, MANIFEST};
use tracequet_trace::error::{Error, Result};
use tracequet_trace::source::store::{Address, Failure, FailureKind, Service, Store, When, each, open};

use super::dataset::files_below;
use super::folder::Folder;
use super::lake::StoreLake;
use crate::request::Convert;
use crate::summary::{Summary, elapsed_ns};

/// Where a dataset goes, and the folder where it is made.
#[derive(Debug)]
pub(crate) struct Target {
    address: Address,
    store: Arc<dyn Store>,
    folder: Folder,
}

impl Target {
    /// The target of a request, if its output is an address.
    pub(crate) fn of(request: &Convert) -> Result<Option<Target>> {
        let Some(address) = Address::parse(&request.output) else { return Ok(None) };
        let address = address?;
        let shown = address.shown();
        let refuse = |what: &str| Err(Error::Usage(format!("{}: {what}", shown.display())));
        if address.service == Service::Http {
            return refuse("a plain HTTP server takes no dataset, expected a directory or an address of s3, gs or az");
        }
        if request.overwrite {
            return refuse("a dataset in a store cannot be replaced in one step; choose another address");
        }
        let store = open(&address)?;
        Ok(Some(Target { address, store, folder: Folder::new()? }))
    }

    /// Makes the dataset by `make`, which writes to the output of the request that it is given, and to the store where it is
    /// given one; then uploads what is not there yet. `note` gets what the user has to know.
    pub(crate) fn make(
        &self,
        request: &Convert,
        make: impl FnOnce(&Convert, Option<&StoreLake>) -> Result<Summary>,
        note: impl FnOnce(String),
    ) -> Result<Summary> {
        let started = Instant::now();
        let output = self.folder.path().join("dataset");
        let local = Convert { output: output.clone(), ..request.clone() };
        let made = match request.append {
            true => self.grow(&local, make, note),
            false => self.whole(&local, make),
        };
        let shown = self.address.shown();
        made.map(|summary| Summary { output: shown.clone(), elapsed_ns: elapsed_ns(started), ..summary })
            .map_err(|error| renamed(error, &output, &shown))
    }

    fn grow(
        &self,
        local: &Convert,
        make: impl FnOnce(&Convert, Option<&StoreLake>) -> Result<Summary>,
        note: impl FnOnce(String),
    ) -> Result<Summary> {
        let lake = StoreLake::open(self.store.clone(), self.address.clone(), &local.output, local.refresh)?;
        let summary = make(local, Some(&lake))?;
        if let Some(text) = lake.note() {
            note(text);
        }
        Ok(summary)
    }

    fn whole(
        &self,
        local: &Convert,
        make: impl FnOnce(&Convert, Option<&StoreLake>) -> Result<Summary>,
    ) -> Result<Summary> {
        let shown = self.address.shown();
        if self.store.has_any(self.address.prefix()).map_err(|failure| failure.at(&shown))? {
            return Err(Error::Exists { path: shown, replaceable: false });
        }
        let summary = make(local, None)?;
        self.upload(&local.output)?;
        Ok(summary)
    }

    /// Uploads a dataset. The manifest comes last: what has none is no dataset. When it fails, what was uploaded is removed.
    fn upload(&self, folder: &Path) -> Result<()> {
        let shown = self.address.shown();
        let files = files_below(folder, |_| true)?;
        let is_entry = |name: &&String| name.starts_with(&format!("{ENTRIES}/"));
        let (entries, mut others): (Vec<&String>, Vec<&String>) = files.iter().partition(is_entry);
        others.retain(|name| *name != MANIFEST);
        let send = |name: &&String| self.store.upload(&self.address.below(name), &folder.join(name));
        let manifest = folder.join(MANIFEST);
        let manifest = std::fs::read(&manifest).map_err(Error::io(&manifest))?;
        let key = self.address.below(MANIFEST);
        let sent = each(&others, send).and_then(|_| each(&entries, send)).and_then(|_| {
            match self.store.put(&key, &manifest, When::Absent) {
                Err(failure) if failure.kind == FailureKind::Unsupported => {
                    self.store.put(&key, &manifest, When::Always)
                }
                result => result,
            }
        });
        let Err(failure) = sent else { return Ok(()) };
        if failure.kind == FailureKind::Changed {
            // Its files may have the names of ours.
            return Err(Failure::other("another writer has created a dataset there in the meantime").at(shown));
        }
        // Best effort: a store that failed may fail again.
        let _ = each(&files, |name| self.store.delete(&self.address.below(name)));
        Err(failure.at(shown))
    }
}

/// An error in which a folder is replaced by its address.
fn renamed(error: Error, folder: &Path, shown: &Path) -> Error {
    let of = |path: PathBuf| match path.strip_prefix(folder) {
        Ok(rest) if rest.as_os_str().is_empty() => shown.to_owned(),
        Ok(rest) => {
            let rest = rest.to_string_lossy().replace('\\', "/");
            PathBuf::from(format!("{}/{rest}", shown.to_string_lossy().trim_end_matches('/')))
        }
        Err(_) => path,
    };
    let in_text =
        |text: String| text.replace(&*folder.to_string_lossy(), shown.to_string_lossy().trim_end_matches('/'));
    match error {
        // A failure of the folder itself is about this machine.
        Error::Dataset { path, what, expected } => Error::Dataset { path: of(path), what, expected },
        Error::OtherVersion { path, what, expected } => Error::OtherVersion { path: of(path), what, expected },
        Error::Incompatible { path, difference } => Error::Incompatible { path: of(path), difference },
        Error::NotFound { what, message } => Error::NotFound { what, message: in_text(message) },
        Error::Usage(text) => Error::Usage(in_text(text)),
        other => other,
    }
}
