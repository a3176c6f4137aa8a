//! The runtime's own numbers of collections, which say when one is not in the recording.

use super::rules::Collection;

/// The last number that a runtime gave a collection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    /// 0 for none.
    last: u32,
}

impl Numbers {
    /// Whether a collection before this one was not recorded: they are numbered one after the other, in the order of
    /// their starts.
    pub fn is_behind_missing(&mut self, gc: &Collection) -> bool {
        let expected = self.last.wrapping_add(1);
        match (self.last, gc.gc_number) {
            (0, 0) => false,
            // Neither its start nor its end was recorded, and yet it is there.
            (_, 0) => {
                self.last = expected;
                false
            }
            (last, number) => {
                self.last = number;
                last != 0 && number != expected
            }
        }
    }
}
