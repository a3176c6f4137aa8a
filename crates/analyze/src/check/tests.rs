mod history;

use std::collections::BTreeMap;

use super::*;
use crate::metrics::Missing;
use crate::rules;

fn run(trace_id: &str, figures: &[(&str, f64)]) -> Run {
    let metric = |(name, value): &(&str, f64)| Metric {
        name: (*name).to_owned(),
        value: Some(*value),
        missing: None,
        observations: 1,
        worst: name.ends_with(".max").then(|| "gc_id = 17".to_owned()),
        owner: Owner::Process(7),
        source: None,
    };
    Run {
        trace_id: trace_id.to_owned(),
        start: String::new(),
        labels: BTreeMap::new(),
        has_losses: false,
        is_failed: false,
        is_damaged: false,
        fingerprint: BTreeMap::new(),
        metrics: figures.iter().map(metric).collect(),
    }
}

fn against(base: &[Run]) -> Against<'_> {
    Against { base, ..Against::default() }
}

fn finding(rule: &str, new: &[Run], base: &[Run]) -> Finding {
    let rules = rules::read("perf.toml", &format!("rules = ['{rule}']")).unwrap();
    let mut found = check(&rules, new, &against(base)).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn verdict(rule: &str, new: &[Run]) -> Verdict {
    finding(rule, new, &[]).verdict
}

/// Proven losses break the rule about them; all other rules of such a run are undecided and never pass.
#[test]
fn events_that_are_lost_break_the_rule_about_them() {
    let lossy = [Run { has_losses: true, ..run("a", &[("lost.events", 500.0), ("gc.count", 50.0)]) }];
    assert_eq!(verdict("lost.events == 0", &lossy), Verdict::Failed);
    assert_eq!(verdict("lost.events < 500", &lossy), Verdict::Undecided);
    assert_eq!(verdict("lost.events <= 1000", &lossy), Verdict::Undecided);
    assert_eq!(verdict("lost.events >= 1000", &lossy), Verdict::Undecided);
    assert_eq!(verdict("gc.count <= 10", &lossy), Verdict::Undecided);
    assert_eq!(verdict("gc.count <= 100", &lossy), Verdict::Undecided);
    let failed = Run { has_losses: true, is_failed: true, ..run("b", &[]) };
    let [lossy] = lossy;
    assert_eq!(verdict("lost.events == 0", &[lossy, failed]), Verdict::Undecided);
}

#[test]
fn runs_that_decide_nothing_are_counted() {
    let lossy = |key: &str| Run { has_losses: true, ..run(key, &[("gc.count", 5.0)]) };
    let why = |runs: &[Run]| finding("gc.count <= 5", runs, &[]).why;
    assert_eq!(why(&[lossy("a")]), "a has losses: events that the rule needs may be missing");
    let failed = Run { is_failed: true, ..lossy("c") };
    assert_eq!(why(&[lossy("a"), lossy("b"), failed]), "c could not be read (2 more have losses, too)");
}

#[test]
fn a_counter_that_is_no_number_is_undecided() {
    for value in [f64::NAN, f64::INFINITY] {
        let runs = [run("a", &[("counter.max[p/c]", value)])];
        for rule in ["counter.max[*] <= 5", "counter.max[*] >= 5", "counter.max[*] <= baseline"] {
            assert_eq!(finding(rule, &runs, &runs).verdict, Verdict::Undecided, "{rule} {value}");
        }
    }
}

#[test]
fn where_to_look_is_what_grew() {
    let types = |a: f64, b: f64| {
        let of = [("allocation.by_type[A]", a), ("allocation.by_type[B]", b), ("allocation.bytes", a + b)];
        run("r", &of)
    };
    let (base, new) = ([types(100.0, 10.0)], [types(100.0, 60.0)]);
    let look_at = |rule: &str| finding(rule, &new, &base).look_at.unwrap();
    assert_eq!(look_at("allocation.bytes <= baseline"), "r, grew most: allocation.by_type[B]");
    assert_eq!(look_at("allocation.bytes <= 5"), "r, most: allocation.by_type[A]");
    assert_eq!(look_at("allocation.by_type[B] <= 5"), "r");
    let pauses = [run("r", &[("gc.pause.share", 0.5), ("gc.pause.max", 3e6)])];
    for rule in ["gc.pause.share <= 5%", "gc.pause.max <= 1ms"] {
        assert_eq!(finding(rule, &pauses, &[]).look_at.unwrap(), "r, gc_id = 17");
    }
}

#[test]
fn what_is_missing_is_said() {
    let without = [run("a", &[])];
    let some = [run("a", &[("gc.count", 5.0)])];
    let why = |rule: &str, new: &[Run], base: &[Run]| finding(rule, new, base).why;
    assert!(why("gc.count <= 5", &without, &[]).contains("made of the table gc"));
    assert!(why("allocation.bytes <= 5GB", &some, &[]).contains("made of the table allocation"));
    assert!(why("gc.count <= 5", &[], &[]).contains("there is no recording"));
    assert_eq!(why("gc.count <= baseline", &some, &[]), "the baseline has no recording");
    assert_eq!(why("gc.count <= baseline", &some, &without), "a has no value: it has no such figure");
}

/// A run with a figure that has no value.
fn without(trace_id: &str, name: &str, missing: Missing) -> Run {
    let mut run = run(trace_id, &[(name, 0.0), ("lost.events", 0.0)]);
    if let Some(metric) = run.metrics.first_mut() {
        (metric.value, metric.missing) = (None, Some(missing));
    }
    run
}

#[test]
fn a_figure_that_was_not_recorded_passes_no_rule() {
    for (missing, why) in [
        (Missing::NotAsked, "was not recorded"),
        (Missing::NotSeen, "nothing says whether"),
        (Missing::Empty, "nothing to take it of"),
    ] {
        for rule in ["exception.count == 0", "exception.count <= baseline"] {
            let runs = [without("a", "exception.count", missing)];
            let found = finding(rule, &runs, &[run("b", &[("exception.count", 0.0)])]);
            assert_eq!(found.verdict, Verdict::Undecided, "{rule} {missing:?}");
            assert!(found.why.contains(why), "{}", found.why);
            let text = format!("[[rule]]\ncheck = '{rule}'\nabsent = 0");
            let rules = rules::read("perf.toml", &text).unwrap();
            let found = check(&rules, &runs, &against(&[run("b", &[("exception.count", 0.0)])])).unwrap();
            assert_eq!((found[0].verdict, found[0].value), (Verdict::Passed, Some(0.0)), "{rule} {missing:?}");
        }
    }
}

#[test]
fn every_run_counts() {
    let some = |key: &str, value: f64| run(key, &[("heap.size.max", value)]);
    let keys = ["a", "b", "c", "d", "e"];
    let base: Vec<Run> = keys.iter().map(|key| some(key, 100.0)).collect();
    let mut new = base.clone();
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        new[4] = some("e", odd);
        for rule in ["heap.size.max <= 200", "heap.size.max <= baseline", "heap.size.max >= 5"] {
            let found = finding(rule, &new, &base);
            assert_eq!(found.verdict, Verdict::Undecided, "{rule} {odd}");
            assert!(found.why.contains("not finite"), "{}", found.why);
            assert_eq!(finding("heap.size.max <= baseline", &base, &new).verdict, Verdict::Undecided);
        }
        let what = compare(&base, &new).unwrap();
        assert_eq!((what[0].what, what[0].chance), ("unclear", None));
    }
    // Four of five have no such figure.
    for run in new.iter_mut().skip(1) {
        *run = without(&run.trace_id, "heap.size.max", Missing::NotSeen);
    }
    for (new, base) in [(&new, &base), (&base, &new)] {
        let found = finding("heap.size.max <= baseline * 2", new, base);
        assert_eq!(found.verdict, Verdict::Undecided);
        assert!(found.why.starts_with("4 of 5 runs ") && found.why.contains("; b: no event"), "{}", found.why);
    }
    assert_eq!(compare(&base, &new).unwrap()[0].what, "unclear");
}

