//! How durations are spread: bars on an axis of powers of ten.

use std::fmt::Write;

use tracequet_analyze::present::escaped;
use tracequet_analyze::present::units::{count, counted, duration};

use crate::selection::Nodes;

/// The bars of the first power of ten, by the shortest duration of each: steps of the sixth root of 10. Other powers have as many.
const LEAST: [u64; BARS] = [1000, 1468, 2154, 3162, 4642, 6813];
const BARS: usize = 6;

/// The smallest and the largest power: 1 µs to 1,000 s. What is beyond them is in the first and the last bar.
const FIRST: u32 = 3;
const LAST: u32 = 12;
const ALL: usize = (LAST - FIRST) as usize * BARS;

/// The bar of a duration.
pub(crate) fn bar(ns: u64) -> usize {
    let power = ns.max(LEAST[0]).ilog10() - FIRST;
    let of_first = ns / 10u64.pow(power);
    let below = LEAST.iter().skip(1).filter(|least| **least <= of_first).count();
    (power as usize * BARS + below).min(ALL - 1)
}

/// The bars as nodes of rows: each is itself.
pub(crate) fn nodes() -> Nodes {
    (0..ALL as u32).map(|bar| (bar, bar)).collect()
}

/// A chart for each line of the table of routes, by its name: how many durations there are of which length. All have one axis, from the
/// shortest to the longest. The script draws those of a selection, by the shortest duration of each bar.
pub(crate) fn histograms<'h>(of: impl Iterator<Item = (usize, &'h str, &'h [u64])>) -> String {
    let of: Vec<_> = of.filter(|(.., durations)| !durations.is_empty()).collect();
    let bars = || {
        of.iter().flat_map(|(.., durations)| durations.first().into_iter().chain(durations.last())).map(|ns| bar(*ns))
    };
    let (Some(least), Some(most)) = (bars().min(), bars().max()) else { return String::new() };
    // Whole powers of ten, so that the axis begins and ends with a round time.
    let (first, last) = (least / BARS, most / BARS + 1);
    let places = (last - first) * BARS;
    let least = (first..last).flat_map(|power| LEAST.map(|least| (least * 10u64.pow(power as u32)).to_string()));
    let mut out = format!(
        "<h3>Durations by route</h3>\n<div class=\"small durations\" data-first=\"{}\" data-least=\"{}\">\n",
        first * BARS,
        least.collect::<Vec<_>>().join(" "),
    );
    for (line, name, durations) in &of {
        let mut sums = vec![0u64; places];
        for ns in *durations {
            if let Some(sum) = sums.get_mut(bar(*ns).saturating_sub(first * BARS)) {
                *sum += 1;
            }
        }
        let highest = sums.iter().copied().max().unwrap_or(1).max(1);
        let all = counted(durations.len() as u64, "request", "requests");
        let words = format!("{all}, {} in the highest bar", count(highest));
        let label = escaped(&format!("{name}: {words}"));
        let mut path = String::new();
        for (place, sum) in sums.iter().enumerate().filter(|(_, sum)| **sum > 0) {
            // One request is seen, too.
            let height = (*sum as f64 / highest as f64 * 60.0).max(2.0);
            let width = 1000.0 / places as f64;
            write!(path, "M{:.2} 60v{:.2}h{:.2}v{height:.2}z", place as f64 * width, -height, width * 0.9).ok();
        }
        out += &format!(
            "<figure class=\"lane\" data-line=\"{line}\"><figcaption><b>{}</b> <span>{words}</span></figcaption><div class=\"plot fixed\">\
             <svg viewBox=\"0 0 1000 60\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{label}\"><path class=\"c0\" d=\"{path}\"/></svg>\
             </div><svg class=\"axis still\" aria-hidden=\"true\">",
            escaped(name)
        );
        for power in first..=last {
            let place = (power - first) as f64 * 100.0 / (last - first) as f64;
            let class = if power == first {
                "first"
            } else if power == last {
                "last"
            } else {
                ""
            };
            let ns = 10i64.pow(power as u32 + FIRST);
            // A long axis has room for every second one.
            let is_left_out = last - first > 5 && (power - first) % 2 == 1;
            let label = if is_left_out { String::new() } else { duration(ns).replace(".00", "").replace(".0 ", " ") };
            write!(out, "<line x1=\"{place:.2}%\" x2=\"{place:.2}%\" y2=\"4\"/><text x=\"{place:.2}%\" y=\"18\" class=\"{class}\">{label}</text>").ok();
        }
        out.push_str("</svg></figure>\n");
    }
    out.push_str("</div>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_one_length_share_a_bar() {
        assert_eq!([0, 999, 1000, 9_999_999, 10_000_000, u64::MAX].map(bar), [0, 0, 0, 23, 24, 53]);
        // A bar begins with its shortest duration.
        assert_eq!([1467, 1468, 6813, 146_799_999, 146_800_000].map(bar), [0, 1, 5, 30, 31]);
        assert_eq!(LEAST.map(|least| bar(least * 1000)), [18, 19, 20, 21, 22, 23]);
        let html = histograms([(3, "GET /<a>", [1_500_000, 2_000_000, 30_000_000].as_slice())].into_iter());
        assert!(
            html.contains("data-line=\"3\"><figcaption><b>GET /&lt;a&gt;</b>")
                && html.contains(">1 ms</text>")
                && html.contains(">100 ms</text>"),
            "{html}"
        );
        assert!(
            html.contains("data-first=\"18\" data-least=\"1000000 1468000 2154000 ") && html.contains(" 68130000\">")
        );
        // The first two have one bar, which is twice as high as the other.
        assert!(html.matches('M').count() == 2 && html.contains("2 in the highest bar"), "{html}");
        assert!(html.contains("v-60.00h") && html.contains("v-30.00h"), "{html}");
        assert_eq!(histograms(std::iter::empty()), "");
    }
}
