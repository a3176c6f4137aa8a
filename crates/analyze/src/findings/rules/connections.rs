//! A connection is made for nearly each request of HttpClient.

use crate::findings::prelude::*;
use crate::subjects::sites::Is;

pub(super) const RULE: Rule = Rule {
    name: "connections",
    title: "A connection is made for each HTTP call",
    about: "HttpClient makes a connection for nearly each request: each waits for it to be made (with TLS several round trips), and ports \
        run out.",
    measure: "Connections that HttpClient made, divided by its requests. At least 50 requests, and a connection every two seconds. Your method \
        that sends most of them is named; where no call stack of a request has one, the one with most samples below which HttpClient \
        works.",
    unit: "share",
    info: 0.30,
    warning: 0.70,
    needs: &["connections"],
    record: "all",
    advice: "Keep one `HttpClient` (a static field, or `IHttpClientFactory`) in place of a new one for each call, and read answers to \
        their end, so that connections are used again.",
    evidence: Evidence { sections: &["requests", "timeline"], sort: None },
    query: "SELECT name, count(*) AS how_often, sum(duration_ns) / 1e6 AS total_ms, max(duration_ns) / 1e6 AS longest_ms FROM activity \
        WHERE {process} AND (provider_name LIKE '%System.Net.Http%') GROUP BY ALL ORDER BY how_often DESC",
    example: Example::of("habits/dials", "habits/dials-clean", Verdict::Warning).by("Depot.Rates.Ask"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let calls = look.process.calls();
    let rows: u64 = calls.iter().map(|call| call.times.count).sum();
    let made = look.process.connections;
    let is_often = made as f64 >= look.seconds() / 2.0;
    let value = if is_often { made as f64 / rows.max(1) as f64 } else { 0.0 };
    let few = Few::share(value.min(1.0), rows, 50, "requests of HttpClient");
    let sites = &look.picture.sites;
    let said = calls.iter().flat_map(|call| &call.sites).map(|(site, count)| (*site, *count as f64));
    // A new client sends its first request on another thread: what it allocates and computes below own code says whose it is.
    let calls_http = |site: u32| sites.has(site, &[Is::CallsHttp]);
    let ran = look.process.running.iter().filter(|(site, _)| calls_http(**site)).map(|(site, count)| (*site, *count));
    let allocated =
        look.process.counted().filter(|((site, _), _)| calls_http(*site)).map(|((site, _), of)| (*site, of.samples));
    let seen = ran.chain(allocated).map(|(site, count)| (site, count as f64));
    let most = sites.most(said).or_else(|| sites.most(seen)).filter(|_| value > 0.0);
    let own_method = most.map(|most| most.method);
    let by = own_method.as_ref().map_or(String::new(), |method| format!(", most of these by {method}"));
    let sentence =
        format!("{made} connections were made for {rows} requests of HttpClient{by}: {}.", words::percent(value));
    Figure { value, rows, few, own_method, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{Activity, FactSink};

    use crate::findings::tests::story::{MS, Made};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let callsite_id = made.site(&["Shop.Rates.Ask()", "System.Net.Http.HttpClient.SendAsync()"]);
        for n in 0..400 {
            let row = Activity {
                start_ts_ns: n * 100 * MS,
                end_ts_ns: Some(n * 100 * MS + MS),
                process_id: 7,
                callsite_id,
                provider_name: "System.Net.Http",
                name: "Request",
                start_fields: Some(r#"{"scheme":"http","host":"bank","port":80,"pathAndQuery":"/rate"}"#),
                ..Activity::default()
            };
            made.tables.add(&row);
            if (n as f64) < 400.0 * x {
                let (provider_name, name) = ("Experimental.System.Net.Http.Connections", "ConnectionSetup");
                made.tables.add(&Activity { provider_name, name, start_fields: None, ..row });
            }
        }
    }
}
