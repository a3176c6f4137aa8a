//! Allocations of a kind: how much, of which type, and by which own method.

use std::collections::BTreeMap;

use super::picture::Allocated;
use super::rule::{Few, Figure, Judged, Look};
use super::words;

/// Samples with which a share is taken as it is.
const LEAST_SAMPLES: u64 = 100;

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
    /// Into which one the compiler put it, as [`Sites::most`](crate::subjects::sites::Sites::most) says it.
    inlined: String,
}

impl Part {
    /// Bytes of the kind in those of all.
    pub(super) fn share(&self) -> f64 {
        if self.all_bytes > 0.0 { self.bytes / self.all_bytes } else { 0.0 }
    }

    /// Bytes of the kind in a second.
    pub(super) fn rate(&self, look: &Look<'_>) -> f64 {
        look.per_second(self.bytes)
    }

    /// The share as a figure, with a score of at most this.
    pub(super) fn figure(self, at_most: f64, sentence: String, evidence: String) -> Judged {
        let (value, rows, at_most) = (self.share(), self.all_samples, Some(at_most));
        let few = Few::share(value, rows, LEAST_SAMPLES, "samples of allocations");
        let (subject, own_method) = (self.type_name, self.own_method);
        Figure { value, rows, at_most, few, subject, own_method, sentence, evidence }.into()
    }

    /// `12 % of what is allocated, 3 MB a second`.
    pub(super) fn amount(&self, look: &Look<'_>) -> String {
        let (part, rate) = (words::percent(self.share()), words::size(self.rate(look)));
        format!("{part} of what is allocated, {rate} a second")
    }

    /// `, 87 % by Shop.Orders.Load`.
    pub(super) fn by(&self) -> String {
        match &self.own_method {
            Some(method) => format!(", {} by {method}{}", words::percent(self.own_share), self.inlined),
            None => String::new(),
        }
    }
}

/// The allocations of a process that are of a kind: `is_of_kind` says it by call site, type and its name.
pub(super) fn part(look: &Look<'_>, is_of_kind: impl Fn(u32, u64, &str) -> bool) -> Part {
    summed(look, is_of_kind, |allocated| (allocated.bytes, allocated.samples))
}

/// The allocations of large objects that are of a kind.
pub(super) fn large_part(look: &Look<'_>, is_of_kind: impl Fn(u32, u64, &str) -> bool) -> Part {
    summed(look, is_of_kind, |allocated| (allocated.large_bytes, allocated.large_samples))
}

fn summed(look: &Look<'_>, is_of_kind: impl Fn(u32, u64, &str) -> bool, amount: fn(&Allocated) -> (f64, u64)) -> Part {
    let mut part = Part::default();
    let mut types: BTreeMap<&str, f64> = BTreeMap::new();
    let mut sites: BTreeMap<u32, f64> = BTreeMap::new();
    for ((site, kind), allocated) in look.process.counted() {
        part.all_bytes += allocated.bytes;
        part.all_samples += allocated.samples;
        let name = look.picture.types.name(look.id, *kind).unwrap_or_default();
        let (bytes, samples) = amount(allocated);
        if samples == 0 || !is_of_kind(*site, *kind, name) {
            continue;
        }
        part.bytes += bytes;
        part.samples += samples;
        *types.entry(name).or_default() += bytes;
        *sites.entry(*site).or_default() += bytes;
    }
    let largest = types.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(a.0)));
    part.type_name = largest.filter(|(name, _)| !name.is_empty()).map(|(name, _)| name.to_owned());
    // Who has a small part in it is not to blame.
    let all = part.bytes.max(f64::MIN_POSITIVE);
    if let Some(most) = look.picture.sites.most(sites).filter(|most| most.amount / all >= LEAST_SHARE) {
        part.own_share = most.amount / all;
        (part.own_method, part.inlined) = (Some(most.method), most.inlined);
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
