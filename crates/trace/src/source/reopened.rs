//! A file that several read, each at a place of its own, and that is open only while somebody does.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file. A clone is not open: it opens the file when it is read first, if that is still the same by length and time.
#[derive(Debug)]
pub(super) struct Reopened {
    path: PathBuf,
    stamp: (u64, Option<SystemTime>),
    file: Option<BufReader<File>>,
}

fn stamp(file: &File) -> io::Result<(u64, Option<SystemTime>)> {
    let data = file.metadata()?;
    Ok((data.len(), data.modified().ok()))
}

impl Reopened {
    /// Opens a file.
    pub fn open(path: &Path) -> io::Result<Reopened> {
        let file = File::open(path)?;
        Ok(Reopened { path: path.to_owned(), stamp: stamp(&file)?, file: Some(BufReader::new(file)) })
    }

    fn file(&mut self) -> io::Result<&mut BufReader<File>> {
        match &mut self.file {
            Some(file) => Ok(file),
            none => {
                let file = File::open(&self.path)?;
                if stamp(&file)? != self.stamp {
                    return Err(io::Error::other("the file has changed since it was looked at"));
                }
                Ok(none.insert(BufReader::new(file)))
            }
        }
    }
}

impl Clone for Reopened {
    fn clone(&self) -> Reopened {
        Reopened { path: self.path.clone(), stamp: self.stamp, file: None }
    }
}

impl Read for Reopened {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file()?.read(buffer)
    }
}

impl Seek for Reopened {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        self.file()?.seek(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_reads_the_same_file_by_itself_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "0123456789").unwrap();
        let mut first = Reopened::open(&path).unwrap();
        first.seek(SeekFrom::Start(7)).unwrap();
        let mut second = first.clone();
        assert!(second.file.is_none());
        let text = |reader: &mut Reopened| {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        };
        assert_eq!(text(&mut second).unwrap(), "0123456789");
        assert_eq!(text(&mut first).unwrap(), "789");
        let mut third = first.clone();
        std::fs::write(&path, "other").unwrap();
        assert!(text(&mut third).unwrap_err().to_string().contains("has changed"));
    }
}
