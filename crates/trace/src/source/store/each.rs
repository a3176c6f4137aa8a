//! One request for many objects, some at a time.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::object::Failure;

/// Requests under way at once.
const AT_ONCE: usize = 16;

/// Does something with each item, on several threads, and gives the results in the order of the items. The first
/// failure ends it.
pub fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> Result<R, Failure> + Sync) -> Result<Vec<R>, Failure> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<R, Failure>)>> = Mutex::new(Vec::with_capacity(items.len()));
    let run = || {
        loop {
            let index = next.fetch_add(1, Ordering::AcqRel);
            let Some(item) = items.get(index) else { return };
            let result = work(item);
            if result.is_err() {
                next.store(items.len(), Ordering::Release);
            }
            done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..AT_ONCE.min(items.len()) {
            // This thread does what others cannot be had for.
            if std::thread::Builder::new().name("store".into()).spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u32> = (0..100).collect();
        let doubled = each(&items, |item| Ok(item * 2)).unwrap();
        assert_eq!(doubled, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!(each(&[] as &[u32], |_| Ok(())).unwrap().is_empty());
    }

    #[test]
    fn a_failure_ends_it() {
        let begun = AtomicUsize::new(0);
        let items: Vec<usize> = (0..10_000).collect();
        let failed = each(&items, |_| -> Result<(), Failure> {
            begun.fetch_add(1, Ordering::AcqRel);
            Err(Failure::other("no"))
        });
        assert_eq!(failed.unwrap_err().what, "no");
        assert!(begun.load(Ordering::Acquire) <= 2 * AT_ONCE);
    }
}
