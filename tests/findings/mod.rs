//! `tracequet explain` on programs that have a defect, and on the same work without it.

mod attribution;
pub mod bugs;
mod document;
mod habits;
mod parts;
