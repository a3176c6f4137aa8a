//! Where a dataset of several recordings lies, by its name.

use crate::files::{Directory, Lake, Storage};
use crate::prelude::*;
use tracequet_dataset::table::schema::SCHEMA_VERSION;
use tracequet_trace::source::store::Address;

use crate::stored::Bucket;

/// The dataset in a directory or at an address.
pub fn at(name: &Path) -> Result<Lake> {
    Ok(match Address::parse(name) {
        Some(address) => of(Bucket::at(address?)?),
        None => of(Directory::new(name, true)),
    })
}

/// The dataset in a storage.
pub fn of(storage: impl Storage + 'static) -> Lake {
    Lake::of(storage, SCHEMA_VERSION)
}
