//! Windows event logs: real files against what an independent reader found in them, and made files with every kind of
//! damage.

#[cfg(feature = "tables")]
mod convert;
mod decoded;
mod expected;
mod hostile;
#[cfg(feature = "tables")]
pub mod processes;
mod stacks;
mod writer;
