//! Much of the work is for a log.

use crate::findings::prelude::*;
use crate::subjects::sites::Is;

pub(super) const RULE: Rule = Rule {
    name: "logging",
    title: "Logging takes much of the work",
    about: "Much of what the program allocates, or of the time of its threads, goes into messages for a log.",
    measure: "The larger of two shares in loggers that your code called: that of the samples of threads that ran your code and \
        of pool workers that waited below it, and that of all allocated bytes. Known loggers are \
        `Microsoft.Extensions.Logging`, Serilog, NLog and log4net. At least 100 samples. With less than 0.05 threads and 1 MB \
        a second it is fine, from 0.3 threads or 10 MB a second on a warning is possible. Texts that are made before the call \
        of the logger count in `string_churn`.",
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
    let waiting = process.waiting.iter().filter(|(site, _)| sites.has(**site, &[Is::PoolWorker]));
    let samples = process.running.iter().chain(waiting).filter(|(site, _)| sites.own_method(**site).is_some());
    let samples: Vec<(u32, f64)> = samples.map(|(site, count)| (*site, *count as f64)).collect();
    let allocated: Vec<(u32, f64)> = process.counted().map(|((site, _), sum)| (*site, sum.bytes)).collect();
    let sampled: u64 = process.counted().map(|(_, sum)| sum.samples).sum();
    let sum = |amounts: &[(u32, f64)]| amounts.iter().map(|(_, amount)| amount).sum::<f64>();
    // Of these amounts what is in a logger, each at the call site that called it.
    let logged = |amounts: &[(u32, f64)]| -> Vec<(u32, f64)> {
        let at_caller = |(site, amount): &(u32, f64)| Some((sites.caller_of(*site, Is::Logs)?, *amount));
        amounts.iter().filter_map(at_caller).collect()
    };
    let all_samples = sum(&samples);
    let rows = sampled.max(all_samples as u64);
    if rows < LEAST {
        return Judged::too_few(rows, LEAST, "samples of your threads or of allocations");
    }
    let (by_samples, by_bytes) = (logged(&samples), logged(&allocated));
    let of_time = if all_samples >= LEAST as f64 { sum(&by_samples) / all_samples } else { 0.0 };
    let of_bytes = if sampled >= LEAST { sum(&by_bytes) / sum(&allocated).max(1.0) } else { 0.0 };
    let (threads, rate) = (look.threads(sum(&by_samples)), look.per_second(sum(&by_bytes)));
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
