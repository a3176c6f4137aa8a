//! Objects reach generation 2 and die there soon: they would have been cheaper to free while they were young.

use std::collections::BTreeMap;

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "dies_in_gen2",
    title: "Objects live until gen 2, and die there",
    about: "Objects live just long enough to reach gen 2, and die there: two young GCs copied them, and only a gen 2 GC \
        could free them.",
    measure: "Of the sampled objects that reached gen 2 and whose fate is known, the bytes of those that died there, \
        divided by the bytes of all. Those that no gen 2 GC looked at count as \
        alive, so that the figure is the least. At least 2 MB that reached gen 2; below 1 MB a second of such objects \
        it is fine, from 10 MB on a warning is possible. It is fine, too, where gen 2 GCs take less than 1 % of the time, \
        and none 100 ms, and the young GCs that carry such objects on less than 2 %; a warning is possible from 5 % or 500 \
        ms, or from 10 %, on. The type and your method with the most of them are named.",
    unit: "share",
    info: 0.30,
    warning: 0.60,
    needs: &["survivals"],
    record: "lifetimes",
    advice: "Keep less across an `await`, in queues and in batches, rent buffers from `ArrayPool<T>`, or let short-lived \
        caches hold plain values.",
    closer: closer::LIFETIMES,
    causes: &["large_object_triggers"],
    evidence: Evidence { sections: &["survival", "heap", "collections"], sort: None },
    query: "SELECT coalesce(own_method, method) AS own_method, type_name, sum(promoted_bytes) AS promoted_bytes, \
        sum(died_old_bytes) AS died_old_bytes FROM lifetimes_by_site WHERE {process} AND promoted_bytes > 0 GROUP BY ALL \
        ORDER BY died_old_bytes DESC LIMIT 20",
    example: Example::of("habits/belt", "habits/belt-clean", Verdict::Warning)
        .by("Depot.Parcel..ctor")
        .about("System.Byte[]"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// Bytes that have to reach generation 2 for a verdict.
const LEAST_BYTES: f64 = 2e6;

fn judge(look: &Look<'_>) -> Judged {
    let sites = &look.picture.sites;
    if look.process.survivors.followed == 0 {
        return Judged::too_little("No sampled object was followed from GC to GC.");
    }
    if !look.picture.collections.of(look.id).any(|gc| gc.generation == Some(2)) {
        return Judged::none("gen 2 GC");
    }
    let (rows, weight) = look.process.survivors.rows();
    let (mut reached, mut died) = (0.0, 0.0);
    let mut dead: Vec<(u32, f64)> = Vec::new();
    let mut types: BTreeMap<u64, f64> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.reached == Some(2) && (row.is_dead || row.is_alive)) {
        let bytes = row.bytes * weight;
        reached += bytes;
        if !row.is_dead || row.died_in != Some(2) {
            continue;
        }
        died += bytes;
        *types.entry(row.kind).or_default() += bytes;
        dead.push((row.site, bytes));
    }
    let is_enough = reached >= LEAST_BYTES;
    let value = if is_enough { died / reached } else { 0.0 };
    let rate = look.per_second(died);
    let kind = types.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|(kind, _)| kind);
    let subject = kind.and_then(|kind| look.picture.types.name(look.id, kind)).map(str::to_owned);
    let most = sites.most(dead.iter().copied());
    let of_type = subject.as_ref().map_or(String::new(), |name| format!(", most of it {}", words::short(name, 80)));
    let by = most.as_ref().map_or(String::new(), |most| {
        format!(", most by {}{}{}", most.method, most.inlined, shared::called_by(look, &most.method, &dead))
    });
    let sentence = match value > 0.0 {
        true => format!(
            "{} of what reached gen 2 died there, {} a second{of_type}{by}.",
            words::percent(value),
            words::size(rate)
        ),
        false => "Little that reaches gen 2 dies there.".to_owned(),
    };
    // Between rare full collections everything dies in generation 2, and costs nothing.
    let by_rate = score(rate, 1e6, 10e6);
    // They are copied by two young collections, and freed by a full one.
    let costs = [shared::cost_of_full(look), shared::cost_of_young(look)].into_iter().flatten();
    let at_most = Some(costs.reduce(f64::max).map_or(by_rate, |cost| cost.min(by_rate)));
    let (subject, own_method) = if value > 0.0 { (subject, most.map(|most| most.method)) } else { (None, None) };
    let followed = look.process.survivors.followed;
    Figure { value, rows: followed, at_most, subject, own_method, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{AllocationLifetime, FactSink, Type};

    use crate::findings::tests::story::{Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let part = |n: u32, of: u32| f64::from(n) < f64::from(of) * x;
        (1..=59).for_each(|n| made.gc(n, if n % 10 == 0 { 2 } else { 1 }, "AllocSmall", "blocking"));
        let site = made.site(&["Shop.Program.Main()", "Shop.Visits.Answer(int)"]);
        made.tables.add(&Type { process_id: 7, type_id: 4, name: "Shop.Session", ..Type::default() });
        for n in 0..400u32 {
            // Born in each gap between two full collections; those that die do so at the second one, as what a window holds that moves on.
            let (born, is_dead) = (i64::from(n % 4) * 10 * S + 5 * S, part(n, 400));
            let row = AllocationLifetime {
                ts_ns: born,
                process_id: 7,
                callsite_id: site,
                type_id: 4,
                source: "tick",
                allocation_bytes: Some(5_000_000),
                sample_weight: 1,
                fate: if is_dead { "dead" } else { "alive" },
                survived_collections: 3,
                highest_generation: Some(2),
                generation_at_end: Some(2),
                last_alive_ts_ns: if is_dead { born + 14 * S } else { 50 * S },
                dead_ts_ns: is_dead.then_some(born + 15 * S),
                ..AllocationLifetime::default()
            };
            made.tables.add(&row);
        }
    }
}
