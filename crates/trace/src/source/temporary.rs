//! Temporary files, for what does not fit into memory. Without the feature `files` there are none: asking for one is an
//! error of the kind [`std::io::ErrorKind::Unsupported`].

use std::fs::File;
use std::path::Path;

/// A path whose file goes when this is dropped.
#[cfg(feature = "files")]
pub(super) type Named = tempfile::TempPath;
/// A path whose file goes when this is dropped: a build without temporary files makes none.
#[cfg(not(feature = "files"))]
pub(super) type Named = std::path::PathBuf;

/// A file without a name that goes when it is closed.
pub fn file() -> std::io::Result<File> {
    #[cfg(feature = "files")]
    return tempfile::tempfile();
    #[cfg(not(feature = "files"))]
    Err(std::io::ErrorKind::Unsupported.into())
}

/// A file with a name in a folder.
pub(super) fn named_in(folder: &Path, prefix: &str) -> std::io::Result<(File, Named)> {
    #[cfg(feature = "files")]
    return Ok(tempfile::Builder::new().prefix(prefix).tempfile_in(folder)?.into_parts());
    #[cfg(not(feature = "files"))]
    Err(std::io::Error::new(std::io::ErrorKind::Unsupported, format!("{}: {prefix}", folder.display())))
}