/// Runs of builds of samples/ci/noise/Noise.cs, in the order in which they were recorded, in turn.
fn recorded() -> BTreeMap<String, Vec<Run>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/ci/noise/figures.csv");
    let text = std::fs::read_to_string(path).unwrap();
    let mut figures: BTreeMap<(String, u32), Vec<(&str, f64)>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let [build, n, metric, value] = line.split(',').collect::<Vec<_>>().try_into().unwrap();
        figures.entry((build.to_owned(), n.parse().unwrap())).or_default().push((metric, value.parse().unwrap()));
    }
    let mut builds: BTreeMap<String, Vec<Run>> = BTreeMap::new();
    for ((build, n), figures) in figures {
        let run = run(&format!("{build}-{n}"), &figures);
        builds.entry(build).or_default().push(run);
    }
    builds
}

/// How often a rule fails when runs of a build are drawn against others of the build without a change: of 100 draws.
fn failures(builds: &BTreeMap<String, Vec<Run>>, rule: &str, build: &str, size: usize, draws: u32) -> [f64; 2] {
    let mut dice = crate::tests::dice::Dice(11);
    let mut draw = |runs: &[Run], left_out: &[Run]| {
        let mut pool: Vec<Run> =
            runs.iter().filter(|run| left_out.iter().all(|other| other.trace_id != run.trace_id)).cloned().collect();
        (0..size).map(|_| pool.swap_remove(dice.below(pool.len() as u64) as usize)).collect::<Vec<Run>>()
    };
    let mut found = [0.0; 2];
    for _ in 0..draws {
        let base = draw(&builds["none"], &[]);
        let new = draw(&builds[build], &base);
        match finding(rule, &new, &base).verdict {
            Verdict::Failed => found[0] += 100.0 / f64::from(draws),
            Verdict::Undecided => found[1] += 100.0 / f64::from(draws),
            Verdict::Passed => {}
        }
    }
    found
}

