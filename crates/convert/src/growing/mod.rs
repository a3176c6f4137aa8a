//! A recording that grows while it is converted.

mod append;
mod follow;
mod live;

pub use live::{Collected, collect_port};
