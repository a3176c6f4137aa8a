//! Unpacks the program in the page: `tracequet-unpack FILE.lzma` writes to standard output what the file holds. Browsers have no decoder of their own
//! for what packs so well.

use std::fs::File;
use std::io::{BufReader, BufWriter, Error, copy, stdout};

use lzma_rust2::LzmaReader;

fn main() -> Result<(), Error> {
    let packed = std::env::args().nth(1).ok_or_else(|| Error::other("expected a file"))?;
    // The page packed it itself, so that its dictionary needs no limit.
    let mut program = LzmaReader::new_mem_limit(BufReader::new(File::open(packed)?), u32::MAX, None)?;
    // Each write goes through the page's script.
    copy(&mut program, &mut BufWriter::with_capacity(1 << 20, stdout().lock())).map(|_| ())
}
