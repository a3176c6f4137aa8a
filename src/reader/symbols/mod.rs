//! Symbols on this machine: source lines of managed code by portable PDBs, alone or embedded in an assembly; with the feature
//! `native-symbols` names and lines of native code by ELF files.
//!
//! A file is taken only when its id is the one that the recording has for the module, never by its name alone.

mod files;
#[cfg(feature = "native-symbols")]
mod native;
mod pe;
mod portable_pdb;
mod search;

#[cfg(feature = "native-symbols")]
pub use native::{NativeModule, NativePlace};
pub use portable_pdb::PortablePdb;
pub use search::{ManagedModule, Symbols};
