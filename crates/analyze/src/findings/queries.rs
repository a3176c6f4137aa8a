//! Queries of databases and requests of HttpClient: how often and how long each statement ran, and how often within one
//! piece of work.

use std::collections::BTreeMap;

use tracequet_trace::map::Map;

use serde_json::Value;

use super::times::Times;
use super::words;
use crate::subjects::requests::{Activity, Belongs, Id, Kind, Piece, TASKS, Work, id_of, query_text};
use crate::subjects::sites::Sites;

/// Statements that are remembered, bytes of a statement, and how often one was sent.
const MOST_STATEMENTS: usize = 1 << 12;
const MOST_TEXT: usize = 4 << 10;
const MOST_SENT: usize = 1 << 18;

/// Call sites that are remembered of a statement.
const MOST_SITES: usize = 64;

/// Within this time behind the end of the one before, a query without a parent belongs to the same piece of work.
const NEXT_NS: i64 = 10_000_000;

/// A statement, without its values.
#[derive(Debug, Default)]
pub(super) struct Statement {
    pub(super) text: String,
    pub(super) times: Times,
    /// The call sites that sent it, and how often.
    pub(super) sites: BTreeMap<u32, u64>,
    /// The number of runs in each piece of work that it ran in.
    pub(super) runs: Times,
    /// The number of runs with a parent, which is known to be one piece of work.
    parented: u64,
}

/// All statements.
#[derive(Debug, Default)]
pub(super) struct Queries {
    places: Map<String, usize>,
    pub(super) statements: Vec<Statement>,
    sent: Vec<Sent>,
}

/// A statement was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start_ns: i64,
    end_ns: i64,
    thread: u64,
    end_thread: u64,
    parent: Id,
    place: usize,
}

/// Runs of a statement in each piece of work; one of no known work has the number that stands for its thread.
type Runs = BTreeMap<(usize, Piece), u64>;

impl Queries {
    /// An activity. One without the text of a command is no query.
    pub(super) fn see(&mut self, row: &Activity<'_>) {
        if let Some(text) = query_text(row.start_fields.unwrap_or_default(), row.end_fields.unwrap_or_default()) {
            self.seen(row, without_values(&text));
        }
    }

    /// A request of HttpClient, by its method and route. One without an address is left out.
    pub(super) fn see_call(&mut self, row: &Activity<'_>) {
        if let Some(text) = call_of(row.start_fields.unwrap_or_default(), row.end_fields.unwrap_or_default()) {
            self.seen(row, text);
        }
    }

    fn seen(&mut self, row: &Activity<'_>, text: String) {
        let place = match self.places.get(&text) {
            Some(place) => *place,
            None if self.statements.len() >= MOST_STATEMENTS => return,
            None => {
                self.statements.push(Statement { text: text.clone(), ..Statement::default() });
                self.places.insert(text, self.statements.len() - 1);
                self.statements.len() - 1
            }
        };
        if self.sent.len() < MOST_SENT {
            self.sent.push(Sent {
                start_ns: row.start_ts_ns,
                end_ns: row.start_ts_ns.saturating_add(row.duration_ns.unwrap_or_default().max(0)),
                thread: row.thread_id,
                end_thread: if row.duration_ns.is_some() { row.end_thread_id } else { row.thread_id },
                parent: id_of(row.parent_activity_id),
                place,
            });
        }
        if let Some(statement) = self.statements.get_mut(place) {
            let site = row.callsite_id;
            if site > 0 && (statement.sites.len() < MOST_SITES || statement.sites.contains_key(&site)) {
                *statement.sites.entry(site).or_default() += 1;
            }
            if let Some(duration_ns) = row.duration_ns {
                statement.times.add(duration_ns);
            }
        }
    }

    /// All were seen, and so was the work that they may belong to.
    pub(super) fn finish(&mut self, kind: Kind, work: &Work) {
        let mut runs = Runs::new();
        let mut alone = Vec::new();
        for sent in std::mem::take(&mut self.sent) {
            match work.of(kind, sent.parent, sent.start_ns) {
                Belongs::To(piece) => {
                    *runs.entry((sent.place, piece)).or_default() += 1;
                    if let Some(statement) = self.statements.get_mut(sent.place) {
                        statement.parented += 1;
                    }
                }
                Belongs::Inside => {}
                // No request sent this, where requests are known: a loop in the background sends one for each of its items.
                Belongs::Unknown if work.has_requests => {}
                Belongs::Unknown => alone.push(sent),
            }
        }
        runs_without_work(alone, &mut runs);
        for ((place, _), count) in runs {
            if let Some(statement) = self.statements.get_mut(place) {
                statement.runs.add(count.cast_signed());
            }
        }
    }
}

