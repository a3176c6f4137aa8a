//! Checks the pages of a Parquet file against bounds before arrow-rs decodes them.
//!
//! arrow-rs takes what a page says that it expands to, up to 2 GB, and a list of as many lengths as a page says it has:
//! some bytes can ask for more memory than there is, which ends the program. That holds up to parquet 60.1, which
//! compares the compressed size of a page with what is left of the file, and reserves the size that it expands to
//! unchecked. Source of the layout: apache/parquet-format.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;

use super::shared_file::SharedFile;
use super::thrift::{Compact, LIST, STRUCT};
use super::wanted::BATCH_ROWS;

/// Pages and dictionaries of all columns that are decoded at a time. Those that tracequet writes have some megabytes.
const MAX_PAGES: u64 = 128 << 20;

/// The memory that the values of one batch may take.
const MAX_REPEATED: u64 = 256 << 20;

/// Values of a page. tracequet writes 20,000, other writers a million.
const MAX_VALUES: i64 = 16 << 20;

/// Values in lists of a column of a row group: nothing else bounds how many belong to one row.
const MAX_LISTED: u64 = 64 << 20;

/// Bytes of the footer: about 100 for each column of each row group.
const MAX_FOOTER: u64 = 64 << 20;

/// Groups of columns in each other.
const MAX_NESTED: usize = 32;

/// The number of bytes in which a header of a page is looked for: they have about 60, and more where they have the
/// least and greatest text.
const HEADER_BYTES: [u64; 2] = [4 << 10, 1 << 20];

const DATA: i64 = 0;
const DICTIONARY: i64 = 2;
const DATA_V2: i64 = 3;

fn wrong<T>(what: impl Into<String>) -> Result<T> {
    Err(ParquetError::General(what.into()))
}

/// Holds the footer of a file against its bounds.
pub(super) fn check_footer(file: &SharedFile, size: u64) -> Result<()> {
    let Some(end) = size.checked_sub(8) else { return wrong(format!("the file has {size} bytes")) };
    let tail = file.get_bytes(end, 8)?;
    let length = tail.first_chunk().map_or(0, |length| u64::from(u32::from_le_bytes(*length)));
    let Some(start) = end.checked_sub(length).filter(|_| length <= MAX_FOOTER) else {
        return wrong(format!("a footer of {length} bytes"));
    };
    let footer = file.get_bytes(start, usize::try_from(length)?)?;
    match nesting(&footer) {
        Some(depth) if depth <= MAX_NESTED => Ok(()),
        Some(depth) => wrong(format!("columns that are nested {depth} deep")),
        None => wrong("an invalid footer"),
    }
}

/// The depth of nested columns. They are in a list, each with the number of those below it.
fn nesting(footer: &[u8]) -> Option<usize> {
    const SCHEMA: i64 = 2;
    const CHILDREN: i64 = 5;
    let mut deepest = 0;
    Compact(footer).each_field(|compact, id, kind| {
        if (id, kind) != (SCHEMA, LIST) {
            return Some(false);
        }
        let (_, count) = compact.list().filter(|(kind, _)| *kind == STRUCT)?;
        // Of each group that is open, how many are to come.
        let mut open: Vec<i64> = Vec::new();
        for _ in 0..count {
            let mut children = 0;
            compact.each_field(|compact, id, kind| {
                if id != CHILDREN {
                    return Some(false);
                }
                children = compact.number(kind)?;
                Some(true)
            })?;
            if let Some(left) = open.last_mut() {
                *left -= 1;
            }
            if children > 0 {
                open.push(children);
                deepest = deepest.max(open.len());
            }
            while open.pop_if(|left| *left <= 0).is_some() {}
        }
        Some(true)
    })?;
    Some(deepest)
}

/// The header of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    kind: i64,
    expanded: u64,
    stored: u64,
    values: i64,
    encoding: i64,
    /// Bytes of the header.
    length: u64,
}

