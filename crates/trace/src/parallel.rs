//! One piece of work for many items, some at a time.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Does something with each item and its place, on up to `at_once` threads, and gives the results in the order of the items. The
/// first failure ends it, and is returned; where no thread can be made, those that there are do the work.
pub fn each<T: Sync, R: Send, E: Send>(
    at_once: usize,
    items: &[T],
    work: impl Fn(usize, &T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<R, E>)>> = Mutex::new(Vec::with_capacity(items.len()));
    let run = || {
        loop {
            let index = next.fetch_add(1, Ordering::AcqRel);
            let Some(item) = items.get(index) else { return };
            let result = work(index, item);
            if result.is_err() {
                next.store(items.len(), Ordering::Release);
            }
            done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    std::thread::scope(|scope| {
        for thread in 1..at_once.min(items.len()) {
            let thread = std::thread::Builder::new().name(format!("part-{thread}"));
            if thread.spawn_scoped(scope, run).is_err() {
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
        let doubled = each(16, &items, |_, item| Ok::<_, ()>(item * 2)).unwrap();
        assert_eq!(doubled, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!(each(16, &[] as &[u32], |_, _| Ok::<_, ()>(())).unwrap().is_empty());
    }

    #[test]
    fn a_failure_ends_it() {
        let begun = AtomicUsize::new(0);
        let items: Vec<usize> = (0..10_000).collect();
        let failed = each(16, &items, |_, _| -> Result<(), &str> {
            begun.fetch_add(1, Ordering::AcqRel);
            Err("no")
        });
        assert_eq!(failed.unwrap_err(), "no");
        assert!(begun.load(Ordering::Acquire) <= 2 * 16);
    }
}