/// Queries of no known work, one behind the other. What was waiting for a query goes on where it ended: on the thread
/// that wrote its end. So a query belongs to the same piece of work as the last one that ended on its thread.
fn runs_without_work(mut sent: Vec<Sent>, runs: &mut Runs) {
    sent.sort_by_key(|query| (query.start_ns, query.end_ns));
    let mut ends: Vec<Sent> = sent.clone();
    ends.sort_by_key(|query| query.end_ns);
    let mut ends = ends.into_iter().peekable();
    let mut last: Map<u64, (Sent, i64)> = Map::default();
    let mut run_of: Map<(i64, u64, usize), i64> = Map::default();
    let mut next_run = 0i64;
    for query in sent {
        while let Some(ended) = ends.next_if(|ended| ended.end_ns <= query.start_ns) {
            let run = run_of.remove(&(ended.start_ns, ended.thread, ended.place)).unwrap_or_default();
            last.insert(ended.end_thread, (ended, run));
        }
        // Taken by the one that goes on: another one on this thread does not belong to it, too.
        let before = last.remove(&query.thread).filter(|(before, _)| {
            before.place == query.place && query.start_ns.saturating_sub(before.end_ns) <= NEXT_NS
        });
        let run = before.map_or_else(
            || {
                next_run += 1;
                next_run
            },
            |(_, run)| run,
        );
        run_of.insert((query.start_ns, query.thread, query.place), run);
        *runs.entry((query.place, (0, run))).or_default() += 1;
    }
}

/// The statement that runs most often in a piece of work.
#[derive(Debug, Default)]
pub(super) struct Repeated {
    /// The mean number of runs.
    pub(super) value: f64,
    /// The text.
    pub(super) subject: Option<String>,
    /// The own method that sends it again and again.
    pub(super) own_method: Option<String>,
    /// A sentence on who sends it.
    pub(super) by: String,
    /// Whether most of it ran with a parent.
    pub(super) is_parented: bool,
}

/// The statement that runs most often in a piece of work: in one piece often, or in several.
pub(super) fn most_repeated(sites: &Sites, statements: &[Statement]) -> Repeated {
    let mean = |statement: &Statement| statement.runs.total_ns / (statement.runs.count.max(1)) as f64;
    let is_enough = |statement: &&Statement| statement.runs.count >= 3 || statement.runs.total_ns >= 20.0;
    let most = statements.iter().filter(is_enough).max_by(|a, b| mean(a).total_cmp(&mean(b)));
    let Some(most) = most else { return Repeated::default() };
    let Sender { method, looper } = sender(sites, statements, most, mean(most));
    let by = match (&looper, &method) {
        (Some(looper), Some(method)) if looper != method => format!(" {looper} sends it through {method}."),
        (Some(looper), _) => format!(" {looper} sends it."),
        _ => String::new(),
    };
    Repeated {
        value: mean(most),
        subject: Some(words::short(&most.text, 200)),
        own_method: looper,
        by,
        is_parented: most.parented.saturating_mul(2) > most.times.count.max(most.runs.total_ns as u64),
    }
}

/// The method that sends a statement.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Sender {
    /// The own method that wants it: not the one that only passes statements on to what reports them.
    pub(super) method: Option<String>,
    /// The own method that sends it again and again.
    pub(super) looper: Option<String>,
}

/// The method that sends a statement which runs `repeats` times in a piece of work.
pub(super) fn sender(sites: &Sites, statements: &[Statement], of: &Statement, repeats: f64) -> Sender {
    let mut methods: BTreeMap<&str, u64> = BTreeMap::new();
    let mut loopers: BTreeMap<&str, u64> = BTreeMap::new();
    for (site, count) in &of.sites {
        let path = sites.own_path(*site);
        // Behind the first await a method goes on inside of what it waited for, so that this stands on the stack once
        // more, outside of it.
        let stands_inside = |(at, method): &(usize, &&str)| path.iter().take(*at).any(|inner| inner == *method);
        let turn = path.iter().enumerate().find(stands_inside).map(|(at, _)| at);
        let inner = path.get(..turn.unwrap_or(path.len())).unwrap_or_default();
        let is_passed_on = sites.is_reported_by_itself(*site) && inner.len() > 1;
        let Some(method) = inner.get(usize::from(is_passed_on)) else { continue };
        *methods.entry(method).or_default() += count;
        let looper = match turn {
            Some(_) => inner.last().copied(),
            None => with_the_list(sites, statements, of, *site, repeats),
        };
        *loopers.entry(looper.unwrap_or(method)).or_default() += count;
    }
    let most = |methods: BTreeMap<&str, u64>| {
        methods.into_iter().max_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(a.0))).map(|(method, _)| method.to_owned())
    };
    Sender { method: most(methods), looper: most(loopers) }
}

