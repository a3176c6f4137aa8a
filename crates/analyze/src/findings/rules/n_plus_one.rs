//! One piece of work sends the same statement to a database again and again.

use crate::findings::queries::{self, Repeated};
use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "n_plus_one",
    unit: "count",
    info: 5.0,
    warning: 10.0,
    needs: &["queries"],
    record: "database",
    next: "tracequet stats IN",
    causes: &[],
    of_recording: false,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let statements = &look.process.queries.statements;
    let rows: u64 = statements.iter().map(|statement| statement.times.count).sum();
    if statements.is_empty() {
        return Judged::too_little("There are no queries.");
    }
    let Repeated { value, subject, own_method, by, .. } = queries::most_repeated(&look.picture.sites, statements);
    let text = subject.as_deref().map_or(String::new(), |text| format!(": {}", words::short(text, 100)));
    let sentence = format!("One statement runs {} times in a piece of work{text}.{by}", words::three(value));
    let evidence = format!(
        "SELECT {} AS statement, coalesce(parent_activity_id, concat('thread ', thread_id)) AS work, count(*) AS how_often, \
         sum(duration_ms) AS total_ms FROM queries WHERE {} GROUP BY ALL ORDER BY how_often DESC LIMIT 10",
        queries::IN_SQL,
        look.of_process
    );
    Figure { value, rows, subject, own_method, sentence, evidence, ..Figure::default() }.into()
}
