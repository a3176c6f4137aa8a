//! Requests, opened: what each did and waited for, on which threads, as bars on its own axis of time, as sums, and its log.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use tracequet_analyze::present::units::{counted, duration, moment};
use tracequet_analyze::present::{Amount, Cell, cut, escaped, numbers, table, words};
use tracequet_analyze::profile::Labels;
use tracequet_analyze::subjects::requests::{Asked, Logged, Part, Parts, Share};
use tracequet_trace::map::Map;

use crate::document::note;
use crate::timeline::axis;

/// Threads, bars, sums and messages of a request.
const MAX_THREADS: usize = 12;
const MAX_BARS: usize = 160;
const MAX_SUMS: usize = 25;
const MAX_MESSAGES: usize = 50;

/// Bytes of a text.
const MAX_TEXT: usize = 240;

/// A request that is opened.
pub(crate) struct Opened<'r> {
    pub asked: &'r Asked,
    pub name: &'r str,
    /// The pauses of its process: starts and ends, in order.
    pub pauses: &'r [(i64, i64)],
}

/// The kinds of bars: the class of its colour, its word, and what it is.
const KINDS: [(Share, &str, &str); 7] = [
    (Share::Cpu, "c0", "on the processor"),
    (Share::Wait, "po", "waits"),
    (Share::Lock, "lk", "waits for a lock"),
    (Share::Query, "g0", "query"),
    (Share::Call, "g1", "call"),
    (Share::Await, "bg", "awaits"),
    (Share::Span, "ot", "activity"),
];

fn of_kind(share: Share) -> (&'static str, &'static str) {
    let kind = KINDS.iter().find(|(known, ..)| *known == share);
    kind.map_or(("al", "allocated"), |(_, class, word)| (*class, *word))
}

/// Each request with its bars, sums and messages.
pub(crate) fn waterfalls<'r>(
    opened: impl Iterator<Item = Opened<'r>>,
    parts: &Parts,
    log: &[Logged],
    labels: &Labels,
) -> String {
    let mut of: Map<usize, Vec<&Part>> = Map::default();
    parts.all.iter().for_each(|part| of.entry(part.request).or_default().push(part));
    let mut out = String::from("<h3>The slowest, opened</h3>\n");
    let mut words = "What a request did and waited for, on the threads that worked for it. Of a kind, a method and a text the times stand together.".to_owned();
    if parts.left_out > 0 {
        words += &format!(" {} beyond what a page reads.", counted(parts.left_out, "part is", "parts are"));
    }
    out += &note(&words);
    out += "<div class=\"tree\">\n";
    for (place, request) in opened.enumerate() {
        let parts = of.get(&place).map_or(&[][..], Vec::as_slice);
        let messages: Vec<&Logged> = log.iter().filter(|message| message.request == place).collect();
        let Opened { asked, name, .. } = &request;
        let (from, to) = (asked.start_ns, asked.end_ns);
        let side = if asked.is_server { "" } else { " (client)" };
        out += &format!(
            "<details class=\"request\" data-from=\"{from}\" data-to=\"{to}\" data-route=\"{}\"><summary>{}{side} \
             <span class=\"figure\">{}</span> at {} s</summary>\n",
            if asked.is_server { escaped(name) } else { String::new() },
            escaped(name),
            duration(to.saturating_sub(from)),
            moment(from)
        );
        out += &bars(&request, parts, labels);
        out += &sums(place, asked, parts);
        out += &messages_of(place, asked, &messages);
        out += "</details>\n";
    }
    out + "</div>\n"
}

/// Start, end, class of the colour, and what it is.
type Bar<'t> = (i64, i64, &'t str, String);

