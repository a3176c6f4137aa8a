//! A table of many recordings in Parquet files, made of the rows of other files or of rows in memory.
//!
//! Row groups of files that are large enough are copied as they are: their bytes, and what the footer says of them. The
//! others are made of batches, recording by recording.

use crate::prelude::*;
use std::fs::File;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, compute_leaves};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, RowGroupMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use tracequet_dataset::format::{PackedFile, VERSION};
use tracequet_dataset::read::shared_file::SharedFile;
use tracequet_dataset::write::first_rows::{FirstRows, varied};
use tracequet_dataset::write::measure::Meter;
use tracequet_dataset::write::order::Order;
use tracequet_dataset::write::{Compression, Encoding, TableSpec, failure, properties};

/// A row group ends with the recording with which it has as many rows, or as many bytes as a batch: a question about
/// one recording decodes little of others.
const GROUP_ROWS: usize = 64 << 10;
const GROUP_BYTES: usize = 16 << 20;
/// Of a recording, so many rows or bytes are a row group of their own.
const MOST_ROWS: usize = 1 << 20;
const MOST_BYTES: usize = 32 << 20;
/// Batches that are put together: one of a few rows takes more for its columns than for its values.
const SMALL_BATCHES: usize = 64;
/// A file ends with the recording with which it reaches this many bytes, or inside of one with the row group.
const FILE_BYTES: usize = 256 << 20;
const MOST_FILE_BYTES: usize = 480 << 20;

/// The table in the making.
pub struct MergedTable {
    /// The first part of the names of its files.
    stem: PathBuf,
    spec: TableSpec,
    order: Order,
    properties: WriterProperties,
    schema_version: u32,
    file: Option<OpenTable>,
    done: Vec<(PathBuf, PackedFile)>,
    /// Of the recording that comes: batches, rows and bytes.
    coming: Vec<RecordBatch>,
    coming_rows: usize,
    coming_bytes: usize,
    /// Of the row group: batches, rows and bytes. The last ones are small and not put together yet.
    group: Vec<RecordBatch>,
    small: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
}

/// The file that is written.
struct OpenTable {
    path: PathBuf,
    writer: SerializedFileWriter<File>,
    factory: ArrowRowGroupWriterFactory,
    groups: usize,
    rows: u64,
}

impl MergedTable {
    /// A table with the columns of `schema`, whose rows are encoded as those of a row group of one of the files, and
    /// sorted by `trace_id` and then as they are there.
    pub fn new(
        name: &str,
        stem: PathBuf,
        schema: SchemaRef,
        like: &RowGroupMetaData,
        schema_version: u32,
    ) -> Result<MergedTable> {
        let sorted_by = like.sorting_columns().into_iter().flatten().filter_map(|sorted| {
            let leaf = usize::try_from(sorted.column_idx).ok()?;
            like.columns().get(leaf).map(|column| column.column_path().string())
        });
        let spec = TableSpec {
            name: name.to_owned(),
            encodings: vec![Encoding::Plain; schema.fields().len()],
            sorted_by: sorted_by.filter(|column| column != "trace_id").collect(),
            schema,
        };
        let properties = properties::merged_properties(&spec, like)?;
        MergedTable::begin(spec, stem, properties, schema_version)
    }

