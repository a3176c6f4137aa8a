//! Threads wait for one lock much of the time.

use crate::findings::rule::{Figure, Judged, Look, Rule};
use std::collections::BTreeMap;

use crate::findings::windows::Windows;
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "lock_convoy",
    unit: "share",
    info: 0.05,
    warning: 0.20,
    needs: &["contentions"],
    record: "contention",
    next: "tracequet export IN --what contention --own",
    causes: &[],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let sites = &look.picture.sites;
    let mut locks: BTreeMap<u64, (Windows, BTreeMap<&str, f64>, u64)> = BTreeMap::new();
    for ((lock, site), load) in &look.process.locks {
        // Before .NET 8 the lock is not known: the place stands for it.
        let key = if *lock == 0 { u64::from(*site) } else { *lock };
        let (windows, methods, count) = locks.entry(key).or_default();
        windows.join(&load.times);
        *count += load.count;
        if let Some(method) = sites.own_method(*site) {
            *methods.entry(method).or_default() += load.times.total;
        }
    }
    let recording_ns = look.recording_ns();
    let worst = locks.iter().map(|(lock, of)| (*lock, of.0.worst(recording_ns), of));
    let Some((lock, value, (_, methods, count))) = worst.max_by(|a, b| a.1.total_cmp(&b.1)) else {
        let evidence = format!("SELECT * FROM contention_by_site WHERE {} LIMIT 10", look.of_process);
        return Figure { sentence: "No thread waited for a lock.".into(), evidence, ..Figure::default() }.into();
    };
    let own_method = methods.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(method, _)| (*method).to_owned());
    let at = own_method.as_ref().map_or(String::new(), |method| format!(" in {method}"));
    let sentence = format!("Threads waited {count} times for one lock{at}: {} of the time.", words::percent(value));
    let evidence = format!(
        "SELECT own_method, sum(how_often) AS how_often, sum(total_ms) AS total_ms, max(longest_ms) AS longest_ms, \
         max(threads) AS threads FROM contention_by_site WHERE {} GROUP BY ALL ORDER BY total_ms DESC LIMIT 10",
        look.of_process
    );
    let rows = look.process.locks.values().map(|load| load.count).sum();
    let subject = Some(format!("lock {lock:#x}"));
    Figure { value, rows, subject, own_method, sentence, evidence, ..Figure::default() }.into()
}
