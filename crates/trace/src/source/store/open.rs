//! Opens the store of an address.

use std::sync::Arc;

use super::address::Address;
#[cfg(feature = "cloud")]
use super::connect;
use super::object::Store;
use crate::prelude::*;

/// The store that an address is in. What is needed to speak to it comes from the environment.
pub fn open(address: &Address) -> Result<Arc<dyn Store>> {
    #[cfg(feature = "cloud")]
    return connect::store_at(address);
    #[cfg(not(feature = "cloud"))]
    Err(Error::Usage(format!(
        "{}: this tracequet was built without the feature `cloud`, as the Python package is, so it reads and writes \
         files only: copy what is there to this machine (aws s3 cp --recursive, rclone copy; in Python, tracequet.open \
         copies a recording by pyarrow), or build with cargo build --release --features cloud",
        address.shown().display()
    )))
}