impl Header {
    /// Reads a header. `None`: there is none, or it is longer.
    fn read(bytes: &[u8]) -> Option<Header> {
        let mut compact = Compact(bytes);
        let (mut kind, mut expanded, mut stored, mut values, mut encoding) = (None, None, None, None, None);
        compact.each_field(|compact, id, field| {
            match (id, field) {
                (1, 5) => kind = compact.number(field),
                (2, 5) => expanded = compact.number(field),
                (3, 5) => stored = compact.number(field),
                // The header of a data page, of a dictionary, and of a data page of version 2.
                (5 | 7 | 8, STRUCT) => {
                    let of_encoding = if id == 8 { 4 } else { 2 };
                    compact.each_field(|compact, id, kind| {
                        let place = match id {
                            1 => &mut values,
                            id if id == of_encoding => &mut encoding,
                            _ => return Some(false),
                        };
                        *place = Some(compact.number(kind)?);
                        Some(true)
                    })?;
                }
                _ => return Some(false),
            }
            Some(true)
        })?;
        let (expanded, stored) = (u64::try_from(expanded?).ok()?, u64::try_from(stored?).ok()?);
        let length = (bytes.len() - compact.0.len()) as u64;
        Some(Header { kind: kind?, expanded, stored, values: values?, encoding: encoding?, length })
    }

    /// The header of the page at a place of a file.
    fn at(file: &SharedFile, at: u64, end: u64) -> Result<Header> {
        let left = end.saturating_sub(at);
        for most in HEADER_BYTES {
            let bytes = file.get_bytes(at, usize::try_from(most.min(left))?)?;
            if let Some(header) = Header::read(&bytes) {
                header.check(left)?;
                return Ok(header);
            }
            if most >= left {
                break;
            }
        }
        wrong("an invalid header of a page")
    }

    /// Holds it against the bounds of one page. `left` are the bytes that the column has from here on.
    fn check(&self, left: u64) -> Result<()> {
        let Header { kind, expanded, stored, values, encoding, length } = *self;
        if !matches!(kind, DATA | DICTIONARY | DATA_V2) {
            return wrong(format!("a page of type {kind}"));
        }
        if stored.saturating_add(length) > left {
            return wrong(format!("a page of {stored} bytes, of which {left} are there"));
        }
        // Values without a byte are only those that are null or follow from one that is there.
        let most = if kind == DICTIONARY { i64::try_from(expanded).unwrap_or(i64::MAX) } else { MAX_VALUES };
        if !(0..=most).contains(&values) {
            return wrong(format!("a page of {values} values, of at most {most}"));
        }
        // PLAIN, PLAIN_DICTIONARY, RLE, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, RLE_DICTIONARY,
        // BYTE_STREAM_SPLIT. With DELTA_BYTE_ARRAY, which tracequet does not write, a few bytes repeat a long text.
        if !matches!(encoding, 0 | 2 | 3 | 5 | 6 | 8 | 9) {
            return wrong(format!("a page in encoding {encoding}"));
        }
        Ok(())
    }
}

/// The size that the pages of a column of a row group declare to expand to.
fn declared(column: &ColumnChunkMetaData) -> u64 {
    u64::try_from(column.uncompressed_size()).unwrap_or_default()
}

/// The mean of the texts in that page of a column where it is greatest. Rows of a batch take no more than that each,
/// and two pages.
fn mean_of_texts(file: &SharedFile, column: &ColumnChunkMetaData) -> Result<u64> {
    let (mut at, length) = column.byte_range();
    let (end, mut most) = (at.saturating_add(length), 0);
    while at < end {
        let header = Header::at(file, at, end)?;
        // Places in a dictionary are no texts.
        if header.kind != DICTIONARY && !matches!(header.encoding, 2 | 8) {
            most = most.max(header.expanded.div_ceil(header.values.unsigned_abs().max(1)));
        }
        at = at.saturating_add(header.length).saturating_add(header.stored);
    }
    Ok(most)
}

/// The columns of some row groups.
pub(super) struct Groups {
    file: SharedFile,
    metadata: Arc<ParquetMetaData>,
    kept: Vec<usize>,
    /// Bytes of the pages of all columns.
    held: Arc<AtomicU64>,
    /// The memory of a value at most: of the longest one that a dictionary may repeat, and of texts in pages of many
    /// the mean.
    longest: u64,
}

