//! Requests of HTTP by route, and the slowest of them.

use tracequet_analyze::present::units::{count, counted, duration};
use tracequet_analyze::present::{Cell, numbers, table, words};
use tracequet_analyze::subjects::pauses::{self, Pauses};
use tracequet_analyze::subjects::pool::percentile;
use tracequet_analyze::subjects::requests::{Asked, CLIENT, SERVER, route, source, sources, spent};
use tracequet_dataset::error::Result;
use tracequet_dataset::read::Recording;

use crate::document::{note, rows_note};
use crate::read::{span, word};
use crate::subjects::Groups;
use crate::timeline::{Highest, Line, Series};

tracequet_dataset::row! {
    struct Request of activity {
        process_id,
        thread_id,
        end_thread_id,
        activity_id,
        start_ts_ns,
        duration_ns,
        provider_name,
        name,
        result,
        status_code,
        start_fields,
        end_fields,
    }
}

/// Requests that came in, and those of HttpClient, with their sources.
const SIDES: [(&str, [(&str, &str); 3]); 2] = [("server", SERVER), ("client", CLIENT)];

/// Durations that are held for percentiles, and requests that are listed.
const MAX_DURATIONS: usize = 4 << 20;
const MAX_SLOWEST: usize = 30;

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
    status: Option<u32>,
}

/// The part, and what the timeline has of it.
pub(crate) struct Requests {
    pub html: String,
    pub over_time: Series,
    pub slowest: Option<Line>,
}

