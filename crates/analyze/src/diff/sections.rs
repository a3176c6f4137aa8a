//! The rows of a subject on both sides, those that changed most first.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::measure::{Measured, Subjects};
use super::metrics::LEAST_NS_PER_SECOND;
use super::place::Place;
use super::sums::{Absent, Subject};
use crate::profile::Unit;
use crate::samples::{CHANCE, can_tell, chance, median};

tracequet_trace::worded! {
    /// The divisor of amounts before they are compared.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Per {
        /// The requests that came in.
        Request = "request",
        /// The seconds of the recording.
        Second = "second",
        /// Nothing: a recording as it is.
        Recording = "recording",
    }
    /// The word of JSON.
    pub fn word;
}

impl Per {
    /// The number that amounts of a recording are divided by; `None` where it is not known.
    pub fn of(self, measured: &Measured) -> Option<f64> {
        match self {
            Per::Request => measured.requests,
            Per::Second => measured.seconds,
            Per::Recording => Some(1.0),
        }
    }
}

/// With fewer requests nothing is divided by them unasked: one more or less would change everything.
const LEAST_REQUESTS: f64 = 20.0;

/// The divisor of amounts unless the options give one.
pub(super) fn usual(base: &[Measured], new: &[Measured]) -> Per {
    let all = |is: fn(&Measured) -> bool| base.iter().chain(new).all(is);
    if all(|measured| measured.requests.is_some_and(|requests| requests >= LEAST_REQUESTS)) {
        Per::Request
    } else if all(|measured| measured.seconds.is_some()) {
        Per::Second
    } else {
        Per::Recording
    }
}

/// Medians over the recordings of a side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// Rows, or samples.
    pub count: f64,
    /// In the unit of the section.
    pub amount: f64,
    /// The part of all there is of the subject.
    pub share: Option<f64>,
    /// The amount by the seconds of its recording.
    pub per_second: Option<f64>,
    /// The amount by the requests of its recording; `None` when not all have requests.
    pub per_request: Option<f64>,
}

impl Value {
    /// The amount that is compared.
    pub fn per(&self, per: Per) -> Option<f64> {
        match per {
            Per::Request => self.per_request,
            Per::Second => self.per_second,
            Per::Recording => Some(self.amount),
        }
    }
}

/// The amount of a subject on one side.
#[derive(Clone, Debug)]
pub struct Side {
    /// Recordings that have it. The others are left out.
    pub recordings: usize,
    /// Why none has it.
    pub absent: Option<Absent>,
    /// All there is; `None` when no recording has it.
    pub total: Option<Value>,
}

/// A method on both sides.
#[derive(Clone, Debug)]
pub struct Row {
    /// The place that the row is about.
    pub place: Place,
    /// Other methods, separated by `, `, whose code most of it may be: the compiler put them into the own method.
    pub may_belong_to: Option<Arc<str>>,
    /// On the side of the base; `None` when the base did not record the subject.
    pub base: Option<Value>,
    /// On the new side.
    pub new: Option<Value>,
    /// The new amount less that of the base, divided as the difference says; `None` when a side did not record it.
    pub change: Option<f64>,
    /// Probability of such a change by chance; `None` when there are too few recordings for a test.
    pub chance: Option<f64>,
    /// Whether it is too small to count, or chance may have made it.
    pub is_noise: bool,
}

/// A subject on both sides.
#[derive(Clone, Debug)]
pub struct Section {
    /// The subject that was compared.
    pub subject: Subject,
    /// Unit of amounts.
    pub unit: Unit,
    /// The base.
    pub base: Side,
    /// The new side.
    pub new: Side,
    /// The rows: those beyond noise first, and of these the largest change. Where a side did not record the subject,
    /// the largest.
    pub rows: Vec<Row>,
}

/// Recordings that have the subject, and the reason of those that have not.
struct Known<'m> {
    recordings: Vec<(&'m Measured, &'m Subjects)>,
    absent: Option<Absent>,
    /// Whether there is something to divide by in each.
    per: Per,
    unit: Unit,
}

