//! Damage, gaps, and bytes that were made to do harm: no panic, bounded memory, and each loss is reported.

mod backwards;
mod bounds;
#[cfg(target_os = "linux")]
mod copies;
pub mod damage;
mod fields;
pub mod fuzzing;
mod gaps;
mod heap_memory;
#[cfg(target_os = "linux")]
mod held_memory;
mod held_rows;
pub mod limits;
mod long_names;
mod losses;
mod parquet;
mod ranges;
mod recordings;
pub mod resync;
#[cfg(target_os = "linux")]
mod shrink;
mod silent_damage;
mod texts;
mod unended;
mod values;
