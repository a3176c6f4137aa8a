//! Batches of a Parquet file: the wanted columns of the row groups that may have wanted rows.

use crate::prelude::*;
use std::ops::Range;

use arrow_array::RecordBatchReader;
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, RowSelection, RowSelector,
};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, RowGroupMetaData};
use parquet::file::reader::Length;
use parquet::file::statistics::Statistics;

use super::guard::{damaged, guarded};
use super::pages::{Groups, check_footer};
use super::shared_file::SharedFile;
use super::wanted::{Between, Wanted};

const FORMAT: &str = "a Parquet file";

pub(super) struct ParquetBatches {
    path: PathBuf,
    reader: ParquetRecordBatchReader,
    failed: bool,
}

/// Reads the footer of a file.
pub fn footer(file: &SharedFile, path: &Path) -> Result<ArrowReaderMetadata> {
    footer_with(file, path, ArrowReaderOptions::new())
}

/// The footer with the places and bounds of pages, if the file has them.
pub fn footer_with_pages(file: &SharedFile, path: &Path) -> Result<ArrowReaderMetadata> {
    footer_with(file, path, ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional))
}

fn footer_with(file: &SharedFile, path: &Path, options: ArrowReaderOptions) -> Result<ArrowReaderMetadata> {
    let size = file.len();
    guarded(path, FORMAT, || check_footer(file, size))?;
    let footer = guarded(path, FORMAT, || ArrowReaderMetadata::load(file, options))?;
    match footer.metadata().row_groups().iter().find_map(|group| outside(group, size)) {
        Some(what) => Err(damaged(path, FORMAT, what)),
        None => Ok(footer),
    }
}

/// Reads what is wanted of a file with this footer.
pub(super) fn open(file: SharedFile, footer: &ArrowReaderMetadata, wanted: &Wanted) -> Result<ParquetBatches> {
    let path = &wanted.path;
    let metadata = footer.metadata();
    let schema = footer.schema();
    let mask = match wanted.projection(schema)? {
        Some(places) => ProjectionMask::roots(footer.parquet_schema(), places),
        None => ProjectionMask::all(),
    };
    let parts = parts_of(metadata.row_groups(), wanted.rows.as_ref());
    let kept: Vec<(usize, Range<usize>)> = parts
        .into_iter()
        .filter(|(index, _)| {
            let group = metadata.row_groups().get(*index);
            group.is_some_and(|group| wanted.between.iter().all(|range| may_have(group, schema, range)))
        })
        .collect();
    let selection = wanted.rows.is_some().then(|| selection(metadata.row_groups(), &kept));
    let kept = kept.into_iter().map(|(index, _)| index).collect();
    let reader = guarded(path, FORMAT, || {
        let groups = Groups::new(file, metadata.clone(), kept, |leaf| mask.leaf_included(leaf))?;
        let levels = parquet_to_arrow_field_levels(footer.parquet_schema(), mask, Some(schema.fields()))?;
        ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, groups.batch_rows(), selection)
    })?;
    Ok(ParquetBatches { path: path.to_owned(), reader, failed: false })
}

/// The row groups that have some of these rows, and which of each; without a range all of them.
fn parts_of(groups: &[RowGroupMetaData], rows: Option<&Range<u64>>) -> Vec<(usize, Range<usize>)> {
    let mut begin = 0u64;
    let mut parts = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let count = u64::try_from(group.num_rows()).unwrap_or_default();
        let end = begin.saturating_add(count);
        let range = rows.cloned().unwrap_or(begin..end);
        let (first, last) = (range.start.clamp(begin, end) - begin, range.end.clamp(begin, end) - begin);
        if first < last || rows.is_none() {
            parts.push((
                index,
                usize::try_from(first).unwrap_or(usize::MAX)..usize::try_from(last).unwrap_or(usize::MAX),
            ));
        }
        begin = end;
    }
    parts
}

/// The selection of those rows among all of the row groups that are read.
fn selection(groups: &[RowGroupMetaData], kept: &[(usize, Range<usize>)]) -> RowSelection {
    let mut selectors = Vec::with_capacity(kept.len() * 3);
    for (index, rows) in kept {
        let count = groups.get(*index).map_or(0, |group| usize::try_from(group.num_rows()).unwrap_or_default());
        selectors.push(RowSelector::skip(rows.start));
        selectors.push(RowSelector::select(rows.end.saturating_sub(rows.start)));
        selectors.push(RowSelector::skip(count.saturating_sub(rows.end)));
    }
    selectors.into()
}

impl ParquetBatches {
    pub(super) fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }
}

