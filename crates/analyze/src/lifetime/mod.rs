//! Lives of sampled objects: allocation samples have the address of their object, and collections list what survived.
//! Followed from collection to collection, each sample says in which one its object died, or that it is alive.
//!
//! Collections come in the order of their starts, as [`survived`](crate::survived::survived) follows them. What runs in
//! the background collects generation 2, large and pinned objects alone, none of which moves meanwhile: it decides at
//! its start what it will find dead, so that an object which takes the same address while it runs is another one.

mod by_address;
mod change;
mod found;
mod groups;
mod heap;
mod life;
mod live;
mod names;
mod origins;
mod sample;
mod samples;
mod sums;

pub use change::{ChangeRow, changes};
pub use found::{TABLE, TABLES, found_lifetimes, lifetimes, stored_lifetimes};
pub use groups::{GroupRow, lifetimes_by};
pub use life::{Fate, Life, Lifetime};
pub use live::{FullCollection, Growth, GrowthRow, Live, LiveRow, growth, live_at, live_times};
pub use names::{By, Group, NAMES};
pub use origins::{OriginRow, Origins, origins};
pub use sample::{Sample, SampleList};
pub use samples::Samples;
pub use sums::{Percentiles, Sums};

#[cfg(test)]
pub(crate) mod tests {
    pub(crate) mod simulated;
}