impl Groups {
    /// The row groups with these indexes. `is_wanted` says which columns will be read, by their leaf.
    pub fn new(
        file: SharedFile,
        metadata: Arc<ParquetMetaData>,
        kept: Vec<usize>,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Result<Groups> {
        let mut longest = 0;
        let groups = kept.iter().filter_map(|index| metadata.row_groups().get(*index));
        // A batch may have rows of several row groups.
        let mut expanded: HashMap<usize, u64> = HashMap::new();
        for (leaf, column) in groups.clone().flat_map(|group| group.columns().iter().enumerate()) {
            let sum = expanded.entry(leaf).or_default();
            *sum = sum.saturating_add(declared(column));
        }
        for column in groups.flat_map(|group| group.columns().iter().enumerate()) {
            let (leaf, column) = column;
            if is_wanted(leaf) {
                let descriptor = column.column_descr();
                let is_text = descriptor.physical_type() == Type::BYTE_ARRAY;
                if is_text && expanded.get(&leaf).is_some_and(|expanded| *expanded > MAX_REPEATED) {
                    longest = longest.max(mean_of_texts(&file, column)?);
                }
                longest = longest.max(match descriptor.physical_type() {
                    Type::BYTE_ARRAY if column.dictionary_page_offset().is_some() => {
                        let (start, length) = column.byte_range();
                        Header::at(&file, start, start.saturating_add(length))?.expanded
                    }
                    Type::FIXED_LEN_BYTE_ARRAY => u64::try_from(descriptor.type_length())?,
                    _ => 0,
                });
            }
        }
        Ok(Groups { file, metadata, kept, held: Arc::default(), longest })
    }

    /// Rows of a batch, so that it stays small even when each row has the longest value.
    pub fn batch_rows(&self) -> usize {
        let rows = MAX_REPEATED / self.longest.max(1);
        usize::try_from(rows).unwrap_or(BATCH_ROWS).clamp(1, BATCH_ROWS)
    }
}

impl RowGroups for Groups {
    fn num_rows(&self) -> usize {
        self.row_groups().map(|group| usize::try_from(group.num_rows()).unwrap_or_default()).sum()
    }

    fn column_chunks(&self, i: usize) -> Result<Box<dyn PageIterator>> {
        let groups = self.kept.clone().into_iter();
        let Groups { file, metadata, held, longest, .. } = self;
        let (file, metadata, held) = (file.clone(), metadata.clone(), held.clone());
        Ok(Box::new(Chunks { leaf: i, groups, file, metadata, held, longest: *longest }))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.kept.iter().filter_map(|index| self.metadata.row_groups().get(*index)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// One column in each row group.
struct Chunks {
    leaf: usize,
    groups: std::vec::IntoIter<usize>,
    file: SharedFile,
    metadata: Arc<ParquetMetaData>,
    held: Arc<AtomicU64>,
    longest: u64,
}

impl Iterator for Chunks {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let group = self.metadata.row_groups().get(self.groups.next()?)?;
        let column = group.columns().get(self.leaf)?;
        let rows = usize::try_from(group.num_rows()).unwrap_or_default();
        let (at, length) = column.byte_range();
        let pages = SerializedPageReader::new(Arc::new(self.file.clone()), column, rows, None).map(|inner| {
            Box::new(Pages {
                inner,
                file: self.file.clone(),
                at,
                end: at.saturating_add(length),
                column: group.schema_descr().column(self.leaf),
                next: None,
                listed: 0,
                declared: declared(column),
                longest: self.longest,
                held: Held { all: self.held.clone(), dictionary: 0, page: 0 },
            }) as Box<dyn PageReader>
        });
        Some(pages)
    }
}

impl PageIterator for Chunks {}

/// The part of a column of the bytes that all columns may hold.
struct Held {
    all: Arc<AtomicU64>,
    dictionary: u64,
    page: u64,
}

impl Held {
    /// Exchanges the page, or the dictionary, for one that expands to this many bytes.
    fn take(&mut self, header: &Header) -> Result<()> {
        let place = if header.kind == DICTIONARY { &mut self.dictionary } else { &mut self.page };
        let old = std::mem::replace(place, header.expanded);
        let all = self.all.fetch_sub(old, Ordering::Relaxed) - old;
        self.all.fetch_add(header.expanded, Ordering::Relaxed);
        let all = all.saturating_add(header.expanded);
        if all > MAX_PAGES {
            return wrong(format!("pages that expand to {all} bytes together, of at most {MAX_PAGES}"));
        }
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.dictionary + self.page, Ordering::Relaxed);
    }
}

/// The pages of a column in a row group.
struct Pages {
    inner: SerializedPageReader<SharedFile>,
    file: SharedFile,
    /// Where the next page begins.
    at: u64,
    end: u64,
    column: Arc<ColumnDescriptor>,
    /// The header of the next page, once it was checked.
    next: Option<Header>,
    /// Values in lists so far.
    listed: u64,
    /// The size that the pages which are left may expand to.
    declared: u64,
    longest: u64,
    held: Held,
}

impl Pages {
    /// Checks the header of the next page before arrow-rs reads it. `None` at the end.
    fn check(&mut self) -> Result<Option<Header>> {
        if self.next.is_none() && self.at < self.end {
            let header = Header::at(&self.file, self.at, self.end)?;
            let is_text = self.column.physical_type() == Type::BYTE_ARRAY;
            let is_small = header.expanded <= self.longest.max(MAX_REPEATED / BATCH_ROWS as u64);
            if header.kind == DICTIONARY && is_text && !is_small {
                return wrong("a dictionary that the column does not declare");
            }
            self.next = Some(header);
        }
        Ok(self.next)
    }

