//! One piece of work sends the same statement to a database again and again.

use crate::findings::prelude::*;
use crate::findings::queries::{self, Repeated};

pub(super) const RULE: Rule = Rule {
    name: "n_plus_one",
    title: "One request runs the same database statement again and again",
    about: "One request (or other piece of work) sends the same statement again and again: for each row of a result it \
        asks once more.",
    measure: "Mean number of times that a statement runs in a piece of work in which it runs: in the request that came in, or \
        else in its parent activity, from its start to its end, because ids of activities are given again to later \
        work. Without either, a query belongs to the same piece of work as the last query that ended on its thread at most \
        10 ms before, if that was the same statement. A query within another one counts there. Statements that differ in numbers and texts alone are one. At least \
        three pieces of work, or 20 queries. Your method that loops is named, and not the helper that runs the query: \
        behind an `await` it is the one that goes on when a query has ended; else the one that also sends the list \
        whose rows it asks for, and without such a list the nearest one that does not itself report the query.",
    unit: "count",
    info: 5.0,
    warning: 10.0,
    needs: &["queries"],
    record: "database",
    advice: "Ask for all rows at once: a join, `Include` in Entity Framework Core, or `WHERE id IN (...)`.",
    evidence: Evidence { sections: &["requests", "timeline"], sort: None },
    example: Example::of("bugs/queries", "bugs/queries-clean", Verdict::Warning)
        .by("Shop.Baskets.AnswerAsync")
        .about("SELECT * FROM article WHERE id = ?"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let statements = &look.process.queries.statements;
    let rows: u64 = statements.iter().map(|statement| statement.times.count).sum();
    if statements.is_empty() {
        return Judged::too_little("There are no queries.");
    }
    let Repeated { value, subject, own_method, by, .. } = queries::most_repeated(&look.picture.sites, statements);
    let text = subject.as_deref().map_or(String::new(), |text| format!(": {}", words::short(text, 100)));
    let sentence = format!("One statement runs {} times per request{text}.{by}", words::three(value));
    let evidence = queries::by_work(&format!("{} AS statement", queries::IN_SQL), "queries", &look.of("q"));
    Figure { value, rows, subject, own_method, sentence, evidence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use crate::findings::tests::story::{MS, Made};

    pub(crate) fn make(made: &mut Made, x: f64) {
        made.queries((x * 19.0) as i64 + 1, MS);
    }
}
