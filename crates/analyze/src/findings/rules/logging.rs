//! Much of the work is for a log.

use std::collections::BTreeMap;

use crate::findings::prelude::*;
use crate::subjects::sites::Is;

pub(super) const RULE: Rule = Rule {
    name: "logging",
    title: "Logging takes much of the work",
    about: "Much of what the program allocates, or of the time of its threads, goes into messages for a log.",
    measure: "The larger one of two shares: of the samples of threads that ran your code, and of pool workers that waited below it, those in a logger \
        that your code called; and of all allocated bytes, those in such a logger. `Microsoft.Extensions.Logging`, Serilog, NLog and log4net are \
        known. At least 100 samples. With less than 0.05 threads and 1 MB a second it is fine, from 0.3 threads or 10 MB a second on a \
        warning is possible. A text that is made before the logger is called is in `string_churn`.",
    unit: "share",
    info: 0.15,
    warning: 0.40,
    needs: &["samples", "allocations"],
    record: "cpu,allocations",
    advice: "Write fewer messages in what runs often: raise the level of its category, or log once for all of a loop. Ask `IsEnabled` first, hand \
        over a template and its values in place of a finished text, and take `[LoggerMessage]`. A console that others read is slow: write \
        in the background, and let the writer drop messages.",
    closer: closer::WAITING_SAMPLES,
    evidence: Evidence { sections: &["stacks-cpu", "stacks-allocations"], sort: None },
    query: "SELECT own_method, method, samples FROM cpu_by_site WHERE {process} AND own_method IS NOT NULL ORDER BY samples DESC LIMIT 20",
    example: Example::of("habits/picks", "habits/picks-clean", Verdict::Warning).by("Depot.Picking.Pick"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// Samples without which nothing is said.
const LEAST: u64 = 100;

fn judge(look: &Look<'_>) -> Judged {
    let (process, sites) = (look.process, &look.picture.sites);
    // The method that logs, and how much of it there is at each call site.
    let logged = |amounts: &mut dyn Iterator<Item = (u32, f64)>| {
        let mut by_caller: BTreeMap<u32, f64> = BTreeMap::new();
        for (site, amount) in amounts {
            if let Some(caller) = sites.caller_of(site, Is::Logs) {
                *by_caller.entry(caller).or_default() += amount;
            }
        }
        (by_caller.values().sum::<f64>(), by_caller)
    };
    let running = process.running.iter().filter(|(site, _)| sites.own_method(**site).is_some());
    let waiting = process.waiting.iter();
    let waiting =
        waiting.filter(|(site, _)| sites.has(**site, &[Is::PoolWorker]) && sites.own_method(**site).is_some());
    let samples: Vec<(u32, f64)> = running.chain(waiting).map(|(site, count)| (*site, *count as f64)).collect();
    let all_samples: f64 = samples.iter().map(|(_, count)| count).sum();
    let (samples_of_it, by_samples) = logged(&mut samples.into_iter());
    let (mut all_bytes, mut allocated) = (0.0, Vec::new());
    for ((site, _), sum) in process.counted() {
        all_bytes += sum.bytes;
        allocated.push((*site, sum.bytes));
    }
    let sampled: u64 = process.counted().map(|(_, sum)| sum.samples).sum();
    let rows = sampled.max(all_samples as u64);
    if rows < LEAST {
        return Judged::too_few(rows, LEAST, "samples of your threads or of allocations");
    }
    let (bytes_of_it, by_bytes) = logged(&mut allocated.into_iter());
    let of_time = if all_samples >= LEAST as f64 { samples_of_it / all_samples } else { 0.0 };
    let of_bytes = if sampled >= LEAST { bytes_of_it / all_bytes.max(1.0) } else { 0.0 };
    let threads = look.threads(samples_of_it);
    let rate = bytes_of_it / look.seconds().max(1e-9);
    let value = of_time.max(of_bytes);
    let most = sites.most(if of_time >= of_bytes { by_samples } else { by_bytes });
    let by = most.as_ref().map_or(String::new(), |most| format!(", most of it from {}{}", most.method, most.inlined));
    let time = format!(
        "{} of the time of threads in your code, {} threads on average",
        words::percent(of_time),
        words::three(threads)
    );
    let bytes = format!("{} of what is allocated, {} a second", words::percent(of_bytes), words::size(rate));
    let sentence = match (of_time > 0.0, of_bytes > 0.0) {
        (true, true) => format!("Loggers take {time}, and {bytes}{by}."),
        (true, false) => format!("Loggers take {time}{by}."),
        (false, true) => format!("Loggers take {bytes}{by}."),
        (false, false) => "No logger takes much.".to_owned(),
    };
    let at_most = Some(score(threads, 0.05, 0.3).max(score(rate, 1e6, 10e6)));
    Figure { value, rows, at_most, own_method: most.map(|most| most.method), sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use crate::findings::tests::story::Made;

    pub(crate) fn make(made: &mut Made, x: f64) {
        let log = made.site(&[
            "Shop.Picking.Pick()",
            "Microsoft.Extensions.Logging.LoggerExtensions.LogInformation()",
            "Shop.Console.Log()",
            "System.Console.WriteLine()",
        ]);
        let work = made.site(&["Shop.Picking.Pick()"]);
        made.samples(1, 1000, |n| if f64::from(n) < 1000.0 * x { (log, "managed") } else { (work, "managed") });
    }
}