/// Reads the requests. `None` when there are none.
pub(crate) fn requests(recording: &Recording<'_>, pauses: &Pauses, end_ns: i64) -> Result<Option<Requests>> {
    let chosen = sources(recording)?;
    if chosen.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut groups: Groups<Route> = Groups::new();
    let mut over_time = Series::new(end_ns, &[("c0", "server"), ("g1", "client")]);
    let mut highest = Highest::new(end_ns);
    let mut slowest: Vec<Slow> = Vec::new();
    let (mut held, mut left_out, mut open) = (0usize, 0u64, 0u64);
    recording.each_recorded::<Request<'_>>(|row| {
        let place = source(row.provider_name, row.name);
        let Some((side, _)) = place.filter(|(side, place)| chosen.get(*side) == Some(&Some(*place))) else { return };
        let [start, end] = [row.start_fields, row.end_fields].map(Option::unwrap_or_default);
        let (route, start_ns) = (route(start, end), row.start_ts_ns);
        over_time.add(side, start_ns, 1);
        let group = groups.of([SIDES.get(side).map_or("", |(side, _)| *side), route.as_str()]);
        group.requests += 1;
        group.failed += u64::from(row.result == Some("failure"));
        let Some(duration_ns) = row.duration_ns.map(span) else {
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
                is_server: side == 0,
                process: row.process_id,
                thread: row.thread_id,
                is_of_thread: row.thread_id == row.end_thread_id,
                activity: word(row.activity_id).map(str::to_owned),
                start_ns,
                end_ns: start_ns.saturating_add(duration_ns.min(i64::MAX as u64) as i64),
            };
            slowest.insert(rank, Slow { asked, start_ns, duration_ns, side, route, status: row.status_code });
            slowest.truncate(MAX_SLOWEST);
        }
    })?;
    over_time.kinds.retain(|(_, _, sums)| sums.iter().any(|sum| *sum > 0));
    let (mut largest, of) = groups.largest(|route| route.total_ns);
    let table = table!("requests-table", &mut largest, |(names, route)| {
        route.durations.sort_unstable();
        let at = |percent: usize| Cell::span(percentile(&route.durations, percent));
    } {
        words("side", "server: requests that came in; client: those of HttpClient") =>
            Cell::optional(names.first().map(String::as_str)),
        words("route", "Method and path; numbers and ids in it are {id}") =>
            Cell::optional(names.get(1).map(String::as_str)),
        numbers("requests", "How many began") => Cell::count(route.requests),
        numbers("failed", "Of which the result is a failure") => Cell::count(route.failed),
        numbers("median", "Half took at most this long") => at(50),
        numbers("95 %", "95 of 100 took at most this long") => at(95),
        numbers("99 %", "99 of 100 took at most this long") => at(99),
        numbers("longest", "The slowest of them") => at(100),
        numbers("together", "Their sum") => Cell::span(Some(route.total_ns).filter(|_| !route.durations.is_empty())),
    });
    let mut about = rows_note(largest.len(), of, ["route", "routes"], "the most time");
    let source_of = |side: usize| {
        let place = chosen.get(side).copied().flatten();
        place.and_then(|place| SIDES.get(side)?.1.get(place)).copied()
    };
    for (side, (name_of_side, _)) in SIDES.iter().enumerate() {
        if let Some((provider, name)) = source_of(side) {
            about += &format!(" Requests of the {name_of_side} by {provider}/{name}.");
        }
    }
    if open > 0 {
        about += &format!(" {} not end in the recording.", counted(open, "request does", "requests do"));
    }
    if left_out > 0 {
        about += &format!(" Percentiles are of the first {}.", count(MAX_DURATIONS as u64));
    }
    let asked: Vec<Asked> = slowest.iter().map(|slow| slow.asked.clone()).collect();
    let spent = spent(recording, &asked, source_of(0))?;
    let has_pauses = pauses::are_recorded(recording)?;
    let stopped = |asked: &Asked| {
        has_pauses.then(|| pauses.within_ns(asked.process, asked.start_ns, asked.end_ns).max(0).cast_unsigned())
    };
    let mut slow = table!("slowest-table", slowest.iter().zip(spent), |(request, spent)| at request.start_ns, {
        numbers("start s", "When it began, in seconds since the recording began") => Cell::moment(request.start_ns),
        words("side", "server or client") => Cell::optional(SIDES.get(request.side).map(|(side, _)| *side)),
        words("route", "Method and path") => Cell::text(&request.route),
        numbers("took", "From its start to its end") => Cell::span(request.duration_ns),
        numbers("CPU", "By the samples of the threads that worked for it") => Cell::span(spent.cpu_ns),
        numbers("waits", "Of these threads, but for locks") => Cell::span(spent.wait_ns),
        numbers("locks", "Waits of these threads for locks") => Cell::span(spent.lock_ns),
        numbers("queries", "Of databases, on these threads; together, of those at the same time. One within another counts once") =>
            Cell::span(spent.query_ns),
        numbers("calls", "Requests of HttpClient that it made; together, of those at the same time") =>
            Cell::span(spent.call_ns),
        numbers("awaits", "What its async methods waited for, together; may lie in the others") =>
            Cell::span(spent.await_ns),
        numbers("in pauses", "The time in which all managed threads were stopped for collections") =>
            Cell::span(stopped(&request.asked)),
        numbers("status", "Of HTTP") => Cell::id(request.status.map(u64::from)),
    });
    let mut html = note(&about) + &table.html("Requests by route");
    if !slowest.is_empty() {
        let gone = slow.without_empty();
        let gone = gone.iter().filter(|name| **name != "status").copied().collect::<Vec<_>>().join(", ");
        let gone = if gone.is_empty() { gone } else { format!(" Not recorded: {gone}.") };
        let words = "What they spent their time on, by the threads that worked for them. Shares overlap: a pause may fall into a wait, and a query may be awaited.";
        let note = note(&format!("{words}{gone}"));
        html += &format!("<h3>The slowest</h3>\n{note}{}", slow.html("The slowest requests"));
    }
    let most = slowest.first().map_or(0, |slow| slow.duration_ns);
    let words = format!("of each moment the slowest that began; at most {}", duration(most as i64));
    Ok(Some(Requests { html, over_time, slowest: highest.line("Latency of requests", words, "c0") }))
}
