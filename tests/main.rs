//! All integration tests in one binary, one file per subject.

mod damage;
#[cfg(feature = "packed")]
mod hostile;
mod limits;
mod order;
#[cfg(feature = "packed")]
mod packing;
#[cfg(feature = "packed")]
mod shared;
mod support;
