//! Object stores, for recordings and datasets that are not on this machine.
//!
//! [`Store`] is all that the rest of the crate knows of them, and nothing of it waits for anything but the thread that
//! calls it. What is asynchronous is in `remote.rs`, which needs the feature `cloud`.

mod address;
#[cfg(any(feature = "cloud", test))]
mod answers;
#[cfg(feature = "cloud")]
mod connect;
#[cfg(feature = "cloud")]
mod failures;
mod fetched;
mod object;
mod open;
#[cfg(feature = "cloud")]
mod remote;

pub use address::{Address, Service, is_address, shown};
pub use fetched::{Fetched, fetch, room};
pub use object::{Failure, FailureKind, Got, Object, Store, Version, When, each, read};
pub use open::open;
