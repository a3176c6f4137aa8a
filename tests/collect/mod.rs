//! Live recordings: `tracequet collect` and `ps` on real runtimes and on made-up ones.

mod beside;
mod faults;
mod follow;
mod follow_faults;
pub mod process;
mod service;
mod session;
