//! Queries of databases: how often and how long each statement ran, and how often within one piece of work.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use foldhash::fast::RandomState;
use serde_json::Value;

use super::times::Times;

/// Statements that are remembered, bytes of a statement, and pieces of work with a statement.
const MOST_STATEMENTS: usize = 1 << 12;
const MOST_TEXT: usize = 4 << 10;
const MOST_RUNS: usize = 1 << 18;

/// Within this time behind the end of the one before, a query without a parent belongs to the same piece of work.
const NEXT_NS: i64 = 10_000_000;

/// An activity that may be a query.
pub(super) struct Query<'q> {
    pub(super) thread: u64,
    pub(super) site: u32,
    pub(super) start_ns: i64,
    pub(super) duration_ns: Option<i64>,
    /// Activity that it is a part of; empty when there is none.
    pub(super) parent: &'q str,
    pub(super) start_fields: &'q str,
    pub(super) end_fields: &'q str,
}

/// A statement, without its values.
#[derive(Debug, Default)]
pub(super) struct Statement {
    pub(super) text: String,
    pub(super) times: Times,
    /// A call site that sent it.
    pub(super) site: u32,
    /// How often it ran in each piece of work that it ran in.
    pub(super) runs: Times,
}

/// All statements.
#[derive(Debug, Default)]
pub(super) struct Queries {
    places: HashMap<String, usize, RandomState>,
    pub(super) statements: Vec<Statement>,
    runs: HashMap<(usize, u64), u64, RandomState>,
    /// Of a thread: the statement, its piece of work, and the end.
    threads: HashMap<u64, (usize, u64, i64), RandomState>,
    next_run: u64,
}

impl Queries {
    /// An activity. One without the text of a command is no query.
    pub(super) fn see(&mut self, query: &Query<'_>) {
        let Some(text) = text_of(query.start_fields, query.end_fields) else { return };
        let text = without_values(&text);
        let place = match self.places.get(&text) {
            Some(place) => *place,
            None if self.statements.len() >= MOST_STATEMENTS => return,
            None => {
                self.statements.push(Statement { text: text.clone(), ..Statement::default() });
                self.places.insert(text, self.statements.len() - 1);
                self.statements.len() - 1
            }
        };
        let run = self.run(place, query);
        if self.runs.len() < MOST_RUNS || self.runs.contains_key(&(place, run)) {
            *self.runs.entry((place, run)).or_default() += 1;
        }
        if let Some(statement) = self.statements.get_mut(place) {
            statement.site = if query.site > 0 { query.site } else { statement.site };
            if let Some(duration_ns) = query.duration_ns {
                statement.times.add(duration_ns);
            }
        }
    }

    /// The piece of work of a query: its parent, or what a thread does without a break.
    fn run(&mut self, place: usize, query: &Query<'_>) -> u64 {
        let end_ns = query.start_ns.saturating_add(query.duration_ns.unwrap_or_default());
        if !query.parent.is_empty() {
            return BuildHasherDefault::<DefaultHasher>::default().hash_one(query.parent) | 1;
        }
        let known = self.threads.get(&query.thread).copied();
        let run = match known {
            Some((of, run, end)) if of == place && query.start_ns.saturating_sub(end) <= NEXT_NS => run,
            _ => {
                self.next_run = self.next_run.wrapping_add(2);
                self.next_run
            }
        };
        if self.threads.len() < MOST_STATEMENTS || known.is_some() {
            self.threads.insert(query.thread, (place, run, end_ns));
        }
        run
    }

    /// All were seen.
    pub(super) fn finish(&mut self) {
        for ((place, _), count) in std::mem::take(&mut self.runs) {
            if let Some(statement) = self.statements.get_mut(place) {
                statement.runs.add(count.cast_signed());
            }
        }
    }
}

/// The text of a command in the fields of an activity, as the view `queries` finds it.
fn text_of(start: &str, end: &str) -> Option<String> {
    let may_have = |text: &str| ["ommandText", "db.query.text", "db.statement"].iter().any(|key| text.contains(key));
    if !may_have(start) && !may_have(end) {
        return None;
    }
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let (start, end) = (parse(start), parse(end));
    let found = [
        start.get("CommandText"),
        start.get("commandText"),
        end.get("tags").and_then(|tags| tags.get("db.query.text")),
        end.get("tags").and_then(|tags| tags.get("db.statement")),
        start.get("tags").and_then(|tags| tags.get("db.query.text")),
        start.get("tags").and_then(|tags| tags.get("db.statement")),
    ];
    found.into_iter().flatten().find_map(Value::as_str).map(str::to_owned)
}

/// A statement with `?` for its texts and numbers, so that those that differ in them alone are one. [`IN_SQL`] does the same.
fn without_values(text: &str) -> String {
    let mut out = String::new();
    let all: Vec<char> = text.chars().take(MOST_TEXT).collect();
    let mut at = 0;
    while let Some(c) = all.get(at) {
        let behind = all.get(at + 1..).unwrap_or_default();
        match c {
            '\'' if behind.contains(&'\'') => {
                at += behind.iter().position(|c| *c == '\'').unwrap_or_default() + 1;
                out.push('?');
            }
            '0'..='9' => {
                at += behind.iter().take_while(|c| c.is_ascii_digit()).count();
                out.push('?');
            }
            other => out.push(*other),
        }
        at += 1;
    }
    out
}

/// The expression of DuckDB for the same.
pub(super) const IN_SQL: &str =
    "regexp_replace(regexp_replace(text[1:4096], '''[^'']*''', '?', 'g'), '[0-9]+', '?', 'g')";

#[cfg(test)]
mod tests {
    use super::*;

    fn query<'q>(parent: &'q str, start_ns: i64, fields: &'q str) -> Query<'q> {
        Query { thread: 1, site: 0, start_ns, duration_ns: Some(1000), parent, start_fields: fields, end_fields: "" }
    }

    #[test]
    fn statements_are_counted_by_the_work_that_they_are_a_part_of() {
        let mut queries = Queries::default();
        for n in 0..12 {
            let fields = format!(r#"{{"CommandText":"SELECT * FROM line WHERE id = {n} AND k = 'a{n}'"}}"#);
            queries.see(&query(if n < 8 { "a" } else { "b" }, n, &fields));
            queries.see(&query("a", n, r#"{"path":"/orders"}"#));
        }
        queries.finish();
        let [statement] = queries.statements.as_slice() else { panic!("{:?}", queries.statements) };
        assert_eq!(statement.text, "SELECT * FROM line WHERE id = ? AND k = ?");
        assert_eq!((statement.runs.count, statement.runs.longest_ns, statement.times.count), (2, 8, 12));
    }

    #[test]
    fn without_a_parent_what_a_thread_does_at_a_time_is_one_piece() {
        let mut queries = Queries::default();
        let fields = r#"{"tags":{"db.query.text":"SELECT 1"}}"#;
        for start in [0, 5_000_000, 9_000_000, 500_000_000] {
            queries.see(&query("", start, fields));
        }
        queries.finish();
        assert_eq!((queries.statements[0].runs.count, queries.statements[0].runs.longest_ns), (2, 3));
        assert_eq!(queries.statements[0].text, "SELECT ?");
    }
}
