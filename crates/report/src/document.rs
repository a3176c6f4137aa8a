//! The document that parts stand in: its policy, its navigation, its style and its script.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use std::fmt::Write;
use tracequet_analyze::present::units::{count, counted};
use tracequet_analyze::present::{escaped, escaped_name, escaped_sentence};

use sha2::{Digest, Sha256};

/// Beside its colour an area of a chart has lines of its own: by the class of the colour, a square of 6 units.
const ETCHES: [(&str, &str); 6] = [
    ("g1", "M-1 1L1 -1M-1 7L7 -1M5 7L7 5"),
    ("g2", "M0 3H6"),
    ("lo", "M-1 5L1 7M-1 -1L7 7M5 -1L7 1"),
    ("ot", "M2 3h1.6"),
    ("bg", "M3 0V6"),
    ("po", "M-1 -1L7 7M-1 7L7 -1"),
];

/// The patterns that the style refers to.
fn patterns() -> String {
    let mut out = String::from("<svg class=\"patterns\" width=\"0\" height=\"0\" aria-hidden=\"true\">");
    for (class, lines) in ETCHES {
        out += &format!(
            "<pattern id=\"etch-{class}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><rect class=\"{class}\" width=\"6\" height=\"6\"/>\
             <path class=\"etch\" d=\"{lines}\"/></pattern>"
        );
    }
    out.push_str("</svg>\n");
    out
}

/// The style and the script of the page, as they stand in the repository.
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = concat!(
    include_str!("page/base.js"),
    include_str!("page/selection.js"),
    include_str!("page/rows.js"),
    include_str!("page/tables.js"),
    include_str!("page/timeline.js"),
    include_str!("page/canvas.js"),
    include_str!("page/flame.js"),
    include_str!("page/lanes.js"),
    include_str!("page/heap.js"),
    include_str!("page/findings.js"),
    include_str!("page/start.js"),
);

/// A part of the page with its heading. The navigation leads to it.
pub(crate) struct Part {
    pub id: &'static str,
    pub title: &'static str,
    pub html: String,
    /// Data of its graphs for the script.
    pub data: String,
}

impl Part {
    fn len(&self) -> usize {
        self.html.len() + self.data.len()
    }
}

/// Bytes of a page with all of its parts.
const MAX_PAGE: usize = 5_000_000;

/// A note as HTML.
pub(crate) fn note(text: &str) -> String {
    format!("<p class=\"note\">{}</p>\n", escaped_sentence(text))
}

/// A note on the rows of a table: how many of them it has, and how these were chosen.
pub(crate) fn rows_note(shown: usize, of: usize, [one, many]: [&str; 2], by: &str) -> String {
    if shown < of {
        format!("The {shown} of {} {many} with {by}.", count(of as u64))
    } else {
        format!("All of them: {}.", counted(of as u64, one, many))
    }
}

/// The note in place of a part for which there is no room.
const NO_ROOM: &str = "<p class=\"note\">Left out: with it the page would have more than 5 MB. <code>tracequet convert</code> writes it as tables.</p>\n";

/// Empties the largest parts until all together have room. What parts are made of is bounded, so that only a recording
/// that was made for it has so much.
fn fitted(mut parts: Vec<Part>, room: usize) -> Vec<Part> {
    while parts.iter().map(Part::len).sum::<usize>() > room {
        match parts.iter_mut().max_by_key(|part| part.len()) {
            Some(largest) if largest.html != NO_ROOM => {
                (largest.html, largest.data) = (NO_ROOM.to_owned(), String::new())
            }
            _ => break,
        }
    }
    parts
}

/// The parts of a page, and those of which nothing is recorded.
#[derive(Default)]
pub(crate) struct Parts {
    pub parts: Vec<Part>,
    missing: Vec<(&'static str, String)>,
}

impl Parts {
    /// Adds a part.
    pub(crate) fn add(&mut self, id: &'static str, title: &'static str, html: String) {
        self.parts.push(Part { id, title, html, data: String::new() });
    }

    /// Adds the data of a part, if there is one.
    pub(crate) fn add_data(&mut self, id: &str, data: &str) {
        if let Some(part) = self.parts.iter_mut().find(|part| part.id == id) {
            part.data.push_str(data);
        }
    }

    /// Adds a part, or the line that says how to record it.
    pub(crate) fn add_or(
        &mut self,
        id: &'static str,
        title: &'static str,
        html: Option<String>,
        missing: impl Into<String>,
    ) {
        match html {
            Some(html) => self.add(id, title, html),
            None => self.missing.push((id, missing.into())),
        }
    }

    /// Adds a part with a line for each thing that is not recorded.
    pub(crate) fn add_missing(&mut self) {
        if self.missing.is_empty() {
            return;
        }
        let mut html = String::new();
        for (id, words) in &self.missing {
            writeln!(html, "<p class=\"none\" id=\"{id}\">{words}</p>").ok();
        }
        self.missing.clear();
        self.add("missing", "Not recorded", html);
    }

