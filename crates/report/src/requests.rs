//! Requests of HTTP by route, and the slowest of them.

use std::fmt::Write;

use serde_json::Value;
use tracequet_analyze::subjects::pauses::{self, Pauses};
use tracequet_dataset::error::Result;
use tracequet_dataset::read::Recording;

use crate::html::{Cell, Rows, escaped, numbers, words};
use crate::read::each;
use crate::spent::{Asked, Sources, is_query, spent};
use crate::subjects::{Groups, rows_note};
use crate::timeline::{Highest, Line, Series};
use crate::units::{count, counted, duration, moment};

/// Who reports requests, as the view `requests` has them, the best first. A request is a row for each of them.
const SOURCES: [(&str, &str, usize); 6] = [
    ("Microsoft.AspNetCore", "Microsoft.AspNetCore.Hosting.HttpRequestIn", SERVER),
    ("Microsoft.AspNetCore.Hosting", "Request", SERVER),
    ("Microsoft-AspNetCore-Server-Kestrel", "Request", SERVER),
    ("HttpHandlerDiagnosticListener", "System.Net.Http.HttpRequestOut", CLIENT),
    ("System.Net.Http", "System.Net.Http.HttpRequestOut", CLIENT),
    ("System.Net.Http", "Request", CLIENT),
];
const SERVER: usize = 0;
const CLIENT: usize = 1;
const SIDES: [&str; 2] = ["server", "client"];

/// Durations that are held for percentiles, and requests that are listed.
const MAX_DURATIONS: usize = 4 << 20;
const MAX_SLOWEST: usize = 30;

/// Requests of a source in which a route is looked for.
const MAX_LOOKED_AT: u64 = 100;

/// Bytes of fields that are looked at.
const MAX_FIELDS: usize = 16 << 10;

#[derive(Debug, Default)]
struct Route {
    durations: Vec<u64>,
    total_ns: u64,
    requests: u64,
    failed: u64,
}

struct Slow {
    asked: Asked,
    start_ns: i64,
    duration_ns: u64,
    side: usize,
    route: String,
    status: Option<u64>,
}

/// The part, and what the timeline has of it.
pub(crate) struct Requests {
    pub html: String,
    pub over_time: Series,
    pub slowest: Option<Line>,
}

