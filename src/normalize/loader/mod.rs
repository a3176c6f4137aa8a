//! What the runtime loads and compiles: assemblies, modules, code.

pub mod assemblies;
pub mod assembly_loads;
pub mod compilation;
mod listed;
pub mod managed_modules;
