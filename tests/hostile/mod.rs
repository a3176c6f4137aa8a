//! Damage, gaps, and bytes that were made to do harm: no panic, bounded memory, and each loss is reported.

mod backwards;
mod bounds;
#[cfg(all(feature = "cli", feature = "packed", target_os = "linux"))]
mod copies;
pub mod damage;
#[cfg(feature = "cli")]
mod fields;
#[cfg(feature = "packed")]
pub mod fuzzing;
mod gaps;
mod heap_memory;
#[cfg(all(feature = "cli", target_os = "linux"))]
mod held_memory;
mod held_rows;
pub mod limits;
#[cfg(all(feature = "cli", feature = "packed"))]
mod long_names;
mod losses;
mod parquet;
#[cfg(feature = "cli")]
mod ranges;
#[cfg(feature = "packed")]
mod recordings;
pub mod resync;
#[cfg(all(feature = "cli", target_os = "linux"))]
mod shrink;
mod silent_damage;
mod unended;
#[cfg(feature = "packed")]
mod values;
