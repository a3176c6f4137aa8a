//! A store in memory for tests, with failures on demand.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tracequet_trace::source::store::{Failure, FailureKind, Got, Object, Store, Version, When};

/// A function that is called before a write, perhaps by several threads at once.
pub type Hook = Arc<dyn Fn(&Memory, &str) -> Result<(), Failure> + Send + Sync>;

/// A store in memory.
#[derive(Default)]
pub struct Memory {
    /// The objects by their keys, each with the number of the write that made it.
    pub objects: Mutex<BTreeMap<String, (u64, Vec<u8>)>>,
    /// Called before an object is written or removed, with its key: another writer may come in between.
    pub before: Mutex<Option<Hook>>,
    /// A store without conditions.
    pub unconditional: bool,
    /// The number of writes: no two contents have the same tag.
    pub writes: AtomicU64,
    /// Keys of objects that were read.
    pub got: Mutex<Vec<String>>,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

impl Memory {
    /// The keys of all objects, in order.
    pub fn keys(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// Writes without the hook.
    pub fn set(&self, key: &str, bytes: &[u8]) {
        let version = self.writes.fetch_add(1, Ordering::AcqRel);
        self.lock().insert(key.to_owned(), (version, bytes.to_vec()));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, (u64, Vec<u8>)>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hook(&self, key: &str) -> Result<(), Failure> {
        let hook = self.before.lock().unwrap_or_else(PoisonError::into_inner).clone();
        hook.map_or(Ok(()), |hook| hook(self, key))
    }
}

fn missing() -> Failure {
    Failure { kind: FailureKind::Missing, what: "is not there".into() }
}

impl Store for Memory {
    fn list(&self, prefix: &str) -> Result<Vec<Object>, Failure> {
        let prefix = prefix.trim_matches('/');
        let below = |key: &str| prefix.is_empty() || key.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'));
        let objects = self.lock();
        let found = objects.iter().filter(|(key, _)| below(key));
        Ok(found
            .map(|(key, (version, bytes))| Object {
                key: key.clone(),
                size: bytes.len() as u64,
                etag: Some(version.to_string()),
            })
            .collect())
    }

    fn has_any(&self, prefix: &str) -> Result<bool, Failure> {
        self.list(prefix).map(|found| !found.is_empty())
    }

    fn get(&self, key: &str, unless: Option<&str>, limit: u64, to: &mut dyn Write) -> Result<Option<Got>, Failure> {
        let (version, bytes) = self.lock().get(key).cloned().ok_or_else(missing)?;
        self.got.lock().unwrap_or_else(PoisonError::into_inner).push(key.to_owned());
        let etag = version.to_string();
        if unless == Some(&etag) {
            return Ok(None);
        }
        let size = bytes.len() as u64;
        if size > limit {
            return Err(Failure { kind: FailureKind::TooLarge, what: "too large".into() });
        }
        to.write_all(&bytes).map_err(|e| Failure::other(e.to_string()))?;
        Ok(Some(Got { size, version: Version { etag: Some(etag), generation: None } }))
    }

    fn head(&self, key: &str, count: u64) -> Result<Vec<u8>, Failure> {
        let (_, mut bytes) = self.lock().get(key).cloned().ok_or_else(missing)?;
        bytes.truncate(count as usize);
        Ok(bytes)
    }

    fn is_there(&self, key: &str) -> Result<bool, Failure> {
        Ok(self.lock().contains_key(key))
    }

    fn put(&self, key: &str, bytes: &[u8], when: When<'_>) -> Result<(), Failure> {
        self.hook(key)?;
        let found = self.lock().get(key).map(|(version, _)| version.to_string());
        if self.unconditional && !matches!(when, When::Always) {
            return Err(Failure { kind: FailureKind::Unsupported, what: "no conditions".into() });
        }
        let holds = match when {
            When::Always => true,
            When::Absent => found.is_none(),
            When::Unchanged(version) => found.is_some() && found == version.etag,
        };
        if !holds {
            return Err(Failure { kind: FailureKind::Changed, what: "changed".into() });
        }
        self.set(key, bytes);
        Ok(())
    }

    fn upload(&self, key: &str, file: &Path) -> Result<(), Failure> {
        self.hook(key)?;
        self.set(key, &std::fs::read(file).map_err(|e| Failure::other(e.to_string()))?);
        Ok(())
    }

    fn delete(&self, key: &str) -> Result<(), Failure> {
        self.hook(key)?;
        self.lock().remove(key);
        Ok(())
    }
}