/// The own method that sends a statement at this site and, once for each of its loops, another one: the list whose rows
/// it asks for.
fn with_the_list<'s>(
    sites: &'s Sites,
    statements: &[Statement],
    of: &Statement,
    site: u32,
    repeats: f64,
) -> Option<&'s str> {
    let loops = of.times.count as f64 / repeats.max(1.0);
    let is_list = |other: &&Statement| {
        let count = other.times.count as f64;
        other.text != of.text && count >= loops * 0.5 && count <= loops * 2.0
    };
    let common = statements.iter().filter(is_list).flat_map(|other| other.sites.keys().take(8));
    common.filter_map(|other| sites.common_own(site, *other)).max_by_key(|(depth, _)| *depth).map(|(_, method)| method)
}

/// Method and address of a request of HttpClient in the fields of its activity.
fn call_of(start: &str, end: &str) -> Option<String> {
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let (start, end) = (parse(start), parse(end));
    let tag = |name: &str| [&end, &start].into_iter().find_map(|fields| fields.get("tags")?.get(name)?.as_str());
    let field = |name: &str| start.get(name).and_then(Value::as_str);
    let method = tag("http.request.method").or_else(|| tag("http.method")).or_else(|| field("Method"));
    let address = tag("url.full").or_else(|| tag("http.url")).or_else(|| field("RequestUri")).map(str::to_owned);
    let address = address.or_else(|| {
        // The event source has it in parts.
        let port = start.get("port").and_then(Value::as_u64).map_or(String::new(), |port| format!(":{port}"));
        Some(format!("{}://{}{port}{}", field("scheme")?, field("host")?, field("pathAndQuery")?))
    })?;
    let route = route(&address.chars().take(MOST_TEXT).collect::<String>());
    Some(method.map_or(route.clone(), |method| format!("{method} {route}")))
}

/// An address with `?` for the parts of its path that have a digit, and without a query, so that those of one route are
/// the same. A version as `v1` stays.
fn route(address: &str) -> String {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = match path.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            (format!("{scheme}://{host}"), path)
        }
        None => (String::new(), path.trim_start_matches('/')),
    };
    let is_version = |part: &str| part.strip_prefix('v').is_some_and(|n| n.chars().all(|c| c.is_ascii_digit()));
    let is_value = |part: &&str| part.chars().any(|c| c.is_ascii_digit()) && !is_version(part);
    let parts = path.split('/').map(|part| if is_value(&part) { "?" } else { part });
    parts.fold(host, |route, part| route + "/" + part)
}

/// A statement with `?` for its texts and numbers, so that those that differ in them alone are one. The number of a
/// parameter or of a name stays: `$1`, `@p0`, `line2`. [`IN_SQL`] does the same.
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
            '0'..='9' if !is_named(at.checked_sub(1).and_then(|before| all.get(before))) => {
                at += behind.iter().take_while(|c| c.is_ascii_digit()).count();
                out.push('?');
            }
            other => out.push(*other),
        }
        at += 1;
    }
    out
}

/// Whether digits behind this character are a part of a name.
fn is_named(before: Option<&char>) -> bool {
    before.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '@' | ':'))
}

/// The expression of DuckDB for the same.
pub(super) const IN_SQL: &str = "regexp_replace(regexp_replace(text[1:4096], '''[^'']*''', '?', 'g'), \
     '(^|[^A-Za-z0-9_$@:])[0-9]+', '\\1?', 'g')";

