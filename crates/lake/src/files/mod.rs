//! The way of recordings and packs into a dataset and out of it.

mod directory;
mod held;
mod lake;
mod lock;
mod merged;
mod packed;
mod parts;
mod recording;
mod storage;
mod workspace;

pub use directory::Directory;
pub use held::{HeldTable, HeldTables};
pub use lake::{Lake, Put};
pub use merged::{MergedTable, merged_schema};
pub use parts::{Announce, Parts};
pub use recording::{NewFile, NewRecording};
pub use storage::{GRACE, Holds, Listed, Manifest, ReadEntry, Storage, Turn};
pub use workspace::Workspace;
