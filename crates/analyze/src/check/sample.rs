//! The values of a figure that rules compare: one of each run, or one of all runs that belong together.

use std::collections::BTreeMap;

use super::run::Run;
use crate::rules::Compare;
use crate::samples::{least_chance, median, tails};

/// Of rules that compare runs of the same program, at most this part fails.
pub const FALSE_ALARMS: f64 = 0.02;

/// The values of a figure in runs. Runs with one value of a label belong together, and count as one: their median.
/// Without a label each run belongs to itself.
#[derive(Debug, PartialEq)]
pub(super) struct Sample {
    groups: Vec<Vec<f64>>,
}

impl Sample {
    /// Of runs with their values, by the label `by`.
    pub(super) fn of(values: &[(&Run, f64)], by: Option<&str>) -> Sample {
        let Some(label) = by else { return Sample { groups: values.iter().map(|(_, value)| vec![*value]).collect() } };
        let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (run, value) in values {
            groups.entry(run.labels.get(label).map_or("", String::as_str)).or_default().push(*value);
        }
        Sample { groups: groups.into_values().collect() }
    }

    /// The number of runs.
    pub(super) fn runs(&self) -> usize {
        self.groups.iter().map(Vec::len).sum()
    }

    /// A value of each run, or of all that belong together.
    pub(super) fn values(&self) -> Vec<f64> {
        self.groups.iter().filter_map(|values| median(values)).collect()
    }

    /// The median of `values`.
    pub(super) fn median(&self) -> Option<f64> {
        median(&self.values())
    }

    /// Runs, of each group as many as the smallest one has, so that none weighs more than another.
    fn same_from_each(&self) -> Vec<f64> {
        let least = self.groups.iter().map(Vec::len).min().unwrap_or_default();
        self.groups.iter().flat_map(|values| values.iter().take(least).copied()).collect()
    }
}

/// The values that a significance test takes.
pub(super) struct SignificanceTest {
    pub(super) own: Vec<f64>,
    pub(super) theirs: Vec<f64>,
    /// The unit of the values.
    pub(super) unit: String,
    /// The note behind a difference that it finds.
    pub(super) note: String,
}

impl SignificanceTest {
    /// The values of two samples by the label `by`; where these are too few for any significant difference, their runs.
    pub(super) fn of((own, theirs): (&Sample, &Sample), by: Option<&str>) -> SignificanceTest {
        let unit = by.map_or_else(|| "runs".to_owned(), |label| format!("values of {label}"));
        let test = SignificanceTest { own: own.values(), theirs: theirs.values(), unit, note: String::new() };
        if by.is_none() || test.can_find() {
            return test;
        }
        let note = format!(
            "; {} and {} {} are too few to compare, and runs of one value are more alike than others",
            test.own.len(),
            test.theirs.len(),
            test.unit
        );
        let (own, theirs) = (own.same_from_each(), theirs.same_from_each());
        let of_runs = SignificanceTest { own, theirs, unit: "runs".to_owned(), note };
        if of_runs.can_find() { of_runs } else { test }
    }

    /// Whether any difference would be significant.
    fn can_find(&self) -> bool {
        least_chance(self.own.len(), self.theirs.len()) <= 2.0 * FALSE_ALARMS
    }

    /// The probability that chance makes such a difference in the direction that a rule forbids. `None` for too few
    /// values.
    pub(super) fn chance(&self, compare: Compare) -> Option<f64> {
        let [below, above] = tails(&self.own, &self.theirs).filter(|_| self.can_find())?;
        Some(match compare {
            Compare::AtMost | Compare::Below => above,
            Compare::AtLeast | Compare::Above => below,
            Compare::Equal => (2.0 * below.min(above)).min(1.0),
        })
    }
}
