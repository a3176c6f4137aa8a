//! Presents answers: a cell is a value with its unit, tables and sentences are made of cells, and a document of these. There is
//! one function that writes a number for people, one place that escapes for each form, and a renderer for each: text for terminals,
//! Markdown, JSON, CSV, HTML.

mod cell;
mod document;
mod escape;
mod html;
mod markdown;
mod programs;
mod sentence;
mod table;
mod text;
pub mod times;
pub mod units;

pub use cell::{Amount, Cell, Number, Unit};
pub use document::{Answer, Document, Format};
pub use escape::{MAX_SHOWN, clean, code, cut, escaped, escaped_name, escaped_sentence, shown, xml};
pub use sentence::Sentence;
pub use table::{Color, Column, Table, numbers, words};
pub use text::{Terminal, folded, shortened};

pub use crate::table;
