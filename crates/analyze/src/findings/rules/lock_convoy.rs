//! Threads wait for one lock much of the time.

use std::collections::BTreeMap;

use crate::findings::prelude::*;
use crate::subjects::sites::Is;

pub(super) const RULE: Rule = Rule {
    name: "lock_convoy",
    title: "Threads wait for one lock",
    about: "Threads wait for one lock much of the time, one behind the other.",
    measure: "Waits for the lock with the longest waits, summed over threads, divided by the time. Before .NET 8 the runtime \
        does not say which lock it is, and the place of the wait stands for it; so it does of `ReaderWriterLockSlim`, whose waits are \
        recorded from .NET 9 on (`--for threadpool`, `--for all`).",
    unit: "share",
    info: 0.05,
    warning: 0.20,
    needs: &["contentions"],
    record: "contention",
    advice: "Do less while the lock is held, and nothing that waits; or give each part of the data its own lock.",
    closer: closer::LOCKS,
    causes: &["logging"],
    evidence: Evidence { sections: &["stacks-locks", "locks"], sort: None },
    query: "SELECT own_method, sum(how_often) AS how_often, sum(total_ms) AS total_ms, max(longest_ms) AS longest_ms, \
        max(threads) AS threads FROM contention_by_site WHERE {process} GROUP BY ALL ORDER BY total_ms DESC LIMIT 10",
    example: Example::of("bugs/convoy", "bugs/convoy-clean", Verdict::Warning).by("Shop.Stock.Answer"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// Waits for a lock: their time, the same by call site, and their number.
type Waited = (Windows, Vec<(u32, f64)>, u64);

fn judge(look: &Look<'_>) -> Judged {
    let sites = &look.picture.sites;
    let (mut locks, mut rows): (BTreeMap<u64, Waited>, u64) = (BTreeMap::new(), 0);
    let shared = look.process.waits.iter().filter(|(site, _)| sites.has(**site, &[Is::SharesLock]));
    let owned = look.process.locks.iter().map(|((lock, site), load)| (lock, site, load));
    for (lock, site, load) in owned.chain(shared.map(|(site, load)| (&0, site, load))) {
        rows += load.count;
        // Before .NET 8, and of a lock that readers share, the lock is not known: the place stands for it.
        let key = if *lock == 0 { u64::from(*site) } else { *lock };
        let (windows, waits, count) = locks.entry(key).or_default();
        windows.join(&load.times);
        *count += load.count;
        waits.push((*site, load.times.total));
    }
    let recording_ns = look.recording_ns();
    let worst = locks.iter().map(|(lock, of)| (*lock, of.0.worst(recording_ns), of));
    let Some((lock, value, (_, waits, count))) = worst.max_by(|a, b| a.1.total_cmp(&b.1)) else {
        let evidence = look.sql("SELECT * FROM contention_by_site WHERE {process} LIMIT 10");
        return Figure { sentence: "No thread waited for a lock.".into(), evidence, ..Figure::default() }.into();
    };
    let most = sites.most(waits.iter().copied());
    let at = most.as_ref().map_or(String::new(), |most| format!(" in {}{}", most.method, most.inlined));
    let own_method = most.map(|most| most.method);
    let sentence = format!("Threads waited {count} times for one lock{at}: {} of the time.", words::percent(value));
    let subject = Some(format!("lock {lock:#x}"));
    Figure { value, rows, subject, own_method, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{Contention, FactSink};

    use crate::findings::tests::story::{Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let ns = |most: i64| (most as f64 * x) as i64;
        let site = made.site(&["Shop.Stock.Take()", "System.Threading.Monitor.Enter(object)"]);
        (0..60).for_each(|n| {
            let row = Contention {
                start_ts_ns: n * S,
                end_ts_ns: Some(n * S + ns(S / 2)),
                process_id: 7,
                callsite_id: site,
                lock_id: 0xabc,
                ..Contention::default()
            };
            made.tables.add(&row);
        });
    }
}
