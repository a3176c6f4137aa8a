//! A recording as one HTML page: no server, no network, opens from disk.
//!
//! What a page says stands in it as HTML and SVG, and is read without script. A script of our own improves it: tables can be
//! sorted, the timeline zoomed, and flame graphs and the map of the heap are drawn. Everything is aggregated here, within
//! bounds, so that a page has at most some megabytes whatever the recording. The same dataset gives the same bytes.

pub mod changes;
mod collections;
mod counters;
mod document;
mod facts;
mod flame;
mod flame_change;
mod follow;
mod generations;
mod handlers;
mod heap_map;
mod histogram;
mod joins;
mod lake;
mod lines;
mod opened;
mod owners;
mod packed;
mod page;
mod pool;
mod prelude;
mod read;
mod requests;
mod retained;
mod selection;
mod sites;
mod subjects;
mod survival;
mod tasks;
mod threads;
mod timeline;
mod tree;
mod waterfall;

pub use lake::{lake, page_of};
pub use page::{TABLES, page, page_after, page_with};
pub use retained::MAX_HEAP;
