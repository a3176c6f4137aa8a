//! Charts on one axis of time, as SVG that needs no script. Each is 1000 units wide, whatever the recording's length:
//! the script zooms by changing what part of them is seen.

use std::collections::BTreeMap;
use std::fmt::Write;
use tracequet_analyze::present::units::{count, counted, duration, moment, real, size};
use tracequet_analyze::present::{Amount, Cell, Column, Table, escaped, numbers};

use tracequet_analyze::subjects::heap::GENERATIONS;
use tracequet_analyze::subjects::pauses::{Pause, Pauses};

use crate::collections::{Collection, Collections};

/// Parts of the time that sums are made of.
pub(crate) const BUCKETS: usize = 240;

/// Units from left to right, and from bottom to top.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 60.0;

/// Pauses and sizes that are drawn; more of them are merged.
const MAX_MARKS: usize = 1200;

/// Values of a line that are drawn as dots, too.
const MAX_DOTS: usize = 60;

/// Class of lines that are no values, but bounds of them.
pub(crate) const BAND: &str = "ot";

/// Sums over the parts of the time, of several kinds that are stacked.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    end_ns: i64,
    /// Class of its colour, name, and sums.
    pub kinds: Vec<(&'static str, &'static str, Vec<u64>)>,
    /// Whether there were rows.
    pub is_recorded: bool,
}

impl Series {
    pub(crate) fn new(end_ns: i64, kinds: &[(&'static str, &'static str)]) -> Series {
        let kinds = kinds.iter().map(|(class, name)| (*class, *name, vec![0; BUCKETS])).collect();
        Series { end_ns: end_ns.max(1), kinds, is_recorded: false }
    }

    /// Bytes allocated before each collection, where no allocations are recorded.
    pub(crate) fn of_collections(collections: &Collections, end_ns: i64) -> Series {
        let mut series = Series::new(end_ns, &[("al", "allocated")]);
        for collection in &collections.all {
            if let Some(bytes) = collection.allocated {
                series.add(0, collection.start_ns, bytes);
            }
        }
        series
    }

    pub(crate) fn add(&mut self, kind: usize, ts_ns: i64, value: u64) {
        self.is_recorded = true;
        let place = i128::from(ts_ns.clamp(0, self.end_ns - 1)) * BUCKETS as i128 / i128::from(self.end_ns);
        let bucket = self.kinds.get_mut(kind).and_then(|(_, _, sums)| sums.get_mut(place as usize));
        if let Some(sum) = bucket {
            *sum = sum.saturating_add(value);
        }
    }

    /// The sum of all kinds in each part.
    fn sums(&self) -> Vec<u64> {
        let mut sums = vec![0u64; BUCKETS];
        for (_, _, of_kind) in &self.kinds {
            sums.iter_mut().zip(of_kind).for_each(|(sum, value)| *sum = sum.saturating_add(*value));
        }
        sums
    }

    /// The length of a part in seconds.
    fn seconds(&self) -> f64 {
        self.end_ns as f64 / BUCKETS as f64 / 1e9
    }

    /// The highest sum.
    pub(crate) fn highest(&self) -> u64 {
        self.sums().into_iter().max().unwrap_or_default()
    }

    /// The highest sum for a second.
    pub(crate) fn highest_rate(&self) -> f64 {
        self.highest() as f64 / self.seconds()
    }

    fn svg(&self, label: &str) -> String {
        let most = self.highest().max(1) as f64;
        let step = WIDTH / BUCKETS as f64;
        let mut below = vec![0u64; BUCKETS];
        let mut out = open(label);
        for (class, _, sums) in &self.kinds {
            let mut path = String::new();
            for (place, (value, below)) in sums.iter().zip(&mut below).enumerate().filter(|(_, (value, _))| **value > 0)
            {
                let bottom = HEIGHT - *below as f64 / most * HEIGHT;
                *below = below.saturating_add(*value);
                let top = HEIGHT - *below as f64 / most * HEIGHT;
                let left = place as f64 * step;
                write!(path, "M{left:.2} {bottom:.2}V{top:.2}h{step:.2}V{bottom:.2}z").ok();
            }
            if !path.is_empty() {
                write!(out, "<path class=\"{class}\" d=\"{path}\"/>").ok();
            }
        }
        out.push_str("</svg>");
        out
    }
}

