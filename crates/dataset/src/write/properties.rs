//! Properties by which Parquet writes each column of a table.

use crate::error::{Error, Result};
use arrow_schema::DataType;
use parquet::arrow::ArrowSchemaConverter;
use parquet::basic::{Compression as Codec, Encoding as Layout, Type, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{RowGroupMetaData, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use super::first_rows::FirstRows;
use super::{Compression, Encoding, TableSpec};

/// A dictionary that outgrows its page falls back to plain values and doubles the file, so names get more room than
/// the writer's default of 1 MiB.
const TEXT_DICTIONARY_LIMIT: usize = 4 << 20;

/// Bytes of a column, as a batch, that are worth a compressor. Parquet makes one for each column, and the decompressor
/// with it; that took half of the processor time of small recordings. Below this bound their datasets grow by 2 %.
const WORTH_COMPRESSING: usize = 1 << 10;

/// The writer properties of a table that begins with these rows, with pages of this many bytes.
pub fn writer_properties(
    spec: &TableSpec,
    (compression, page): (Compression, usize),
    first: &FirstRows,
) -> Result<WriterProperties> {
    let columns = columns_of(spec)?;
    let sorting = sorting_columns(spec, &columns)?;
    let builder = by_first_rows(spec, &columns, compression, first)?.set_data_page_size_limit(page);
    Ok(builder.set_sorting_columns(sorting).build())
}

/// The properties of a table with rows of many recordings, which is sorted by these first.
pub fn packed_properties(spec: &TableSpec, compression: Compression, first: &FirstRows) -> Result<WriterProperties> {
    let columns = columns_of(spec)?;
    let sorting = by_recording(sorting_columns(spec, &columns)?, &columns);
    Ok(by_first_rows(spec, &columns, compression, first)?.set_sorting_columns(sorting).build())
}

/// The Parquet columns of a table.
fn columns_of(spec: &TableSpec) -> Result<SchemaDescriptor> {
    let refused = |error: ParquetError| Error::Internal(format!("table {}: {error}", spec.name));
    ArrowSchemaConverter::new().convert(&spec.schema).map_err(refused)
}

/// All but the order of the rows.
fn by_first_rows(
    spec: &TableSpec,
    columns: &SchemaDescriptor,
    compression: Compression,
    first: &FirstRows,
) -> Result<WriterPropertiesBuilder> {
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        // "version" is a word of the format: some readers ignore the statistics of a file whose writer they cannot
        // parse.
        .set_created_by(concat!("tracequet version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(codec(compression)?)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // Row groups are ended by the dataset, which counts rows and bytes itself.
        .set_max_row_group_row_count(None);
    // The paths come from the converted schema: a path that does not exist (`x` for the list `x.list.item`) would be
    // ignored without a word.
    for leaf in 0..columns.num_columns() {
        let column = columns.column(leaf);
        let root = columns.get_column_root_idx(leaf);
        let Some((encoding, field)) = spec.encodings.get(root).zip(spec.schema.fields().get(root)) else { continue };
        let nested = column.path().parts().len() > 1;
        let varied = first.varied.get(root) == Some(&true);
        let encoding = match (encoding, field.data_type()) {
            // To look nearly every value up costs more than all else, until the dictionary is given up for its size.
            // pyarrow reads no encoding but these two into a dictionary of its own.
            (Encoding::Dictionary, DataType::Dictionary(..)) if varied => Encoding::Plain,
            (Encoding::Dictionary, _) if varied => Encoding::Delta,
            (encoding, _) => *encoding,
        };
        builder = encode(builder, &column, encoding, nested);
        if first.sizes.get(root).is_some_and(|bytes| *bytes < WORTH_COMPRESSING) {
            builder = builder.set_column_compression(column.path().clone(), Codec::UNCOMPRESSED);
        }
        if nested && column.physical_type() == Type::BYTE_ARRAY {
            // Queries do not search for lists by the least and the greatest of all texts in all lists.
            builder = builder.set_column_statistics_enabled(column.path().clone(), EnabledStatistics::None);
        } else if !nested && (spec.sorted_by.contains(field.name()) || is_searched(field.name())) {
            builder = builder.set_column_statistics_enabled(column.path().clone(), EnabledStatistics::Page);
        }
    }
    Ok(builder)
}

/// The writer properties of a table that is made of other files: each column is encoded as in `like`, a row group of
/// one of them.
pub fn merged_properties(spec: &TableSpec, like: &RowGroupMetaData) -> Result<WriterProperties> {
    let columns = columns_of(spec)?;
    let is_snappy = like.columns().iter().any(|column| column.compression() == Codec::SNAPPY);
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(concat!("tracequet version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(codec(if is_snappy { Compression::Snappy } else { Compression::default() })?)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(None);
    for (leaf, own) in (0..columns.num_columns()).zip(like.columns()) {
        let column = columns.column(leaf);
        let nested = column.path().parts().len() > 1;
        let is_delta = own
            .encodings()
            .any(|encoding| matches!(encoding, Layout::DELTA_BINARY_PACKED | Layout::DELTA_LENGTH_BYTE_ARRAY));
        let encoding = match own.dictionary_page_offset() {
            Some(_) => Encoding::Dictionary,
            None if is_delta => Encoding::Delta,
            None => Encoding::Plain,
        };
        builder = encode(builder, &column, encoding, nested);
        let name = column.path().string();
        if nested && column.physical_type() == Type::BYTE_ARRAY {
            builder = builder.set_column_statistics_enabled(column.path().clone(), EnabledStatistics::None);
        } else if !nested && (spec.sorted_by.contains(&name) || is_searched(&name)) {
            builder = builder.set_column_statistics_enabled(column.path().clone(), EnabledStatistics::Page);
        }
    }
    let sorting = by_recording(sorting_columns(spec, &columns)?, &columns);
    Ok(builder.set_sorting_columns(sorting).build())
}

/// The order of a table with rows of many recordings: these first, each in its own order.
fn by_recording(own: Option<Vec<SortingColumn>>, columns: &SchemaDescriptor) -> Option<Vec<SortingColumn>> {
    let mut sorting = own.unwrap_or_default();
    if columns.num_columns() > 0 && columns.column(0).path().string() == "trace_id" {
        sorting.insert(0, SortingColumn { column_idx: 0, descending: false, nulls_first: false });
    }
    Some(sorting).filter(|sorting| !sorting.is_empty())
}

fn codec(compression: Compression) -> Result<Codec> {
    match compression {
        Compression::Zstd(level) => {
            ZstdLevel::try_new(level).map(Codec::ZSTD).map_err(|error| Error::Internal(error.to_string()))
        }
        Compression::Snappy => Ok(Codec::SNAPPY),
        Compression::None => Ok(Codec::UNCOMPRESSED),
    }
}

fn encode(
    builder: WriterPropertiesBuilder,
    column: &ColumnDescriptor,
    encoding: Encoding,
    nested: bool,
) -> WriterPropertiesBuilder {
    let path = column.path().clone();
    let bytes = column.physical_type() == Type::BYTE_ARRAY;
    let layout = match (encoding, column.physical_type()) {
        // One bit each already.
        (_, Type::BOOLEAN) | (Encoding::Plain, _) => Layout::PLAIN,
        (Encoding::Dictionary, _) => Layout::RLE_DICTIONARY,
        (Encoding::Delta, Type::INT32 | Type::INT64) => Layout::DELTA_BINARY_PACKED,
        (Encoding::Delta, Type::BYTE_ARRAY) if !nested => Layout::DELTA_LENGTH_BYTE_ARRAY,
        // Inherited from a column of numbers: text beside them does better with a dictionary.
        (Encoding::Delta, Type::BYTE_ARRAY) => Layout::RLE_DICTIONARY,
        (Encoding::Delta, _) => Layout::PLAIN,
    };
    if layout != Layout::RLE_DICTIONARY {
        return builder.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, layout);
    }
    let builder = builder.set_column_dictionary_enabled(path.clone(), true);
    if bytes { builder.set_column_dictionary_page_size_limit(path, TEXT_DICTIONARY_LIMIT) } else { builder }
}

/// Columns by which people look things up: they get statistics for each page, so that readers can skip pages.
fn is_searched(name: &str) -> bool {
    matches!(name, "ts" | "ts_ns" | "object_id") || name.ends_with("_start")
}

fn sorting_columns(spec: &TableSpec, columns: &SchemaDescriptor) -> Result<Option<Vec<SortingColumn>>> {
    let mut sorting = Vec::with_capacity(spec.sorted_by.len());
    for name in &spec.sorted_by {
        let leaf = (0..columns.num_columns())
            .find(|&leaf| matches!(columns.column(leaf).path().parts(), [only] if only == name))
            .and_then(|leaf| i32::try_from(leaf).ok());
        let Some(column_idx) = leaf else {
            return Err(Error::Internal(format!("table {} has no plain column {name} to be sorted by", spec.name)));
        };
        sorting.push(SortingColumn { column_idx, descending: false, nulls_first: false });
    }
    Ok((!sorting.is_empty()).then_some(sorting))
}

/// Refuses what no table could be written with, before anything is created.
pub fn check(format: super::Format, compression: Compression) -> Result<()> {
    match (format, compression) {
        (super::Format::Arrow, Compression::Snappy) => {
            Err(Error::Usage("Arrow files know no snappy compression, only zstd or none".into()))
        }
        (_, Compression::Zstd(level)) if !(1..=22).contains(&level) => {
            Err(Error::Usage(format!("zstd has levels 1 to 22, not {level}")))
        }
        _ => Ok(()),
    }
}
