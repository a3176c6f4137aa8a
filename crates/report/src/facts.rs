//! The recording itself, its findings, its metrics, and its losses.

use tracequet_analyze::evidence::Evidence;
use tracequet_analyze::findings::{Finding, Verdict, rule, title_of};
use tracequet_analyze::metrics::{Metric, definition_of, metrics};
use tracequet_analyze::present::units::{duration, utc};
use tracequet_analyze::present::{Amount, Sentence, cut, escaped_sentence};

use crate::document::Parts;
use crate::lines::Lines;
use crate::prelude::*;

/// Rows of the tables of figures and of diagnostics.
const MAX_ROWS: usize = 200;

/// Processes that are listed.
const MAX_PROCESSES: usize = 8;

tracequet_dataset::row! {
    struct Trace of trace {
        path,
        size_bytes,
        container,
        start_ts,
        start_known,
        duration_ns,
        event_count,
        dropped_event_count,
        complete,
        processor_count,
        status,
    }
}

tracequet_dataset::row! {
    struct Label of trace_label { name, value }
}

tracequet_dataset::row! {
    struct Process of process {
        process_id, name, command_line, os, arch, runtime_version, startup_flags, event_count
    }
}

tracequet_dataset::row! {
    struct Loss of diagnostic { severity, code, count, byte_offset, message }
}

/// Facts about a recording.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Name of its file.
    pub name: String,
    pub duration_ns: i64,
    pub status: String,
    pub dropped: u64,
    pub is_complete: bool,
    /// What stands in the line below the name: when, how long, what.
    line: Vec<String>,
    /// Names and values, as they are shown.
    pairs: Vec<(&'static str, String)>,
}

impl Facts {
    pub(crate) fn read(recording: &Recording<'_>) -> Result<Facts> {
        let mut facts = Facts { name: recording.info().trace_id.clone(), ..Facts::default() };
        let mut events = String::new();
        recording.each_recorded::<Trace<'_>>(|row| {
            if let Some(path) = word(Some(row.path)) {
                facts.name = file_name(path).to_owned();
            }
            facts.duration_ns = row.duration_ns.max(0);
            facts.dropped = row.dropped_event_count;
            facts.is_complete = row.complete;
            facts.status = row.status.to_owned();
            facts.line.extend(row.start_known.then(|| format!("{} UTC", utc(row.start_ts))));
            facts.line.extend(Some(duration(row.duration_ns)).filter(|_| row.duration_ns > 0));
            let mut add = |name, value: Option<String>| facts.pairs.extend(value.map(|value| (name, value)));
            add("Recorded", row.start_known.then(|| format!("{} UTC", utc(row.start_ts))));
            add("Length", Some(duration(row.duration_ns)));
            add("Events", Some(count(row.event_count)));
            add("File", Some(format!("{}, {}", size(row.size_bytes), row.container)));
            add("Processors", Some(row.processor_count).filter(|count| *count > 0).map(count));
            let lost = match row.dropped_event_count {
                0 => "none lost".to_owned(),
                lost => format!("{} lost", count(lost)),
            };
            events = format!("{}, {lost}", counted(row.event_count, "event", "events"));
        })?;
        facts.read_processes(recording)?;
        facts.line.extend(Some(events).filter(|events| !events.is_empty() && !events.starts_with("0 ")));
        recording.each_recorded::<Label<'_>>(|row| {
            if facts.pairs.len() < 40 {
                facts.pairs.push(("Label", format!("{} = {}", row.name, row.value)));
            }
        })?;
        Ok(facts)
    }

    fn read_processes(&mut self, recording: &Recording<'_>) -> Result<()> {
        let mut processes: Vec<(u64, u64, String, String)> = Vec::new();
        let mut all = 0u64;
        recording.each_recorded::<Process<'_>>(|row| {
            all += 1;
            let mut words = vec![row.process_id.to_string()];
            let texts = [row.name, row.command_line, row.os, row.arch];
            words.extend(texts.into_iter().filter_map(|text| word(Some(text))).map(str::to_owned));
            words.extend(word(Some(row.runtime_version)).map(|version| format!(".NET {version}")));
            words.extend(word(Some(row.startup_flags)).map(|flags| flags.replace('|', " ")));
            let program = word(Some(row.name)).or_else(|| program(row.command_line));
            let version = word(Some(row.runtime_version)).map(|version| format!(" on .NET {version}"));
            let id = row.process_id;
            let short = format!("{} ({id}){}", program.unwrap_or("process"), version.unwrap_or_default());
            let of_process = (row.event_count, id, words.join(", "), short);
            // Keeps the processes with the most events.
            let place = processes.partition_point(|(events, ..)| *events >= of_process.0);
            processes.insert(place, of_process);
            processes.truncate(MAX_PROCESSES);
        })?;
        let left_out = all.saturating_sub(processes.len() as u64);
        // Process 0 of a kernel is no program: it stands for idle processors.
        let first = processes.iter().find(|(_, id, ..)| *id != 0).or(processes.first());
        if let Some((.., short)) = first {
            let others = if all > 1 { format!(" and {} more", count(all - 1)) } else { String::new() };
            self.line.push(format!("{}{others}", cut(short, 160)));
        }
        self.pairs.extend(processes.into_iter().map(|(_, _, words, _)| ("Process", words)));
        if left_out > 0 {
            self.pairs.push(("Processes", format!("{} more, with fewer events", count(left_out))));
        }
        Ok(())
    }

    pub(crate) fn html(&self) -> String {
        let line: Vec<String> = self.line.iter().map(|part| escaped(part)).collect();
        let mut out = format!("<p class=\"when\">{}</p>\n", line.join(" · "));
        if let Some(lost) = self.lost() {
            let lost = escaped(&lost);
            out += &format!(
                "<p><span class=\"verdict warning\">incomplete</span> {lost} <a href=\"#losses\">Losses</a></p>\n"
            );
        }
        out.push_str("<details><summary>About the recording</summary>\n<dl class=\"facts\">\n");
        // Several values of one name have one heading.
        for same in self.pairs.chunk_by(|(a, _), (b, _)| a == b) {
            let is_long = same.len() > 1 || same.iter().any(|(_, value)| value.chars().count() > 32);
            let class = if is_long { " class=\"long\"" } else { "" };
            let name = same.first().map_or("", |(name, _)| *name);
            let values: String = same.iter().map(|(_, value)| format!("<dd>{}</dd>", escaped(value))).collect();
            writeln!(out, "<div{class}><dt>{}</dt>{values}</div>", escaped(name)).ok();
        }
        out.push_str("</dl>\n</details>\n");
        out
    }

    /// The losses of the recording as a sentence; `None` when every event was read.
    fn lost(&self) -> Option<String> {
        match (self.status.as_str(), self.dropped, self.is_complete) {
            ("failed", ..) => Some("The recording could not be read.".to_owned()),
            ("ok", 0, true) => None,
            (_, dropped, is_complete) => {
                let lost = if dropped > 0 {
                    format!("{} lost. ", counted(dropped, "event is", "events are"))
                } else {
                    String::new()
                };
                let end = if is_complete { "" } else { "The recording is cut off, or its end is missing. " };
                Some(format!("{lost}{end}What is missing makes figures too low."))
            }
        }
    }
}

