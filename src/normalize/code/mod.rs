//! Code: types, methods, modules, and call stacks.

pub mod callsites;
pub mod methods;
pub mod modules;
pub mod types;
