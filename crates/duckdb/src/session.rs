//! The recordings that the process has asked for: each is converted once, until its file is another one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use tracequet_convert::{Convert, TemporaryDataset};
use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::read::Dataset;

use crate::capi::{Interrupt, at_exit};

/// A dataset that can be asked. A recording's stays until it is not used any more, even if the file has become another
/// one.
#[derive(Clone)]
pub enum Opened {
    /// A directory that `convert` wrote.
    Dataset(Dataset),
    /// A recording.
    Recording(Arc<TemporaryDataset>),
}

impl Opened {
    /// The dataset.
    pub fn dataset(&self) -> &Dataset {
        match self {
            Opened::Dataset(dataset) => dataset,
            Opened::Recording(converted) => &converted.dataset,
        }
    }
}

/// By what a file is seen to be another one.
#[derive(Clone, PartialEq)]
struct Stamp(u64, Option<SystemTime>);

/// A recording as it was when it was converted. Whoever converts it holds the lock.
type Slot = Arc<Mutex<Option<(Stamp, Arc<TemporaryDataset>)>>>;

static RECORDINGS: OnceLock<Mutex<HashMap<PathBuf, Slot>>> = OnceLock::new();

/// The process that converts.
static OWNER: OnceLock<u32> = OnceLock::new();

/// Opens a dataset, or a recording: converted, unless it was before.
pub fn open(input: &Path) -> Result<Opened> {
    if input.is_dir() {
        return Ok(Opened::Dataset(Dataset::open(input)?));
    }
    let place = input.canonicalize().map_err(Error::io(input))?;
    let slot = recordings().entry(place.clone()).or_default().clone();
    let mut known = lock(&slot);
    let stamp = stamp(&place)?;
    if let Some((_, converted)) = known.as_ref().filter(|(of, _)| *of == stamp) {
        return Ok(Opened::Recording(converted.clone()));
    }
    // The old one goes before there is a new one, unless somebody reads it.
    *known = None;
    let folder = tempfile::Builder::new().prefix("tracequet-duckdb-").tempdir();
    let folder = folder.map_err(Error::io(std::env::temp_dir()))?;
    let interrupt = Interrupt::watch();
    let request = Convert::default().inputs([place]).stop(interrupt.seen());
    let converted = Arc::new(TemporaryDataset::convert(folder, request, &mut |_| {})?);
    *known = Some((stamp, converted.clone()));
    Ok(Opened::Recording(converted))
}

/// Forgets all recordings. Returns how many there were.
pub fn forget() -> u64 {
    let all = std::mem::take(&mut *recordings());
    all.into_values().filter(|slot| lock(slot).take().is_some()).count() as u64
}

fn recordings() -> MutexGuard<'static, HashMap<PathBuf, Slot>> {
    let all = RECORDINGS.get_or_init(|| {
        OWNER.get_or_init(std::process::id);
        at_exit(remove_all);
        Mutex::default()
    });
    lock(all)
}

/// Removes the temporary datasets when the process ends, because statics are not dropped. A process that was forked has
/// them of its parent.
fn remove_all() {
    if OWNER.get() == Some(&std::process::id()) {
        forget();
    }
}

fn stamp(path: &Path) -> Result<Stamp> {
    let file = std::fs::metadata(path).map_err(Error::io(path))?;
    Ok(Stamp(file.len(), file.modified().ok()))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
