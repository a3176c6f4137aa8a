//! Writes a dataset that appears whole to a store: first to a local folder, then uploaded.

use std::sync::Arc;
use std::time::Instant;

use tracequet_dataset::format::paths::{ENTRIES, MANIFEST};
use tracequet_trace::source::store::{Address, Failure, FailureKind, Service, Store, When, each, open};

use crate::prelude::*;
use crate::request::Convert;
use crate::summary::{Summary, elapsed_ns};
use tracequet_lake::{Folder, files_below};

/// Where a dataset goes, and the folder where it is made.
#[derive(Debug)]
pub(crate) struct Target {
    address: Address,
    store: Arc<dyn Store>,
    folder: Folder,
}

/// The address that a request writes to, if its output is one.
pub(crate) fn address_of(request: &Convert) -> Result<Option<Address>> {
    let Some(address) = Address::parse(&request.output) else { return Ok(None) };
    let address = address?;
    let refuse = |what: &str| Err(Error::Usage(format!("{}: {what}", address.shown().display())));
    if address.service == Service::Http {
        return refuse("a plain HTTP server takes no dataset, expected a directory or an address of s3, gs or az");
    }
    if request.overwrite {
        return refuse("a dataset in a store cannot be replaced in one step; choose another address");
    }
    Ok(Some(address))
}

impl Target {
    /// The target of a request for a dataset that appears whole, if its output is an address.
    pub(crate) fn of(request: &Convert) -> Result<Option<Target>> {
        let Some(address) = address_of(request)? else { return Ok(None) };
        let store = open(&address)?;
        Ok(Some(Target { address, store, folder: Folder::new()? }))
    }

    /// Makes the dataset by `make`, which writes to the output of the request that it is given; then uploads it.
    pub(crate) fn make(&self, request: &Convert, make: impl FnOnce(&Convert) -> Result<Summary>) -> Result<Summary> {
        let started = Instant::now();
        let shown = self.address.shown();
        if self.store.has_any(self.address.prefix()).map_err(|failure| failure.at(&shown))? {
            return Err(Error::Exists { path: shown, replaceable: false });
        }
        let output = self.folder.path().join("dataset");
        let summary = make(&Convert { output: output.clone(), ..request.clone() })?;
        self.upload(&output)?;
        Ok(Summary { output: shown, elapsed_ns: elapsed_ns(started), ..summary })
    }

    /// Uploads a dataset. The manifest comes last: what has none is no dataset. When it fails, what was uploaded is
    /// removed.
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
            // The other dataset's files may have the names of ours.
            return Err(Failure::other("another writer has created a dataset there in the meantime").at(shown).into());
        }
        // Best effort: a store that failed may fail again.
        let _ = each(&files, |name| self.store.delete(&self.address.below(name)));
        Err(failure.at(shown).into())
    }
}
