//! A recording that is published while it is written: its rows go into the final files, and at the same time into parts
//! that appear one after the other in a dataset of several recordings. In the end the whole takes the place of the
//! parts.

use crate::prelude::*;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;

use super::directory::Directory;
use tracequet_dataset::write::Encoders;
use tracequet_dataset::write::dataset_writer::DatasetWriter;
use tracequet_dataset::write::{DatasetOptions, TableId, TableSink, TableSpec, WrittenTable};

/// Called with what is published: all tables so far, with their rows and bytes.
pub type Announce<'a> = dyn FnMut(&[WrittenTable]) -> Result<()> + 'a;

/// The tables of a recording, whole and in parts.
pub struct Parts<'a> {
    directory: &'a Directory,
    key: String,
    options: DatasetOptions,
    every: Duration,
    announce: &'a mut Announce<'a>,
    /// The tables whole.
    pub whole: DatasetWriter,
    /// The tables of `whole`, by their ids.
    specs: Vec<TableSpec>,
    /// The part that has rows and is not published yet.
    part: Option<Part>,
    /// When it is to be published.
    due: Instant,
    /// Parts that were published.
    count: u32,
    /// The tables of the parts together.
    published: Vec<WrittenTable>,
    metadata: Vec<(String, String)>,
}

/// The rows since the last part.
struct Part {
    dataset: DatasetWriter,
    /// The tables of the part, by their ids in the whole.
    ids: Vec<Option<TableId>>,
}

impl<'a> Parts<'a> {
    /// For the recording `key` of a dataset, a part at each interval. `metadata` goes into the footer of
    /// each part; `announce` is called when a part is there, and before one with tables that no earlier part had.
    pub fn new(
        directory: &'a Directory,
        key: &str,
        (options, encoders): (DatasetOptions, Arc<Encoders>),
        every: Duration,
        metadata: Vec<(String, String)>,
        announce: &'a mut Announce<'a>,
    ) -> Result<Parts<'a>> {
        Ok(Parts {
            directory,
            key: key.to_owned(),
            whole: DatasetWriter::part_of(directory.path(), encoders, options.clone())?,
            options,
            every,
            announce,
            specs: Vec::new(),
            part: None,
            due: Instant::now() + every,
            count: 0,
            published: Vec::new(),
            metadata,
        })
    }

    fn write_part(&mut self, table: TableId, batch: RecordBatch) -> Result<()> {
        let part = match &mut self.part {
            Some(part) => part,
            None => {
                let dataset =
                    DatasetWriter::part_of(self.directory.path(), self.whole.encoders(), self.options.clone())?;
                self.part.insert(Part { dataset, ids: Vec::new() })
            }
        };
        if part.ids.len() <= table.0 {
            part.ids.resize(table.0 + 1, None);
        }
        let id = match part.ids.get(table.0).copied().flatten() {
            Some(id) => id,
            None => {
                let spec = self.specs.get(table.0).ok_or_else(|| Error::Internal("no such table".into()))?;
                let id = part.dataset.table(spec.clone())?;
                if let Some(place) = part.ids.get_mut(table.0) {
                    *place = Some(id);
                }
                id
            }
        };
        part.dataset.write(id, batch)
    }
}

impl TableSink for Parts<'_> {
    fn table(&mut self, spec: TableSpec) -> Result<TableId> {
        self.specs.push(spec.clone());
        self.whole.table(spec)
    }

    fn write(&mut self, table: TableId, batch: RecordBatch) -> Result<()> {
        self.write_part(table, batch.clone())?;
        self.whole.write(table, batch)
    }

    fn close_tables(&mut self, metadata: &[(String, String)]) -> Result<Vec<WrittenTable>> {
        // The whole is next: its last rows need no part.
        self.part = None;
        self.whole.close_tables(metadata)
    }

    fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    fn publish(&mut self) -> Result<()> {
        self.due = Instant::now() + self.every;
        let Some(mut part) = self.part.take() else { return Ok(()) };
        let written = part.dataset.close_tables(&self.metadata)?;
        let before = self.published.len();
        for table in &written {
            if !self.published.iter().any(|known| known.name == table.name) {
                self.published.push(WrittenTable { rows: 0, bytes: 0, ..table.clone() });
            }
        }
        // A remover of the recording goes by its entry: a table is named before it has a file.
        if self.published.len() > before {
            (self.announce)(&self.published)?;
        }
        self.directory.add_part(&self.key, self.count, part.dataset)?;
        self.count += 1;
        for table in written {
            if let Some(known) = self.published.iter_mut().find(|known| known.name == table.name) {
                known.rows += table.rows;
                known.bytes += table.bytes;
            }
        }
        (self.announce)(&self.published)
    }
}