impl Iterator for ParquetBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        if self.failed {
            return None;
        }
        let batch = guarded(&self.path, FORMAT, || self.reader.next().transpose()).transpose()?;
        self.failed = batch.is_err();
        Some(batch)
    }
}

/// The fault of a row group with a column that lies outside the file.
fn outside(group: &RowGroupMetaData, size: u64) -> Option<String> {
    let lies_inside = |column: &ColumnChunkMetaData| {
        let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
        let end = u64::try_from(start).ok()?.checked_add(u64::try_from(column.compressed_size()).ok()?);
        end.filter(|end| *end <= size)
    };
    let column = group.columns().iter().find(|column| lies_inside(column).is_none())?;
    Some(format!("the column {} lies outside the file of {size} bytes", column.column_path()))
}

/// Whether a row group may have values in a range, by its statistics. Those of an unsigned column are stored in the
/// bits of a signed one.
fn may_have(group: &RowGroupMetaData, schema: &SchemaRef, range: &Between) -> bool {
    let Ok(field) = schema.field_with_name(&range.column) else { return true };
    let column = group.columns().iter().find(|column| column.column_path().string() == range.column);
    let bounds = match column.and_then(|column| column.statistics()) {
        Some(Statistics::Int32(found)) => {
            found.min_opt().zip(found.max_opt()).map(|(a, b)| (i64::from(*a), i64::from(*b)))
        }
        Some(Statistics::Int64(found)) => found.min_opt().zip(found.max_opt()).map(|(a, b)| (*a, *b)),
        _ => None,
    };
    let Some((min, max)) = bounds else { return true };
    let Between { low, high, .. } = *range;
    match field.data_type() {
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => {
            u64::from(min as u32) <= high && u64::from(max as u32) >= low
        }
        DataType::UInt64 => min as u64 <= high && max as u64 >= low,
        // A range over the highest bit is no range of signed numbers.
        DataType::Int64 if low as i64 > high as i64 => true,
        DataType::Int64 => min <= high as i64 && max >= low as i64,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, UInt32Array, UInt64Array};
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;

    /// A row group for each of three values of a column.
    fn group_of(columns: &[ArrayRef]) -> (SchemaRef, Vec<RowGroupMetaData>) {
        let batch = |column: &ArrayRef| RecordBatch::try_from_iter([("c", column.clone())]).unwrap();
        let file = tempfile::tempfile().unwrap();
        let mut writer = ArrowWriter::try_new(file.try_clone().unwrap(), batch(&columns[0]).schema(), None).unwrap();
        for column in columns {
            writer.write(&batch(column)).unwrap();
            writer.flush().unwrap();
        }
        writer.close().unwrap();
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        (builder.schema().clone(), builder.metadata().row_groups().to_vec())
    }

    fn kept(columns: &[ArrayRef], low: u64, high: u64) -> Vec<bool> {
        let (schema, groups) = group_of(columns);
        let range = Between { column: "c".into(), low, high };
        groups.iter().map(|group| may_have(group, &schema, &range)).collect()
    }

    #[test]
    fn row_groups_are_left_out_by_their_bounds_signed_or_not() {
        const HIGH: u64 = 0xFFFF_8000_0000_0000;
        let u32s: Vec<ArrayRef> =
            [[1, 5], [7, 9], [0x8000_0000, 0xFFFF_FFFF]].map(|v| Arc::new(UInt32Array::from(v.to_vec())) as _).into();
        assert_eq!(kept(&u32s, 5, 7), [true, true, false]);
        assert_eq!(kept(&u32s, 6, 6), [false, false, false]);
        assert_eq!(kept(&u32s, 0xFFFF_FFFF, u64::MAX), [false, false, true]);
        let u64s: Vec<ArrayRef> =
            [[1, 5], [7, 9], [HIGH, HIGH + 8]].map(|v| Arc::new(UInt64Array::from(v.to_vec())) as _).into();
        assert_eq!(kept(&u64s, 5, 6), [true, false, false]);
        assert_eq!(kept(&u64s, 9, HIGH), [false, true, true]);
        let i64s: Vec<ArrayRef> = [[1, 5], [7, 9], [HIGH as i64, HIGH as i64 + 8]]
            .map(|v| Arc::new(Int64Array::from(v.to_vec())) as _)
            .into();
        assert_eq!(kept(&i64s, 5, 6), [true, false, false]);
        assert_eq!(kept(&i64s, HIGH, HIGH), [false, false, true]);
        assert_eq!(kept(&i64s, 9, HIGH), [true, true, true], "over the sign nothing is left out");
    }
}
