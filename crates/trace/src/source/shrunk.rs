//! Maps of inputs that lost a part of their file while they were read. The system sends the signal SIGBUS, at the first
//! touch of a page that is gone; a handler asks here what to put in its place.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Inputs whose maps are watched at a time; others end the process when they shrink.
const MAPS: usize = 64;
/// A place that is being taken: no map begins here.
const TAKEN: usize = 1;

struct Place {
    start: AtomicUsize,
    len: AtomicUsize,
    /// One more than the offset from which on the file is gone; 0 while it is whole.
    lost: AtomicUsize,
}

static PLACES: [Place; MAPS] =
    [const { Place { start: AtomicUsize::new(0), len: AtomicUsize::new(0), lost: AtomicUsize::new(0) } }; MAPS];

/// A map whose loss is noticed, as long as this lives.
pub(super) struct Noticed(&'static Place);

impl Noticed {
    /// Notices the loss of a map, if there is a place left.
    #[cfg(feature = "maps")]
    pub(super) fn map(bytes: &[u8]) -> Option<Noticed> {
        let is_free =
            |place: &&Place| place.start.compare_exchange(0, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let place = PLACES.iter().find(is_free)?;
        place.lost.store(0, Ordering::Relaxed);
        place.len.store(bytes.len(), Ordering::Relaxed);
        place.start.store(bytes.as_ptr().addr(), Ordering::Release);
        Some(Noticed(place))
    }

    /// The offset from which on the file was gone. Said once.
    pub(super) fn take(&self) -> Option<usize> {
        self.0.lost.swap(0, Ordering::AcqRel).checked_sub(1)
    }
}

impl Drop for Noticed {
    fn drop(&mut self) {
        self.0.start.store(0, Ordering::Release);
    }
}

/// For a handler of SIGBUS, which may call this: the part of the map of an input that begins with the page of
/// `address`, which can no longer be read and has to be replaced by zeros. The reader then reports that the file became
/// shorter. Nothing when no input is mapped there.
pub fn lost_map(address: usize, page: usize) -> Option<Range<usize>> {
    PLACES.iter().find_map(|place| {
        let start = place.start.load(Ordering::Acquire);
        let len = place.len.load(Ordering::Relaxed);
        let is_here = start > TAKEN && (start..start.saturating_add(len)).contains(&address);
        let from = address - address % page.max(1);
        if is_here {
            place.lost.store(from.saturating_sub(start) + 1, Ordering::Release);
        }
        is_here.then(|| from..start + len)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_noticed_once_and_where_it_begins() {
        let bytes = vec![0u8; 100_000];
        let start = bytes.as_ptr().addr();
        let noticed = Noticed::map(&bytes).unwrap();
        assert_eq!((noticed.take(), lost_map(start + bytes.len(), 4096)), (None, None));
        let range = lost_map(start + 50_000, 4096).unwrap();
        assert!(
            range.contains(&(start + 50_000)) && range.end == start + bytes.len() && range.start.is_multiple_of(4096)
        );
        assert_eq!((noticed.take(), noticed.take()), (Some(range.start - start), None));
        drop(noticed);
        assert_eq!(lost_map(start + 50_000, 4096), None);
    }
}
