//! Requests of HTTP by route, and the slowest of them.

use std::collections::HashSet;

use tracequet_analyze::findings::overview::{SLOWEST, SlowRoute, Topic, of_requests};
use tracequet_analyze::present::units::{count, counted, duration};
use tracequet_analyze::present::{Cell, numbers, table, words};
use tracequet_analyze::profile::Labels;
use tracequet_analyze::subjects::pauses::{self, Pauses};
use tracequet_analyze::subjects::pool::percentile;
use tracequet_analyze::subjects::requests::{Asked, Spent, Worked, each_request, logged, source_of, sources, spent};
use tracequet_dataset::error::Result;
use tracequet_dataset::read::Recording;

use crate::document::{note, rows_note};
use crate::histogram::{bar, histograms, nodes};
use crate::read::span;
use crate::selection::{Item, Known, NONE, Nodes, Rows, Selection};
use crate::subjects::{BETWEEN, Groups, Largest};
use crate::timeline::{Highest, Line, Series};
use crate::waterfall::{Opened, waterfalls};

/// Requests that came in, and those of HttpClient.
const SIDES: [&str; 2] = ["server", "client"];

/// Durations that are held for percentiles, requests of which it is known what threads did for them, and requests that are listed: the
/// slowest of all, and the slowest of these routes.
const MAX_DURATIONS: usize = 4 << 20;
const MAX_KNOWN: usize = 128 << 10;
const MAX_SLOWEST: usize = 30;
const MAX_ROUTES: usize = 15;

#[derive(Debug, Default)]
struct Route {
    durations: Vec<u64>,
    total_ns: u64,
    requests: u64,
    failed: u64,
    slowest: Option<Slow>,
}

#[derive(Clone, Debug)]
struct Slow {
    asked: Asked,
    duration_ns: u64,
    side: usize,
    route: String,
    status: Option<u32>,
}

/// The slowest in the making.
struct Slowest {
    most: usize,
    all: Vec<Slow>,
}

impl Slowest {
    fn of(most: usize) -> Slowest {
        Slowest { most, all: Vec::new() }
    }

    fn add(&mut self, duration_ns: u64, slow: impl FnOnce() -> Slow) {
        let rank = self.all.partition_point(|slow| slow.duration_ns >= duration_ns);
        if rank < self.most {
            self.all.insert(rank, slow());
            self.all.truncate(self.most);
        }
    }
}

/// The part, and what the summary, the timeline and the selection have of it.
pub(crate) struct Requests {
    pub html: String,
    pub over_time: Series,
    pub slowest: Option<Line>,
    pub topic: Option<Topic>,
    /// Requests by the bar of their duration, and the line of each group, where their rows are not exact.
    pub durations: Option<(Rows, Vec<u32>)>,
}