/// The bars: a line for the pauses, and one for each thread.
fn bars(request: &Opened<'_>, parts: &[&Part], labels: &Labels) -> String {
    let (from, to) = (request.asked.start_ns, request.asked.end_ns);
    let took = to.saturating_sub(from).max(1);
    let near = request.pauses.iter().filter(|(start, end)| *start < to && *end > from);
    let mut lines: BTreeMap<(u8, u64), Vec<Bar<'_>>> = BTreeMap::new();
    for (start, end) in near.take(MAX_BARS) {
        let (start, end) = ((*start).max(from), (*end).min(to));
        lines.entry((0, 0)).or_default().push((
            start,
            end,
            "g2",
            format!("stopped for a GC: {}", duration(end - start)),
        ));
    }
    let mut longest: Vec<&&Part> = parts.iter().filter(|part| part.share != Share::Allocation).collect();
    longest.sort_by_key(|part| (std::cmp::Reverse(part.amount), part.start_ns, part.thread_id));
    let left_out = longest.len().saturating_sub(MAX_BARS);
    longest.truncate(MAX_BARS);
    let mut drawn: BTreeSet<&str> = BTreeSet::new();
    for part in longest {
        let (class, word) = of_kind(part.share);
        let line = part.thread_id.map_or((2, 0), |thread| (1, thread));
        if !lines.contains_key(&line) && lines.len() > MAX_THREADS {
            continue;
        }
        drawn.insert(class);
        let length = i64::try_from(part.amount).unwrap_or(i64::MAX);
        let what: Vec<&str> = part.own_method.as_deref().into_iter().chain(Some(part.text.as_str())).collect();
        let what = what.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ");
        let title = format!("{word}, {}: {}", duration(length), cut(&what, MAX_TEXT));
        lines.entry(line).or_default().push((part.start_ns, part.start_ns.saturating_add(length), class, title));
    }
    let mut out = String::from("<div class=\"bars\"><p class=\"legend\">");
    if lines.contains_key(&(0, 0)) {
        out += "<span><i class=\"g2\"></i>stopped for a GC</span> ";
    }
    for (_, class, word) in KINDS.iter().filter(|(_, class, _)| drawn.contains(class)) {
        write!(out, "<span><i class=\"{class}\"></i>{word}</span> ").ok();
    }
    out += "</p>\n";
    for ((kind, thread), mut bars) in lines {
        let label = match kind {
            0 => "All threads".to_owned(),
            1 => labels.of(request.asked.process, thread),
            _ => "No thread".to_owned(),
        };
        // Shorter bars are drawn on top of longer ones.
        bars.sort_by_key(|(start, end, ..)| (start.saturating_sub(*end), *start));
        out += &format!(
            "<div><span>{}</span><svg viewBox=\"0 0 1000 14\" preserveAspectRatio=\"none\">",
            escaped(cut(&label, 60))
        );
        let x = |ns: i64| ns.saturating_sub(from).clamp(0, took) as f64 / took as f64 * 1000.0;
        for (start, end, class, title) in bars {
            let (left, right) = (x(start), x(end));
            let (top, height) = if class == "ot" { (11, 3) } else { (1, 10) };
            out += &format!(
                "<rect class=\"{class}\" x=\"{left:.2}\" y=\"{top}\" width=\"{:.2}\" height=\"{height}\"><title>{}</title></rect>",
                (right - left).max(0.8),
                escaped(&title)
            );
        }
        out += "</svg></div>\n";
    }
    let axis = axis(took).replacen("class=\"axis\"", "class=\"axis still\"", 1);
    writeln!(out, "<div><span></span>{axis}</div></div>").ok();
    if left_out > 0 {
        out += &note(&format!("{} not drawn.", counted(left_out as u64, "shorter bar is", "shorter bars are")));
    }
    out
}

/// Parts of a kind, a method and a text together.
#[derive(Default)]
struct Sum {
    times: u64,
    amount: u64,
    longest: u64,
    first_ns: Option<i64>,
    threads: BTreeSet<u64>,
}

fn sums(place: usize, asked: &Asked, parts: &[&Part]) -> String {
    let mut found: BTreeMap<(&str, &str, &str), Sum> = BTreeMap::new();
    for part in parts {
        let key = (of_kind(part.share).1, part.own_method.as_deref().unwrap_or_default(), part.text.as_str());
        let sum = found.entry(key).or_default();
        sum.times += 1;
        sum.amount = sum.amount.saturating_add(part.amount);
        sum.longest = sum.longest.max(part.amount);
        sum.first_ns = Some(sum.first_ns.map_or(part.start_ns, |first| first.min(part.start_ns)));
        sum.threads.extend(part.thread_id);
    }
    if found.is_empty() {
        return note(
            "Nothing that belongs to it is recorded: its threads have no samples, waits or calls in its time.",
        );
    }
    let mut rows: Vec<_> = found.into_iter().collect();
    let of = rows.len();
    rows.sort_by_key(|((kind, ..), sum)| (*kind == "allocated", std::cmp::Reverse(sum.amount), sum.first_ns));
    rows.truncate(MAX_SUMS);
    let table = table!(format!("request-{place}-parts"), &rows, |((kind, own_method, text), sum)| {
        let unit = if *kind == "allocated" { "bytes" } else { "ns" };
    } {
        words("what", "The kind of the part") => Cell::words((*kind).to_owned()),
        words("own method", "Your own method on its stack") => Cell::text(own_method),
        words("of", "The statement, the address, the type or the name") => Cell::text(cut(text, MAX_TEXT)),
        numbers("times", "How many: samples one behind the other are one") => Cell::count(sum.times),
        numbers("together", "Their sum; bytes of allocations") => Cell::Amount(Amount::in_unit(sum.amount, unit)),
        numbers("longest", "The longest of them; bytes of allocations") => Cell::Amount(Amount::in_unit(sum.longest, unit)),
        numbers("first after", "From the start of the request to the first of them") =>
            Cell::duration(sum.first_ns.map(|first| first.saturating_sub(asked.start_ns))),
        numbers("threads", "Threads that have some") => Cell::count(sum.threads.len() as u64),
    });
    let left_out = of.saturating_sub(rows.len());
    let more = if left_out > 0 {
        note(&format!("{} smaller.", counted(left_out as u64, "line is", "lines are")))
    } else {
        String::new()
    };
    table.html("What the request did") + &more
}

fn messages_of(place: usize, asked: &Asked, messages: &[&Logged]) -> String {
    if messages.is_empty() {
        return String::new();
    }
    let rows = table!(format!("request-{place}-log"), messages.iter().take(MAX_MESSAGES), |message| {
        numbers("after", "From the start of the request") => Cell::duration(Some(message.ts_ns.saturating_sub(asked.start_ns))),
        words("level", "Of the message") => Cell::text(&message.level),
        words("category", "Name of the logger") => Cell::text(&message.category),
        words("message", "With the type of its exception") => Cell::text(&message.message),
        numbers("thread", "That logged it") => Cell::id(message.thread_id),
    });
    let about = format!("{}.", counted(messages.len() as u64, "message was logged", "messages were logged"));
    note(&about) + &rows.html("Log of the request")
}
