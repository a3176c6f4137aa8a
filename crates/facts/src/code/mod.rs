//! Code: types, methods, modules, call stacks and what their frames are.

pub mod bulk_types;
pub mod callsites;
pub mod code_map;
pub mod frames;
pub mod groups;
pub mod il_maps;
pub mod inlined;
pub mod inlinings;
pub mod lines;
pub mod mappings;
pub mod methods;
pub mod modules;
mod nodes;
pub mod own;
mod paths;
pub mod types;
mod walk;
pub mod written;
