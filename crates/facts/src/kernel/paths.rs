//! Paths by keys of the kernel, which it gives out again.

use crate::listed::{Listed, Said};
use crate::prelude::*;

/// Keys, each with its path.
#[derive(Debug, Default)]
pub struct Paths {
    /// The keys and the paths, in the order of first sight.
    pub list: Listed<(u64, String)>,
}

impl Paths {
    /// Takes what an event says of a key. The end of some keys may have no path, or another one.
    pub fn said(&mut self, said: Said, key: u64, path: &str, ts_ns: i64, ends_have_paths: bool) {
        // Keys are those of the machine.
        let id = (ProcessKey::default(), key);
        let is_it = |known: &(u64, String)| known.1 == path || (said == Said::Ended && !ends_have_paths);
        self.list.said(said, (id, ts_ns), is_it, path.len(), || (key, path.to_owned()));
        if said == Said::Ended {
            self.list.gone(id);
        }
    }
}