/// Values over time, as a line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub name: String,
    pub words: String,
    /// The unit of its values, as metrics have it, or `%`; empty of a number.
    pub unit: String,
    /// Class of its colour.
    pub class: &'static str,
    /// Times and values, in the order of time.
    pub points: Vec<(i64, f64)>,
    /// Whether a value holds until the next one; else it is one of its time.
    pub is_step: bool,
}

impl Line {
    /// The chart. Of values that lie too near to each other the highest is drawn.
    pub(crate) fn lane(&self, end_ns: i64) -> String {
        lines(&self.name, &self.words, end_ns, None, std::slice::from_ref(self), &[])
    }
}

/// Several lines in one chart, up to a value that is given, or to the highest.
pub(crate) fn lines(
    name: &str,
    words: &str,
    end_ns: i64,
    most: Option<f64>,
    of: &[Line],
    legend: &[(&str, &str)],
) -> String {
    let values = || of.iter().flat_map(|line| &line.points).map(|(_, value)| *value).filter(|value| value.is_finite());
    let most = most.unwrap_or_else(|| values().fold(0.0, f64::max));
    let least = values().fold(0.0, f64::min);
    let unit = of.last().map_or("", |line| line.unit.as_str());
    let span = if most > least { most - least } else { 1.0 };
    let mut svg = open(&format!("{name}: {words}"));
    for line in of {
        let x = |ts_ns: i64| (ts_ns.max(0) as f64 / end_ns.max(1) as f64 * WIDTH).min(WIDTH);
        let mut kept: Vec<(f64, f64)> = Vec::new();
        let is_thinned = line.points.len() > MAX_MARKS;
        for (ts_ns, value) in line.points.iter().filter(|(_, value)| value.is_finite()) {
            let (left, y) = (x(*ts_ns), HEIGHT - 1.0 - (value - least) / span * (HEIGHT - 2.0));
            match kept.last_mut().filter(|(before, _)| is_thinned && left - before < WIDTH / MAX_MARKS as f64) {
                Some(last) => last.1 = last.1.min(y),
                None => kept.push((left, y)),
            }
        }
        let mut path = String::new();
        for (place, (left, y)) in kept.iter().enumerate() {
            match (place, line.is_step) {
                (0, _) => write!(path, "M{left:.2} {y:.2}").ok(),
                (_, true) => write!(path, "H{left:.2}V{y:.2}").ok(),
                (_, false) => write!(path, "L{left:.2} {y:.2}").ok(),
            };
        }
        if line.is_step && !kept.is_empty() {
            write!(path, "H{WIDTH}").ok();
        }
        write!(svg, "<path class=\"line {}\" d=\"{path}\"/>", line.class).ok();
        // Few values are dots, too: a line between two that lie far apart would look as if it was measured.
        if !line.is_step && line.class != BAND && kept.len() <= MAX_DOTS {
            let dots: String = kept.iter().map(|(left, y)| format!("M{left:.2} {y:.2}h0")).collect();
            write!(svg, "<path class=\"dots {}\" d=\"{dots}\"/>", line.class).ok();
        }
    }
    svg.push_str("</svg>");
    lane_of(name, words, legend, &svg, [&value_of(most, unit), &value_of(least, unit)], "")
}

/// A value on the axis of a chart of lines.
fn value_of(value: f64, unit: &str) -> String {
    match unit {
        _ if value == 0.0 => "0".to_owned(),
        "%" => format!("{value} %"),
        "" if value >= 0.0 && value == value.trunc() && value < 1e15 => count(value as u64),
        unit => Amount::in_unit(value, unit).to_string(),
    }
}

fn open(label: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
        escaped(label)
    )
}