    /// Orders the parts by what the recording is about: figures, the timeline, requests and threads, then the parts that findings lead to, then the
    /// others as they are.
    pub(crate) fn in_order(&mut self, led_to: &[&str]) {
        let first = ["figures", "timeline", "requests", "threads"];
        let rank = |part: &Part| {
            let place = first.iter().chain(led_to).position(|id| *id == part.id);
            // Parts on the recording itself come last: modules, losses, and how to record more.
            place.unwrap_or(if matches!(part.id, "modules" | "losses" | "missing") {
                usize::MAX
            } else {
                usize::MAX - 1
            })
        };
        self.parts.sort_by_key(rank);
    }

    /// Whether a link can lead there.
    pub(crate) fn has(&self, id: &str) -> bool {
        let element = format!("id=\"{id}\"");
        self.parts.iter().any(|part| part.id == id || part.html.contains(&element))
    }
}

/// Units that stand behind a value.
const UNITS: [&str; 13] = ["%", "B", "kB", "MB", "GB", "TB", "PB", "ns", "µs", "ms", "s", "min", "h"];

/// HTML in whose texts no line ends between a value and its unit, or between `<` and a value.
fn unbroken(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let (mut before, mut is_tag) = ("", false);
    for word in html.split_inclusive(' ') {
        let unit = word.split(|c: char| c != '%' && !c.is_alphanumeric()).next().unwrap_or_default();
        let is_unit = before.ends_with(|c: char| c.is_ascii_digit()) && UNITS.contains(&unit);
        let is_value = matches!(before, "&lt;" | "&gt;") && word.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        if !is_tag && (is_unit || is_value) {
            out.pop();
            out.push('\u{a0}');
        }
        out.push_str(word);
        before = word.trim_end_matches(' ');
        is_tag = word.chars().rfind(|c| matches!(c, '<' | '>')).map_or(is_tag, |last| last == '<');
    }
    out
}

/// The whole document. Its policy lets only this style and this script be used, and nothing be fetched.
pub(crate) fn document(title: &str, head: &str, parts: Vec<Part>) -> String {
    // Beside the parts there are their headings, the links to them, and the last line.
    let around = 20_000 + STYLE.len() + SCRIPT.len() + head.len();
    let parts = fitted(parts, MAX_PAGE.saturating_sub(around));
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text.as_bytes()));
    let mut out = String::new();
    let name = escaped(title);
    out += &format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-{}'; \
         style-src 'sha256-{}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<title>{name}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
        hash(SCRIPT),
        hash(STYLE),
    );
    out.push_str(&patterns());
    let heading = escaped_name(title);
    writeln!(out, "<header>\n<h1>{heading}</h1>\n{}</header>\n<nav aria-label=\"Parts\"><ul>", unbroken(head)).ok();
    for part in &parts {
        writeln!(out, "<li><a href=\"#{}\">{}</a></li>", part.id, part.title).ok();
    }
    out.push_str("</ul></nav>\n<main>\n");
    for Part { id, title, html, .. } in &parts {
        writeln!(out, "<section id=\"{id}\">\n<h2>{title}</h2>\n{}</section>", unbroken(html)).ok();
    }
    let data: String = parts.iter().map(|part| part.data.as_str()).collect();
    out += &format!(
        "</main>\n<footer>Made by tracequet {}. The page holds all of its data and asks for nothing.</footer>\n{data}<script>{SCRIPT}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_ends_between_a_value_and_its_unit() {
        let html = " <p title=\"1 s\">29.4 % (1.38 MB, 2 min 5 s) of 8 stops in &lt; 0.01 %, 5 B/s; gen 2 MB2 </p> <path d=\"M0 4 h 5\"/>7 ms";
        let wanted = html.replace("29.4 ", "29.4~").replace("38 M", "38~M").replace("2 min 5 ", "2~min 5~");
        let wanted = wanted.replace("&lt; 0.01 ", "&lt;~0.01~").replace("5 B", "5~B").replace("7 ", "7~");
        assert_eq!(unbroken(html), wanted.replace('~', "\u{a0}"));
    }

    #[test]
    fn a_page_has_5_mb_at_most() {
        let mut parts = Parts::default();
        for (id, megabytes) in [("a", 1), ("b", 3), ("c", 2)] {
            parts.add(id, id, "x".repeat(megabytes * 1_000_000));
        }
        parts.add_data("b", &"y".repeat(1_000_000));
        let page = document("page", "", parts.parts);
        let no_room = unbroken(NO_ROOM);
        assert!((3_000_000..=MAX_PAGE).contains(&page.len()), "{} bytes", page.len());
        assert!(page.contains(&format!("<section id=\"b\">\n<h2>b</h2>\n{no_room}</section>")) && !page.contains("yy"));
        assert_eq!(page.matches(&no_room).count(), 1, "no more than is needed");
    }
}