    fn advance(&mut self, header: &Header) {
        self.next = None;
        self.at = self.at.saturating_add(header.length).saturating_add(header.stored);
    }

    /// Checks the contents of a page: the number of values that its lengths or differences declare.
    fn check_values(&self, page: &Page) -> Result<()> {
        let (max_rep, max_def) = (self.column.max_rep_level(), self.column.max_def_level());
        let (buf, encoding, count) = match page {
            Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, .. } => {
                let mut values = Some(&**buf);
                for (most, encoding) in [(max_rep, rep_level_encoding), (max_def, def_level_encoding)] {
                    if most > 0 {
                        if *encoding != Encoding::RLE {
                            return wrong("levels that are not in runs");
                        }
                        values = values.and_then(behind_levels);
                    }
                }
                (values, *encoding, *num_values)
            }
            Page::DataPageV2 { buf, num_values, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
                let levels = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
                (buf.get(levels..), *encoding, *num_values)
            }
            Page::DictionaryPage { .. } => return Ok(()),
        };
        let Some(values) = buf else { return wrong("a page that is shorter than its levels") };
        let is_delta = matches!(encoding, Encoding::DELTA_BINARY_PACKED | Encoding::DELTA_LENGTH_BYTE_ARRAY);
        if !is_delta || values.is_empty() {
            return Ok(());
        }
        let mut head = Compact(values);
        // The size of a block, its parts, and all values.
        match [head.varint(), head.varint(), head.varint()] {
            [Some(..=0x1_0000), Some(..=0x1_0000), Some(all)] if all <= count.into() => Ok(()),
            head => wrong(format!("invalid differences: {head:?} in a page of {count} values")),
        }
    }
}

/// The part behind levels with their length in front.
fn behind_levels(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.get(u32::from_le_bytes(*length) as usize..)
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(header) = self.check()? else { return Ok(None) };
        self.held.take(&header)?;
        let Some(left) = self.declared.checked_sub(header.expanded) else {
            return wrong("pages that expand to more than the column declares");
        };
        self.declared = left;
        if header.kind != DICTIONARY && self.column.max_rep_level() > 0 {
            self.listed = self.listed.saturating_add(header.values.unsigned_abs());
            if self.listed > MAX_LISTED {
                return wrong(format!("lists of more than {MAX_LISTED} values"));
            }
        }
        let page = self.inner.get_next_page()?;
        self.advance(&header);
        if let Some(page) = &page {
            self.check_values(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        if self.check()?.is_none() { Ok(None) } else { self.inner.peek_next_page() }
    }

    fn skip_next_page(&mut self) -> Result<()> {
        let Some(header) = self.check()? else { return Ok(()) };
        self.inner.skip_next_page()?;
        self.advance(&header);
        Ok(())
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        if self.check()?.is_none() { Ok(true) } else { self.inner.at_record_boundary() }
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