/// One chart: its name, what it says in words, what its colours mean, the drawing, the values at its top and its bottom, and attributes.
fn lane_of(
    name: &str,
    words: &str,
    legend: &[(&str, &str)],
    svg: &str,
    [top, bottom]: [&str; 2],
    data: &str,
) -> String {
    let mut out = String::new();
    out +=
        &format!("<figure class=\"lane\"{data}><figcaption><b>{}</b> <span>{}</span>", escaped(name), escaped(words));
    if !legend.is_empty() {
        out.push_str("<span class=\"legend\">");
        for (class, word) in legend {
            write!(out, "<span><i class=\"{class}\"></i>{}</span> ", escaped(word)).ok();
        }
        out.push_str("</span>");
    }
    let (top, bottom) = (escaped(top), escaped(bottom));
    out += &format!(
        "</figcaption><div class=\"plot\">{svg}<span class=\"high\">{top}</span><span class=\"low\">{bottom}</span></div></figure>\n"
    );
    out
}

/// Heights of stops: as long as they are, or, where one is far longer than most, by powers of ten.
struct Scale {
    most: i64,
    /// Of powers of ten the bottom.
    least: Option<i64>,
}

/// The longest stop is so many times as long as the one in the middle, where powers of ten are drawn.
const FLATTENS: i64 = 20;

impl Scale {
    fn of(lengths: impl Iterator<Item = i64>) -> Scale {
        let mut lengths: Vec<i64> = lengths.map(|ns| ns.max(1)).collect();
        lengths.sort_unstable();
        let most = lengths.last().copied().unwrap_or(1);
        let middle = lengths.get(lengths.len() / 2).copied().unwrap_or(most);
        let is_flat = lengths.len() > 2 && most / FLATTENS >= middle;
        let shortest = lengths.first().copied().unwrap_or(1).max(most / 1_000_000).max(1);
        let least = is_flat.then(|| 10i64.pow(shortest.ilog10()));
        Scale { most, least }
    }

    /// The height of a stop, of 1.
    fn part(&self, ns: i64) -> f64 {
        match self.least {
            None => ns.max(0) as f64 / self.most as f64,
            Some(least) => {
                let log = |ns: i64| (ns.max(least) as f64 / least as f64).ln();
                log(ns) / log(self.most).max(f64::MIN_POSITIVE)
            }
        }
    }

    fn bottom(&self) -> String {
        self.least.map_or("0".to_owned(), |ns| duration(ns).replace(".00", "").replace(".0 ", " "))
    }

    /// Lines at powers of ten.
    fn lines(&self) -> String {
        let Some(least) = self.least else { return String::new() };
        let mut path = String::new();
        let mut ns = least.saturating_mul(10);
        while ns < self.most {
            write!(path, "M0 {:.2}H{WIDTH}", HEIGHT - self.part(ns) * HEIGHT).ok();
            ns = ns.saturating_mul(10);
        }
        format!("<path class=\"grid\" d=\"{path}\"/>")
    }
}

/// Charts of one recording.
pub(crate) struct Timeline<'t> {
    pub end_ns: i64,
    pub collections: &'t Collections,
    pub series: Vec<Charted<'t>>,
    /// Values over time.
    pub lines: Vec<Line>,
}

/// Sums that are drawn.
pub(crate) struct Charted<'t> {
    /// The kind of rows from which the script draws a selection; empty for sums without rows.
    rows: &'static str,
    name: &'static str,
    shown: Shown,
    series: &'t Series,
}

impl<'t> Charted<'t> {
    pub(crate) fn of(rows: &'static str, name: &'static str, shown: Shown, series: &'t Series) -> Charted<'t> {
        Charted { rows, name, shown, series }
    }

    /// The highest value as it stands on the axis, and what to say of the chart.
    fn words(&self) -> (String, String) {
        let Charted { series, .. } = self;
        let top = match self.shown {
            Shown::ByteRate => format!("{}/s", size(series.highest_rate() as u64)),
            Shown::Rate => format!("{}/s", real(series.highest_rate())),
            Shown::Time => duration(series.highest() as i64),
        };
        let part = duration((series.seconds() * 1e9) as i64);
        let words = match self.shown {
            Shown::Time => format!("at most {top} of what began within {part}"),
            _ => format!("at most {top}"),
        };
        (top, words)
    }
}

/// The unit in which the highest value of a series is said.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shown {
    /// Bytes for a second.
    ByteRate,
    /// A number for a second.
    Rate,
    /// Time of a part of the axis.
    Time,
}