/// Changes that a gate of 10 % has to find in this part of draws, in percent: figure, build, runs on each side.
const FOUND: [(&str, &str, usize, f64); 4] = [
    ("allocation.bytes", "more30", 5, 90.0),
    ("gc.pause.total", "pauses", 5, 90.0),
    ("gc.pause.max", "pauses", 10, 90.0),
    ("gc.survived.bytes", "pauses", 5, 99.0),
];

/// On recorded runs: what did not change fails in at most 2 % of draws (with four deviations of them), and what did
/// change is found.
#[test]
fn gates_find_changes_and_no_chance() {
    let builds = recorded();
    assert!(builds.len() == 5 && builds.values().all(|runs| runs.len() == 40));
    let most = |draws: u32| 2.0 + 4.0 * (2.0 * 98.0 / f64::from(draws)).sqrt();
    for figure in ["allocation.bytes", "gc.pause.total", "gc.pause.max", "gc.survived.bytes"] {
        for (room, size, draws) in [("", 5, 100), (" * 1.10", 5, 100), (" * 1.10", 10, 40)] {
            let [failed, _] = failures(&builds, &format!("{figure} <= baseline{room}"), "none", size, draws);
            assert!(failed <= most(draws), "{figure}{room} of {size}: {failed} %");
        }
    }
    for (figure, build, size, least) in FOUND {
        let [failed, undecided] = failures(&builds, &format!("{figure} <= baseline * 1.10"), build, size, 40);
        assert!(failed >= least, "{figure} {build} of {size}: {failed} % failed, {undecided} % undecided");
    }
}

#[test]
fn a_rule_is_undecided_where_runs_are_too_few_for_their_noise() {
    let of = |values: &[f64]| -> Vec<Run> {
        values.iter().enumerate().map(|(n, value)| run(&format!("r{n}"), &[("heap.size.max", *value)])).collect()
    };
    let base = of(&[100.0, 60.0, 140.0, 90.0, 110.0]);
    let new = of(&[120.0, 80.0, 170.0, 130.0, 100.0]);
    let found = finding("heap.size.max <= baseline * 1.10", &new, &base);
    assert_eq!(found.verdict, Verdict::Undecided, "{found:?}");
    assert!(found.why.contains("not significant: about ") && found.why.ends_with("runs on each side would decide"));
    let [low, high] = found.shift.unwrap().interval.unwrap();
    assert!(low < 0.0 && high > 10.0 && found.chance.unwrap() > FALSE_ALARMS);
    // Without room the question is whether it became worse at all.
    assert_eq!(finding("heap.size.max <= baseline", &new, &base).verdict, Verdict::Passed);
    // The other direction: below the baseline is worse.
    let less = of(&[10.0, 11.0, 12.0, 13.0, 14.0]);
    assert_eq!(finding("heap.size.max >= baseline", &less, &base).verdict, Verdict::Failed);
    assert_eq!(finding("heap.size.max <= baseline", &less, &base).verdict, Verdict::Passed);
    // Four on each side are enough, three are not: the bound alone decides.
    assert_eq!(finding("heap.size.max >= baseline", &less[..4], &base[..4]).chance, Some(1.0 / 70.0));
    let few = finding("heap.size.max >= baseline", &less[..3], &base[..3]);
    assert!(few.chance.is_none() && few.verdict == Verdict::Failed && few.why.contains("the bound alone decides"));
}