/// A sentence with its pieces of code as such.
pub(crate) fn with_code(text: &str) -> String {
    let pieces = text.split('`').enumerate();
    let html = |(place, piece): (usize, &str)| match place % 2 {
        0 => escaped_sentence(piece),
        _ => format!("<code>{}</code>", escaped(piece)),
    };
    pieces.map(html).collect()
}

/// A line of a finding.
fn step(out: &mut String, head: &str, html: &str) {
    write!(out, "<br><span class=\"step\">{head}:</span> {html}").ok();
}

/// Findings whose rows stand in the page, and rows of each.
const MAX_EVIDENCE: usize = 30;
const MAX_EVIDENCE_ROWS: usize = 50;

/// The findings, each with a link to its evidence among the parts, its rows, and its command for a recording of this
/// name. `None` when no rule says anything.
pub(crate) fn findings(
    recording: &Recording<'_>,
    found: Vec<Finding>,
    parts: &Parts,
    name: &str,
) -> Result<Option<String>> {
    if found.is_empty() {
        return Ok(None);
    }
    let (evidence_of, mut lines, mut with_rows) = (Evidence::of(recording)?, Lines::of(recording)?, 0);
    let is_open = |finding: &Finding| finding.verdict >= Verdict::Info;
    let (open, rest): (Vec<Finding>, Vec<Finding>) = found.into_iter().partition(is_open);
    let mut list = |findings: &[Finding]| -> Result<String> {
        let mut out = String::from("<ul class=\"findings\">\n");
        for finding in findings.iter().take(MAX_ROWS) {
            let class = match finding.verdict {
                Verdict::Warning | Verdict::Info | Verdict::Fine => finding.verdict.word(),
                _ => "unknown",
            };
            let verdict = finding.verdict.word().replace('_', " ");
            out += &format!(
                "<li><span class=\"verdict {class}\">{}</span> <b>{}</b> ",
                escaped(&verdict),
                escaped(finding.title())
            );
            out += &Sentence::from(Cell::sentence(&finding.sentence)).html();
            if let Some(subject) = &finding.subject {
                write!(out, " <code>{}</code>", escaped(subject)).ok();
            }
            // A growth to more than twice as much is no share: the sentence says what it is.
            if let Some(value) = finding.figure.filter(|value| finding.unit != "share" || *value <= 1.0) {
                write!(out, " <span class=\"figure\">{}</span>", Amount::in_unit(value, &finding.unit)).ok();
            }
            let evidence = rule(&finding.rule).map(|rule| &rule.evidence);
            let place = evidence.and_then(|of| of.sections.iter().find(|place| parts.has(place)));
            if let Some(place) = place.filter(|_| is_open(finding)) {
                write!(out, " <a class=\"evidence\" href=\"#{place}\"").ok();
                let data = [("method", &finding.own_method), ("subject", &finding.subject)];
                for (name, text) in data.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?))) {
                    write!(out, " data-{name}=\"{}\"", escaped(text)).ok();
                }
                if let Some(column) = evidence.and_then(|of| of.sort) {
                    write!(out, " data-sort=\"{column}\"").ok();
                }
                out.push_str(">evidence</a>");
            }
            if let Some(method) = finding.own_method.as_ref().filter(|_| is_open(finding)) {
                let mut html = format!("<code>{}</code>", escaped(method));
                for part in evidence.iter().flat_map(|of| of.sections) {
                    if let Some((place, part)) = lines.place(part, method)? {
                        let most = if part < 0.995 { format!(" ({} of it)", share(part)) } else { String::new() };
                        html += &format!(" at <code>{}</code>{most}", escaped(&place));
                        break;
                    }
                }
                step(&mut out, "Where", &html);
            }
            if !finding.advice().is_empty() {
                step(&mut out, "Change", &with_code(finding.advice()));
            }
            if !finding.next_step.is_empty() {
                let command = escaped(&finding.command(&(name.to_owned(), None)));
                step(&mut out, "Look closer", &format!("<code class=\"step\">{command}</code>"));
            }
            let sql = finding.evidence_sql.as_ref().filter(|_| is_open(finding) && with_rows < MAX_EVIDENCE);
            if let Some(sql) = sql {
                let id = format!("finding-{with_rows}-rows");
                if let Some(rows) = evidence_of.rows(sql, &id, MAX_EVIDENCE_ROWS)?.filter(|rows| !rows.is_empty()) {
                    with_rows += 1;
                    let (rule, process, html) =
                        (escaped(&finding.rule), finding.process_id, rows.html("Rows of the finding"));
                    out += &format!(
                        "<details class=\"rows\" data-rule=\"{rule}\" data-process=\"{process}\"><summary>Its rows</summary>\n{html}</details>"
                    );
                }
            }
            out.push_str("</li>\n");
        }
        out.push_str("</ul>\n");
        Ok(out)
    };
    let mut out = if open.is_empty() { "<p>No rule found anything to look at.</p>\n".to_owned() } else { list(&open)? };
    if !rest.is_empty() {
        let summary = counted(rest.len() as u64, "rule without a finding", "rules without a finding");
        writeln!(out, "<details><summary>{summary}</summary>\n{}</details>", list(&rest)?).ok();
    }
    Ok(Some(out))
}

