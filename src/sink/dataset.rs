//! A dataset in the making.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;

use super::file::TableFile;
use super::place::{self, Place};
use super::{DatasetOptions, Format, TableId, TableSpec, WrittenTable, failure, properties};
use crate::error::{Error, Result};

/// A dataset in the making: tables are declared, filled and closed, and [`Dataset::commit`] puts the whole in place.
/// Dropped without a commit, it leaves nothing behind.
#[derive(Debug)]
pub struct Dataset {
    place: Place,
    options: DatasetOptions,
    taken: HashSet<PathBuf>,
    tables: Vec<Table>,
}

#[derive(Debug)]
struct Table {
    spec: TableSpec,
    path: String,
    rows: u64,
    writer: Option<ArrowWriter<TableFile>>,
}

impl Dataset {
    /// Begins a dataset that will stand at `out`.
    pub fn create(out: &Path, options: DatasetOptions) -> Result<Dataset> {
        properties::check(options.format, options.compression)?;
        let place = Place::new(out, options.overwrite)?;
        Ok(Dataset { place, options, taken: HashSet::new(), tables: Vec::new() })
    }

    /// Sets the partition of the tables that are declared from here on.
    pub fn set_partition(&mut self, partition: Option<String>) {
        self.options.partition = partition;
    }

    /// Declares a table.
    pub fn table(&mut self, spec: TableSpec) -> Result<TableId> {
        let extension = match self.options.format {
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
        };
        let path = match &self.options.partition {
            Some(partition) => format!("{}/{partition}/part-0.{extension}", spec.name),
            None => format!("{}.{extension}", spec.name),
        };
        let file = self.claim(&path)?;
        let properties = properties::writer_properties(&spec, self.options.compression)?;
        let writer = ArrowWriter::try_new(TableFile::new(file.clone()), spec.schema.clone(), Some(properties))
            .map_err(failure::parquet(&file))?;
        self.tables.push(Table { spec, path, rows: 0, writer: Some(writer) });
        Ok(TableId(self.tables.len() - 1))
    }

    /// Writes rows of a table.
    pub fn write(&mut self, table: TableId, batch: RecordBatch) -> Result<()> {
        let table = self.open_table(table)?;
        properties::check_batch(&table.spec, batch.schema_ref())?;
        if let Some(writer) = &mut table.writer {
            let path = writer.inner().path().to_owned();
            writer.write(&batch).map_err(failure::parquet(&path))?;
        }
        table.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Ends the current row group of a table, as when the order of its rows begins anew.
    pub fn cut(&mut self, table: TableId) -> Result<()> {
        let table = self.open_table(table)?;
        if let Some(writer) = &mut table.writer {
            let path = writer.inner().path().to_owned();
            writer.flush().map_err(failure::parquet(&path))?;
        }
        Ok(())
    }

    /// Ends all open tables, each with `metadata` in its footer, and says what they have become, in the order in which
    /// they were declared.
    pub fn close_tables(&mut self, metadata: &[(String, String)]) -> Result<Vec<WrittenTable>> {
        let mut written = Vec::new();
        for table in &mut self.tables {
            let Some(mut writer) = table.writer.take() else { continue };
            for (key, value) in metadata {
                writer.append_key_value_metadata(KeyValue::new(key.clone(), value.clone()));
            }
            let path = writer.inner().path().to_owned();
            writer.finish().map_err(failure::parquet(&path))?;
            writer.inner_mut().release();
            written.push(WrittenTable {
                name: table.spec.name.clone(),
                path: table.path.clone(),
                rows: table.rows,
                bytes: writer.inner().written(),
            });
        }
        Ok(written)
    }

    /// Writes a file that is no table.
    pub fn file(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.claim(name)?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        }
        std::fs::write(&path, bytes).map_err(Error::io(path))
    }

    /// Puts the dataset in its place.
    pub fn commit(self) -> Result<()> {
        if self.tables.iter().any(|table| table.writer.is_some()) {
            return Err(Error::Internal("a dataset is committed with open tables".into()));
        }
        self.place.commit()
    }

    fn claim(&mut self, name: &str) -> Result<PathBuf> {
        let path = self.place.path().join(place::relative(name)?);
        if self.taken.insert(path.clone()) {
            Ok(path)
        } else {
            Err(Error::Internal(format!("{name} is in the dataset already")))
        }
    }

    fn open_table(&mut self, table: TableId) -> Result<&mut Table> {
        self.tables
            .get_mut(table.0)
            .filter(|table| table.writer.is_some())
            .ok_or_else(|| Error::Internal("no such open table".into()))
    }
}
