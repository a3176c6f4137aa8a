//! The upkeep of a dataset of several recordings, in a directory or an object store, as a person asks for it.

mod compact;
mod described;
mod empty;
mod expire;
mod head;
mod label;
mod located;
mod mend;

pub use compact::{compact, put, put_held, unpacked};
pub use described::{describe, manifest};
pub use empty::Empty;
pub use expire::{Expire, Expired, expire};
pub use head::{Written, check_head};
pub use label::{Relabel, relabel};
pub use located::{at, of};
pub use mend::{remove, repair};

#[cfg(test)]
pub(crate) use mend::mend;
