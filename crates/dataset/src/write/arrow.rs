//! One Arrow IPC table.
//!
//! Dictionaries are written as plain values. A file may hold only one dictionary for a column, batches come with many,
//! and the way out that the format offers (additions to a dictionary) is one that not all readers know.

use crate::prelude::*;
use std::io::BufWriter;
use std::sync::Mutex;

use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::{ArrowError, SchemaRef};

use super::file::TableFile;
use super::workers::{Ticket, Workers, least, lock};
use super::{Compression, TableSpec, failure, plain};

/// An Arrow IPC table, as the caller's thread sees it.
pub(super) struct ArrowTable {
    path: Arc<Path>,
    /// The worker that writes it; known once there are rows.
    worker: Option<usize>,
    output: Arc<Mutex<Output>>,
}

struct Output {
    schema: SchemaRef,
    options: IpcWriteOptions,
    state: ArrowFileState,
}

enum ArrowFileState {
    /// Not begun, so that a table without rows takes no buffer.
    Waiting(PathBuf),
    Writing(Box<FileWriter<BufWriter<TableFile>>>),
    Closed(u64),
}

impl ArrowTable {
    /// A table at `path`, of which nothing is written yet.
    pub(super) fn new(path: PathBuf, spec: &TableSpec, compression: Compression) -> Result<ArrowTable> {
        let codec = match compression {
            Compression::Zstd(level) => Some(level),
            Compression::Snappy | Compression::None => None,
        };
        let options = IpcWriteOptions::default()
            .try_with_compression(codec.map(|_| CompressionType::ZSTD))
            .and_then(|options| options.try_with_compression_level(codec))
            .map_err(failure::arrow(&path))?;
        let output =
            Output { schema: plain::schema(&spec.schema), options, state: ArrowFileState::Waiting(path.clone()) };
        Ok(ArrowTable { path: path.into(), worker: None, output: Arc::new(Mutex::new(output)) })
    }

    /// Hands rows to the table's worker. `bytes` is the size of the batch, `loads` what each worker has been given.
    pub(super) fn write(
        &mut self,
        workers: &Workers,
        loads: &mut [usize],
        batch: RecordBatch,
        bytes: usize,
        ticket: &Arc<Ticket>,
    ) -> Result<()> {
        let worker = *self.worker.get_or_insert_with(|| least(loads));
        if let Some(load) = loads.get_mut(worker) {
            *load += bytes;
        }
        let (output, path) = (self.output.clone(), self.path.clone());
        workers.submit(worker, Some(ticket.clone()), move || lock(&output).write(&batch).map_err(failure::arrow(&path)))
    }

    /// Ends the table.
    pub(super) fn close(
        &mut self,
        workers: &Workers,
        loads: &[usize],
        metadata: Arc<[(String, String)]>,
    ) -> Result<()> {
        let worker = self.worker.unwrap_or_else(|| least(loads));
        let (output, path) = (self.output.clone(), self.path.clone());
        workers.submit(worker, None, move || lock(&output).close(&metadata).map_err(failure::arrow(&path)))
    }

    /// Bytes of the closed file.
    pub(super) fn written(&self) -> u64 {
        match &lock(&self.output).state {
            ArrowFileState::Closed(bytes) => *bytes,
            ArrowFileState::Waiting(_) | ArrowFileState::Writing(_) => 0,
        }
    }
}

impl Output {
    fn write(&mut self, batch: &RecordBatch) -> std::result::Result<(), ArrowError> {
        let batch = plain::batch(batch, &self.schema)?;
        let writer = self.writer()?;
        writer.write(&batch)?;
        writer.flush()?;
        writer.get_mut().get_mut().release();
        Ok(())
    }

    fn close(&mut self, metadata: &[(String, String)]) -> std::result::Result<(), ArrowError> {
        let writer = self.writer()?;
        for (key, value) in metadata {
            writer.write_metadata(key, value);
        }
        writer.finish()?;
        self.state = ArrowFileState::Closed(writer.get_ref().get_ref().written());
        Ok(())
    }

    fn writer(&mut self) -> std::result::Result<&mut FileWriter<BufWriter<TableFile>>, ArrowError> {
        if let ArrowFileState::Waiting(path) = &self.state {
            let file = BufWriter::new(TableFile::new(path.clone()));
            let writer = FileWriter::try_new_with_options(file, &self.schema, self.options.clone())?;
            self.state = ArrowFileState::Writing(Box::new(writer));
        }
        match &mut self.state {
            ArrowFileState::Writing(writer) => Ok(writer),
            ArrowFileState::Waiting(_) | ArrowFileState::Closed(_) => {
                Err(ArrowError::IpcError("the table is closed".into()))
            }
        }
    }
}