    /// A table whose rows are all in memory. Its encodings are chosen by them: the batches of each recording.
    pub fn of_rows<'b>(
        spec: &TableSpec,
        stem: PathBuf,
        recordings: impl Iterator<Item = &'b [RecordBatch]> + Clone,
        compression: Compression,
        schema_version: u32,
    ) -> Result<MergedTable> {
        let spec = TableSpec { schema: merged_schema(&spec.schema), ..spec.clone() };
        let mut first = FirstRows { sizes: vec![0; spec.schema.fields().len()], varied: Vec::new() };
        let rows = |batches: &&[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        // The recording with most rows shows how varied a column is, as in a dataset of it alone.
        if let Some(longest) = recordings.clone().max_by_key(rows) {
            first.varied = varied(longest.iter());
        }
        let mut meter = Meter::default();
        for batch in recordings.flatten() {
            first.sizes.iter_mut().zip(meter.measure(batch)).for_each(|(sum, size)| *sum += size);
        }
        let properties = properties::packed_properties(&spec, compression, &first)?;
        MergedTable::begin(spec, stem, properties, schema_version)
    }

    /// Whether a pack has a file of a table of which no recording has rows: of a kind of event. Of other tables the
    /// dataset has one.
    pub fn has_file_without_rows(name: &str) -> bool {
        name.starts_with("event/")
    }

    /// The file of a table without rows, which has its columns.
    pub fn without_rows(
        name: &str,
        stem: PathBuf,
        schema: &SchemaRef,
        schema_version: u32,
    ) -> Result<Vec<(PathBuf, PackedFile)>> {
        let schema = merged_schema(schema);
        let encodings = vec![Encoding::Plain; schema.fields().len()];
        let spec = TableSpec { name: name.to_owned(), encodings, sorted_by: Vec::new(), schema };
        let mut table = MergedTable::begin(spec, stem, WriterProperties::builder().build(), schema_version)?;
        table.open()?;
        table.finish()
    }

    fn begin(spec: TableSpec, stem: PathBuf, properties: WriterProperties, schema_version: u32) -> Result<MergedTable> {
        let order = Order::of(&spec)?;
        Ok(MergedTable {
            stem,
            spec,
            order,
            properties,
            schema_version,
            file: None,
            done: Vec::new(),
            coming: Vec::new(),
            coming_rows: 0,
            coming_bytes: 0,
            group: Vec::new(),
            small: Vec::new(),
            rows: 0,
            bytes: 0,
        })
    }

    /// Whether a row group is worth more as it is than together with others.
    pub fn is_worth_copying(group: &RowGroupMetaData) -> bool {
        let rows = usize::try_from(group.num_rows()).unwrap_or_default();
        let bytes = usize::try_from(group.total_byte_size()).unwrap_or_default();
        rows >= GROUP_ROWS / 2 || bytes >= GROUP_BYTES / 4
    }

    /// Adds rows of the recording that comes.
    pub fn add(&mut self, batch: RecordBatch) -> Result<()> {
        // With the columns of this table: those of a file name its recording.
        let batch = RecordBatch::try_new(self.spec.schema.clone(), batch.columns().to_vec());
        let batch = batch.map_err(|e| Error::Internal(format!("table {}: {e}", self.spec.name)))?;
        self.coming_rows += batch.num_rows();
        self.coming_bytes += Meter::default().measure(&batch).iter().sum::<usize>();
        self.coming.push(batch);
        if self.coming_rows >= MOST_ROWS || self.coming_bytes >= MOST_BYTES {
            self.cut()?;
        }
        Ok(())
    }

    /// Says that the recording has no more rows.
    pub fn end_of_recording(&mut self) -> Result<()> {
        self.take_coming()?;
        if self.rows >= GROUP_ROWS || self.bytes >= GROUP_BYTES {
            self.cut()?;
        }
        if self.file.as_ref().is_some_and(|file| self.group.is_empty() && file.writer.bytes_written() >= FILE_BYTES) {
            self.end_file()?;
        }
        Ok(())
    }

    /// Copies a row group of another file as it is.
    pub(crate) fn copy(&mut self, file: &SharedFile, footer: &ArrowReaderMetadata, group: usize) -> Result<()> {
        self.cut()?;
        let metadata = footer.metadata();
        let Some(found) = metadata.row_groups().get(group) else {
            return Err(Error::Internal(format!("table {}: there is no row group {group}", self.spec.name)));
        };
        let name = self.spec.name.clone();
        let open = self.open()?;
        let mut copy = || {
            if open.writer.schema_descr().root_schema() != metadata.file_metadata().schema_descr().root_schema() {
                return Err(ParquetError::General(format!("the columns of {name} differ")));
            }
            let index = metadata.page_index_for_row_group(group);
            let mut copy = open.writer.next_row_group()?;
            for (leaf, column) in found.columns().iter().enumerate() {
                let close = ColumnCloseResult {
                    bytes_written: u64::try_from(column.compressed_size())?,
                    rows_written: u64::try_from(found.num_rows())?,
                    metadata: column.clone(),
                    bloom_filter: None,
                    column_index: index.column_index(leaf).cloned(),
                    offset_index: index.offset_index(leaf).cloned(),
                };
                copy.append_column(file, close)?;
            }
            copy.close()?;
            Ok(())
        };
        let copied = copy();
        open.groups += 1;
        open.rows += u64::try_from(found.num_rows()).unwrap_or_default();
        let path = open.path.clone();
        copied.map_err(failure::parquet(&path))?;
        if self.file.as_ref().is_some_and(|file| file.writer.bytes_written() >= MOST_FILE_BYTES) {
            self.end_file()?;
        }
        Ok(())
    }

    /// Ends the table, and returns its files.
    pub fn finish(mut self) -> Result<Vec<(PathBuf, PackedFile)>> {
        self.cut()?;
        self.end_file()?;
        Ok(self.done)
    }

    /// Puts the rows of the recording in order, and into the row group.
    fn take_coming(&mut self) -> Result<()> {
        let (rows, bytes) = (std::mem::take(&mut self.coming_rows), std::mem::take(&mut self.coming_bytes));
        let coming = std::mem::take(&mut self.coming);
        if rows == 0 {
            return Ok(());
        }
        let refused = |error| Error::Internal(format!("table {}: {error}", self.spec.name));
        let spans: Vec<_> = coming.iter().map(|batch| self.order.span(batch)).collect();
        let in_order = spans.iter().all(|span| span.sorted)
            && spans.windows(2).all(|pair| matches!(pair, [a, b] if a.last <= b.first));
        self.rows += rows;
        self.bytes += bytes;
        match in_order {
            true => self.small.extend(coming),
            false => self.small.push(self.order.sort(coming).map_err(refused)?),
        }
        if self.small.len() >= SMALL_BATCHES || rows >= GROUP_ROWS / 8 {
            self.put_together()?;
        }
        Ok(())
    }

    fn put_together(&mut self) -> Result<()> {
        let small = std::mem::take(&mut self.small);
        if small.len() > 1 {
            let one = concat_batches(&self.spec.schema, &small);
            self.group.push(one.map_err(|error| Error::Internal(format!("table {}: {error}", self.spec.name)))?);
        } else {
            self.group.extend(small);
        }
        Ok(())
    }

    /// Writes the row group, if it has rows.
    fn cut(&mut self) -> Result<()> {
        self.take_coming()?;
        self.put_together()?;
        let (batches, rows) = (std::mem::take(&mut self.group), std::mem::take(&mut self.rows));
        self.bytes = 0;
        if rows == 0 {
            return Ok(());
        }
        let open = self.open()?;
        let mut write = || {
            let mut writers = open.factory.create_column_writers(open.groups)?;
            for batch in &batches {
                let mut each = writers.iter_mut();
                for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
                    for leaf in compute_leaves(field, array)? {
                        let writer = each.next();
                        writer.ok_or_else(|| ParquetError::General("a leaf too many".into()))?.write(&leaf)?;
                    }
                }
            }
            let mut group = open.writer.next_row_group()?;
            for writer in writers {
                writer.close()?.append_to_row_group(&mut group)?;
            }
            group.close()?;
            Ok(())
        };
        let written = write();
        open.groups += 1;
        open.rows += rows as u64;
        let path = open.path.clone();
        written.map_err(failure::parquet(&path))?;
        if self.file.as_ref().is_some_and(|file| file.writer.bytes_written() >= MOST_FILE_BYTES) {
            self.end_file()?;
        }
        Ok(())
    }

    fn open(&mut self) -> Result<&mut OpenTable> {
        if self.file.is_none() {
            let path = self.stem.with_extension(format!("{}.parquet", self.done.len()));
            let file = File::options().write(true).create_new(true).open(&path).map_err(Error::io(&path))?;
            // Not used to write batches, but it knows how to put the Arrow schema into the footer.
            let (writer, factory) = ArrowWriter::try_new(file, self.spec.schema.clone(), Some(self.properties.clone()))
                .and_then(ArrowWriter::into_serialized_writer)
                .map_err(failure::parquet(&path))?;
            self.file = Some(OpenTable { path, writer, factory, groups: 0, rows: 0 });
        }
        self.file.as_mut().ok_or_else(|| Error::Internal("no file".into()))
    }

    fn end_file(&mut self) -> Result<()> {
        let Some(OpenTable { path, mut writer, rows, .. }) = self.file.take() else { return Ok(()) };
        for (key, value) in [("version", VERSION.to_owned()), ("schema_version", self.schema_version.to_string())] {
            writer.append_key_value_metadata(KeyValue::new(format!("tracequet.{key}"), value));
        }
        let closed = writer.finish().map(drop).and_then(|()| Ok(writer.inner_mut().metadata()?.len()));
        let bytes = closed.map_err(failure::parquet(&path))?;
        self.done.push((path, PackedFile { rows, bytes }));
        Ok(())
    }
}

