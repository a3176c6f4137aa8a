//! A dataset in the making, and the rules by which row groups end.

use crate::prelude::*;
use std::collections::HashSet;

use super::limits::{self, Limits};
use super::shelf::Shelf;
use super::staging::{self, Staging};
use super::table::{Table, TablePath};
use super::workers::{Encoders, Workers};
use super::{DatasetOptions, TableId, TableSpec, WrittenTable, properties};

/// A dataset in the making: tables are declared, filled and closed, and [`DatasetWriter::commit`] puts the whole in
/// place. Dropped without a commit, it leaves nothing behind.
///
/// A failure of an encoding thread comes out of the next call, and nothing can be committed after it.
pub struct DatasetWriter {
    // Dropped in this order: the directory must outlive the threads and the open files, which flush what they hold.
    workers: Workers,
    tables: Vec<Table>,
    staging: Arc<Staging>,
    options: DatasetOptions,
    /// Where files are moved to their places one by one: until then they lie side by side, under this and a number.
    apart: Option<String>,
    taken: HashSet<PathBuf>,
    /// Bytes given to each worker, the measure by which tables are dealt out.
    loads: Vec<usize>,
    /// Bytes of all row groups that have not ended.
    open_bytes: usize,
}

/// The result of [`DatasetWriter::finished`]: a hidden directory, and the files in it that have a place in the dataset.
pub struct Finished {
    pub staging: Arc<Staging>,
    /// The first part of the names of its files there.
    pub prefix: String,
    pub files: Vec<FinishedFile>,
}

/// The file of a table, on its way to its place.
#[derive(Debug)]
pub struct FinishedFile {
    pub table: String,
    pub path: PathBuf,
}

impl DatasetWriter {
    /// Begins a dataset that will appear at `out`. It grows in a hidden directory beside it.
    ///
    /// Something that exists there already is a usage error, unless `overwrite` is set and it is an empty directory or
    /// a dataset of tracequet (by its `manifest.json`) without any other file. What a killed run left beside it is
    /// removed.
    pub fn create(out: &Path, options: DatasetOptions) -> Result<DatasetWriter> {
        properties::check(options.format, options.compression)?;
        let staging = Staging::new(out, options.overwrite, &options.inputs)?;
        let encoders = Encoders::start(options.threads);
        Ok(DatasetWriter::growing_in(Arc::new(staging), encoders, options, None))
    }

    /// Begins the files of one recording, which `Lake::put` puts into a dataset of several, in its `folder`.
    /// The encoders are those of all recordings that are written at once.
    pub fn part_of(folder: &Path, encoders: Arc<Encoders>, options: DatasetOptions) -> Result<DatasetWriter> {
        properties::check(options.format, options.compression)?;
        Ok(DatasetWriter::growing_in(Arc::new(Staging::inside(folder)?), encoders, options, Some(String::new())))
    }

    /// A part beside the files of others, where a recording has so few that a directory for each would be most of the
    /// work.
    pub fn part_beside(others: &mut Shelf, encoders: Arc<Encoders>, options: DatasetOptions) -> Result<DatasetWriter> {
        properties::check(options.format, options.compression)?;
        let (staging, prefix) = others.place()?;
        Ok(DatasetWriter::growing_in(staging, encoders, options, Some(prefix)))
    }

    /// Ends a dataset of this table alone. Returns its file, and the directory that it is in.
    pub fn only_file(self, table: &str) -> Result<(PathBuf, Arc<Staging>)> {
        let Finished { staging, files, .. } = self.finished()?;
        let file = files.into_iter().find(|file| file.table == table);
        let file = file.ok_or_else(|| Error::Internal(format!("no file of the table {table}")))?;
        Ok((file.path, staging))
    }

    fn growing_in(
        staging: Arc<Staging>,
        encoders: Arc<Encoders>,
        options: DatasetOptions,
        apart: Option<String>,
    ) -> DatasetWriter {
        let workers = Workers::of(encoders, options.small_here);
        let loads = vec![0; workers.count()];
        DatasetWriter {
            workers,
            staging,
            options,
            apart,
            taken: HashSet::new(),
            tables: Vec::new(),
            loads,
            open_bytes: 0,
        }
    }

    /// The directory in which it grows: the files of closed tables can be read there.
    pub fn path(&self) -> &Path {
        self.staging.path()
    }

    /// The threads that encode for it.
    pub fn encoders(&self) -> Arc<Encoders> {
        self.workers.encoders()
    }

    /// Sets the partition of the tables that are declared from here on.
    pub fn set_partition(&mut self, partition: Option<String>) {
        self.options.partition = partition;
    }

    fn limits(&self) -> Limits {
        if self.options.temporary { limits::TEMPORARY } else { limits::KEPT }
    }