#[test]
fn many_comparisons_of_a_rule_need_more() {
    let of = |n: usize, one: f64, other: f64| {
        run(
            &format!("r{n}"),
            &[("counter.mean[p/a]", one + n as f64 * 0.1), ("counter.mean[p/b]", other + n as f64 * 0.1)],
        )
    };
    let (base, new): (Vec<Run>, Vec<Run>) = (0..4).map(|n| (of(n, 100.0, 100.0), of(n, 150.0, 100.0))).unzip();
    let text = "rules = ['counter.mean[*] <= baseline + 10%']";
    let found = check(&rules::read("perf.toml", text).unwrap(), &new, &against(&base)).unwrap();
    let one = found.iter().find(|finding| finding.metric == "counter.mean[p/a]").unwrap();
    assert_eq!((one.verdict, one.chance), (Verdict::Undecided, Some(1.0 / 70.0)), "{one:?}");
    assert!(one.why.contains("among 2 comparisons"), "{}", one.why);
    // The one that is named is one comparison.
    let text = "rules = ['counter.mean[p/a] <= baseline + 10%']";
    let found = check(&rules::read("perf.toml", text).unwrap(), &new, &against(&base)).unwrap();
    assert_eq!(found[0].verdict, Verdict::Failed);
}

#[test]
fn runs_of_one_commit_count_as_one_where_there_are_enough() {
    let of = |commit: usize, n: usize, value: f64| {
        let mut run = run(&format!("c{commit}-{n}"), &[("heap.size.max", value + n as f64)]);
        run.labels.insert("commit".to_owned(), commit.to_string());
        run
    };
    let commits = |from: usize, count: usize, value: f64| -> Vec<Run> {
        (from..from + count).flat_map(|commit| (0..3).map(move |n| of(commit, n, value + commit as f64))).collect()
    };
    let rules = rules::read("perf.toml", "rules = ['heap.size.max <= baseline * 1.10']").unwrap();
    let judged = |new: &[Run], base: &[Run]| {
        check(&rules, new, &Against { by: Some("commit"), ..against(base) }).unwrap().remove(0)
    };
    // Four commits against four: one way of 70, though there are twelve runs on each side.
    let found = judged(&commits(10, 4, 200.0), &commits(0, 4, 100.0));
    assert_eq!((found.verdict, found.chance, found.runs), (Verdict::Failed, Some(1.0 / 70.0), 12));
    // One commit against four is too few: the runs decide, and the result says so.
    let found = judged(&commits(10, 1, 200.0), &commits(0, 2, 100.0));
    assert!(
        found.verdict == Verdict::Undecided || found.why.contains("1 and 2 values of commit are too few"),
        "{found:?}"
    );
    let found = judged(&[commits(10, 1, 200.0), commits(10, 1, 300.0)].concat(), &commits(0, 2, 100.0));
    assert!(
        found.verdict == Verdict::Failed && found.why.contains("1 and 2 values of commit are too few"),
        "{found:?}"
    );
}

