//! Readers: order of events, archives, streams that grow, heap dumps, and what independent decoders found.

pub mod gcdump;
mod live_reader;
mod order;
#[cfg(feature = "packed")]
mod packing;
#[cfg(feature = "packed")]
mod shared;
