//! Allocations of a kind: how much, of which type, and by which own method.

use std::collections::BTreeMap;

use super::picture::Allocated;
use super::rule::Look;
use crate::subjects::inlined::{Allocator, Inlined};

/// The part of the bytes from which on an own method is named.
const LEAST_SHARE: f64 = 0.1;

/// What was allocated of a kind.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) bytes: f64,
    pub(super) all_bytes: f64,
    pub(super) samples: u64,
    pub(super) all_samples: u64,
    /// The type with the most bytes of the kind.
    pub(super) type_name: Option<String>,
    /// The own method with the most bytes of the kind, and its part of them.
    pub(super) own_method: Option<String>,
    pub(super) own_share: f64,
    /// The own method that the compiler put most of that method's allocations into.
    pub(super) inlined_into: Option<String>,
}

impl Part {
    /// Bytes of the kind in those of all.
    pub(super) fn share(&self) -> f64 {
        if self.all_bytes > 0.0 { self.bytes / self.all_bytes } else { 0.0 }
    }

    /// `, most by Shop.Orders.Load (87 %)`.
    pub(super) fn by(&self) -> String {
        match &self.own_method {
            Some(method) => {
                let into =
                    self.inlined_into.as_ref().map_or(String::new(), |caller| format!(", inlined into {caller}"));
                format!(", most by {method} ({}{into})", super::words::percent(self.own_share))
            }
            None => String::new(),
        }
    }
}

/// The allocations of a process that are of a kind: `of` says by call site, type, its name and sums how many bytes and samples of them are.
pub(super) fn part(look: &Look<'_>, of: impl Fn(u32, u64, &str, &Allocated) -> (f64, u64)) -> Part {
    let mut part = Part::default();
    let mut types: BTreeMap<&str, f64> = BTreeMap::new();
    let mut methods: BTreeMap<&str, f64> = BTreeMap::new();
    let mut callers: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    let inlined = Inlined::of(look.process.sampled(), &look.picture.sites);
    for ((site, kind), allocated) in look.process.counted() {
        part.all_bytes += allocated.bytes;
        part.all_samples += allocated.samples;
        let name = look.picture.types.name(look.id, *kind).unwrap_or_default();
        let (bytes, samples) = of(*site, *kind, name, allocated);
        if samples == 0 {
            continue;
        }
        part.bytes += bytes;
        part.samples += samples;
        *types.entry(name).or_default() += bytes;
        if let Some(Allocator { method, inlined_into, .. }) = inlined.allocator(&look.picture.sites, *site, *kind) {
            *methods.entry(method).or_default() += bytes;
            if let Some(caller) = inlined_into {
                *callers.entry((method, caller)).or_default() += bytes;
            }
        }
    }
    let largest = |sums: BTreeMap<&str, f64>| {
        let largest = sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(a.0)));
        largest.filter(|(name, _)| !name.is_empty()).map(|(name, bytes)| (name.to_owned(), bytes))
    };
    part.type_name = largest(types).map(|(name, _)| name);
    // Who has a small part in it is not to blame.
    let all = part.bytes.max(f64::MIN_POSITIVE);
    if let Some((method, bytes)) = largest(methods).filter(|(_, bytes)| bytes / all >= LEAST_SHARE) {
        part.own_share = bytes / all;
        let of_method = callers.into_iter().filter(|((inlined, _), _)| *inlined == method);
        let caller = of_method.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        part.inlined_into = caller.map(|((_, caller), _)| caller.to_owned());
        part.own_method = Some(method);
    }
    part
}

/// The rows of the view by site that a kind is in, the largest first. `condition` is one of SQL.
pub(super) fn evidence(look: &Look<'_>, condition: &str) -> String {
    format!(
        "SELECT coalesce(own_method, method) AS own_method, type_name, sum(sample_count) AS samples, \
         sum(allocation_bytes) AS bytes FROM allocation_by_site WHERE {} AND {condition} GROUP BY ALL \
         ORDER BY bytes DESC LIMIT 10",
        look.of_process
    )
}