/// Reads the requests and adds their rows to the selection, which has the routes of other rows from then on. `None` when the recording has no
/// requests.
pub(crate) fn requests(
    recording: &Recording<'_>,
    pauses: &Pauses,
    labels: &Labels,
    selection: &mut Selection,
    end_ns: i64,
) -> Result<Option<Requests>> {
    let chosen = sources(recording)?;
    if chosen.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut groups: Groups<Route> = Groups::new();
    let mut over_time = Series::new(end_ns, &[("c0", "server"), ("g1", "client")]);
    let mut highest = Highest::new(end_ns);
    let (mut slowest, mut of_server) = (Slowest::of(MAX_SLOWEST), Slowest::of(SLOWEST));
    let (mut held, mut left_out, mut open) = (0usize, 0u64, 0u64);
    // The route of a request is its line: its rows need no other.
    let (mut rows, mut spread) = (Rows::new(end_ns, Nodes::default()), Rows::by_parts(end_ns, nodes()));
    let mut served: Vec<(Asked, u32)> = Vec::new();
    each_request(recording, chosen, |side, row| {
        let (route, start_ns, duration) = (row.route(), row.start_ts_ns, row.duration_ns.map(span));
        over_time.add(side, start_ns, 1);
        let is_failed = row.result == Some("failure");
        let group = groups.of([SIDES.get(side).copied().unwrap_or_default(), route.as_str()]);
        group.requests += 1;
        group.failed += u64::from(is_failed);
        let asked = row.asked(side);
        if let Some(duration_ns) = duration {
            highest.add(start_ns, duration_ns);
            group.total_ns = group.total_ns.saturating_add(duration_ns);
            if held < MAX_DURATIONS {
                group.durations.push(duration_ns);
                held += 1;
            } else {
                left_out += 1;
            }
            let slow =
                || Slow { asked: asked.clone(), duration_ns, side, route: route.clone(), status: row.status_code };
            if group.slowest.as_ref().is_none_or(|slowest| slowest.duration_ns < duration_ns) {
                group.slowest = Some(slow());
            }
            slowest.add(duration_ns, slow);
            if side == 0 {
                of_server.add(duration_ns, slow);
            }
        } else {
            open += 1;
        }
        let (thread, group) = ((row.process_id, row.thread_id), groups.last);
        let more = if is_failed { 1.0 } else { 0.0 };
        let item = Item { thread, ts_ns: start_ns, callsite: 0, group, count: 1, amount: duration, more };
        rows.add_of(selection, item, NONE);
        if let Some(ns) = duration {
            let item = Item { callsite: bar(ns) as u32, amount: None, more: 0.0, ..item };
            spread.add_of(selection, item, NONE);
        }
        if side == 0 && duration.is_some() && served.len() < MAX_KNOWN {
            served.push((asked, group));
        }
    })?;
    over_time.kinds.retain(|(_, _, sums)| sums.iter().any(|sum| *sum > 0));
    groups.each().for_each(|(_, route)| route.durations.sort_unstable());
    let mut slowest = slowest.all;
    let of_server_routes = groups.each().filter_map(|(names, route)| {
        let (side, name) = names.split_once(BETWEEN)?;
        (side == "server").then_some((name, &*route))
    });
    let (mut served_requests, mut times) = (0, Vec::new());
    for (name, route) in of_server_routes {
        served_requests += route.requests;
        times.push((name, route.durations.as_slice()));
    }
    let slowest_routes = SlowRoute::most(times);
    let Largest { rows: mut largest, of, lines } = groups.largest(|route| route.total_ns);
    let table = table!("requests-table", &largest, |(names, route)| {
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
    for (side, name_of_side) in SIDES.iter().enumerate() {
        if let Some((provider, name)) = source_of(chosen, side) {
            about += &format!(" Requests of the {name_of_side} by {provider}/{name}.");
        }
    }
    if open > 0 {
        about += &format!(" {} not end in the recording.", counted(open, "request does", "requests do"));
    }
    if left_out > 0 {
        about += &format!(" Percentiles are of the first {}.", count(MAX_DURATIONS as u64));
    }
    if served.len() == MAX_KNOWN {
        let most = count(MAX_KNOWN as u64);
        about +=
            &format!(" What threads did is known to belong to a route for the first {most} requests that came in.");
    }
    let routes: Vec<String> = largest.iter().map(|(names, _)| route_of_line(names).to_owned()).collect();
    let of_routes = largest.iter().take(MAX_ROUTES).enumerate();
    let durations = of_routes.map(|(line, (names, route))| (line, route_of_line(names), route.durations.as_slice()));
    let durations = histograms(durations.filter(|(_, name, _)| !name.is_empty()));
    let most = slowest.first().map_or(0, |slow| slow.duration_ns);
    slowest.extend(largest.iter_mut().take(MAX_ROUTES).filter_map(|(_, route)| route.slowest.take()));
    let mut seen = HashSet::new();
    slowest.retain(|slow| seen.insert((slow.side, slow.asked.start_ns, slow.asked.thread, slow.duration_ns)));
    slowest.sort_by_key(|slow| (std::cmp::Reverse(slow.duration_ns), slow.asked.start_ns, slow.asked.thread));
    let line = |group: u32| lines.get(group as usize).copied().unwrap_or(NONE);
    let (served, route_of): (Vec<Asked>, Vec<u32>) =
        served.into_iter().map(|(asked, group)| (asked, line(group))).unzip();
    // Requests of the summary come behind those that are shown.
    let mut asked: Vec<Asked> = slowest.iter().map(|slow| slow.asked.clone()).collect();
    let more = of_server.all.iter().filter(|slow| !asked.contains(&slow.asked));
    asked.extend(more.map(|slow| slow.asked.clone()).collect::<Vec<_>>());
    let worked = Worked::read(recording, &asked, &served)?;
    let (spent, parts) = spent(recording, &asked, &worked, source_of(chosen, 0), slowest.len())?;
    let of_summary = of_server.all.iter().filter_map(|slow| {
        let place = asked.iter().position(|asked| *asked == slow.asked)?;
        Some((slow.asked.clone(), *spent.get(place)?))
    });
    let of_summary: Vec<(Asked, Spent)> = of_summary.collect();
    asked.truncate(slowest.len());
    let topic = source_of(chosen, 0).map(|_| of_requests(served_requests, &slowest_routes, &of_summary));
    let has_pauses = pauses::are_recorded(recording)?;
    let stopped = |asked: &Asked| {
        has_pauses.then(|| pauses.within_ns(asked.process, asked.start_ns, asked.end_ns).max(0).cast_unsigned())
    };
    let mut slow = table!("slowest-table", slowest.iter().zip(spent), |(request, spent)| at request.asked.start_ns, {
        numbers("start s", "When it began, in seconds since the recording began") => Cell::moment(request.asked.start_ns),
        words("side", "server or client") => Cell::optional(SIDES.get(request.side).copied()),
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
        numbers("allocated", "By these threads, as samples of allocations say") => Cell::size(spent.allocated),
        numbers("status", "Of HTTP") => Cell::id(request.status.map(u64::from)),
    });
    let mut html = note(&about) + &table.html("Requests by route") + &durations;
    if !slowest.is_empty() {
        let gone = slow.without_empty();
        let gone = gone.iter().filter(|name| **name != "status").copied().collect::<Vec<_>>().join(", ");
        let gone = if gone.is_empty() { gone } else { format!(" Not recorded: {gone}.") };
        let words = "What they spent their time on, by the threads that worked for them. Shares overlap: a pause may fall into a wait, and a query may be awaited.";
        let note = note(&format!("The slowest of all, and those of the routes with most time. {words}{gone}"));
        html += &format!("<h3>The slowest</h3>\n{note}{}", slow.html("The slowest requests"));
        let opened = slowest.iter().map(|slow| Opened {
            asked: &slow.asked,
            name: &slow.route,
            pauses: if has_pauses { pauses.apart(slow.asked.process) } else { &[] },
        });
        html += &waterfalls(opened, &parts, &logged(recording, &asked)?, labels);
    }
    let words = format!("of each moment the slowest that began; at most {}", duration(most as i64));
    let slowest = highest.line("Latency of requests", words, "c0", "ns");
    selection.know(Known { worked, route_of, routes });
    let durations = (!selection.add("requests", rows, &lines)?).then_some((spread, lines));
    Ok(Some(Requests { html, over_time, slowest, topic, durations }))
}

/// The route of a line of the table, where its requests came in; else nothing.
fn route_of_line(names: &[String]) -> &str {
    match names {
        [side, route] if side == "server" => route,
        _ => "",
    }
}
