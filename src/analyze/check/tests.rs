use super::*;
use crate::analyze::rules;

fn run(trace_id: &str, figures: &[(&str, f64)]) -> Run {
    let metric = |(name, value): &(&str, f64)| Metric {
        name: (*name).to_owned(),
        value: *value,
        observations: 1,
        worst: name.ends_with(".max").then(|| "gc_id = 17".to_owned()),
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

fn finding(rule: &str, new: &[Run], base: &[Run]) -> Finding {
    let rules = rules::read("perf.toml", &format!("rules = ['{rule}']")).unwrap();
    let mut found = check(&rules, new, base).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn verdict(rule: &str, new: &[Run]) -> Verdict {
    finding(rule, new, &[]).verdict
}

/// Events that are lost for certain break the rule about them; nothing else is said of such a run, least of all that it passes.
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
    assert_eq!(why(&[lossy("a")]), "a has losses: what is missing may be what the rule is about");
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
    assert_eq!(why("gc.count <= baseline", &some, &without), "the baseline has no recording with this figure");
}
