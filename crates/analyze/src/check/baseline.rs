//! Which runs are the baseline: the newest of those that can be compared.

use std::collections::{BTreeSet, HashSet};

use tracequet_dataset::error::Result;
use tracequet_dataset::read::Dataset;
use tracequet_trace::time::{format_utc, system_time_to_utc_ns};

use super::candidate::{Candidate, LabelTest, candidates, read};
use super::fingerprint::incomparable;
use super::run::Run;

/// Runs that lost something, or are not comparable, are left out of a baseline while this many others remain: fewer
/// show no difference to be significant.
pub const ENOUGH: usize = 4;

/// Runs that are read for each run that is wanted. When none of them is comparable, older ones are not read.
const LOOKED_AT: usize = 10;

/// Runs that are named one by one when they are left out.
const NAMED: usize = 3;

const DAY_NS: i64 = 86_400_000_000_000;

/// Since when runs belong to a baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Since {
    /// This many days before the newest run that is checked.
    Days(u32),
    /// A moment in UTC, as `2026-11-22` or a longer part of `2026-11-22T05:19:21.000Z`.
    Moment(String),
    /// The first recording with this label: name and value.
    Label(String, String),
}

/// Which runs of a baseline are taken. Without limits, all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    /// Only runs that began then or later.
    pub since: Option<Since>,
    /// Only this many, the newest; with `by`, the runs of this many values of that label.
    pub last: Option<usize>,
    /// The label whose runs belong together, such as `commit`.
    pub by: Option<String>,
}

impl Baseline {
    /// The recordings of a dataset with these labels that new runs are compared with, without the new runs, and what
    /// was left out, in sentences. With `Baseline::last` the newest recordings are read one after the other until there
    /// are enough.
    pub fn read(&self, dataset: &Dataset, wanted: &[LabelTest], new: &[Run]) -> Result<(Vec<Run>, Vec<String>)> {
        let keys: HashSet<&str> = new.iter().map(|run| run.trace_id.as_str()).collect();
        let mut all = candidates(dataset, wanted);
        all.retain(|one| !keys.contains(one.trace_id));
        self.chosen(all, new, |some| read(some, dataset))
    }

    /// Whether new runs are the first ones of a baseline: they have its labels, and no other recording of the dataset
    /// has them.
    pub fn is_begun_by(dataset: &Dataset, wanted: &[LabelTest], new: &[Run]) -> bool {
        let own: BTreeSet<&str> = new.iter().map(|run| run.trace_id.as_str()).collect();
        let all: BTreeSet<&str> = candidates(dataset, wanted).iter().map(|one| one.trace_id).collect();
        !own.is_empty() && own == all
    }

