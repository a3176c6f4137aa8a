//! The files that sum up the recordings of a dataset of several: `manifest.json` and `views.sql`.

use tracequet_dataset::table::views;
use tracequet_dataset::write::{Format, Summed};
use tracequet_trace::error::Result;

use super::manifest;
use super::request::Convert;

/// Their names and texts, by the entries of the recordings and the tables of which there is a file without rows. The
/// manifest is the last.
pub(super) fn files(request: &Convert, summed: &Summed, empty: &[String]) -> Result<Vec<(&'static str, String)>> {
    let (text, names) = manifest::of_several(request, summed, empty)?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let files = views::Files { only_trace: None, arrow: request.format == Format::Arrow };
    Ok(vec![("views.sql", views::sql(&names, files)), ("manifest.json", text)])
}
