//! Makes the summary of a dataset of several recordings anew, whatever became of it.

use std::path::{Path, PathBuf};

use tracequet_dataset::format::{AddressType, Format, Head, Layout, is_ours, paths};
use tracequet_dataset::read::{Table, arrow_schema::DataType};
use tracequet_dataset::table::schema::{self, SCHEMA_VERSION};
use tracequet_dataset::write::{Lake, entries, read_manifest};
use tracequet_trace::error::{Error, Result};

use super::described;
use crate::request::Convert;

/// Writes `manifest.json` and `views.sql` of the dataset in a directory by the entries of its recordings. Returns the entries
/// that are damaged, in words.
pub(crate) fn run(root: &Path) -> Result<Vec<String>> {
    if !root.join(paths::ENTRIES).is_dir() {
        return Err(not_several(root));
    }
    let manifest = read_manifest(&root.join(paths::MANIFEST)).ok();
    let names = files(root)?;
    let (format, address_type) = written_as(root, manifest.as_deref(), &names, |name| Ok(root.join(name)))?;
    let lake = Lake::open(root, true)?;
    let request =
        Convert { output: root.to_owned(), append: true, refresh: true, format, address_type, ..Convert::default() };
    described::write(&request, &lake)?;
    let summed = lake.summed(SCHEMA_VERSION, true)?;
    Ok(summed.damaged().iter().map(|damaged| damaged.at(root).to_string()).collect())
}

/// How the tables of a dataset are written: as its manifest says, and where that is damaged, as its files are. `names` are those of
/// its files, and `get` makes one of them a file of this machine.
pub(crate) fn written_as(
    root: &Path,
    manifest: Option<&[u8]>,
    names: &[String],
    get: impl Fn(&str) -> Result<PathBuf>,
) -> Result<(Format, AddressType)> {
    if let Some(manifest) = manifest.filter(|manifest| is_ours(manifest)) {
        let head = Head::parse(root, manifest, None).ok();
        if let Some(Head { layout, format, address_type: Some(address_type), .. }) = head {
            return if layout == Layout::Hive { Ok((format, address_type)) } else { Err(not_several(root)) };
        }
    }
    for table in schema::all()? {
        let Some(column) = table.columns.iter().find(|column| column.kind == "uint64") else { continue };
        for format in Format::ALL {
            let is_of_table = |name: &&String| {
                paths::table_of(name) == Some(&table.name) && name.ends_with(&format!(".{}", format.name()))
            };
            let Some(name) = names.iter().find(is_of_table) else { continue };
            let schema = Table::of_file(&table.name, get(name)?, format).scan().batches()?.schema();
            let Ok(field) = schema.field_with_name(&column.name) else { continue };
            let is_signed = field.data_type() == &DataType::Int64;
            return Ok((format, if is_signed { AddressType::Int64 } else { AddressType::Uint64 }));
        }
    }
    Err(Error::Dataset {
        path: root.join(paths::MANIFEST),
        what: "cannot be read, and there is no table that shows how tables are written".into(),
        expected: "a dataset with a recording: make another one".into(),
    })
}

/// The files of tables below a directory, by their names with `/`: of each table those of some recording.
fn files(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (key, entry) in entries(root)? {
        let Ok(entry) = entry else { continue };
        let Ok(entry) = tracequet_dataset::format::Entry::parse(&key, &entry) else { continue };
        for table in entry.tables.iter().filter(|table| table.bytes > 0) {
            let names = Format::ALL.map(|format| paths::file(&table.name, &key, format));
            found.extend(names.into_iter().filter(|name| root.join(name).is_file()));
        }
        if !found.is_empty() {
            break;
        }
    }
    Ok(found)
}

fn not_several(root: &Path) -> Error {
    Error::Usage(format!("{} is not a dataset of several recordings", root.display()))
}
