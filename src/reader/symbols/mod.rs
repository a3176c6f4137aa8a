//! Source lines of managed code from symbols on this machine: portable PDBs, alone or embedded in an assembly.
//!
//! A file is taken only when its id is the one that the recording has for the module, never by its name alone.

mod pe;
mod portable_pdb;
mod search;

pub use search::{ManagedModule, Symbols};
