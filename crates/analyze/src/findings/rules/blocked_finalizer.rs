//! The thread that runs finalizers is busy or waits in them.

use crate::findings::prelude::*;
use crate::subjects::sites::Is;

pub(super) const RULE: Rule = Rule {
    name: "blocked_finalizer",
    title: "The finalizer thread does not keep up",
    about: "One thread runs all finalizers, one after the other. While it waits or works long in one of them, the objects behind it in the \
        queue stay in memory with all that they hold.",
    measure: "Samples of threads within a finalizer, divided by the samples of a thread. At least 100.",
    unit: "share",
    info: 0.20,
    warning: 0.50,
    needs: &["samples"],
    record: "gc,cpu",
    advice: "Dispose of these objects (`using`) and call `GC.SuppressFinalize` in `Dispose`; take locks, waits and calls of other systems \
        out of the finalizer.",
    closer: closer::WAITING_SAMPLES,
    evidence: Evidence { sections: &["collections"], sort: None },
    query: "SELECT t.name AS type_name, count(*) AS finalized FROM gc_finalizable f LEFT JOIN type t ON t.trace_id = f.trace_id \
        AND t.process_id = f.process_id AND t.type_id = f.type_id WHERE {process of f} GROUP BY ALL ORDER BY finalized DESC LIMIT 20",
    example: Example::of("habits/stuck", "habits/stuck-clean", Verdict::Warning).by("Depot.Lease.Finalize"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let (process, picture) = (look.process, look.picture);
    let rounds = process.rounds();
    let within: Vec<(u32, f64)> = process
        .waiting
        .iter()
        .chain(&process.running)
        .filter(|(site, _)| picture.sites.has(**site, &[Is::Finalizes]))
        .map(|(site, count)| (*site, *count as f64))
        .collect();
    let value = within.iter().map(|(_, count)| count).sum::<f64>() / rounds.max(1) as f64;
    let few = Few::share(value.min(1.0), rounds, 100, "samples of a thread");
    let own_method = picture.sites.most(within).map(|most| most.method);
    let most = process.finalized.iter().max_by_key(|(kind, count)| (**count, **kind));
    let subject = most.and_then(|(kind, _)| picture.types.name(look.id, *kind)).map(str::to_owned);
    let all: u64 = process.finalized.values().sum();
    let of_type = match (&subject, most) {
        (Some(name), Some((_, count))) => {
            format!(" {all} objects were finalized, {count} of them {}.", words::short(name, 80))
        }
        _ => String::new(),
    };
    let at = own_method.as_ref().map_or(String::new(), |method| format!(", most of it in {method}"));
    let sentence =
        format!("The finalizer thread spent {} of the time in finalizers{at}.{of_type}", words::percent(value));
    Figure { value, rows: rounds, few, subject, own_method, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use crate::findings::tests::story::Made;

    pub(crate) fn make(made: &mut Made, x: f64) {
        let site = made.site(&["Shop.Lease.Finalize()", "System.Threading.Thread.Sleep(int)"]);
        made.samples(2, 1000, |n| (if f64::from(n) < 1000.0 * x { site } else { 0 }, "external"));
    }
}
