//! Batches of an Arrow IPC file.
//!
//! The footer says where each batch is. Its numbers are compared with the size of the file before anything is read or
//! allocated by them. Source of the layout: the Arrow columnar format, "IPC File Format".

use crate::prelude::*;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use arrow_buffer::Buffer;
use arrow_ipc::Block;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_schema::SchemaRef;

use super::guard::{damaged, guarded};
use super::wanted::{BATCH_ROWS, Wanted};

const FORMAT: &str = "an Arrow IPC file";

/// The end of the file: the footer's length and the magic.
const TAIL: u64 = 10;

/// More than this a batch may not expand to. Those that tracequet writes have some megabytes.
const MAX_EXPANDED: u64 = 256 << 20;

pub(super) struct ArrowBatches {
    path: PathBuf,
    file: File,
    size: u64,
    decoder: FileDecoder,
    /// Batches that are not read yet.
    blocks: VecDeque<Block>,
    /// The rest of the batch that was read last.
    rest: Option<RecordBatch>,
    schema: SchemaRef,
}

impl ArrowBatches {
    /// Opens the file and reads its footer.
    pub(super) fn open(file: File, wanted: &Wanted) -> Result<ArrowBatches> {
        let path = &wanted.path;
        let size = file.metadata().map_err(Error::io(path))?.len();
        let damaged = |what: String| damaged(path, FORMAT, what);
        let mut tail = [0; TAIL as usize];
        let at = size.checked_sub(TAIL).ok_or_else(|| damaged(format!("the file has {size} bytes")))?;
        read_at(&file, at, &mut tail).map_err(Error::io(path))?;
        let length = guarded(path, FORMAT, || read_footer_length(tail))? as u64;
        let at = at.checked_sub(length).ok_or_else(|| damaged(format!("a footer of {length} bytes")))?;
        let mut footer = vec![0; usize::try_from(length).unwrap_or_default()];
        read_at(&file, at, &mut footer).map_err(Error::io(path))?;
        let footer = arrow_ipc::root_as_footer(&footer).map_err(|e| damaged(format!("the footer: {e}")))?;
        let schema = footer.schema().ok_or_else(|| damaged("the footer has no schema".into()))?;
        let whole = Arc::new(guarded(path, FORMAT, || arrow_ipc::convert::try_fb_to_schema(schema))?);
        let mut decoder = FileDecoder::new(whole.clone(), footer.version());
        let schema = match wanted.projection(&whole)? {
            Some(places) => {
                let schema = whole.project(&places).map_err(|e| damaged(e.to_string()))?;
                decoder = decoder.with_projection(places);
                Arc::new(schema)
            }
            None => whole,
        };
        let blocks = footer.recordBatches().map(|blocks| blocks.iter().copied().collect()).unwrap_or_default();
        let mut batches = ArrowBatches { path: path.to_owned(), file, size, decoder, blocks, rest: None, schema };
        for block in footer.dictionaries().into_iter().flatten() {
            let bytes = batches.checked_block(block)?;
            guarded(path, FORMAT, || batches.decoder.read_dictionary(block, &bytes))?;
        }
        Ok(batches)
    }

    pub(super) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The bytes of a block.
    fn block(&self, block: &Block) -> Result<Buffer> {
        let at = u64::try_from(block.offset()).ok();
        let metadata = u64::try_from(block.metaDataLength()).ok();
        let length = metadata.zip(u64::try_from(block.bodyLength()).ok()).and_then(|(a, b)| a.checked_add(b));
        let place = at.zip(length).filter(|(at, length)| at.checked_add(*length).is_some_and(|end| end <= self.size));
        let Some((at, length)) = place else {
            return Err(damaged(&self.path, FORMAT, format!("a batch lies outside the file of {} bytes", self.size)));
        };
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        read_at(&self.file, at, &mut bytes).map_err(Error::io(&self.path))?;
        Ok(Buffer::from_vec(bytes))
    }

    /// The bytes of a block that does not expand without bound.
    fn checked_block(&self, block: &Block) -> Result<Buffer> {
        let bytes = self.block(block)?;
        let expanded = expanded(&bytes, usize::try_from(block.metaDataLength()).unwrap_or_default());
        if expanded > MAX_EXPANDED {
            let what = format!("a batch says that it expands to {expanded} bytes");
            return Err(damaged(&self.path, "batches of at most 256 MB", what));
        }
        Ok(bytes)
    }

    fn read(&mut self, block: &Block) -> Result<Option<RecordBatch>> {
        let bytes = self.checked_block(block)?;
        guarded(&self.path, FORMAT, || self.decoder.read_record_batch(block, &bytes))
    }
}

/// The size that the compressed buffers of a batch declare to expand to. The decoder takes no more memory than that; it
/// takes that much, though, for a few bytes that are made to expand.
fn expanded(block: &[u8], metadata: usize) -> u64 {
    let continued = block.starts_with(&[0xFF; 4]);
    let message = block.get(if continued { 8 } else { 4 }..metadata).unwrap_or_default();
    let Ok(message) = arrow_ipc::root_as_message(message) else { return 0 };
    let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    let Some(batch) = message.header_as_record_batch().or(dictionary) else { return 0 };
    if batch.compression().is_none() {
        return 0;
    }
    let size = |buffer: &arrow_ipc::Buffer| {
        let at = metadata.checked_add(usize::try_from(buffer.offset()).ok()?)?;
        let prefix = block.get(at..)?.first_chunk().filter(|_| buffer.length() >= 8)?;
        u64::try_from(i64::from_le_bytes(*prefix)).ok()
    };
    batch.buffers().into_iter().flatten().filter_map(size).fold(0, u64::saturating_add)
}

fn read_at(mut file: &File, at: u64, bytes: &mut [u8]) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(bytes)
}

impl Iterator for ArrowBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        loop {
            if let Some(batch) = self.rest.take() {
                let rows = batch.num_rows();
                if rows > BATCH_ROWS {
                    self.rest = Some(batch.slice(BATCH_ROWS, rows - BATCH_ROWS));
                    return Some(Ok(batch.slice(0, BATCH_ROWS)));
                }
                return Some(Ok(batch));
            }
            let block = self.blocks.pop_front()?;
            match self.read(&block) {
                Ok(batch) => self.rest = batch,
                Err(e) => {
                    self.blocks.clear();
                    return Some(Err(e));
                }
            }
        }
    }
}