impl Timeline<'_> {
    /// Whether there is anything to draw.
    pub(crate) fn has_charts(&self) -> bool {
        self.has_sums()
            || self.has_sizes()
            || self.has_stops()
            || !self.lines.is_empty()
            || !self.collections.other_stops.is_empty()
    }

    /// Whether there are charts of sums.
    pub(crate) fn has_sums(&self) -> bool {
        self.series.iter().any(|of| of.series.is_recorded)
    }

    fn has_stops(&self) -> bool {
        !self.collections.shown().is_empty()
    }

    fn has_sizes(&self) -> bool {
        self.collections.all.iter().any(|collection| collection.sizes.iter().any(Option::is_some))
    }

    pub(crate) fn html(&self) -> String {
        let end = self.end_ns.max(1);
        let mut out = format!("<div class=\"lanes\" id=\"lanes\" data-end=\"{end}\">\n");
        if self.has_stops() {
            out += &self.pauses();
        }
        if self.has_sizes() {
            out += &self.sizes();
        }
        for charted in self.series.iter().filter(|of| of.series.is_recorded) {
            let Charted { name, series, rows, .. } = charted;
            let (top, words) = charted.words();
            let mut legend: Vec<(&str, &str)> = series.kinds.iter().map(|(class, name, _)| (*class, *name)).collect();
            // One colour needs no explanation beside the name of the chart.
            legend.retain(|_| series.kinds.len() > 1);
            let svg = series.svg(&format!("{name}: {words}"));
            let measure = if matches!(charted.shown, Shown::Rate) { "count" } else { "amount" };
            let data = format!(" data-rows=\"{rows}\" data-measure=\"{measure}\" data-most=\"{}\"", series.highest());
            out += &lane_of(name, &words, &legend, &svg, [&top, "0"], if rows.is_empty() { "" } else { &data });
        }
        self.lines.iter().for_each(|line| out += &line.lane(end));
        if !self.collections.other_stops.is_empty() {
            out += &self.other_stops();
        }
        out.push_str(&axis(end));
        out.push_str("</div>\n");
        out
    }

    fn x(&self, ts_ns: i64) -> f64 {
        (ts_ns.max(0) as f64 / self.end_ns.max(1) as f64 * WIDTH).min(WIDTH)
    }

    /// A chart of stops, each with the class of its colour and what it was for. A stop that would flatten all others makes the axis one
    /// of powers of ten.
    fn stops(&self, name: &str, words: &str, legend: &[(&str, &str)], stops: &[(Pause, &str, String)]) -> String {
        // Of those that would lie on each other the longest of each colour.
        let mut marks: BTreeMap<(usize, &str), &(Pause, &str, String)> = BTreeMap::new();
        let is_merged = stops.len() > MAX_MARKS;
        for (place, stop) in stops.iter().enumerate() {
            let slot =
                if is_merged { (self.x(stop.0.start_ns) / WIDTH * MAX_MARKS as f64 / 4.0) as usize } else { place };
            let kept = marks.entry((slot, stop.1)).or_insert(stop);
            if stop.0.duration_ns > kept.0.duration_ns {
                *kept = stop;
            }
        }
        let scale = Scale::of(stops.iter().map(|(stop, ..)| stop.duration_ns));
        let mut words = words.to_owned();
        words += if is_merged { "; of stops at one place the longest is drawn" } else { "" };
        words += if scale.least.is_some() { "; the axis has powers of ten" } else { "" };
        let mut svg = open(&format!("{name}: {words}"));
        svg += &scale.lines();
        for (pause, class, of) in marks.values() {
            let (left, right) = (self.x(pause.start_ns), self.x(pause.start_ns.saturating_add(pause.duration_ns)));
            let height = (scale.part(pause.duration_ns) * HEIGHT).max(1.5);
            svg += &format!(
                "<rect class=\"mark {class}\" x=\"{left:.3}\" y=\"{:.2}\" width=\"{:.3}\" height=\"{height:.2}\"><title>{} at {} s: {}</title></rect>",
                HEIGHT - height,
                (right - left).max(0.001),
                duration(pause.duration_ns),
                moment(pause.start_ns),
                escaped(of),
            );
        }
        svg.push_str("</svg>");
        let mut legend = legend.to_vec();
        legend.retain(|(class, _)| marks.keys().any(|(_, drawn)| drawn == class));
        lane_of(name, &words, &legend, &svg, [&duration(scale.most), &scale.bottom()], "")
    }

    fn pauses(&self) -> String {
        let collections: BTreeMap<u32, &Collection> = self.collections.all.iter().map(|c| (c.gc_id, c)).collect();
        let pauses = self.collections.shown();
        let longest = Pauses::longest(pauses.iter().copied()).map(|pause| pause.duration_ns);
        let stop = |pause: &&Pause| {
            let Some(collection) = collections.get(&pause.gc_id) else {
                return (**pause, "ot", "of an unknown collection".to_owned());
            };
            let class = match (collection.kind.as_deref(), collection.generation) {
                (Some("background"), _) => "bg",
                (_, Some(0)) => "g0",
                (_, Some(1)) => "g1",
                (_, Some(2)) => "g2",
                _ => "ot",
            };
            let generation = collection.generation.map_or("?".to_owned(), |generation| generation.to_string());
            let kind = collection.kind.as_deref().unwrap_or("of unknown kind");
            (**pause, class, format!("collection {} of generation {generation}, {kind}", pause.gc_id))
        };
        let stops: Vec<(Pause, &str, String)> = pauses.iter().map(stop).collect();
        let mut words = counted(pauses.len() as u64, "pause", "pauses");
        if let Some(longest) = longest {
            words += &format!(", the longest {}", duration(longest));
        }
        let legend =
            [("g0", "gen 0"), ("g1", "gen 1"), ("g2", "gen 2"), ("bg", "background"), ("ot", "of unknown kind")];
        self.stops("Pauses", &words, &legend, &stops)
    }

    /// Stops for no collection, which are mostly those of the recorder itself.
    fn other_stops(&self) -> String {
        let stops = &self.collections.other_stops;
        let stop = |(start_ns, duration_ns): &(i64, i64)| {
            let pause = Pause { start_ns: *start_ns, duration_ns: *duration_ns, ..Pause::default() };
            (pause, "ot", "not for a collection".to_owned())
        };
        let all: Vec<(Pause, &str, String)> = stops.iter().map(stop).collect();
        let longest = stops.iter().map(|(_, duration_ns)| *duration_ns).max().unwrap_or_default();
        let together = stops.iter().fold(0i64, |sum, (_, ns)| sum.saturating_add(*ns));
        let words = format!(
            "{}, mostly of the recorder itself, which samples and walks stacks: {} together, the longest {}",
            counted(stops.len() as u64, "stop", "stops"),
            duration(together),
            duration(longest)
        );
        self.stops("Stops not for a collection", &words, &[], &all)
    }

    fn sizes(&self) -> String {
        let known: Vec<&Collection> =
            self.collections.all.iter().filter(|collection| collection.sizes.iter().any(Option::is_some)).collect();
        let step = known.len().div_ceil(MAX_MARKS).max(1);
        let known: Vec<&Collection> = known.into_iter().step_by(step).collect();
        let when = |collection: &Collection| self.x(collection.end_ns.unwrap_or(collection.start_ns));
        let all = |collection: &Collection| {
            collection.sizes.iter().flatten().fold(0u64, |sum, bytes| sum.saturating_add(*bytes))
        };
        let most = known.iter().map(|collection| all(collection)).max().unwrap_or_default();
        let words = format!("at most {} after a collection", size(most));
        let mut svg = open(&format!("Heap by generation: {words}"));
        let mut below = vec![0u64; known.len()];
        let classes = ["g0", "g1", "g2", "lo", "po"];
        for (generation, class) in classes.iter().enumerate().take(GENERATIONS) {
            let y = |bytes: u64| HEIGHT - bytes as f64 / most.max(1) as f64 * HEIGHT;
            let (mut top, mut bottom) = (String::new(), Vec::new());
            for (place, (collection, below)) in known.iter().zip(&mut below).enumerate() {
                let right = known.get(place + 1).map_or(WIDTH, |next| when(next));
                let lower = *below;
                *below = below.saturating_add(collection.sizes.get(generation).copied().flatten().unwrap_or_default());
                let letter = if place == 0 { 'M' } else { 'L' };
                write!(top, "{letter}{:.2} {:.2}H{right:.2}", when(collection), y(*below)).ok();
                bottom.push(format!("L{right:.2} {:.2}H{:.2}", y(lower), when(collection)));
            }
            bottom.reverse();
            write!(svg, "<path class=\"{class}\" d=\"{top}{}z\"/>", bottom.concat()).ok();
        }
        svg.push_str("</svg>");
        let legend = [("g0", "gen 0"), ("g1", "gen 1"), ("g2", "gen 2"), ("lo", "large"), ("po", "pinned")];
        lane_of("Heap by generation", &words, &legend, &svg, [&size(most), "0"], "")
    }

    /// The table behind the charts of sums.
    pub(crate) fn table(&self) -> String {
        let recorded: Vec<_> = self.series.iter().filter(|of| of.series.is_recorded).collect();
        let mut heads: Vec<Column> = vec![numbers("from s", "Seconds since the recording began")];
        heads.extend(recorded.iter().map(|of| numbers(of.name, "The sum of this part of the time")));
        let mut rows = Table::new("timeline-table", &heads);
        let sums: Vec<(Shown, Vec<u64>)> = recorded.iter().map(|of| (of.shown, of.series.sums())).collect();
        for part in 0..BUCKETS {
            let values: Vec<(Shown, u64)> =
                sums.iter().map(|(how, sums)| (*how, sums.get(part).copied().unwrap_or_default())).collect();
            if values.iter().all(|(_, value)| *value == 0) {
                continue;
            }
            let from = (i128::from(self.end_ns) * part as i128 / BUCKETS as i128) as i64;
            let mut cells = vec![Cell::moment(from)];
            cells.extend(values.into_iter().map(|(how, value)| match how {
                Shown::ByteRate => Cell::size(value),
                Shown::Rate => Cell::count(value),
                Shown::Time => Cell::span(value),
            }));
            rows.row(cells);
            rows.at(from);
        }
        rows.html("The charts of sums as a table")
    }
}