    fn chosen<'c>(
        &self,
        all: Vec<Candidate<'c>>,
        new: &[Run],
        read: impl Fn(&[Candidate<'c>]) -> Result<Vec<Run>>,
    ) -> Result<(Vec<Run>, Vec<String>)> {
        let mut all = self.since(all, new);
        if self.last.is_some() {
            all.sort_by(|a, b| (b.start, b.trace_id).cmp(&(a.start, a.trace_id)));
        }
        let mut notes = Vec::new();
        let good = all.iter().filter(|one| !one.has_losses).count();
        if good < all.len() && good >= ENOUGH {
            // Only of those that would have been taken.
            let most = self.last.map_or(usize::MAX, |last| last.saturating_mul(LOOKED_AT));
            let lost: Vec<&str> = all.iter().take(most).filter(|one| one.has_losses).map(|one| one.trace_id).collect();
            all.retain(|one| !one.has_losses);
            if !lost.is_empty() {
                notes.push(sentence("have losses or could not be read", &lost, None));
            }
        }
        let runs = self.read_newest(all, new, read)?;
        let is_good = |run: &Run| incomparable(new, std::slice::from_ref(run)).is_none();
        let good = runs.iter().filter(|run| is_good(run)).count();
        let runs = if good < runs.len() && good >= ENOUGH {
            let (kept, left_out): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(|run| is_good(run));
            let why = left_out.iter().find_map(|run| incomparable(new, std::slice::from_ref(run)));
            let keys: Vec<&str> = left_out.iter().map(|run| run.trace_id.as_str()).collect();
            notes.push(sentence("are not comparable with the new runs", &keys, why));
            kept
        } else {
            runs
        };
        Ok((self.last(runs), notes))
    }

    /// Reads the runs. With `last` it begins with the newest, and stops when there are enough comparable runs, or when
    /// `LOOKED_AT` runs were read for each that is wanted.
    fn read_newest<'c>(
        &self,
        all: Vec<Candidate<'c>>,
        new: &[Run],
        read: impl Fn(&[Candidate<'c>]) -> Result<Vec<Run>>,
    ) -> Result<Vec<Run>> {
        let Some(last) = self.last else { return read(&all) };
        let wanted = last.max(ENOUGH);
        let (mut runs, mut comparable, mut values, mut looked_at) =
            (Vec::new(), 0usize, BTreeSet::new(), BTreeSet::new());
        for one in &all {
            let value = self.by.as_ref().map(|label| one.label(label).unwrap_or_default());
            let is_enough = match value {
                // Older runs of a value that is taken belong to it.
                Some(value) => !values.contains(value) && values.len() >= last && comparable >= ENOUGH,
                None => comparable >= wanted,
            };
            let units = if value.is_some() { looked_at.len() } else { runs.len() };
            let is_too_old = units >= wanted.saturating_mul(LOOKED_AT) && value.is_none_or(|v| !looked_at.contains(v));
            match (is_enough || is_too_old, value) {
                (true, None) => break,
                (true, Some(_)) => continue,
                (false, _) => {}
            }
            looked_at.extend(value);
            for run in read(std::slice::from_ref(one))? {
                if incomparable(new, std::slice::from_ref(&run)).is_none() {
                    comparable += 1;
                    values.extend(value);
                }
                runs.push(run);
            }
        }
        Ok(runs)
    }

    fn since<'c>(&self, mut all: Vec<Candidate<'c>>, new: &[Run]) -> Vec<Candidate<'c>> {
        let newest = new.iter().map(|run| run.start.as_str()).max().unwrap_or_default();
        let since = match &self.since {
            Some(Since::Days(days)) => days_before(newest, *days),
            Some(Since::Moment(moment)) => Some(moment.clone()),
            Some(Since::Label(name, value)) => {
                let has_it = |one: &&Candidate<'_>| one.label(name) == Some(value) && !one.is_failed;
                let first = all.iter().filter(has_it).map(|one| one.start.to_owned()).min();
                if first.is_none() {
                    // Without its begin there is no baseline.
                    all.clear();
                }
                first
            }
            None => None,
        };
        // Of runs that could not be read nothing says when they were recorded.
        all.retain(|one| since.as_ref().is_none_or(|since| one.is_failed || one.start >= since.as_str()));
        all
    }

    fn last(&self, mut runs: Vec<Run>) -> Vec<Run> {
        let Some(last) = self.last else { return runs };
        runs.sort_by(|a, b| (&b.start, &b.trace_id).cmp(&(&a.start, &a.trace_id)));
        let mut values = BTreeSet::new();
        let mut taken = 0;
        runs.retain(|run| {
            match &self.by {
                // A value stays when it is among the newest, and further ones are not taken.
                Some(label) => {
                    let value = run.labels.get(label).cloned().unwrap_or_default();
                    values.contains(&value) || (values.len() < last && values.insert(value))
                }
                None => {
                    taken += 1;
                    taken <= last
                }
            }
        });
        runs
    }
}

/// `left_out` are keys.
fn sentence(what: &str, left_out: &[&str], why: Option<String>) -> String {
    let named: Vec<&str> = left_out.iter().take(NAMED).copied().collect();
    let more = left_out.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let why = why.map_or_else(String::new, |why| format!(" ({})", why.trim_start_matches("not comparable: ")));
    format!("runs of the baseline that {what} are left out: {}{more}{why}", named.join(", "))
}

