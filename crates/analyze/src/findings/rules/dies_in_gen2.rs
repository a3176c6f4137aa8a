//! Objects reach generation 2 and die there soon: they would have been cheaper to free while they were young.

use std::collections::BTreeMap;

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::score::score;
use crate::findings::shared;
use crate::findings::words;
use crate::subjects::inlined::Inlined;

pub(super) const RULE: Rule = Rule {
    name: "dies_in_gen2",
    unit: "share",
    info: 0.30,
    warning: 0.60,
    needs: &["survivals"],
    record: "lifetimes",
    next: "tracequet lifetimes IN",
    causes: &["large_object_triggers"],
    of_recording: false,
    judge,
};

/// Bytes that have to reach generation 2 for a verdict.
const LEAST_BYTES: f64 = 2e6;

fn judge(look: &Look<'_>) -> Judged {
    let sites = &look.picture.sites;
    if look.process.survivors.followed == 0 {
        return Judged::too_little("No sampled object was followed from collection to collection.");
    }
    let all = look.picture.collections.of(look.id);
    let full: Vec<i64> = all.filter(|gc| gc.generation == Some(2)).map(|gc| gc.start_ns).collect();
    if full.is_empty() {
        return Judged::too_little("There is no full collection.");
    }
    let inlined = Inlined::of(look.process.sampled(), sites);
    let (rows, weight) = look.process.survivors.rows();
    let (mut reached, mut died) = (0.0, 0.0);
    let mut methods: BTreeMap<&str, f64> = BTreeMap::new();
    let mut types: BTreeMap<u64, f64> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.reached == Some(2) && (row.is_dead || row.is_alive)) {
        let bytes = row.bytes * weight;
        reached += bytes;
        let Some(dead_ns) = row.dead_ns.filter(|_| row.is_dead && row.died_in == Some(2)) else { continue };
        // The first full collection of its life found it dead. They are in the order of time.
        let before = |ns: i64| full.partition_point(|start| *start < ns);
        if before(dead_ns.saturating_add(1)).saturating_sub(before(row.born_ns)) > 1 {
            continue;
        }
        died += bytes;
        *types.entry(row.kind).or_default() += bytes;
        if let Some(allocator) = inlined.allocator(sites, row.site, row.kind) {
            *methods.entry(allocator.method).or_default() += bytes;
        }
    }
    let is_enough = reached >= LEAST_BYTES;
    let value = if is_enough { died / reached } else { 0.0 };
    let rate = died / look.seconds().max(1e-9);
    let kind = types.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|(kind, _)| kind);
    let subject = kind.and_then(|kind| look.picture.types.name(look.id, kind)).map(str::to_owned);
    let method = methods.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(a.0)));
    let own_method = method.map(|(method, _)| method.to_owned());
    let of_type = subject.as_ref().map_or(String::new(), |name| format!(", most of it {}", words::short(name, 80)));
    let by = own_method.as_ref().map_or(String::new(), |method| format!(", most by {method}"));
    let sentence = match value > 0.0 {
        true => format!(
            "{} of what reached generation 2 was dead at the first full collection, {} a second{of_type}{by}.",
            words::percent(value),
            words::size(rate)
        ),
        false => "Little that reaches generation 2 dies at the first full collection.".to_owned(),
    };
    let evidence = format!(
        "SELECT coalesce(own_method, method) AS own_method, type_name, sum(promoted_bytes) AS promoted_bytes, \
         sum(died_old_bytes) AS died_old_bytes FROM lifetimes_by_site WHERE {} AND promoted_bytes > 0 GROUP BY ALL \
         ORDER BY died_old_bytes DESC LIMIT 20",
        look.of_process
    );
    // Between rare full collections everything dies in generation 2, and costs nothing.
    let by_rate = score(rate, 1e6, 10e6);
    let at_most = Some(shared::cost_of_full(look).map_or(by_rate, |cost| cost.min(by_rate)));
    let (subject, own_method) = if value > 0.0 { (subject, own_method) } else { (None, None) };
    let followed = look.process.survivors.followed;
    Figure { value, rows: followed, at_most, subject, own_method, sentence, evidence }.into()
}
