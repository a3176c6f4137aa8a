//! A lease of a dataset in a store: an object that only one program can make, and that the others wait for.
//!
//! The holder of a lease renews it by writing it again. One that stays as it is for [`ABANDONED`], by the clock of the
//! program that waits, is that of a killed program, and another one takes it over, on the condition that it is still
//! the same object. A store without conditions has no leases: only one program at a time may write to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tracequet_trace::source::store::{Failure, FailureKind, Store, When, read};

/// A lease that nobody renews for so long is abandoned.
const ABANDONED: Duration = Duration::from_secs(120);
/// The time between two renewals.
const RENEWED: Duration = Duration::from_secs(20);
/// The time between two looks at a lease that others hold.
const LOOKED: Duration = Duration::from_millis(200);
/// Bytes of the object.
const MOST: u64 = 4096;

/// The lease, until it is dropped.
#[derive(Debug)]
pub(super) struct Lease {
    store: Arc<dyn Store>,
    key: String,
    is_over: Arc<AtomicBool>,
    renewing: Option<JoinHandle<()>>,
}

impl Lease {
    /// Waits for the lease in the object `key`.
    pub(super) fn take(store: Arc<dyn Store>, key: String) -> Result<Lease, Failure> {
        let own = format!("{}-{:?}", std::process::id(), Instant::now());
        let mut seen: Option<(Vec<u8>, Instant)> = None;
        loop {
            let there = read(store.as_ref(), &key, MOST)?;
            let when = match &there {
                None => When::Absent,
                Some((text, version)) => match &seen {
                    Some((before, since)) if before == text && since.elapsed() >= ABANDONED => When::Unchanged(version),
                    Some((before, _)) if before == text => {
                        std::thread::sleep(LOOKED);
                        continue;
                    }
                    _ => {
                        seen = Some((text.clone(), Instant::now()));
                        continue;
                    }
                },
            };
            match store.put(&key, own.as_bytes(), when) {
                Ok(()) => break,
                Err(failure) if failure.kind == FailureKind::Unsupported => break,
                Err(failure) if failure.kind == FailureKind::Changed => std::thread::sleep(LOOKED),
                Err(failure) => return Err(failure),
            }
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let renewing = renew(store.clone(), key.clone(), own, is_over.clone());
        Ok(Lease { store, key, is_over, renewing })
    }
}

/// Writes the lease again and again, each time with another number.
fn renew(store: Arc<dyn Store>, key: String, own: String, is_over: Arc<AtomicBool>) -> Option<JoinHandle<()>> {
    let work = move || {
        let mut last = Instant::now();
        let mut number = 0u64;
        while !is_over.load(Ordering::Acquire) {
            std::thread::park_timeout(RENEWED);
            if is_over.load(Ordering::Acquire) || last.elapsed() < RENEWED {
                continue;
            }
            last = Instant::now();
            number += 1;
            // A renewal that fails now is tried again; if another program has taken the lease over, its text is another
            // one.
            let is_own = |text: &[u8]| text.starts_with(own.as_bytes());
            if let Ok(Some((_, version))) =
                read(store.as_ref(), &key, MOST).map(|found| found.filter(|(text, _)| is_own(text)))
            {
                let _ = store.put(&key, format!("{own} {number}").as_bytes(), When::Unchanged(&version));
            }
        }
    };
    // Without a thread it lasts as long as others wait for it.
    std::thread::Builder::new().name("lease".into()).spawn(work).ok()
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        if let Some(renewing) = self.renewing.take() {
            renewing.thread().unpark();
            let _ = renewing.join();
        }
        // One that stays is abandoned after a while.
        let _ = self.store.delete(&self.key);
    }
}