/// Labels of an axis at most.
const MAX_TICKS: i64 = 7;

/// Round steps from a minute on, in seconds.
const LONG_STEPS: [i64; 16] =
    [60, 120, 300, 600, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 432_000, 864_000, 1_728_000];

/// The time between the labels of an axis: 1, 2 or 5 with zeros, or what is round in minutes and hours.
fn tick_step(end_ns: i64) -> i64 {
    let short = (0..11u32).flat_map(|zeros| [1, 2, 5].map(|digit| digit * 10i64.pow(zeros)));
    let short = short.filter(|step| *step <= 20_000_000_000);
    let mut steps = short.chain(LONG_STEPS.map(|seconds| seconds * 1_000_000_000));
    steps.find(|step| end_ns / step < MAX_TICKS).unwrap_or(end_ns / MAX_TICKS + 1)
}

/// A time of an axis that ends at `end_ns`, to the digits that its step needs. All labels of an axis have one unit.
fn tick_label(ns: i64, step: i64, end_ns: i64) -> String {
    const SECOND: i64 = 1_000_000_000;
    if ns == 0 {
        return "0".to_owned();
    }
    if step >= 60 * SECOND {
        let minutes = ns / (60 * SECOND);
        return match (minutes / 60, minutes % 60) {
            (0, minutes) => format!("{minutes} min"),
            (hours, 0) => format!("{hours} h"),
            (hours, minutes) => format!("{hours} h {minutes} min"),
        };
    }
    let (unit, name) = match end_ns {
        SECOND.. => (SECOND, "s"),
        1_000_000.. => (1_000_000, "ms"),
        1000.. => (1000, "µs"),
        _ => (1, "ns"),
    };
    let (mut decimals, mut least) = (0, unit);
    while least > step {
        least /= 10;
        decimals += 1;
    }
    format!("{:.decimals$} {name}", ns as f64 / unit as f64)
}

