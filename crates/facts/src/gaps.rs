//! Between which times events of a recording are known to be missing.

use tracequet_trace::map::Map;

/// Spans of one set, and processes with spans of their own, at most.
const MAX_SPANS: usize = 1 << 12;
const MAX_PROCESSES: usize = 1 << 12;

/// The gaps of a recording.
#[derive(Debug, Default)]
pub struct Gaps {
    /// Gaps in the events of any thread.
    of_any: Spans,
    /// Gaps in the events of one thread, by its OS process id.
    of_process: Map<u64, Spans>,
}

impl Gaps {
    /// Events of a thread of this process (`None`: of any thread) are missing between two times.
    pub fn add(&mut self, process_id: Option<u64>, since_ns: i64, until_ns: i64) {
        let room = self.of_process.len() < MAX_PROCESSES;
        let spans = match process_id {
            Some(id) if room || self.of_process.contains_key(&id) => self.of_process.entry(id).or_default(),
            _ => &mut self.of_any,
        };
        spans.add(since_ns.min(until_ns), until_ns.max(since_ns));
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.of_any.0.is_empty() && self.of_process.is_empty()
    }

    /// Whether events of any thread may be missing between two times.
    pub fn touch_any(&self, start_ns: i64, end_ns: i64) -> bool {
        self.of_any.touch(start_ns, end_ns)
    }

    /// Whether events of some thread of a process may be missing between two times.
    pub fn touch(&self, process_id: u64, start_ns: i64, end_ns: i64) -> bool {
        let of_process = self.of_process.get(&process_id);
        self.touch_any(start_ns, end_ns) || of_process.is_some_and(|spans| spans.touch(start_ns, end_ns))
    }
}

/// Spans of time that do not overlap, in order.
#[derive(Debug, Default)]
struct Spans(Vec<(i64, i64)>);

impl Spans {
    fn add(&mut self, since: i64, until: i64) {
        let from = self.0.partition_point(|span| span.1 < since);
        let to = self.0.partition_point(|span| span.0 <= until);
        let joined = self.0.get(from..to).unwrap_or_default().iter();
        let (since, until) = joined.fold((since, until), |all, span| (all.0.min(span.0), all.1.max(span.1)));
        self.0.splice(from..to.max(from), [(since, until)]);
        if self.0.len() > MAX_SPANS
            && let Some(first) = self.0.first().copied()
        {
            // The oldest ones matter least: rows near them have been written already.
            self.0.remove(0);
            if let Some(second) = self.0.first_mut() {
                second.0 = first.0;
            }
        }
    }

    fn touch(&self, start: i64, end: i64) -> bool {
        let next = self.0.partition_point(|span| span.1 <= start);
        self.0.get(next).is_some_and(|span| span.0 < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_meet_are_one() {
        let mut spans = Spans::default();
        for (since, until) in [(50, 60), (10, 20), (80, 90), (20, 30), (55, 85), (40, 40)] {
            spans.add(since, until);
        }
        assert_eq!(spans.0, [(10, 30), (40, 40), (50, 90)]);
        let touched = |pairs: &[(i64, i64)]| pairs.iter().map(|pair| spans.touch(pair.0, pair.1)).collect::<Vec<_>>();
        // Missing events lie behind the first time and before the second.
        assert_eq!(
            touched(&[(0, 10), (0, 11), (30, 40), (29, 31), (35, 45), (90, 99)]),
            [false, true, false, true, true, false]
        );
    }

    #[test]
    fn gaps_agree_with_a_search_through_all() {
        let mut seed = 1u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..200 {
            let (mut gaps, mut all) = (Gaps::default(), Vec::new());
            for _ in 0..random(20) {
                let (process, since) = (Some(random(3)).filter(|id| *id > 0), random(1000) as i64);
                let until = since + random(50) as i64;
                gaps.add(process, since, until);
                all.push((process, since, until));
            }
            for _ in 0..50 {
                let (id, start) = (1 + random(2), random(1000) as i64);
                let end = start + 1 + random(60) as i64;
                let is_in = |process: &Option<u64>| process.is_none_or(|process| process == id);
                let expected = all.iter().any(|(p, since, until)| is_in(p) && *since < end && *until > start);
                assert_eq!(gaps.touch(id, start, end), expected, "{all:?} {id} {start} {end}");
            }
        }
    }

    #[test]
    fn gaps_have_a_bound() {
        let mut gaps = Gaps::default();
        for at in 0..2 * MAX_SPANS as i64 {
            gaps.add(Some(at as u64), at, at);
            gaps.add(Some(1), at * 10, at * 10 + 1);
        }
        assert!(gaps.of_process.len() <= MAX_PROCESSES && gaps.of_process[&1].0.len() <= MAX_SPANS);
        assert!(gaps.touch(1, 5, 6), "older ones became one");
    }
}