/// Figures that stand first where they are recorded, and how many of them are tiles on the page of one recording.
pub(crate) const FIRST: [&str; 12] = [
    "gc.pause.max", "gc.pause.p99", "gc.pause.share", "gc.count", "heap.size.max", "allocation.rate",
    "exception.count", "contention.duration", "request.server.p99", "request.server.p50", "allocation.bytes",
    "lost.events",
];
const TILES: usize = 9;

/// The title of a metric; the name of one that this version does not have.
pub(crate) fn metric_title(name: &str) -> &str {
    definition_of(name).ok().flatten().map_or(name, |definition| definition.title.as_str())
}

/// The title of a metric, with what it is of: `Allocated of a type: System.String`; of the score of a rule that of the rule.
pub(crate) fn title(name: &str) -> String {
    let title = metric_title(name);
    match name.split_once('[') {
        Some((_, of)) => {
            let of = of.strip_suffix(']').unwrap_or(of);
            format!("{title}: {}", if name.starts_with("finding.score") { title_of(of) } else { of })
        }
        None => title.to_owned(),
    }
}

/// The key figures, and all that are recorded. `None` when there are none.
pub(crate) fn figures(recording: &Recording<'_>) -> Result<Option<String>> {
    let recorded: Vec<(Metric, f64)> =
        metrics(recording)?.into_iter().filter_map(|metric| metric.value.map(|value| (metric, value))).collect();
    if recorded.is_empty() {
        return Ok(None);
    }
    let definition = |name: &str| definition_of(name).ok().flatten();
    let unit = |name: &str| definition(name).map_or("", |definition| definition.unit.as_str());
    let mut tiles = String::new();
    for name in FIRST.into_iter().take(TILES) {
        // Of several processes a share is more than all, which says nothing.
        let has_meaning = |value: f64| unit(name) != "share" || value <= 1.0;
        let found = recorded.iter().find(|(metric, value)| metric.name == name && has_meaning(*value));
        if let Some((_, value)) = found {
            let (value, title) = (Amount::in_unit(*value, unit(name)), escaped(&title(name)));
            writeln!(tiles, "<div><dd>{value}</dd><dt>{title}</dt></div>").ok();
        }
    }
    // Without a figure that stands at the top, as of a log of the kernel, the table does.
    let (mut out, open) =
        if tiles.is_empty() { (String::new(), " open") } else { (format!("<dl class=\"tiles\">\n{tiles}</dl>\n"), "") };
    let rows = table!("figures-table", recorded.iter().take(MAX_ROWS), |(metric, value)| {
        words("figure", "What it says") => Cell::text(&title(&metric.name)),
        numbers("value", "In its unit") => Cell::in_unit(*value, unit(&metric.name)),
        numbers("of rows", "Table that it was made from") => Cell::count(metric.observations),
        words("largest", "The row with the largest value") => Cell::optional(metric.worst.as_deref()),
        words("name", "As rules of check name it; docs/METRICS.md has the definition of each") => Cell::text(&metric.name),
    });
    let shown = recorded.len().min(MAX_ROWS);
    let summary = if shown < recorded.len() {
        format!("The first {shown} of {} figures", count(recorded.len() as u64))
    } else {
        format!("All {shown} figures")
    };
    writeln!(out, "<details{open}><summary>{summary}</summary>\n{}</details>", rows.html("Figures")).ok();
    Ok(Some(out))
}

