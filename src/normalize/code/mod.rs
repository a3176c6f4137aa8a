//! Code: modules, types, methods, and call stacks.

pub mod callsites;
pub mod modules;
pub mod types;
