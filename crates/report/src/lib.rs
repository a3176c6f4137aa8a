//! A recording as one HTML page: no server, no network, opens from disk.
//!
//! What a page says stands in it as HTML and SVG, and is read without script. A script of our own improves it: tables can be
//! sorted, the timeline zoomed, and flame graphs and the map of the heap are drawn. Everything is aggregated here, within
//! bounds, so that a page has at most some megabytes whatever the recording. The same dataset gives the same bytes.

mod collections;
mod facts;
mod flame;
mod heap_map;
mod html;
mod packed;
mod page;
mod read;
mod subjects;
mod timeline;
pub mod units;

pub use page::{TABLES, page};
