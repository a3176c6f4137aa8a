//! Changes what a dataset of several recordings has: removes some, or makes the summary anew, whatever became of it.

use crate::compact::remove_recordings;
use crate::files::{Holds, Lake};
use crate::prelude::*;
use tracequet_dataset::format::{AddressType, Format, Head, Layout, is_ours, paths};
use tracequet_dataset::read::{Table, arrow_schema::DataType};
use tracequet_dataset::table::schema;

use super::compact::threads;
use super::described::describe;
use super::head::{Written, head_of, not_several};
use super::located::at;

/// Removes recordings of a dataset of several, each whole. Fails when one is not there.
pub fn remove(dataset: &Path, keys: &[String]) -> Result<()> {
    let lake = at(dataset)?;
    let written = head_of(&lake)?;
    lake.storage().open()?;
    let gone = remove_recordings(&lake, keys, threads())?;
    if let Some(key) = keys.iter().find(|key| !gone.contains(*key)) {
        return Err(Error::Usage(format!("{}: there is no recording {key}", lake.storage().shown().display())));
    }
    describe(&lake, written, false)
}

/// Writes `manifest.json` and `views.sql` of a dataset of several recordings anew, by the entries of the recordings,
/// and removes what killed runs left there. Returns the entries that are damaged, each with what is wrong.
pub fn repair(dataset: &Path) -> Result<Vec<String>> {
    mend(&at(dataset)?)
}

/// Mends a dataset wherever it lies.
pub(crate) fn mend(lake: &Lake) -> Result<Vec<String>> {
    if lake.storage().holds()? != Holds::Recordings {
        return Err(not_several(&lake.storage().shown()));
    }
    let written = written_as(lake)?;
    lake.storage().open()?;
    describe(lake, written, true)?;
    let shown = lake.storage().shown();
    Ok(lake.summed(true)?.damaged().iter().map(|damaged| damaged.at(&shown).to_string()).collect())
}

/// The format and the type of addresses of a dataset: as its manifest says, and where that is damaged, as its files
/// are.
fn written_as(lake: &Lake) -> Result<Written> {
    let path = lake.storage().shown().join(paths::MANIFEST);
    let manifest = lake.storage().manifest()?.and_then(|manifest| manifest.text.ok());
    if let Some(manifest) = manifest.filter(|manifest| is_ours(manifest)) {
        let head = Head::parse(&path, &manifest, None).ok();
        if let Some(Head { layout, format, address_type: Some(address_type), .. }) = head {
            return if layout == Layout::Hive {
                Ok(Written { format, address_type })
            } else {
                Err(not_several(&lake.storage().shown()))
            };
        }
    }
    let tables = schema::all()?;
    let names = lake.some_files(&tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>())?;
    for table in tables {
        let Some(column) = table.columns.iter().find(|column| column.kind == "uint64") else { continue };
        for format in Format::ALL {
            let is_of_table = |name: &&String| {
                paths::table_of(name) == Some(&table.name) && name.ends_with(&format!(".{}", format.name()))
            };
            let Some(name) = names.iter().find(is_of_table) else { continue };
            let file: PathBuf = lake.storage().copy(name)?;
            let schema = Table::of_file(&table.name, file, format).scan().batches()?.schema();
            let Ok(field) = schema.field_with_name(&column.name) else { continue };
            let is_signed = field.data_type() == &DataType::Int64;
            let address_type = if is_signed { AddressType::Int64 } else { AddressType::Uint64 };
            return Ok(Written { format, address_type });
        }
    }
    Err(Error::Dataset {
        path,
        what: "cannot be read, and there is no table that shows how tables are written".into(),
        expected: "a dataset with a recording: make another one".into(),
    })
}
