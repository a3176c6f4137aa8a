//! The files that sum up the recordings of a dataset of several: `manifest.json` and `views.sql`.

use tracequet_dataset::format::{Head, Layout, Summed, TableInfo, paths};
use tracequet_dataset::table::schema::{self, SCHEMA_VERSION};
use tracequet_dataset::table::views;

use super::empty;
use super::head::Written;
use crate::files::Lake;
use crate::prelude::*;

/// Writes them, by the entries of the recordings and the tables of which there is a file without rows. With `anew` all
/// entries are read, whatever the summary of now says of them.
pub fn describe(lake: &Lake, written: Written, anew: bool) -> Result<()> {
    lake.describe(anew, |summed| {
        let (text, names) = manifest(written, summed, &empty::there(lake, written.format)?)?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let files = views::Files { only_trace: None, read_by: written.format.into() };
        Ok(vec![(paths::VIEWS, views::sql(&names, files)), (paths::MANIFEST, text)])
    })
}

/// The text of `manifest.json`, by the entries; and the names of the tables, those of facts first. Of the tables
/// `empty` there is a file without rows, whether a recording has such a table or not.
pub fn manifest(written: Written, summed: &Summed, empty: &[String]) -> Result<(String, Vec<String>)> {
    let mut tables: Vec<TableInfo> = summed.tables().collect();
    let known: HashSet<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    let more: Vec<&String> = empty.iter().filter(|name| !known.contains(name.as_str())).collect();
    tables.extend(more.into_iter().map(|name| TableInfo::new(name, 0, 0)));
    let order: HashMap<&str, usize> =
        schema::all()?.iter().enumerate().map(|(place, table)| (table.name.as_str(), place)).collect();
    let place = |table: &TableInfo| order.get(table.name.as_str()).copied().unwrap_or(order.len());
    tables.sort_by(|a, b| (place(a), &a.name).cmp(&(place(b), &b.name)));
    let head = Head::of_now(SCHEMA_VERSION, Layout::Hive, written.format, written.address_type);
    let text = summed.manifest(&head, &tables);
    Ok((text, tables.into_iter().map(|table| table.name).collect()))
}
