//! MSF 7.00, the container of native PDBs: a file of pages, in which a directory says which pages make up each stream.
//!
//! Source: the page "The MSF File Format" of LLVM's documentation.

use std::ops::Range;

use nom::Parser;

use crate::bytes::{ParseError, Parsed, counted, inner, refuse, take, u32le};

const MAGIC: &[u8] = b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0";

/// Size of a stream that is not there.
const NONE: u32 = u32::MAX;

/// Streams are read once for symbols and once for lines. Pages that many streams share would be read far more often.
const READS: usize = 3;

/// A file and the places of its streams.
pub struct Msf {
    data: Vec<u8>,
    page_size: usize,
    /// Size of each stream in bytes, and its pages as a part of `pages`.
    streams: Vec<(usize, Range<usize>)>,
    pages: Vec<u32>,
    /// Bytes that may still be read, so that a hostile file costs no more than an honest one of its size.
    left: usize,
}

/// The number of pages that this many bytes take.
fn pages_of(bytes: u32, page_size: usize) -> usize {
    (bytes as usize).div_ceil(page_size)
}

/// The bytes of pages, one after the other. `None` when a page is not in the file.
fn join(data: &[u8], page_size: usize, pages: &[u32], size: usize) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(size);
    for page in pages {
        let start = (*page as usize).checked_mul(page_size)?;
        let wanted = page_size.min(size - out.len());
        out.extend_from_slice(data.get(start..start.checked_add(wanted)?)?);
    }
    (out.len() == size).then_some(out)
}

/// The size of pages and the directory.
fn head(data: &[u8]) -> Parsed<'_, (usize, Vec<u8>)> {
    let (rest, magic) = take(MAGIC.len(), "first bytes")(data)?;
    if magic != MAGIC {
        return Err(refuse(data, "first bytes", "the mark of MSF 7.00"));
    }
    let at = rest;
    let (rest, page_size) = u32le("size of a page")(rest)?;
    if !page_size.is_power_of_two() || !(512..=1 << 16).contains(&page_size) {
        return Err(refuse(at, "size of a page", "a power of two from 512 to 65,536"));
    }
    let page_size = page_size as usize;
    let (rest, _free_pages_and_count) = take(8, "map of free pages")(rest)?;
    let at = rest;
    let (rest, size) = u32le("size of the directory")(rest)?;
    if size as usize > data.len() {
        return Err(refuse(at, "size of the directory", "a directory that fits into the file"));
    }
    let (rest, _reserved) = take(4, "reserved number")(rest)?;
    // Pages that list the pages of the directory.
    let count = pages_of(size, page_size);
    let lists = (count * 4).div_ceil(page_size);
    let (rest, lists) = counted(lists, 4, "pages of the directory", u32le("page")).parse(rest)?;
    let missing = || refuse(at, "directory", "pages that are in the file");
    let list = join(data, page_size, &lists, count * 4).ok_or_else(missing)?;
    let pages: Vec<u32> = list.as_chunks().0.iter().map(|page| u32::from_le_bytes(*page)).collect();
    let directory = join(data, page_size, &pages, size as usize).ok_or_else(missing)?;
    Ok((rest, (page_size, directory)))
}

/// Sizes and pages of streams.
fn streams(directory: &[u8]) -> Parsed<'_, (Vec<u32>, &[u8])> {
    let (rest, count) = u32le("number of streams")(directory)?;
    let (rest, sizes) = counted(count, 4, "sizes of streams", u32le("size of a stream")).parse(rest)?;
    Ok((&[], (sizes, rest)))
}

impl Msf {
    /// Reads the directory of a file.
    pub fn parse(data: Vec<u8>) -> Result<Msf, ParseError> {
        let (_, (page_size, directory)) = head(&data).map_err(inner)?;
        let (_, (sizes, rest)) = streams(&directory).map_err(inner)?;
        let pages: Vec<u32> = rest.as_chunks().0.iter().map(|page| u32::from_le_bytes(*page)).collect();
        let mut from = 0;
        let mut streams = Vec::with_capacity(sizes.len());
        for size in sizes {
            let size = if size == NONE { 0 } else { size };
            let upto = from + pages_of(size, page_size);
            streams.push((size as usize, from..upto));
            from = upto;
        }
        let left = data.len().saturating_mul(READS);
        Ok(Msf { data, page_size, streams, pages, left })
    }

    /// The bytes of a stream. `None` when it is not there, lies outside of the file, or more was read than the file
    /// has.
    pub fn stream(&mut self, index: usize) -> Option<Vec<u8>> {
        let (size, pages) = self.streams.get(index).cloned().filter(|(size, _)| *size <= self.data.len())?;
        self.left = self.left.checked_sub(size)?;
        join(&self.data, self.page_size, self.pages.get(pages)?, size)
    }

    /// Bytes of the file.
    pub fn size(&self) -> usize {
        self.data.len()
    }
}
