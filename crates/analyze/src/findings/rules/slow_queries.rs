//! Queries of a database take long.

use crate::findings::prelude::*;
use crate::findings::queries::{self, Statement};

pub(super) const RULE: Rule = Rule {
    name: "slow_queries",
    title: "A database statement is slow",
    about: "Queries of a database take long.",
    measure: "95th percentile of the durations of the slowest statement; of one that ran fewer than 20 times the longest. A \
        method that itself reports the query passes the name on to the one that called it.",
    unit: "ns",
    info: 1e8,
    warning: 5e8,
    needs: &["queries"],
    record: "database",
    advice: "Look at the plan of the statement in the database: add the index that is missing, or read fewer rows and \
        columns.",
    evidence: Evidence { sections: &["requests", "timeline"], sort: None },
    example: Example::of("habits/find", "habits/find-clean", Verdict::Warning)
        .by("Depot.Search.Find")
        .about("SELECT * FROM parcel WHERE note LIKE @p0"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let statements = &look.process.queries.statements;
    let rows: u64 = statements.iter().map(|statement| statement.times.count).sum();
    if rows == 0 {
        return Judged::too_little("There are no queries with an end.");
    }
    // Of one that ran a few times the longest is all that is known.
    let slow = |statement: &Statement| match statement.times.count {
        0..20 => statement.times.longest_ns as f64,
        _ => statement.times.quantile(0.95),
    };
    let slowest = statements.iter().max_by(|a, b| slow(a).total_cmp(&slow(b)));
    let value = slowest.map_or(0.0, slow);
    let subject = slowest.map(|statement| words::short(&statement.text, 200));
    let sender = slowest.map(|statement| queries::sender(&look.picture.sites, statements, statement, 1.0));
    let own_method = sender.and_then(|sender| sender.method);
    let by = own_method.as_ref().map_or(String::new(), |method| format!(" {method} sends it."));
    let text = subject.as_deref().map_or(String::new(), |text| words::short(text, 100));
    let sentence = format!("A statement takes {} (95 of 100 are no slower): {text}.{by}", words::time(value));
    let evidence = format!(
        "SELECT {} AS statement, count(*) AS how_often, max(duration_ms) AS longest_ms, sum(duration_ms) AS total_ms \
         FROM queries WHERE {} GROUP BY ALL ORDER BY longest_ms DESC LIMIT 10",
        queries::IN_SQL,
        look.of_process
    );
    Figure { value, rows, subject, own_method, sentence, evidence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use crate::findings::tests::story::{Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        made.queries(3, (2.0 * S as f64 * x) as i64);
    }
}
