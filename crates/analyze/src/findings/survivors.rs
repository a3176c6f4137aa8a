//! Sampled objects that lived through a collection, and whether what stays alive grows: as much of it from the end of the recording as
//! from its beginning.

use std::collections::BTreeMap;

use crate::subjects::sites::Sites;

/// Samples that are kept. Of more one of two is left out, again and again, and the others count twice.
const MOST: usize = 1 << 18;

/// Parts of the time before the collection that shows what is alive. The first one is the start of the program, which every
/// program spends with filling its memory.
const PARTS: usize = 5;

/// A sampled object that survived a collection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Survivor {
    pub(super) site: u32,
    pub(super) kind: u64,
    pub(super) bytes: f64,
    pub(super) born_ns: i64,
    /// Until when it lived at least.
    pub(super) alive_ns: i64,
    pub(super) is_dead: bool,
    pub(super) is_alive: bool,
    /// The highest generation that it was seen in, and the one that it was in at last.
    pub(super) reached: Option<u8>,
    pub(super) died_in: Option<u8>,
}

/// Those of a process.
#[derive(Debug, Default)]
pub(super) struct Survivors {
    rows: Vec<Survivor>,
    seen: u64,
    /// Each of how many is kept, as a power of two.
    thinned: u32,
    /// Sampled objects that were followed, those that died young among them.
    pub(super) followed: u64,
}

/// What stays alive and grows.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Growth {
    /// Bytes over the time that was looked at, by the slowest part of it.
    pub(super) bytes: f64,
    /// Bytes of samples that are alive.
    pub(super) alive_bytes: f64,
    pub(super) samples: u64,
    /// The own method that allocates most of it.
    pub(super) own_method: Option<String>,
    /// The own method that calls it, when it is a constructor.
    pub(super) maker: Option<String>,
    /// The types that it allocates, the largest first, with their bytes.
    pub(super) types: Vec<(u64, f64)>,
}

/// What an own method has in it.
#[derive(Default)]
struct OfMethod<'t> {
    parts: BTreeMap<usize, f64>,
    types: BTreeMap<u64, f64>,
    makers: BTreeMap<&'t str, f64>,
}

impl Survivors {
    /// A sampled object that survived this number of collections.
    pub(super) fn see(&mut self, survived: u64, row: impl FnOnce() -> Survivor) {
        self.followed += 1;
        if survived > 0 {
            self.add(row());
        }
    }

    fn add(&mut self, row: Survivor) {
        self.seen += 1;
        if self.seen.trailing_zeros() < self.thinned {
            return;
        }
        self.rows.push(row);
        if self.rows.len() >= MOST {
            // Kept are those whose number has one zero more at its end: every second one.
            self.thinned += 1;
            let mut is_even = true;
            self.rows.retain(|_| {
                is_even = !is_even;
                is_even
            });
        }
    }

    /// The kept ones, and how many of them each stands for.
    pub(super) fn rows(&self) -> (&[Survivor], f64) {
        (&self.rows, 2f64.powi(self.thinned.cast_signed()))
    }

    /// Of the objects that a collection at `seen_ns` proves alive: how much comes from each part of the time before it, and of
    /// those behind it from the rest, which ends at `end_ns`.
    pub(super) fn growth(&self, sites: &Sites, seen_ns: i64, end_ns: i64) -> Growth {
        let part_ns = (seen_ns / PARTS as i64).max(1);
        let parts = PARTS + (end_ns.saturating_sub(seen_ns) / part_ns).clamp(0, 1 << 10) as usize;
        let (rows, weight) = self.rows();
        let mut growth = Growth::default();
        let mut all = vec![0.0; parts];
        let mut methods: BTreeMap<&str, OfMethod<'_>> = BTreeMap::new();
        for row in rows {
            let is_alive = if row.born_ns < seen_ns { row.alive_ns >= seen_ns } else { !row.is_dead };
            let part = (row.born_ns.max(0) / part_ns) as usize;
            let Some(sum) = all.get_mut(part).filter(|_| is_alive) else { continue };
            let bytes = row.bytes * weight;
            *sum += bytes;
            growth.alive_bytes += bytes;
            growth.samples += 1;
            if part == 0 {
                continue;
            }
            let of = methods.entry(sites.own_method(row.site).unwrap_or_default()).or_default();
            *of.parts.entry(part).or_default() += bytes;
            *of.types.entry(row.kind).or_default() += bytes;
            if let Some(maker) = sites.maker(row.site) {
                *of.makers.entry(maker).or_default() += bytes;
            }
        }
        let least = |sum: &dyn Fn(usize) -> f64| (1..parts).map(sum).fold(f64::INFINITY, f64::min) * parts as f64;
        growth.bytes = least(&|part| all.get(part).copied().unwrap_or_default());
        let weight_of = |of: &OfMethod<'_>| {
            (least(&|part| of.parts.get(&part).copied().unwrap_or_default()), of.parts.values().sum::<f64>())
        };
        let most = methods.into_iter().filter(|(method, _)| !method.is_empty() || growth.bytes > 0.0).max_by(|a, b| {
            let (x, y) = (weight_of(&a.1), weight_of(&b.1));
            x.0.total_cmp(&y.0).then(x.1.total_cmp(&y.1)).then(b.0.cmp(a.0))
        });
        if let Some((method, of)) = most {
            growth.own_method = (!method.is_empty()).then(|| method.to_owned());
            let maker = of.makers.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(a.0)));
            growth.maker = maker.filter(|(maker, _)| *maker != method).map(|(maker, _)| maker.to_owned());
            growth.types = of.types.into_iter().collect();
            growth.types.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        }
        growth
    }
}
