//! A store that is reached over the network, by the crate `object_store`.

use std::future::Future;
use std::io::{Read, Write};
use std::path::Path as FilePath;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion, WriteMultipart,
};
use tokio::runtime::Handle;

use super::failures;
use super::object::{Failure, FailureKind, Got, Object, Store, Version, When};

/// Objects that one listing gives; more would be memory without bound.
const MOST_LISTED: usize = 1_000_000;
/// Larger files are sent in pieces of this size, which is what is in memory of them.
const PIECE: usize = 8 << 20;
/// Pieces on their way at once.
const PIECES_AT_ONCE: usize = 4;

/// A store that is reached over the network.
#[derive(Debug)]
pub(super) struct Remote {
    inner: Arc<dyn ObjectStore>,
    driver: Handle,
    /// Keys are parts of a URL, in which signs may be encoded.
    is_http: bool,
}

impl Remote {
    pub(super) fn new(inner: Arc<dyn ObjectStore>, driver: Handle, is_http: bool) -> Remote {
        Remote { inner, driver, is_http }
    }

    /// Waits on this thread; the driver's thread waits for the network.
    fn block<T: Send>(&self, work: impl Future<Output = T> + Send) -> T {
        if Handle::try_current().is_err() {
            return self.driver.block_on(work);
        }
        // A thread of a caller's runtime may not wait for another one.
        let waited = std::thread::scope(|scope| scope.spawn(|| self.driver.block_on(work)).join());
        waited.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn wait<T: Send>(&self, work: impl Future<Output = object_store::Result<T>> + Send) -> Result<T, Failure> {
        self.block(work).map_err(|e| failures::failure_of(&e))
    }

    fn path(&self, key: &str) -> Result<Path, Failure> {
        let path = if self.is_http { Path::from_url_path(key) } else { Path::parse(key) };
        path.map_err(|e| Failure::other(format!("invalid key: {e}")))
    }

    fn folder(&self, prefix: &str) -> Result<Option<Path>, Failure> {
        let prefix = prefix.trim_matches('/');
        if prefix.is_empty() { Ok(None) } else { self.path(prefix).map(Some) }
    }
}

impl Store for Remote {
    fn list(&self, prefix: &str) -> Result<Vec<Object>, Failure> {
        let prefix = self.folder(prefix)?;
        let listed = self.inner.list(prefix.as_ref());
        let listed = listed.map_ok(|meta| Object { key: meta.location.to_string(), size: meta.size, etag: meta.e_tag });
        let mut all: Vec<Object> = self.wait(listed.take(MOST_LISTED + 1).try_collect())?;
        if all.len() > MOST_LISTED {
            return Err(Failure::other(format!("has more than {MOST_LISTED} objects, expected a deeper folder")));
        }
        all.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(all)
    }

    fn has_any(&self, prefix: &str) -> Result<bool, Failure> {
        let prefix = self.folder(prefix)?;
        let mut listed = self.inner.list(prefix.as_ref());
        self.wait(async { listed.next().await.transpose() }).map(|first| first.is_some())
    }

    fn get(&self, key: &str, unless: Option<&str>, limit: u64, to: &mut dyn Write) -> Result<Option<Got>, Failure> {
        let path = self.path(key)?;
        let options = GetOptions { if_none_match: unless.map(str::to_owned), ..GetOptions::default() };
        let found = match self.block(self.inner.get_opts(&path, options)) {
            Err(object_store::Error::NotModified { .. }) if unless.is_some() => return Ok(None),
            found => found.map_err(|e| failures::failure_of(&e))?,
        };
        let version = Version { etag: found.meta.e_tag.clone(), generation: found.meta.version.clone() };
        let size = found.meta.size;
        if size > limit {
            let what = format!("has {size} bytes, expected {limit} at most here");
            return Err(Failure { kind: FailureKind::TooLarge, what });
        }
        let mut stream = found.into_stream();
        let mut came = 0u64;
        while let Some(bytes) = self.block(stream.next()) {
            let bytes = bytes.map_err(|e| {
                let why = failures::failure_of(&e).what;
                Failure::other(format!("the download broke off: {came} of {size} bytes came ({why})"))
            })?;
            came += bytes.len() as u64;
            // More than it said.
            if came > size {
                return Err(Failure::other(format!("the store sends more than the announced {size} bytes")));
            }
            to.write_all(&bytes).map_err(|e| Failure::other(format!("received data cannot be written: {e}")))?;
        }
        Ok(Some(Got { size, version }))
    }

    fn head(&self, key: &str, count: u64) -> Result<Vec<u8>, Failure> {
        let path = self.path(key)?;
        let options = GetOptions { range: Some(GetRange::Bounded(0..count)), ..GetOptions::default() };
        self.wait(async {
            let found = self.inner.get_opts(&path, options).await?;
            Ok(found.bytes().await?.to_vec())
        })
    }

    fn is_there(&self, key: &str) -> Result<bool, Failure> {
        let path = self.path(key)?;
        match self.wait(self.inner.head(&path)) {
            Ok(_) => Ok(true),
            Err(failure) if failure.kind == FailureKind::Missing => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    fn put(&self, key: &str, bytes: &[u8], when: When<'_>) -> Result<(), Failure> {
        let path = self.path(key)?;
        let mode = match when {
            When::Always => PutMode::Overwrite,
            When::Absent => PutMode::Create,
            When::Unchanged(version) => {
                let Version { etag, generation } = version.clone();
                PutMode::Update(UpdateVersion { e_tag: etag, version: generation })
            }
        };
        let payload = PutPayload::from(bytes.to_vec());
        self.wait(self.inner.put_opts(&path, payload, PutOptions::from(mode))).map(drop)
    }

    fn upload(&self, key: &str, file: &FilePath) -> Result<(), Failure> {
        let path = self.path(key)?;
        let unread = |e: std::io::Error| Failure::other(format!("{} cannot be read: {e}", file.display()));
        let mut source = std::fs::File::open(file).map_err(unread)?;
        let size = source.metadata().map_err(unread)?.len();
        if size <= PIECE as u64 {
            let mut bytes = Vec::new();
            source.take(PIECE as u64).read_to_end(&mut bytes).map_err(unread)?;
            return self.wait(self.inner.put(&path, PutPayload::from(bytes))).map(drop);
        }
        let upload = self.wait(self.inner.put_multipart(&path))?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PIECE);
        let mut piece = vec![0; PIECE];
        loop {
            let read = match source.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => piece.get(..read).unwrap_or_default(),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) => {
                    // The parts that were sent would be kept, and paid for.
                    let _ = self.block(upload.abort());
                    return Err(unread(e));
                }
            };
            let sent = self.wait(async {
                upload.wait_for_capacity(PIECES_AT_ONCE).await?;
                upload.write(read);
                Ok(())
            });
            if let Err(failure) = sent {
                let _ = self.block(upload.abort());
                return Err(failure);
            }
        }
        // Ends it by itself when it fails.
        self.wait(upload.finish()).map(drop)
    }

    fn delete(&self, key: &str) -> Result<(), Failure> {
        match self.wait(self.inner.delete(&self.path(key)?)) {
            Err(failure) if failure.kind == FailureKind::Missing => Ok(()),
            result => result,
        }
    }
}