/// A query of DuckDB: how often each statement ran in its parent activity. An id is given again to later work, so that
/// its start counts, too.
pub(super) fn by_work(statement: &str, view: &str, condition: &str) -> String {
    format!(
        "SELECT {statement}, coalesce(q.parent_activity_id, concat('thread ', q.thread_id)) AS work, p.start_ts AS work_start_ts, \
         count(*) AS how_often, sum(q.duration_ms) AS total_ms FROM {view} q \
         ASOF LEFT JOIN (SELECT * FROM activity WHERE provider_name <> '{TASKS}') p \
         ON p.trace_id = q.trace_id AND p.process_id = q.process_id AND p.activity_id = q.parent_activity_id \
         AND q.start_ts_ns >= p.start_ts_ns WHERE {condition} GROUP BY ALL ORDER BY how_often DESC LIMIT 10"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query<'q>(parent: &'q str, start_ts_ns: i64, fields: &'q str) -> Activity<'q> {
        Activity {
            process_id: 7,
            thread_id: 1,
            end_thread_id: 1,
            callsite_id: 0,
            start_ts_ns,
            duration_ns: Some(1000),
            provider_name: "Shop",
            name: "query",
            activity_id: None,
            parent_activity_id: Some(parent),
            start_fields: Some(fields),
            end_fields: None,
        }
    }

    fn finish(queries: &mut Queries) {
        queries.finish(Kind::Query, &Work::default());
    }

    #[test]
    fn statements_are_counted_by_the_work_that_they_are_a_part_of() {
        let mut queries = Queries::default();
        for n in 0..12 {
            let fields = format!(r#"{{"CommandText":"SELECT * FROM line WHERE id = {n} AND k = 'a{n}'"}}"#);
            queries.see(&query(if n < 8 { "a" } else { "b" }, n, &fields));
            queries.see(&query("a", n, r#"{"path":"/orders"}"#));
        }
        finish(&mut queries);
        let [statement] = queries.statements.as_slice() else { panic!("{:?}", queries.statements) };
        assert_eq!(statement.text, "SELECT * FROM line WHERE id = ? AND k = ?");
        assert_eq!((statement.runs.count, statement.runs.longest_ns, statement.times.count), (2, 8, 12));
    }

    #[test]
    fn parameters_and_names_keep_their_numbers() {
        for (text, shown) in [
            (
                "SELECT t0.a, 12 FROM line2 t0 WHERE id=$1 AND k = @p0",
                "SELECT t0.a, ? FROM line2 t0 WHERE id=$1 AND k = @p0",
            ),
            ("7 LIMIT 10,20 'it' 1.5", "? LIMIT ?,? ? ?.?"),
        ] {
            assert_eq!(without_values(text), shown);
        }
    }

    #[test]
    fn calls_of_one_route_are_one() {
        assert_eq!(route("https://shop:8080/v1/articles/17?sort=2"), "https://shop:8080/v1/articles/?");
        assert_eq!(route("http://10.0.0.1/a3f1-77/lines#x"), "http://10.0.0.1/?/lines");
        assert_eq!(route("http://shop"), "http://shop/");
        let tags = r#"{"tags":{"http.request.method":"GET","url.full":"http://shop/articles/4?*"}}"#;
        assert_eq!(call_of("", tags).unwrap(), "GET http://shop/articles/?");
        let parts = r#"{"scheme":"http","host":"shop","port":80,"pathAndQuery":"/articles/0?a=b"}"#;
        assert_eq!(call_of(parts, "").unwrap(), "http://shop:80/articles/?");
        assert_eq!(call_of(r#"{"pathAndQuery":7}"#, "not json"), None);
        let mut queries = Queries::default();
        for n in 0..8 {
            let fields = format!(r#"{{"scheme":"http","host":"shop","pathAndQuery":"/articles/{n}"}}"#);
            queries.see_call(&query("a", n, &fields));
        }
        finish(&mut queries);
        assert_eq!((queries.statements.len(), queries.statements[0].runs.longest_ns), (1, 8));
        let found = most_repeated(&Sites::default(), &queries.statements);
        assert_eq!((found.value, found.is_parented), (0.0, false), "one piece of work with eight is too little");
    }

    #[test]
    fn without_a_parent_what_a_thread_does_at_a_time_is_one_piece() {
        let mut queries = Queries::default();
        let fields = r#"{"tags":{"db.query.text":"SELECT 1"}}"#;
        for start in [0, 5_000_000, 9_000_000, 500_000_000] {
            queries.see(&query("", start, fields));
        }
        finish(&mut queries);
        assert_eq!((queries.statements[0].runs.count, queries.statements[0].runs.longest_ns), (2, 3));
        assert_eq!(queries.statements[0].text, "SELECT ?");
        // Where requests have ids, what none of them sent is of the background.
        let mut work = Work::default();
        work.add(&Activity { activity_id: Some("r"), ..query("", 0, fields) }, Kind::Request(0));
        queries.see(&query("", 600_000_000, fields));
        queries.finish(Kind::Query, &work);
        assert_eq!(queries.statements[0].runs.count, 2);
    }

    /// Two loops share two threads: each goes on where its query ended.
    #[test]
    fn without_a_parent_work_goes_on_where_its_query_ended() {
        let mut queries = Queries::default();
        let one = r#"{"tags":{"db.query.text":"SELECT price"}}"#;
        for n in 0..10 {
            for (work, thread) in [(0, n % 2), (1, (n + 1) % 2)] {
                let (start_ns, end_thread_id) = (n * 1_100_000 + work, 1 - thread as u64);
                queries.see(&Activity {
                    thread_id: thread as u64,
                    end_thread_id,
                    duration_ns: Some(1_050_000),
                    ..query("", start_ns, one)
                });
            }
        }
        // And what runs at the same time is no loop.
        for n in 0..10 {
            let fields = r#"{"tags":{"db.query.text":"SELECT slow"}}"#;
            queries.see(&Activity { duration_ns: Some(1_000_000_000), ..query("", n * 1_000_000, fields) });
        }
        finish(&mut queries);
        let runs = |place: usize| (queries.statements[place].runs.count, queries.statements[place].runs.longest_ns);
        assert_eq!((runs(0), runs(1)), ((2, 10), (10, 1)));
    }
}
