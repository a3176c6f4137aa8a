//! A file as the reader of Parquet wants it: read from any place by one handle, without a second one for each read.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// A file that several readers share. A clone is the same handle.
#[derive(Clone, Debug)]
pub struct SharedFile {
    file: Arc<File>,
    len: u64,
}

/// The bytes of a file from a place on.
pub struct Tail {
    file: SharedFile,
    at: u64,
}

impl SharedFile {
    /// Shares an open file. Its length is taken once.
    pub fn new(file: File) -> io::Result<SharedFile> {
        let len = file.metadata()?.len();
        Ok(SharedFile { file: Arc::new(file), len })
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::read_at(&*self.file, buffer, at);
        #[cfg(windows)]
        return std::os::windows::fs::FileExt::seek_read(&*self.file, buffer, at);
        // WASI has one thread, so that nothing comes between the two.
        #[cfg(not(any(unix, windows)))]
        {
            use std::io::{Seek, SeekFrom};
            let mut file = &*self.file;
            file.seek(SeekFrom::Start(at))?;
            file.read(buffer)
        }
    }
}

impl Read for Tail {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at = self.at.saturating_add(read as u64);
        Ok(read)
    }
}

impl Length for SharedFile {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for SharedFile {
    type T = BufReader<Tail>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(Tail { file: self.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // Memory is taken for bytes that the file has, whatever length was asked for.
        let left = usize::try_from(self.len.saturating_sub(start)).unwrap_or(usize::MAX);
        let mut bytes = Vec::with_capacity(length.min(left));
        Tail { file: self.clone(), at: start }.take(length as u64).read_to_end(&mut bytes)?;
        if bytes.len() != length {
            return Err(ParquetError::EOF(format!("{} bytes at {start}, expected {length}", bytes.len())));
        }
        Ok(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_of_one_file_have_places_of_their_own() {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, b"0123456789").unwrap();
        let file = SharedFile::new(file).unwrap();
        let (mut first, mut second) = (file.get_read(2).unwrap(), file.clone().get_read(7).unwrap());
        let mut buffer = [0; 2];
        first.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"23");
        second.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"78");
        assert_eq!(&file.get_bytes(4, 3).unwrap()[..], b"456");
        assert!(file.get_bytes(8, 3).unwrap_err().to_string().contains("2 bytes at 8, expected 3"));
        assert!(file.get_bytes(u64::MAX, usize::MAX).is_err());
    }
}
