//! Objects of a store, and what can be done with them.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// An object, as a listing has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The whole key.
    pub key: String,
    /// Bytes.
    pub size: u64,
    /// The entity tag, if the store lists it.
    pub etag: Option<String>,
}

/// Identifies the content of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// The entity tag, as the store gives it. A plain HTTP server may have none.
    pub etag: Option<String>,
    /// The store's own number of this content, where it has one.
    pub generation: Option<String>,
}

/// When an object is to be written.
#[derive(Clone, Copy, Debug)]
pub enum When<'v> {
    /// Whatever is there.
    Always,
    /// Only if there is none.
    Absent,
    /// Only if it still has this content.
    Unchanged(&'v Version),
}

/// The kinds of failures that callers distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The object, or the bucket, is not there.
    Missing,
    /// [`When`] did not hold.
    Changed,
    /// The store cannot do this: it has no listing, or no conditions.
    Unsupported,
    /// The object has more bytes than are wanted.
    TooLarge,
    /// Anything else.
    Other,
}

/// A request that failed after all retries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// A sentence for a person, without the address and without anything secret.
    pub what: String,
}

impl Failure {
    /// Any other failure.
    pub fn other(what: impl Into<String>) -> Failure {
        Failure { kind: FailureKind::Other, what: what.into() }
    }

    /// The failure of an object that goes by this name.
    pub fn at(self, shown: impl Into<PathBuf>) -> Error {
        let kind = match self.kind {
            FailureKind::Missing => std::io::ErrorKind::NotFound,
            _ => std::io::ErrorKind::Other,
        };
        Error::Io { path: shown.into(), source: std::io::Error::new(kind, self.what) }
    }
}

/// An object that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Got {
    /// The size in bytes.
    pub size: u64,
    /// Identifies its content.
    pub version: Version,
}

/// A bucket, a container or a server. Each call is tried again by itself where that may help, and takes a bounded time
/// as long as something comes.
pub trait Store: Send + Sync + std::fmt::Debug {
    /// All objects below `prefix`, which is a folder, in the order of their keys.
    fn list(&self, prefix: &str) -> std::result::Result<Vec<Object>, Failure>;

    /// The first objects below a folder, or how many there are if they are fewer: whether there is anything at all.
    fn has_any(&self, prefix: &str) -> std::result::Result<bool, Failure>;

    /// Writes an object into `to` as it comes, unless its entity tag is `unless`: then nothing is returned. An object
    /// of more than `limit` bytes is a failure, and nothing of it is read.
    fn get(
        &self,
        key: &str,
        unless: Option<&str>,
        limit: u64,
        to: &mut dyn Write,
    ) -> std::result::Result<Option<Got>, Failure>;

    /// The first bytes of an object, `count` of them or all there are.
    fn head(&self, key: &str, count: u64) -> std::result::Result<Vec<u8>, Failure>;

    /// Whether there is an object.
    fn is_there(&self, key: &str) -> std::result::Result<bool, Failure>;

    /// Writes a small object in one step.
    fn put(&self, key: &str, bytes: &[u8], when: When<'_>) -> std::result::Result<(), Failure>;

    /// Writes a file; the object appears when all of it has come.
    fn upload(&self, key: &str, file: &Path) -> std::result::Result<(), Failure>;

    /// Removes an object, if it is there.
    fn delete(&self, key: &str) -> std::result::Result<(), Failure>;
}

/// A small object and its version; nothing if it is not there.
pub fn read(store: &dyn Store, key: &str, limit: u64) -> std::result::Result<Option<(Vec<u8>, Version)>, Failure> {
    let mut bytes = Vec::new();
    match store.get(key, None, limit, &mut bytes) {
        Ok(got) => Ok(got.map(|got| (bytes, got.version))),
        Err(failure) if failure.kind == FailureKind::Missing => Ok(None),
        Err(failure) => Err(failure),
    }
}
/// Requests under way at once.
const AT_ONCE: usize = 16;

/// Asks the store about each of some items, about several at once, and gives the answers in the order of the items.
pub fn each<T: Sync, R: Send>(items: &[T], ask: impl Fn(&T) -> Result<R, Failure> + Sync) -> Result<Vec<R>, Failure> {
    crate::parallel::each(AT_ONCE, items, |_, item| ask(item))
}