/// The moment some days before another one.
fn days_before(moment: &str, days: u32) -> Option<String> {
    let mut numbers = moment.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u16>().unwrap_or_default());
    let mut next = || numbers.next().unwrap_or_default();
    let [year, month, day, hour, minute, second, ms] = std::array::from_fn(|_| next());
    let utc_ns = system_time_to_utc_ns([year, month, 0, day, hour, minute, second, ms])?;
    Some(format_utc(utc_ns.checked_sub(i64::from(days).checked_mul(DAY_NS)?)?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn run(key: &str, start: &str, commit: &str) -> Run {
        Run {
            trace_id: key.to_owned(),
            start: start.to_owned(),
            labels: BTreeMap::from([("commit".to_owned(), commit.to_owned())]),
            has_losses: false,
            is_failed: false,
            is_damaged: false,
            fingerprint: BTreeMap::from([("runtime version", "10.0.1".to_owned())]),
            metrics: Vec::new(),
        }
    }

    fn keys(runs: &[Run]) -> Vec<&str> {
        let mut keys: Vec<&str> = runs.iter().map(|run| run.trace_id.as_str()).collect();
        keys.sort_unstable();
        keys
    }

    impl Baseline {
        /// The baseline among runs that are in memory, as `read` gives it.
        fn of(&self, all: Vec<Run>, new: &[Run]) -> (Vec<Run>, Vec<String>) {
            let candidates: Vec<Candidate<'_>> = all.iter().map(Candidate::of).collect();
            let of = |one: &Candidate<'_>| all.iter().find(|run| run.trace_id == one.trace_id).cloned();
            let read = |some: &[Candidate<'_>]| Ok(some.iter().filter_map(of).collect());
            self.chosen(candidates, new, read).unwrap()
        }
    }

    /// Five commits of two runs each, a day apart.
    fn history() -> Vec<Run> {
        (1..=5)
            .flat_map(|day| {
                let one = move |n: u32| {
                    run(&format!("{day}{n}"), &format!("2026-03-0{day}T12:00:0{n}.000Z"), &format!("c{day}"))
                };
                [one(1), one(2)]
            })
            .collect()
    }

    #[test]
    fn the_newest_runs_or_commits_are_taken() {
        let new = [run("new", "2026-03-06T12:00:01.500Z", "c6")];
        let of = |wanted: Baseline| keys(&wanted.of(history(), &new).0).join(" ");
        assert_eq!(of(Baseline { last: Some(3), ..Baseline::default() }), "42 51 52");
        let by = Some("commit".to_owned());
        assert_eq!(of(Baseline { last: Some(2), by, ..Baseline::default() }), "41 42 51 52");
        // Two days before the newest run that is checked: 52 and later ones of the day before, 42 by half a second.
        assert_eq!(of(Baseline { since: Some(Since::Days(2)), ..Baseline::default() }), "42 51 52");
        let moment = Some(Since::Moment("2026-03-05".to_owned()));
        assert_eq!(of(Baseline { since: moment, ..Baseline::default() }), "51 52");
        let label = |value: &str| Some(Since::Label("commit".to_owned(), value.to_owned()));
        assert_eq!(of(Baseline { since: label("c4"), ..Baseline::default() }), "41 42 51 52");
        assert_eq!(of(Baseline { since: label("none"), ..Baseline::default() }), "", "nothing, and not all of history");
        assert_eq!(days_before("2026-03-01T00:00:00.000Z", 1).as_deref(), Some("2026-02-28T00:00:00.000Z"));
        assert_eq!((days_before("", 1), days_before("2026-13-01", 1)), (None, None));
    }

    #[test]
    fn runs_that_decide_nothing_are_left_out_while_enough_remain() {
        let new = [run("new", "2026-03-06", "c6")];
        let mut all = history();
        for run in all.iter_mut().take(4) {
            run.fingerprint.insert("runtime version", "10.0.0".to_owned());
        }
        all[9].has_losses = true;
        let (runs, notes) = Baseline::default().of(all.clone(), &new);
        assert_eq!(keys(&runs), ["31", "32", "41", "42", "51"]);
        assert_eq!(
            notes,
            [
                "runs of the baseline that have losses or could not be read are left out: 52",
                "runs of the baseline that are not comparable with the new runs are left out: 11, 12, 21 and 1 more (runtime version \
                 was 10.0.0, now 10.0.1)"
            ]
        );
        // Three others would not be enough: rules stay undecided, and say why.
        let few: Vec<Run> = all.into_iter().filter(|run| run.trace_id.as_str() < "41").skip(1).collect();
        let (runs, notes) = Baseline::default().of(few, &new);
        assert_eq!((runs.len(), notes.len()), (5, 0));
    }
}
