//! One piece of work sends the same request to another server again and again.

use crate::findings::queries::{self, Repeated};
use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "n_plus_one_calls",
    unit: "count",
    info: 5.0,
    warning: 10.0,
    needs: &["client_requests"],
    record: "all",
    next: "tracequet stats IN",
    causes: &[],
    of_recording: false,
    judge,
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
    let sentence = format!("One request is sent {} times in a piece of work{text}.{by}", words::three(value));
    let evidence = format!(
        "SELECT source, regexp_replace(regexp_extract(coalesce(end_fields ->> '$.tags.\"url.full\"', \
         end_fields ->> '$.tags.\"http.url\"', start_fields ->> '$.RequestUri', start_fields ->> '$.pathAndQuery', start_fields), \
         '[^?#]*'), '/[^/]*[0-9][^/]*', '/?', 'g') AS route, coalesce(parent_activity_id, concat('thread ', thread_id)) AS work, \
         count(*) AS how_often, sum(duration_ms) AS total_ms FROM requests WHERE side = 'client' AND {} GROUP BY ALL \
         ORDER BY how_often DESC LIMIT 10",
        look.of_process
    );
    Figure { value, rows, at_most, subject, own_method, sentence, evidence }.into()
}
