//! Symbols on this machine: source lines of managed code by portable PDBs, alone or embedded in an assembly; names and
//! lines of native code by PDBs and, with the feature `native-symbols`, by ELF files.
//!
//! A file is taken only when its id is the one that the recording has for the module, never by its name alone.

mod decorated;
#[cfg(feature = "native-symbols")]
mod elf;
#[cfg(feature = "native-symbols")]
mod elf_lines;
mod files;
mod functions;
mod msf;
mod native;
mod native_lines;
mod native_pdb;
mod pe;
mod portable_pdb;
mod search;
#[cfg(feature = "native-symbols")]
mod spelled;

pub use functions::NativePlace;
pub use native::{NativeKey, NativeModule};
pub use native_pdb::NativePdb;
pub use portable_pdb::PortablePdb;
pub use search::{ManagedModule, Symbols};
