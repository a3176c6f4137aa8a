//! How durations are spread: bars on an axis of powers of ten.

use std::fmt::Write;

use tracequet_analyze::present::escaped;
use tracequet_analyze::present::units::{count, duration};

/// Bars of a power of ten, and the smallest and the largest power: 1 µs to 1,000 s.
const BARS: usize = 6;
const FIRST: i32 = 3;
const LAST: i32 = 12;

/// The bar of a duration.
fn bar(ns: u64) -> usize {
    let place = ((ns.max(1) as f64).log10() - f64::from(FIRST)) * BARS as f64;
    (place.max(0.0) as usize).min((LAST - FIRST) as usize * BARS - 1)
}

/// A chart for each name: how many durations there are of which length. All have one axis, from the shortest to the longest.
pub(crate) fn histograms<'h>(of: impl Iterator<Item = (&'h str, &'h [u64])>) -> String {
    let of: Vec<_> = of.filter(|(_, durations)| !durations.is_empty()).collect();
    let bars = || {
        of.iter().flat_map(|(_, durations)| durations.first().into_iter().chain(durations.last())).map(|ns| bar(*ns))
    };
    let (Some(least), Some(most)) = (bars().min(), bars().max()) else { return String::new() };
    // Whole powers of ten, so that the axis begins and ends with a round time.
    let (first, last) = (least / BARS, most / BARS + 1);
    let places = (last - first) * BARS;
    let mut out = String::from("<h3>Durations by route, of the whole recording</h3>\n<div class=\"small\">\n");
    for (name, durations) in &of {
        let mut sums = vec![0u64; places];
        for ns in *durations {
            if let Some(sum) = sums.get_mut(bar(*ns).saturating_sub(first * BARS)) {
                *sum += 1;
            }
        }
        let highest = sums.iter().copied().max().unwrap_or(1).max(1);
        let words = format!("{} in the highest bar", count(highest));
        let label = escaped(&format!("{name}: {words}"));
        let mut path = String::new();
        for (place, sum) in sums.iter().enumerate().filter(|(_, sum)| **sum > 0) {
            // One request is seen, too.
            let height = (*sum as f64 / highest as f64 * 60.0).max(2.0);
            let width = 1000.0 / places as f64;
            write!(path, "M{:.2} 60v{:.2}h{:.2}v{height:.2}z", place as f64 * width, -height, width * 0.9).ok();
        }
        write!(
            out,
            "<figure class=\"lane\"><figcaption><b>{}</b> <span>{words}</span></figcaption><div class=\"plot fixed\">\
             <svg viewBox=\"0 0 1000 60\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{label}\"><path class=\"c0\" d=\"{path}\"/></svg>\
             </div><svg class=\"axis still\" aria-hidden=\"true\">",
            escaped(name)
        )
        .ok();
        for power in first..=last {
            let place = (power - first) as f64 * 100.0 / (last - first) as f64;
            let class = if power == first {
                "first"
            } else if power == last {
                "last"
            } else {
                ""
            };
            let ns = 10i64.pow(power as u32 + FIRST as u32);
            let label = duration(ns).replace(".00", "").replace(".0 ", " ");
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
        let html = histograms([("GET /<a>", [1_500_000, 2_000_000, 30_000_000].as_slice())].into_iter());
        assert!(
            html.contains("<b>GET /&lt;a&gt;</b>") && html.contains(">1 ms</text>") && html.contains(">100 ms</text>"),
            "{html}"
        );
        // The first two have one bar, which is twice as high as the other.
        assert!(html.matches('M').count() == 2 && html.contains("2 in the highest bar"), "{html}");
        assert!(html.contains("v-60.00h") && html.contains("v-30.00h"), "{html}");
        assert_eq!(histograms(std::iter::empty()), "");
    }
}
