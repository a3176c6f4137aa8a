//! Steps that were planted, and noise without any.

use super::{BTreeMap, Run, recorded, run};
use crate::check::history::{best_cut, cuts, steps};
use crate::samples::mann_whitney;
use crate::tests::dice::Dice;

/// A run for each value, one a second.
fn history(name: &str, values: &[f64]) -> Vec<Run> {
    let run = |(place, value): (usize, &f64)| Run {
        start: format!("2026-11-27T10:00:{place:04}"),
        labels: BTreeMap::from([("commit".to_owned(), format!("c{}", place / 3))]),
        ..run(&format!("run-{place}"), &[(name, *value)])
    };
    values.iter().enumerate().map(run).collect()
}

/// Sums of twelve dice lie around 0 as measurements do, with a standard deviation of 1.
fn noise(dice: &mut Dice) -> f64 {
    (0..12).map(|_| dice.below(1 << 20) as f64 / f64::from(1 << 20)).sum::<f64>() - 6.0
}

#[test]
fn steps_are_found_where_they_were_planted() {
    let mut dice = Dice(11);
    for case in 0..200 {
        // 20 to 60 runs, another level of six standard deviations or more, and back.
        let lengths = [0; 3].map(|_| 20 + dice.below(40) as usize);
        let levels = [100.0, 106.0 + case as f64 / 10.0, 100.0];
        let mut values = Vec::new();
        for (length, level) in lengths.into_iter().zip(levels) {
            values.extend((0..length).map(|_| level + noise(&mut dice)));
        }
        let runs = history("gc.pause.max", &values);
        let mut found = steps(&runs, None).unwrap().steps;
        found.reverse();
        let places: Vec<String> = found.iter().map(|step| step.at.clone()).collect();
        let planted = [lengths[0], lengths[0] + lengths[1]].map(|place| format!("run-{place}"));
        assert_eq!(places, planted, "case {case}");
        assert_eq!(found.iter().map(|step| step.toward).collect::<Vec<_>>(), ["worse", "better"]);
        assert_eq!(found[0].runs, [lengths[0], lengths[1]]);
        assert!((found[0].before - 100.0).abs() < 1.0 && (found[0].after - levels[1]).abs() < 1.0);
    }
}

/// The error that is stated: of 1,500 series without a step, one or two may have one.
#[test]
fn noise_has_no_steps() {
    let mut dice = Dice(12);
    let mut false_steps = 0;
    for length in [8, 15, 30, 60, 120].repeat(300) {
        let values: Vec<f64> = (0..length).map(|_| noise(&mut dice)).collect();
        false_steps += usize::from(!cuts(&values).is_empty());
    }
    assert!(false_steps <= 4, "{false_steps}");
    // Values that repeat, as counts do.
    assert!(cuts(&[3.0; 50]).is_empty());
}

/// By brute force: no place has a much smaller probability than the one that is chosen, where all are counted exactly.
#[test]
fn the_best_cut_is_the_least_probable() {
    let mut dice = Dice(13);
    for _ in 0..300 {
        let (length, place) = (14 + dice.below(10) as usize, 4 + dice.below(8) as usize);
        let level = |at: usize| if at < place { 0.0 } else { 4.0 };
        let values: Vec<f64> = (0..length).map(|at| level(at) + noise(&mut dice)).collect();
        let (at, chance) = best_cut(&values).unwrap();
        let all = (1..length).map(|at| mann_whitney(&values[..at], &values[at..]).unwrap());
        let least = (all.min_by(f64::total_cmp).unwrap() * (length - 1) as f64).min(1.0);
        assert!(least <= chance && chance <= 4.0 * least, "{at}: {chance} {least} {values:?}");
    }
}

#[test]
fn runs_of_a_commit_count_as_one() {
    let level = |place: usize| if place < 45 { 10.0 } else { 20.0 };
    let values: Vec<f64> = (0..90).map(|place| level(place) + (place % 3) as f64 / 10.0).collect();
    let runs = history("gc.pause.max", &values);
    let found = steps(&runs, Some("commit")).unwrap();
    let [step] = &*found.steps else { panic!("one step: {found:?}") };
    assert_eq!((step.at.as_str(), step.runs, found.points), ("c15", [15, 15], 30));
    assert_eq!((step.before, step.after), (10.1, 20.1));
}

#[test]
fn what_is_not_known_is_left_out_and_no_0() {
    let mut runs = history("gc.pause.max", &[5.0; 40]);
    runs.iter_mut().skip(20).for_each(|run| run.metrics[0].value = None);
    assert!(steps(&runs, None).unwrap().steps.is_empty());
    runs.iter_mut().for_each(|run| run.metrics[0].value = Some(f64::NAN));
    assert!(steps(&runs, None).unwrap().steps.is_empty());
    assert!(steps(&[], None).unwrap().steps.is_empty());
    // Another runtime is said.
    let mut runs = history("gc.pause.max", &[[5.0; 20], [6.0; 20]].concat());
    runs.iter_mut().for_each(|run| drop(run.fingerprint.insert("format", "nettrace".into())));
    assert_eq!(steps(&runs, None).unwrap().steps[0].incomparable, None);
    runs.iter_mut().skip(20).for_each(|run| drop(run.fingerprint.insert("format", "etl".into())));
    let found = steps(&runs, None).unwrap();
    assert!(found.steps[0].incomparable.as_ref().is_some_and(|why| why.contains("format")), "{found:?}");
}

/// Runs of builds that were recorded: forty of one build and forty of another.
#[test]
fn steps_between_recorded_builds_are_found() {
    let builds = recorded();
    let joined = |parts: &[&str]| {
        let mut runs: Vec<Run> = parts.iter().flat_map(|build| builds[*build].clone()).collect();
        runs.iter_mut().enumerate().for_each(|(place, run)| run.start = format!("{place:04}"));
        steps(&runs, None).unwrap().steps
    };
    for build in builds.keys() {
        let found = joined(&[build]);
        assert!(found.is_empty(), "{build} did not change: {found:?}");
    }
    let planted = [("more30", "allocation.bytes"), ("survivors", "gc.survived.bytes"), ("pauses", "gc.pause.max")];
    for (build, metric) in planted {
        let found = joined(&["none", build]);
        let step = found.iter().find(|step| step.metric == metric);
        assert!(step.is_some_and(|step| step.start == "0040" && step.toward == "worse"), "{build}: {found:?}");
    }
}
