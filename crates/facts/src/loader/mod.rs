//! What the runtime loads and compiles: assemblies, modules, code.

pub mod assemblies;
pub mod assembly_loads;
pub mod compilation;
pub mod managed_modules;