/// One of ten commits has three quarters of the runs: it weighs no more than another, in the value, baseline, bound and
/// test of a rule.
#[test]
fn a_commit_with_many_runs_weighs_as_one() {
    let commits = |name: &str, sizes: &[(usize, f64)]| -> Vec<Run> {
        let one = |(commit, (size, ms)): (usize, &(usize, f64))| {
            let of = |n: usize| {
                let own = ("gc.pause.max", ms * (1.0 + 0.001 * n as f64));
                let mut run = run(&format!("{name}{commit}-{n}"), &[own, ("allocation.by_type[A]", *ms)]);
                run.labels.insert("commit".to_owned(), format!("{name}{commit}"));
                run
            };
            (0..*size).map(of).collect::<Vec<Run>>()
        };
        sizes.iter().enumerate().flat_map(one).collect()
    };
    let judged = |rule: &str, new: &[Run], base: &[Run]| {
        let rules = rules::read("perf.toml", &format!("rules = ['{rule}']")).unwrap();
        check(&rules, new, &Against { by: Some("commit"), ..against(base) }).unwrap().remove(0)
    };
    let slow = [&[(2, 1.0); 9][..], &[(30, 3.0)]].concat();
    let (base, new) = (commits("b", &slow), commits("n", &[(2, 2.0); 9]));
    for (rule, bound) in [("gc.pause.max <= baseline", 1.0005), ("gc.pause.max <= baseline * 1.10", 1.10055)] {
        let found = judged(rule, &new, &base);
        assert_eq!(found.verdict, Verdict::Failed, "{rule} {found:?}");
        assert_eq!((found.baseline, found.runs, found.baseline_runs), (Some(1.0005), 18, 48));
        assert!((found.bound.unwrap() - bound).abs() < 1e-9 && (found.value.unwrap() - 2.001).abs() < 1e-9);
        assert!(found.chance.unwrap() < 0.01 && found.shift.unwrap().estimate > 0.9, "{found:?}");
        // The other way round, the new commits have one that is slow.
        assert_eq!(judged(rule, &base, &new).verdict, Verdict::Passed);
    }
    // One new commit is too few: its runs are compared with as many of each commit of the baseline.
    for rule in ["gc.pause.max <= baseline", "gc.pause.max <= baseline * 1.10"] {
        let found = judged(rule, &commits("n", &[(5, 2.0)]), &base);
        assert_eq!((found.verdict, found.baseline), (Verdict::Failed, Some(1.0005)), "{found:?}");
        assert!(found.shift.unwrap().estimate > 0.9 && found.why.contains("1 and 10 values of commit are too few"));
    }
    // Runs without any significance: the message counts what was compared.
    let few = judged("gc.pause.max <= baseline", &commits("n", &[(1, 2.0)]), &commits("b", &[(1, 1.0), (1, 1.0)]));
    assert!(few.why.starts_with("1 against 2 values of commit: too few"), "{}", few.why);
    // The metric that grew most is found by commits, too: nine of the ten of the baseline had 1.
    let types = |name: &str, sizes: &[(usize, f64)], b: f64| {
        let mut runs = commits(name, sizes);
        for run in &mut runs {
            let sum = run.value("allocation.by_type[A]").unwrap() + b;
            run.metrics.extend(self::run("", &[("allocation.by_type[B]", b), ("allocation.bytes", sum)]).metrics);
        }
        runs
    };
    let found = judged("allocation.bytes <= baseline", &types("n", &[(2, 2.0); 9], 1.5), &types("b", &slow, 1.0));
    assert_eq!(found.look_at.as_deref(), Some("n0-0, grew most: allocation.by_type[A]"));
}

/// Runs without a value are left out of the median of their commit, not of that of another one.
#[test]
fn a_run_without_a_value_leaves_the_others_where_they_belong() {
    let of = |key: &str, value: Option<f64>| {
        let mut run = match value {
            Some(value) => run(key, &[("heap.size.max", value)]),
            None => without(key, "heap.size.max", Missing::NotSeen),
        };
        run.labels.insert("commit".to_owned(), key[..1].to_owned());
        run
    };
    let runs = [of("a1", None), of("a2", Some(1.0)), of("b1", Some(5.0)), of("b2", Some(7.0)), of("c1", Some(9.0))];
    let rules = rules::read("perf.toml", "rules = ['heap.size.max <= 5']").unwrap();
    let found = check(&rules, &runs, &Against { by: Some("commit"), ..Against::default() }).unwrap().remove(0);
    // The medians are 1, 6 and 9.
    assert_eq!((found.verdict, found.value, found.runs), (Verdict::Undecided, Some(6.0), 4), "{found:?}");
}

#[test]
fn the_first_runs_of_a_baseline_pass_and_say_so() {
    let rules = "rules = ['gc.count <= baseline', 'gc.count <= 3']";
    let rules = rules::read("perf.toml", rules).unwrap();
    let some = [run("a", &[("gc.count", 5.0)])];
    let judged = |new: &[Run], is_first| {
        let found = check(&rules, new, &Against { is_first, ..Against::default() }).unwrap();
        found.into_iter().map(|finding| (finding.verdict, finding.why)).collect::<Vec<_>>()
    };
    let first = judged(&some, true);
    assert!(first[0].0 == Verdict::Passed && first[0].1.contains("the first recordings of the baseline"), "{first:?}");
    assert_eq!(first[1].0, Verdict::Failed, "a rule about a number needs no baseline");
    assert_eq!(judged(&some, false)[0], (Verdict::Undecided, "the baseline has no recording".to_owned()));
    // Losses, and a figure that was not recorded, stay as they are.
    let [lossy] = some.map(|run| Run { has_losses: true, ..run });
    assert_eq!(judged(&[lossy], true)[0].0, Verdict::Undecided);
    assert_eq!(judged(&[run("b", &[])], true)[0].0, Verdict::Undecided);
}

