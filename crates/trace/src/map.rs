//! Maps by a hash that is quick: keys of a recording are many, and foldhash draws a seed for each process.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

/// A map by a quick hash.
pub type Map<K, V> = HashMap<K, V, RandomState>;

/// A set by a quick hash.
pub type Set<K> = HashSet<K, RandomState>;