impl<'m> Known<'m> {
    fn of(subject: Subject, all: &'m [Measured], per: Per) -> Known<'m> {
        let mut found = Known { recordings: Vec::new(), absent: None, per, unit: Unit::Count };
        for measured in all {
            match measured.of(subject) {
                Ok(subjects) => found.recordings.push((measured, subjects)),
                Err(absent) => found.absent = found.absent.or(Some(absent)),
            }
        }
        if !found.recordings.is_empty() {
            found.absent = None;
        }
        found
    }

    /// Amounts of rows without time are counts: with one such recording all are compared so.
    fn is_counted(&self) -> bool {
        self.recordings.iter().any(|(_, subjects)| subjects.unit == Unit::Count && !subjects.places.is_empty())
    }

    fn unit(&self) -> Option<Unit> {
        self.recordings.iter().map(|(_, subjects)| subjects.unit).next()
    }

    /// The sum of a place, or of all, in each recording, as count and amount.
    fn sums(&self, place: Option<&Place>) -> impl Iterator<Item = (&'m Measured, f64, f64, f64)> {
        let is_counted = self.unit == Unit::Count;
        self.recordings.iter().map(move |(measured, subjects)| {
            let sum = match place {
                Some(place) => subjects.places.get(place).copied().unwrap_or_default(),
                None => subjects.all,
            };
            let amount = |sum: super::Sum| if is_counted { sum.count } else { sum.amount } as f64;
            (*measured, sum.count as f64, amount(sum), amount(subjects.all))
        })
    }

    fn value(&self, place: Option<&Place>) -> Option<Value> {
        let of = |take: &dyn Fn(&Measured, f64, f64, f64) -> Option<f64>| {
            let all: Option<Vec<f64>> =
                self.sums(place).map(|(m, count, amount, all)| take(m, count, amount, all)).collect();
            all.and_then(|all| median(&all))
        };
        Some(Value {
            count: of(&|_, count, _, _| Some(count))?,
            amount: of(&|_, _, amount, _| Some(amount))?,
            share: of(&|_, _, amount, all| (all > 0.0).then(|| amount / all)),
            per_second: of(&|measured, _, amount, _| Some(amount / measured.seconds?)),
            per_request: of(&|measured, _, amount, _| Some(amount / measured.requests?)),
        })
    }

    /// The amount that is compared, in each recording.
    fn compared(&self, place: &Place) -> Vec<f64> {
        let each = self.sums(Some(place));
        each.filter_map(|(measured, _, amount, _)| Some(amount / self.per.of(measured)?)).collect()
    }

    /// Rows of a place in all recordings, and what they are divided by.
    fn counted(&self, place: &Place) -> Option<(f64, f64)> {
        let mut all = (0.0, 0.0);
        for (measured, count, ..) in self.sums(Some(place)) {
            all = (all.0 + count, all.1 + self.per.of(measured)?);
        }
        Some(all)
    }

    fn side(&self) -> Side {
        Side { recordings: self.recordings.len(), absent: self.absent, total: self.value(None) }
    }
}

/// Deviations that counts differ by before the difference is one: each section has many rows, and one of 400 differs so
/// by chance.
const DEVIATIONS: f64 = 3.0;

/// Changes of a smaller part of all there is, on the side that has more, are of no account: where a test says what
/// chance makes, and where there are too few recordings for one.
const LEAST_PART: f64 = 0.001;
const LEAST_PART_UNTESTED: f64 = 0.01;

/// Whether two counts may be those of the same rate: samples and the like are as far from it as the root of their
/// number.
fn may_be_same(base: (f64, f64), new: (f64, f64)) -> bool {
    let rate = |(count, by): (f64, f64)| count / by;
    let variance = |(count, by): (f64, f64)| count / (by * by);
    (rate(new) - rate(base)).abs() <= DEVIATIONS * (variance(base) + variance(new)).sqrt()
}

/// The rows of a subject.
pub(super) fn section(subject: Subject, base: &[Measured], new: &[Measured], per: Per, noise: f64) -> Section {
    let (mut base, mut new) = (Known::of(subject, base, per), Known::of(subject, new, per));
    let unit = match base.is_counted() || new.is_counted() {
        true => Unit::Count,
        false => new.unit().or(base.unit()).unwrap_or_default(),
    };
    (base.unit, new.unit) = (unit, unit);
    let places: BTreeSet<&Place> =
        base.recordings.iter().chain(&new.recordings).flat_map(|(_, subjects)| subjects.places.keys()).collect();
    let mut rows: Vec<Row> = places.into_iter().map(|place| row(subject, place, &base, &new, noise)).collect();
    let size = |row: &Row| {
        let largest = || row.new.or(row.base).and_then(|value| value.per(per)).unwrap_or_default();
        row.change.map_or_else(largest, f64::abs)
    };
    // Places are in order: rows of the same size stay in it.
    rows.sort_by(|a, b| a.is_noise.cmp(&b.is_noise).then_with(|| size(b).total_cmp(&size(a))));
    Section { subject, unit, base: base.side(), new: new.side(), rows }
}

fn row(subject: Subject, place: &Place, base: &Known<'_>, new: &Known<'_>, noise: f64) -> Row {
    let (of_base, of_new) = (base.value(Some(place)), new.value(Some(place)));
    let mut known = new.recordings.iter().chain(&base.recordings).map(|(_, subjects)| subjects);
    let mut row = Row {
        place: place.clone(),
        may_belong_to: known.find_map(|subjects| subjects.others.get(place).cloned()),
        base: of_base,
        new: of_new,
        change: None,
        chance: None,
        is_noise: false,
    };
    let (theirs, own) = (base.compared(place), new.compared(place));
    let (Some(before), Some(now)) = (median(&theirs), median(&own)) else { return row };
    let change = now - before;
    row.change = Some(change);
    row.chance = chance(&own, &theirs);
    let by_chance = match row.chance {
        Some(chance) => chance > CHANCE,
        None if subject.is_counted() => {
            base.counted(place).zip(new.counted(place)).is_some_and(|(base, new)| may_be_same(base, new))
        }
        None => false,
    };
    let total = |side: &Known<'_>| side.value(None).and_then(|value| value.per(side.per)).unwrap_or_default();
    let is_tested = can_tell(own.len(), theirs.len());
    let least_part = if is_tested { LEAST_PART } else { LEAST_PART_UNTESTED };
    let is_small = change.abs() <= (noise * before.abs()).max(least_part * total(base).max(total(new)));
    let per_second = |value: Option<Value>| value.and_then(|value| value.per_second);
    let is_short = !is_tested
        && base.unit == Unit::Nanoseconds
        && per_second(of_base)
            .zip(per_second(of_new))
            .is_some_and(|(base, new)| (new - base).abs() < LEAST_NS_PER_SECOND);
    row.is_noise = is_small || is_short || by_chance;
    row
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::check::Run;
    use crate::diff::Sum;

    #[test]
    fn counts_differ_when_chance_does_not_make_it() {
        // 100 and 130 samples of ten seconds each: two deviations. 100 and 150: more than three.
        assert!(may_be_same((100.0, 10.0), (130.0, 10.0)));
        assert!(!may_be_same((100.0, 10.0), (150.0, 10.0)));
        // Twice as many in twice the time.
        assert!(may_be_same((100.0, 10.0), (200.0, 20.0)));
        assert!(may_be_same((0.0, 10.0), (8.0, 10.0)) && !may_be_same((0.0, 10.0), (10.0, 10.0)));
    }

    /// A recording with this length, number of requests, and number of allocations of 10 bytes by a method.
    fn measured(seconds: f64, requests: Option<f64>, allocations: Option<u64>) -> Measured {
        let run = Run {
            trace_id: "app".into(),
            start: String::new(),
            labels: BTreeMap::new(),
            has_losses: false,
            is_failed: false,
            is_damaged: false,
            fingerprint: BTreeMap::new(),
            metrics: Vec::new(),
        };
        let place = Place { own_method: Some("Shop.Load".into()), has_stack: true, ..Place::default() };
        let found = match allocations {
            Some(count) => {
                let all = Sum { count, amount: count * 10 };
                Ok(Subjects {
                    unit: Unit::Bytes,
                    places: [(place, all)].into_iter().collect(),
                    others: Default::default(),
                    all,
                })
            }
            None => Err(Absent::Table("allocation")),
        };
        let subjects = vec![(Subject::Allocation, found)];
        Measured { run, seconds: Some(seconds), requests, findings: Vec::new(), subjects }
    }

    fn allocations(base: &[Measured], new: &[Measured]) -> (Per, Section) {
        let per = usual(base, new);
        (per, section(Subject::Allocation, base, new, per, 0.05))
    }

    #[test]
    fn amounts_are_divided_by_requests_where_all_have_them() {
        let base = [measured(10.0, Some(100.0), Some(1000))];
        // Twice the load in the same time is no change of a request.
        let (per, section) = allocations(&base, &[measured(10.0, Some(200.0), Some(2000))]);
        let row = section.rows.first().unwrap();
        assert_eq!((per, row.change, row.is_noise), (Per::Request, Some(0.0), true));
        let (per, section) = allocations(&base, &[measured(10.0, None, Some(2000))]);
        let row = section.rows.first().unwrap();
        assert_eq!((per, row.change, row.is_noise), (Per::Second, Some(1000.0), false));
        let new = row.new.unwrap();
        assert_eq!((new.amount, new.per_second, new.per_request, new.share), (20000.0, Some(2000.0), None, Some(1.0)));
        // One request more or less would change everything.
        let (per, _) = allocations(&base, &[measured(10.0, Some(19.0), Some(2000))]);
        assert_eq!(per, Per::Second);
    }

    #[test]
    fn recordings_without_the_events_are_left_out() {
        let base = [measured(10.0, None, Some(1000)), measured(10.0, None, None)];
        let (_, section) = allocations(&base, &[measured(10.0, None, Some(500))]);
        let row = section.rows.first().unwrap();
        assert_eq!((section.base.recordings, section.base.absent, row.change), (1, None, Some(-500.0)));
        let (_, section) = allocations(&[measured(10.0, None, None)], &base);
        let row = section.rows.first().unwrap();
        assert_eq!(section.base.absent, Some(Absent::Table("allocation")));
        assert!(row.change.is_none() && row.base.is_none() && !row.is_noise);
    }

    #[test]
    fn with_four_on_each_side_a_test_decides() {
        let side = |counts: [u64; 4]| counts.map(|count| measured(10.0, None, Some(count)));
        let (_, same) = allocations(&side([10, 90, 20, 80]), &side([60, 120, 30, 70]));
        let row = same.rows.first().unwrap();
        assert!(row.is_noise && row.chance.unwrap() > CHANCE, "{row:?}");
        let (_, other) = allocations(&side([10, 11, 12, 13]), &side([20, 21, 22, 23]));
        let row = other.rows.first().unwrap();
        assert!(!row.is_noise && (row.chance.unwrap() - 2.0 / 70.0).abs() < 1e-9, "{row:?}");
    }
}
