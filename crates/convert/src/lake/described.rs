//! The files that sum up the recordings of a dataset of several: `manifest.json` and `views.sql`.

use tracequet_dataset::error::Result;
use tracequet_dataset::format::paths;
use tracequet_dataset::table::views;
use tracequet_dataset::write::Lake;

use super::{empty, entries};
use crate::request::Convert;

/// Writes them, by the entries of the recordings and the tables of which there is a file without rows.
pub(crate) fn write(request: &Convert, lake: &Lake) -> Result<()> {
    lake.describe(request.refresh, |summed| {
        let (text, names) = entries::of_several(request, summed, &empty::there(lake, request.format)?)?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let files = views::Files { only_trace: None, read_by: request.format.into() };
        Ok(vec![(paths::VIEWS, views::sql(&names, files)), (paths::MANIFEST, text)])
    })
}