/// Reads the requests. `None` when there are none.
pub(crate) fn requests(recording: &Recording<'_>, pauses: &Pauses, end_ns: i64) -> Result<Option<Requests>> {
    let mut rows = [0u64; SOURCES.len()];
    let source = |provider: Option<&str>, name: Option<&str>| {
        SOURCES.iter().position(|(known, of, _)| provider == Some(*known) && name == Some(*of))
    };
    let mut has_route = [false; SOURCES.len()];
    // How many queries of databases each source reports.
    let mut queries: Groups<u64> = Groups::new();
    each(recording, "activity", &["provider_name", "name", "start_fields", "end_fields"], |row| {
        if is_query(row.text(2), row.text(3)) {
            *queries.of([row.text(0).unwrap_or_default(), row.text(1).unwrap_or_default()]) += 1;
        }
        let Some(place) = source(row.text(0), row.text(1)) else { return };
        if let (Some(found), Some(has_route)) = (rows.get_mut(place), has_route.get_mut(place)) {
            *found += 1;
            if !*has_route && *found <= MAX_LOOKED_AT {
                *has_route = !route(row.text(2).unwrap_or_default(), row.text(3).unwrap_or_default()).is_empty();
            }
        }
    })?;
    // Of each side a source that says the route, of these the one that has most; of two with as many the better one.
    let chosen = [SERVER, CLIENT].map(|side| {
        let of_side = SOURCES.iter().zip(rows).enumerate().filter(|(_, ((.., of), rows))| *of == side && *rows > 0);
        let says_route = |place: usize| has_route.get(place).copied().unwrap_or_default();
        of_side
            .min_by_key(|(place, (_, rows))| (!says_route(*place), std::cmp::Reverse(*rows), *place))
            .map(|(place, _)| place)
    });
    if chosen.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut groups: Groups<Route> = Groups::new();
    let mut over_time = Series::new(end_ns, &[("c0", "server"), ("g1", "client")]);
    let mut highest = Highest::new(end_ns);
    let mut slowest: Vec<Slow> = Vec::new();
    let (mut held, mut left_out, mut open) = (0usize, 0u64, 0u64);
    let columns = [
        "provider_name",
        "name",
        "start_ts_ns",
        "duration_ns",
        "result",
        "status_code",
        "start_fields",
        "end_fields",
        "process_id",
        "thread_id",
        "end_thread_id",
        "activity_id",
    ];
    each(recording, "activity", &columns, |row| {
        let Some(place) = source(row.text(0), row.text(1)).filter(|place| chosen.contains(&Some(*place))) else {
            return;
        };
        let side = SOURCES.get(place).map_or(SERVER, |(.., side)| *side);
        let route = route(row.text(6).unwrap_or_default(), row.text(7).unwrap_or_default());
        let start_ns = row.signed(2).unwrap_or_default();
        over_time.add(side, start_ns, 1);
        let group = groups.of([SIDES.get(side).unwrap_or(&""), route.as_str()]);
        group.requests += 1;
        group.failed += u64::from(row.text(4) == Some("failure"));
        let Some(duration_ns) = row.number(3) else {
            open += 1;
            return;
        };
        highest.add(start_ns, duration_ns);
        group.total_ns = group.total_ns.saturating_add(duration_ns);
        if held < MAX_DURATIONS {
            group.durations.push(duration_ns);
            held += 1;
        } else {
            left_out += 1;
        }
        let rank = slowest.partition_point(|slow| slow.duration_ns >= duration_ns);
        if rank < MAX_SLOWEST {
            let asked = Asked {
                is_server: side == SERVER,
                process: row.number(8).unwrap_or_default(),
                thread: row.number(9).unwrap_or_default(),
                is_of_thread: row.number(9) == row.number(10),
                activity: row.word(11).map(str::to_owned),
                start_ns,
                end_ns: start_ns.saturating_add(duration_ns.min(i64::MAX as u64) as i64),
            };
            slowest.insert(rank, Slow { asked, start_ns, duration_ns, side, route, status: row.number(5) });
            slowest.truncate(MAX_SLOWEST);
        }
    })?;
    over_time.kinds.retain(|(_, _, sums)| sums.iter().any(|sum| *sum > 0));
    let heads = [
        words("side", "server: requests that came in; client: those of HttpClient"),
        words("route", "Method and path; numbers and ids in it are {id}"),
        numbers("requests", "How many began"),
        numbers("failed", "Of which the result is a failure"),
        numbers("median", "Half took at most this long"),
        numbers("95 %", "95 of 100 took at most this long"),
        numbers("99 %", "99 of 100 took at most this long"),
        numbers("longest", "The slowest of them"),
        numbers("together", "Their sum"),
    ];
    let mut table = Rows::new("requests-table", &heads);
    let (mut largest, of) = groups.largest(|route| route.total_ns);
    for (names, route) in &mut largest {
        route.durations.sort_unstable();
        let at = |percent: usize| Cell::span(percentile(&route.durations, percent));
        table.row(vec![
            Cell::text(names.first().map(String::as_str)),
            Cell::text(names.get(1).map(String::as_str)),
            Cell::number(Some(route.requests), count),
            Cell::number(Some(route.failed), count),
            at(50),
            at(95),
            at(99),
            at(100),
            Cell::span(Some(route.total_ns).filter(|_| !route.durations.is_empty())),
        ]);
    }
    let mut note = rows_note(largest.len(), of, ["route", "routes"], "the most time");
    for (side, place) in SIDES.iter().zip(chosen) {
        if let Some((provider, name, _)) = place.and_then(|place| SOURCES.get(place)) {
            note += &format!(" Requests of the {side} by {provider}/{name}.");
        }
    }
    if open > 0 {
        note += &format!(" {} not end in the recording.", counted(open, "request does", "requests do"));
    }
    if left_out > 0 {
        note += &format!(" Percentiles are of the first {}.", count(MAX_DURATIONS as u64));
    }
    let heads = [
        numbers("start s", "When it began, in seconds since the recording began"),
        words("side", "server or client"),
        words("route", "Method and path"),
        numbers("took", "From its start to its end"),
        numbers("CPU", "By the samples of the threads that worked for it"),
        numbers("waits", "Of these threads, but for locks"),
        numbers("locks", "Waits of these threads for locks"),
        numbers("queries", "Of databases, on these threads; together, of those at the same time"),
        numbers("calls", "Requests of HttpClient that it made; together, of those at the same time"),
        numbers("awaits", "What its async methods waited for, together; may lie in the others"),
        numbers("in pauses", "The time in which all managed threads were stopped for collections"),
        numbers("status", "Of HTTP"),
    ];
    let asked: Vec<Asked> = slowest.iter().map(|slow| slow.asked.clone()).collect();
    let source_of = |side: usize| {
        let source = chosen.get(side).copied().flatten().and_then(|place| SOURCES.get(place));
        source.map(|(provider, name, _)| (*provider, *name))
    };
    // Where several report the same queries, those of the one that reports most.
    let (queried, _) = queries.largest(|queries| *queries);
    let queried = queried.first().and_then(|(source, _)| source.first().zip(source.get(1)));
    let sources = Sources {
        server: source_of(SERVER),
        client: source_of(CLIENT),
        queries: queried.map(|(provider, name)| (provider.as_str(), name.as_str())),
    };
    let spent = spent(recording, &asked, &sources)?;
    let has_pauses = pauses::are_recorded(recording)?;
    let stopped = |asked: &Asked| {
        has_pauses.then(|| pauses.within_ns(asked.process, asked.start_ns, asked.end_ns).max(0).cast_unsigned())
    };
    let mut slow = Rows::new("slowest-table", &heads);
    for (request, spent) in slowest.iter().zip(spent) {
        slow.row_at(
            request.start_ns,
            vec![
                Cell::signed(Some(request.start_ns), moment),
                Cell::text(SIDES.get(request.side).copied()),
                Cell::text(Some(&request.route)),
                Cell::span(Some(request.duration_ns)),
                Cell::span(spent.cpu_ns),
                Cell::span(spent.wait_ns),
                Cell::span(spent.lock_ns),
                Cell::span(spent.query_ns),
                Cell::span(spent.call_ns),
                Cell::span(spent.await_ns),
                Cell::span(stopped(&request.asked)),
                Cell::number(request.status, |status| status.to_string()),
            ],
        );
    }
    let mut html = format!("<p class=\"note\">{}</p>\n{}", escaped(&note), table.html("Requests by route"));
    if !slowest.is_empty() {
        let gone = slow.without_empty();
        let gone = gone.iter().filter(|name| **name != "status").copied().collect::<Vec<_>>().join(", ");
        let gone = if gone.is_empty() { gone } else { format!(" Not recorded: {gone}.") };
        let note = "What they spent their time on, by the threads that worked for them. Shares overlap: a pause may fall into a wait, and a query may be awaited.";
        write!(html, "<h3>The slowest</h3>\n<p class=\"note\">{note}{gone}</p>\n{}", slow.html("The slowest requests"))
            .ok();
    }
    let most = slowest.first().map_or(0, |slow| slow.duration_ns);
    let words = format!("of each moment the slowest that began; at most {}", duration(most as i64));
    Ok(Some(Requests { html, over_time, slowest: highest.line("Latency of requests", words, "c0") }))
}

