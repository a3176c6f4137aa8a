//! A hidden directory of a dataset, for files that take their places there later.

use crate::prelude::*;

use tracequet_dataset::write::staging::Staging;

/// The directory. Dropped, it is removed with what is left in it; the next run removes one of a run that was killed.
#[derive(Debug)]
pub struct Workspace(Staging);

impl Workspace {
    /// Makes one in the directory of a dataset.
    pub fn inside(folder: &Path) -> Result<Workspace> {
        Staging::inside(folder).map(Workspace)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}
