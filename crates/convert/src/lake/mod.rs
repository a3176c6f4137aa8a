//! Datasets of several recordings, in a directory or an object store: entries, summary, files without rows.

mod compact;
pub(crate) mod described;
pub(crate) mod empty;
pub(crate) mod entries;
mod expire;
pub(crate) mod head;
mod label;
mod located;
pub(crate) mod mend;

pub(crate) use compact::{compact, put, put_held, unpacked};
pub(crate) use expire::expire;
pub use expire::{Expire, Expired};
pub use label::Relabel;
pub(crate) use label::relabel;
pub(crate) use located::{at, of};
pub(crate) use mend::{remove, repair};