/// The axis of time below charts: labels at round times. The script makes others where a part is seen.
pub(crate) fn axis(end_ns: i64) -> String {
    let mut out = String::from("<svg class=\"axis\" aria-hidden=\"true\">");
    let step = tick_step(end_ns);
    for tick in 0..=end_ns.max(0) / step {
        let ns = tick * step;
        let place = ns as f64 * 100.0 / end_ns.max(1) as f64;
        let class = if ns == 0 {
            "first"
        } else if place > 94.0 {
            "last"
        } else {
            ""
        };
        let label = tick_label(ns, step, end_ns);
        write!(out, "<line x1=\"{place:.3}%\" x2=\"{place:.3}%\" y2=\"4\"/><text x=\"{place:.3}%\" y=\"18\" class=\"{class}\">{label}</text>").ok();
    }
    out.push_str("</svg>");
    out
}

/// The highest value of each part of the time, as a line.
pub(crate) struct Highest {
    end_ns: i64,
    values: Vec<Option<u64>>,
}

impl Highest {
    pub(crate) fn new(end_ns: i64) -> Highest {
        Highest { end_ns: end_ns.max(1), values: vec![None; BUCKETS] }
    }

    pub(crate) fn add(&mut self, ts_ns: i64, value: u64) {
        let place = i128::from(ts_ns.clamp(0, self.end_ns - 1)) * BUCKETS as i128 / i128::from(self.end_ns);
        if let Some(known) = self.values.get_mut(place as usize) {
            *known = (*known).max(Some(value));
        }
    }