    /// Declares a table. It will have a file even when no rows are written, unless [`DatasetOptions::elsewhere`] names
    /// it.
    pub fn table(&mut self, spec: TableSpec) -> Result<TableId> {
        let DatasetOptions { format, compression, .. } = self.options;
        let place = super::table_path(&spec.name, self.options.partition.as_deref(), format);
        // Alone, too: an empty name would be hidden by the extension.
        staging::relative(&spec.name)?;
        let mut here = self.claim(&place)?;
        if let Some(prefix) = &self.apart {
            here = self.staging.path().join(format!("{prefix}{}.{}", self.tables.len(), format.name()));
        }
        self.tables.push(Table::new(spec, TablePath { here, place }, (format, compression), self.limits())?);
        Ok(TableId(self.tables.len() - 1))
    }

    /// Hands rows of a table to the workers; waits while too much is in their hands already.
    pub fn write(&mut self, table: TableId, batch: RecordBatch) -> Result<()> {
        self.workers.check()?;
        let table = open(&mut self.tables, table)?;
        if batch.schema_ref().fields() != table.spec.schema.fields() {
            return Err(Error::Internal(format!("table {}: a batch has other columns than it", table.spec.name)));
        }
        let sizes = table.meter.measure(&batch);
        let all_rows = batch.num_rows();
        let row_bytes = sizes.iter().sum::<usize>() / all_rows.max(1);
        let mut start = 0;
        while start < all_rows {
            let rows = table.room(row_bytes).min(all_rows - start);
            // In 64 bits: a product of 4 GB has no room in those of WebAssembly.
            let share = |size: &usize| (*size as u64 * rows as u64 / all_rows as u64) as usize;
            let part = sizes.iter().map(share).collect();
            self.open_bytes -= table.held();
            table.add(&self.workers, &mut self.loads, batch.slice(start, rows), part)?;
            self.open_bytes += table.held();
            start += rows;
        }
        while self.open_bytes > self.limits().open {
            // The largest: it makes the most room, and it loses the least by a small row group.
            let Some(largest) = self.tables.iter_mut().rev().max_by_key(|table| table.held()) else { break };
            self.open_bytes -= largest.held();
            largest.cut(&self.workers, &mut self.loads)?;
        }
        Ok(())
    }

    /// Ends all open tables, each with `metadata` in its footer, and says what they have become, in the order in which
    /// they were declared.
    pub fn close_tables(&mut self, metadata: &[(String, String)]) -> Result<Vec<WrittenTable>> {
        let metadata: Arc<[(String, String)]> = metadata.into();
        let mut closed = Vec::new();
        for table in self.tables.iter_mut().filter(|table| table.open) {
            self.open_bytes -= table.held();
            match table.rows() == 0 && self.options.elsewhere.contains(&table.spec.name) {
                true => table.leave_out(),
                false => table.close(&self.workers, &mut self.loads, &metadata)?,
            }
            closed.push(&*table);
        }
        self.workers.wait()?;
        Ok(closed.into_iter().map(Table::summary).collect())
    }

    /// Writes a file that is no table, such as `manifest.json`.
    pub fn file(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.claim(name)?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        }
        std::fs::write(&path, bytes).map_err(Error::io(path))
    }

    /// Whether a table was declared that is not closed.
    fn has_open_tables(&self) -> bool {
        self.tables.iter().any(|table| table.open)
    }

    /// Puts the dataset in its place. All tables must be closed.
    pub fn commit(self) -> Result<()> {
        let shared = || Error::Internal("the directory of a dataset is that of others, too".into());
        Arc::into_inner(self.finished()?.staging).ok_or_else(shared)?.commit()
    }

    /// The directory with all that was written.
    pub fn finished(self) -> Result<Finished> {
        self.workers.check()?;
        if self.has_open_tables() {
            return Err(Error::Internal("a dataset is committed with open tables".into()));
        }
        let file = |table: &Table| {
            let path = table.file()?.here.clone();
            Some(FinishedFile { table: table.spec.name.clone(), path })
        };
        let files = self.tables.iter().filter_map(file).collect();
        Ok(Finished { staging: self.staging, prefix: self.apart.unwrap_or_default(), files })
    }

    /// The path of a file that nothing else in the dataset may have.
    fn claim(&mut self, name: &str) -> Result<PathBuf> {
        let path = self.staging.path().join(staging::relative(name)?);
        if self.taken.insert(path.clone()) {
            Ok(path)
        } else {
            Err(Error::Internal(format!("{name} is in the dataset already")))
        }
    }
}

impl std::fmt::Debug for DatasetWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatasetWriter")
            .field("staging", &self.staging)
            .field("tables", &self.tables.len())
            .finish_non_exhaustive()
    }
}

fn open(tables: &mut [Table], table: TableId) -> Result<&mut Table> {
    let table = tables.get_mut(table.0).filter(|table| table.open);
    table.ok_or_else(|| Error::Internal("no such open table".into()))
}