impl std::fmt::Debug for MergedTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MergedTable").field("table", &self.spec.name).finish_non_exhaustive()
    }
}

/// The columns of a merged table, by those of one of the files: the field of the key names no recording.
pub fn merged_schema(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let mut metadata = field.metadata().clone();
        match metadata.remove("value") {
            Some(_) => std::sync::Arc::new(field.as_ref().clone().with_metadata(metadata)),
            None => field.clone(),
        }
    });
    std::sync::Arc::new(arrow_schema::Schema::new(fields.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, DictionaryArray, UInt64Array};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;

    fn batch(key: &str, numbers: &[u64]) -> RecordBatch {
        let keys: DictionaryArray<Int32Type> = numbers.iter().map(|_| Some(key)).collect();
        let columns: [(&str, ArrayRef); 2] =
            [("trace_id", Arc::new(keys)), ("n", Arc::new(UInt64Array::from(numbers.to_vec())))];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn footer(path: &Path) -> (SharedFile, ArrowReaderMetadata) {
        let file = SharedFile::new(File::open(path).unwrap()).unwrap();
        let footer = tracequet_dataset::read::parquet_file::footer(&file, path).unwrap();
        (file, footer)
    }

    #[test]
    fn rows_of_recordings_lie_together_and_large_groups_are_copied() {
        let folder = tempfile::tempdir().unwrap();
        let schema = batch("a", &[1]).schema();
        let source = folder.path().join("source.parquet");
        let mut writer = ArrowWriter::try_new(File::create(&source).unwrap(), schema.clone(), None).unwrap();
        writer.write(&batch("b", &[5, 6, 7])).unwrap();
        writer.close().unwrap();
        let (file, like) = footer(&source);
        let mut merged =
            MergedTable::new("t", folder.path().join("out"), schema, like.metadata().row_group(0), 1).unwrap();
        merged.add(batch("a", &[3, 1])).unwrap();
        merged.add(batch("a", &[2])).unwrap();
        merged.end_of_recording().unwrap();
        merged.copy(&file, &like, 0).unwrap();
        merged.end_of_recording().unwrap();
        for key in ["c", "d"] {
            merged.add(batch(key, &[9])).unwrap();
            merged.end_of_recording().unwrap();
        }
        let files = merged.finish().unwrap();
        let [(path, PackedFile { rows: 8, bytes })] = &files[..] else { panic!("{files:?}") };
        assert_eq!(path.metadata().unwrap().len(), *bytes);
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        let groups: Vec<i64> = reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!(groups, [3, 3, 2]);
        let whole: Vec<RecordBatch> = reader.build().unwrap().map(|batch| batch.unwrap()).collect();
        let whole = concat_batches(&whole[0].schema(), &whole).unwrap();
        let expected = [batch("a", &[3, 1, 2]), batch("b", &[5, 6, 7]), batch("c", &[9]), batch("d", &[9])];
        assert_eq!(
            whole.column(1).as_ref(),
            concat_batches(&expected[0].schema(), &expected).unwrap().column(1).as_ref()
        );
    }
}
