//! Paths by keys of the kernel, which it gives out again.

use crate::listed::{Lifecycle, Listed};
use crate::prelude::*;

/// Keys, each with its path.
#[derive(Debug, Default)]
pub struct Paths {
    /// The keys and the paths, in the order of first sight.
    pub list: Listed<(u64, String)>,
}

impl Paths {
    /// Notes a step of a key. Unless `ends_have_paths`, the event of its end may have no path, or another one.
    pub fn note(&mut self, step: Lifecycle, key: u64, path: &str, ts_ns: i64, ends_have_paths: bool) {
        // Keys are those of the machine.
        let id = (ProcessKey::default(), key);
        let is_same = |known: &(u64, String)| known.1 == path || (step == Lifecycle::End && !ends_have_paths);
        self.list.note(step, (id, ts_ns), is_same, path.len(), || (key, path.to_owned()));
        if step == Lifecycle::End {
            self.list.gone(id);
        }
    }
}
