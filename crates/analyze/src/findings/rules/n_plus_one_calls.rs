//! One piece of work sends the same request to another server again and again.

use crate::findings::prelude::*;
use crate::findings::queries::{self, Repeated};

pub(super) const RULE: Rule = Rule {
    name: "n_plus_one_calls",
    title: "One request sends the same HTTP call again and again",
    about: "One request (or other piece of work) sends the same request to another server again and again.",
    measure: "Mean number of times that a request of `HttpClient` is sent per request in which it is sent, as in \
        `n_plus_one`. Requests with the same method, host and path are one; parts of the path with a digit stand for \
        values (`/articles/?`), and the query is left out. Without a request or a parent activity it is no warning: a program that \
        makes load sends requests in a loop, too. `--for all` has the parents and stacks; `--for requests` has the \
        requests.",
    unit: "count",
    info: 5.0,
    warning: 10.0,
    needs: &["client_requests"],
    record: "all",
    advice: "Ask for all rows in one call, or keep the answers for a while.",
    evidence: Evidence { sections: &["requests", "timeline"], sort: None },
    example: Example::of("bugs/calls", "bugs/calls-clean", Verdict::Warning).by("Shop.Shelves.AnswerAsync"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let statements = look.process.calls();
    let rows: u64 = statements.iter().map(|statement| statement.times.count).sum();
    if statements.is_empty() {
        return Judged::too_little("There are no requests of HttpClient.");
    }
    let Repeated { value, subject, own_method, by, is_parented } =
        queries::most_repeated(&look.picture.sites, statements);
    // Without a parent nothing says that the calls are of one piece of work: a client that makes load calls in a loop, too.
    let at_most = (!is_parented).then_some(60.0);
    let text = subject.as_deref().map_or(String::new(), |text| format!(": {}", words::short(text, 100)));
    let sentence = format!("One HTTP call is sent {} times per request{text}.{by}", words::three(value));
    let route = "q.source, regexp_replace(regexp_extract(coalesce(q.end_fields ->> '$.tags.\"url.full\"', \
         q.end_fields ->> '$.tags.\"http.url\"', q.start_fields ->> '$.RequestUri', q.start_fields ->> '$.pathAndQuery', \
         q.start_fields), '[^?#]*'), '/[^/]*[0-9][^/]*', '/?', 'g') AS route";
    let evidence = queries::by_work(route, "requests", &format!("q.side = 'client' AND {}", look.of("q")));
    Figure { value, rows, at_most, few: None, subject, own_method, sentence, evidence }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{Activity, FactSink};
    use tracequet_trace::guid::Guid;

    use crate::findings::tests::story::{MS, Made};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let site = made.site(&["Shop.Baskets.Load()", "System.Net.Http.HttpClient.SendAsync()"]);
        for parent in 1..=7 {
            for n in 0..=(x * 19.0) as i64 {
                // Each source reports it: it counts once.
                for provider_name in ["System.Net.Http", "HttpHandlerDiagnosticListener"] {
                    let row = Activity {
                        start_ts_ns: n * 2 * MS,
                        end_ts_ns: Some(n * 2 * MS + MS),
                        process_id: 7,
                        callsite_id: site,
                        provider_name,
                        name: "System.Net.Http.HttpRequestOut",
                        parent_activity_id: Guid([parent; 16]),
                        end_fields: Some(r#"{"tags":{"http.request.method":"GET","url.full":"http://shop/lines/7"}}"#),
                        ..Activity::default()
                    };
                    made.tables.add(&row);
                }
            }
        }
    }
}
