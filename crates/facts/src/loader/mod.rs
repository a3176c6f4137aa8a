//! Assemblies, modules and code, which the runtime loads and compiles.

pub mod assemblies;
pub mod assembly_loads;
pub mod compilation;
pub mod managed_modules;