    pub(crate) fn line(&self, name: &str, words: String, class: &'static str, unit: &'static str) -> Option<Line> {
        let middle = |place: usize| (i128::from(self.end_ns) * (2 * place as i128 + 1) / (2 * BUCKETS as i128)) as i64;
        let points: Vec<(i64, f64)> = self
            .values
            .iter()
            .enumerate()
            .filter_map(|(place, value)| Some((middle(place), (*value)? as f64)))
            .collect();
        let line = Line { name: name.to_owned(), words, unit: unit.to_owned(), class, points, is_step: false };
        Some(line).filter(|line| !line.points.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_times() {
        let labels = |end_ns: i64| {
            let step = tick_step(end_ns);
            (0..=end_ns / step).map(|tick| tick_label(tick * step, step, end_ns)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(labels(1), "0 1 ns");
        assert_eq!(labels(3_700_000), "0 1 ms 2 ms 3 ms");
        assert_eq!(labels(1_300_000_000), "0 0.2 s 0.4 s 0.6 s 0.8 s 1.0 s 1.2 s");
        assert_eq!(labels(17_000_000_000), "0 5 s 10 s 15 s");
        assert_eq!(labels(125_000_000_000), "0 20 s 40 s 60 s 80 s 100 s 120 s");
        assert_eq!(labels(400_000_000_000), "0 1 min 2 min 3 min 4 min 5 min 6 min");
        assert_eq!(labels(5 * 3600 * 1_000_000_000), "0 1 h 2 h 3 h 4 h 5 h");
        assert_eq!(labels(100 * 60 * 1_000_000_000), "0 20 min 40 min 1 h 1 h 20 min 1 h 40 min");
        for end_ns in [0, i64::MAX, i64::MAX / 3] {
            let count = axis(end_ns).matches("<text").count();
            assert!((1..=MAX_TICKS as usize).contains(&count), "{end_ns}: {count}");
        }
        assert!(axis(-5).matches("<text").count() == 1);
    }

    #[test]
    fn times_at_the_edges_fall_into_a_part() {
        let mut series = Series::new(1000, &[("a", "one"), ("b", "other")]);
        for (kind, ts_ns) in [(0, i64::MIN), (0, 0), (1, 999), (1, i64::MAX), (2, 5)] {
            series.add(kind, ts_ns, 1);
        }
        let sums = series.sums();
        assert_eq!((sums.first(), sums.last()), (Some(&2), Some(&2)));
        assert_eq!(sums.iter().sum::<u64>(), 4);
        // A recording without a length.
        let mut series = Series::new(0, &[("a", "one")]);
        series.add(0, 0, u64::MAX);
        series.add(0, 0, 1);
        assert_eq!(series.highest(), u64::MAX);
        assert!(!series.svg("x").contains("NaN"));
    }
}