/// The part on losses: events and bytes that were lost, damaged or not understood.
pub(crate) fn losses(recording: &Recording<'_>, facts: &Facts) -> Result<String> {
    let mut out = String::new();
    let line = facts.lost().unwrap_or_else(|| "Nothing was lost: every event was read.".to_owned());
    writeln!(out, "<p>{}</p>", escaped(&line)).ok();
    let heads = [
        words("severity", "info: nothing is missing"),
        words("code", "The kind of problem"),
        numbers("count", "Events, rows or records that are affected"),
        numbers("at byte", "Offset in the unpacked recording"),
        words("message", "In a sentence"),
    ];
    let mut rows = Table::new("losses-table", &heads);
    let mut of = 0usize;
    recording.each_recorded::<Loss<'_>>(|row| {
        of += 1;
        if of <= MAX_ROWS {
            rows.row(vec![
                Cell::text(row.severity),
                Cell::text(row.code),
                Cell::count(row.count),
                Cell::count(row.byte_offset),
                Cell::text(row.message),
            ]);
        }
    })?;
    if of > 0 {
        let words = if of > MAX_ROWS {
            format!("The first {MAX_ROWS} of {} diagnostics.", count(of as u64))
        } else {
            counted(of as u64, "diagnostic.", "diagnostics.")
        };
        out += &(note(&words) + &rows.html("Diagnostics"));
    }
    Ok(out)
}

/// The program of a command line: what `dotnet` runs, or the file that runs.
fn program(command_line: &str) -> Option<&str> {
    let words = || command_line.split([' ', '"']).filter(|word| !word.is_empty());
    let is_program = |word: &&str| word.ends_with(".dll") || word.ends_with(".exe");
    words().take(8).find(is_program).or_else(|| words().next()).map(file_name)
}

/// The name of a file by the path that it had, maybe on another system: a name of Linux may have a backslash in it.
fn file_name(path: &str) -> &str {
    let is_of_windows = cfg!(windows) || path.starts_with(r"\\") || path.get(1..3) == Some(r":\");
    path.rsplit(|c| c == '/' || (is_of_windows && c == '\\')).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_what_is_no_separator_of_its_system() {
        let names = ["/tmp/b.nettrace", r"C:\a\b.nettrace", r"\\host\share\b.nettrace", "b.nettrace"].map(file_name);
        assert_eq!(names, ["b.nettrace"; 4]);
        assert_eq!(file_name(r"/tmp/a\b.nettrace"), if cfg!(windows) { "b.nettrace" } else { r"a\b.nettrace" });
    }
}