#[test]
fn what_does_not_occur_among_counted_names_is_zero() {
    let of = |key: &str, count: usize| {
        let figures: Vec<(String, f64)> =
            (0..count).map(|n| (format!("exception.by_type[T{n}]"), 30.0 - n as f64)).collect();
        let figures: Vec<(&str, f64)> = figures.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        run(key, &figures)
    };
    let found = finding("exception.by_type[Other] == 0", &[of("a", 3)], &[]);
    assert_eq!((found.verdict, found.value), (Verdict::Passed, Some(0.0)));
    // Twenty have a figure: another one has 11 at most.
    let full = [of("a", 20)];
    assert_eq!(finding("exception.by_type[Other] <= 11", &full, &[]).verdict, Verdict::Passed);
    assert_eq!(finding("exception.by_type[Other] <= 10", &full, &[]).verdict, Verdict::Undecided);
    assert_eq!(finding("exception.by_type[Other] > 11", &full, &[]).verdict, Verdict::Failed);
    let none = [without("a", "exception.by_type", Missing::Empty)];
    assert_eq!(finding("exception.by_type[Other] == 0", &none, &[]).verdict, Verdict::Passed);
    let unknown = [without("a", "exception.by_type", Missing::NotAsked)];
    for rule in ["exception.by_type[Other] == 0", "exception.by_type[*] == 0"] {
        let found = finding(rule, &unknown, &[]);
        assert_eq!(found.verdict, Verdict::Undecided);
        assert!(found.why.contains("was not recorded"), "{}", found.why);
    }
}

/// Ticks come at regular steps: a type that is allocated in turn with others gets all of them or none, the same in each
/// run.
#[test]
fn ticks_prove_nothing_of_types() {
    let runs = |source: &str, a: f64, b: f64| -> Vec<Run> {
        let of = [("allocation.by_type[A]", a), ("allocation.by_type[B]", b), ("allocation.bytes", a + b)];
        let mut runs: Vec<Run> = (0..5).map(|n| run(&format!("{source}-{n}"), &of)).collect();
        let metrics = runs.iter_mut().flat_map(|run| &mut run.metrics);
        metrics.for_each(|metric| metric.source = Some(source.to_owned()));
        runs
    };
    let (ticks, more_ticks) = (runs("tick", 100.0, 100.0), runs("tick", 100.0, 200.0));
    let (samples, more_samples) = (runs("sampled", 100.0, 100.0), runs("sampled", 100.0, 200.0));
    let of_type = "allocation.by_type[B] <= baseline * 1.1";
    let unproven = finding(of_type, &more_ticks, &ticks);
    assert_eq!((unproven.verdict, unproven.chance), (Verdict::Undecided, None));
    assert!(unproven.why.contains("record AllocationSampled"), "{}", unproven.why);
    assert_eq!(finding("allocation.by_type[B] <= 1", &ticks, &[]).verdict, Verdict::Undecided);
    assert_eq!(finding(of_type, &more_samples, &samples).verdict, Verdict::Failed);
    let mixed = finding("allocation.bytes <= baseline * 1.1", &more_samples, &ticks);
    assert_eq!(mixed.verdict, Verdict::Undecided);
    assert_eq!(mixed.why, "not comparable: the figure is made of `sampled` and `tick`");
    // Sums over all types are right, whatever the types.
    let look_at = |new: &[Run], base: &[Run]| {
        let found = finding("allocation.bytes <= baseline * 1.1", new, base);
        assert_eq!(found.verdict, Verdict::Failed);
        found.look_at.unwrap()
    };
    assert_eq!(look_at(&more_ticks, &ticks), "tick-0");
    assert_eq!(look_at(&more_samples, &samples), "sampled-0, grew most: allocation.by_type[B]");
    let compared = compare(&ticks, &more_ticks).unwrap();
    let of_type = compared.iter().find(|d| d.metric == "allocation.by_type[B]").unwrap();
    assert_eq!((of_type.what, of_type.chance), ("unclear", None));
    assert_eq!(compared.iter().find(|d| d.metric == "allocation.bytes").unwrap().what, "worse");
}
