//! Readers: order of events, archives, streams that grow, heap dumps, and what independent decoders found.

pub mod gcdump;
mod live_reader;
mod order;
mod packing;
mod shared;