/// A percentile of sorted values: one of them, without interpolation.
pub(crate) fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

/// Method and path by the fields of a request.
fn route(start: &str, end: &str) -> String {
    let read = |text: &str| if text.len() <= MAX_FIELDS { serde_json::from_str(text).ok() } else { None };
    let fields: [Option<Value>; 2] = [read(start), read(end)];
    let named = |names: &[&str]| -> Option<String> {
        names.iter().find_map(|name| {
            fields.iter().flatten().find_map(|fields| {
                let field = fields.get(name).or_else(|| fields.get("tags")?.get(name));
                field.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
            })
        })
    };
    let method = named(&["method", "Request.Method", "http.request.method", "http.method", "Method"]);
    let template = named(&["http.route", "route", "Request.RouteTemplate"]);
    let path = template.or_else(|| {
        let path = named(&[
            "path",
            "Request.Path",
            "url.path",
            "http.target",
            "pathAndQuery",
            "Request.RequestUri",
            "url.full",
            "http.url",
            "RequestUri",
        ])?;
        Some(plain(&path))
    });
    match (method, path) {
        (Some(method), Some(path)) => format!("{method} {path}"),
        (None, Some(path)) => path,
        (Some(method), None) => method,
        (None, None) => String::new(),
    }
}

/// A path without its query, and with `{id}` for what is a number or an id.
fn plain(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let is_id = |part: &str| {
        let has_digit = part.bytes().any(|byte| byte.is_ascii_digit());
        has_digit && part.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    };
    path.split('/').map(|part| if is_id(part) { "{id}" } else { part }).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_come_from_the_fields_that_sources_have() {
        assert_eq!(route(r#"{"path":"/shop/17/items?all=1","method":"GET"}"#, ""), "GET /shop/{id}/items");
        assert_eq!(route(r#"{"Request.Path":"/a/0f8fad5b-d9cb-469f-a165-70867728950e"}"#, ""), "/a/{id}");
        assert_eq!(route(r#"{"path":"/shop/17"}"#, r#"{"tags":{"http.route":"/shop/{item}"}}"#), "/shop/{item}");
        assert_eq!((route("no json", ""), route("[1]", "{}")), (String::new(), String::new()));
        assert_eq!(plain("/face/decade/2024"), "/face/decade/{id}", "only what has a digit");
    }

    #[test]
    fn percentiles_are_values_that_are_there() {
        let values: Vec<u64> = (1..=10).collect();
        assert_eq!(
            [50, 95, 99, 100].map(|percent| percentile(&values, percent)),
            [Some(5), Some(10), Some(10), Some(10)]
        );
        assert_eq!(percentile(&[], 50), None);
        assert_eq!(percentile(&[7], 1), Some(7));
    }
}
