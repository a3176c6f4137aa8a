//! Who did it, where the compiler put that method into another one: each surface names the same method. The recordings and what their
//! programs did are `fourth/bugs` of the shared data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::dataset::Dataset;
use crate::support::expected::shared_folder;
use crate::support::program::run;
use crate::support::python::{ask_views, python};

const QUOTE: &str = "Contoso.Pricing.PriceService.Quote";
const DISPATCH: &str = "Fabrikam.Hosting.Server.Dispatch.<lambda_0>";

fn output_of(arguments: &[&str]) -> String {
    let made = run(arguments);
    assert!(matches!(made.code, Some(0 | 2)), "{arguments:?}: {}", made.err);
    made.out
}

fn dataset(test: &str, name: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    let input = shared_folder(test, "fourth/bugs")?.join(format!("{name}.nettrace.zst"));
    let folder = tempfile::tempdir().unwrap();
    let dataset = folder.path().join("dataset");
    output_of(&["convert", "-q", input.to_str().unwrap(), "-o", dataset.to_str().unwrap()]);
    Some((folder, dataset))
}

/// `PriceService.Quote` waits for a task. The compiler puts it into the lambda that calls it, which has nothing to do with it.
#[test]
fn the_method_that_waits_is_named_on_every_surface() {
    let test = "the_method_that_waits_is_named_on_every_surface";
    let Some((_folder, dataset)) = dataset(test, "syncasync-buggy.all") else { return };
    let input = dataset.to_str().unwrap();
    let all: Value = serde_json::from_str(&output_of(&["explain", input, "--format", "json"])).unwrap();
    let finding = all[0]["findings"].as_array().unwrap().iter().find(|finding| finding["rule"] == "blocked_workers");
    assert_eq!(finding.unwrap()["own_method"], QUOTE);
    let sentence = finding.unwrap()["sentence"].as_str().unwrap();
    assert!(sentence.contains(&format!("{QUOTE} (inlined into {DISPATCH}) waits for tasks")), "{sentence}");

    // Stacks of exports have the method below the one whose code it is in.
    let folded = output_of(&["export", input, "--what", "wait", "--own", "--format", "folded"]);
    let mut weights: BTreeMap<&str, u64> = BTreeMap::new();
    for (stack, weight) in folded.lines().filter_map(|line| line.rsplit_once(' ')) {
        let own = stack.rsplit(';').find(|frame| frame.starts_with("Contoso.") || frame.starts_with("Fabrikam."));
        *weights.entry(own.unwrap_or_default()).or_default() += weight.parse::<u64>().unwrap();
    }
    let quoted: u64 = weights.iter().filter(|(frame, _)| frame.starts_with(QUOTE)).map(|(_, weight)| weight).sum();
    let own: u64 = weights.iter().filter(|(frame, _)| !frame.is_empty()).map(|(_, weight)| weight).sum();
    assert!(quoted * 100 > own * 99, "{weights:#?}");
    let within = folded.lines().filter(|line| line.contains("<Dispatch>b__3_0") && line.contains(QUOTE)).count();
    assert!(within > 0, "{folded}");

    // A difference of a recording with itself has the same sums.
    let difference = output_of(&["diff", input, input, "--json"]);
    let difference: Value = serde_json::from_str(&difference).unwrap();
    let waits = difference["sections"].as_array().unwrap().iter().find(|section| section["what"] == "wait").unwrap();
    let amount = |method: &str| {
        let row = waits["rows"].as_array().unwrap().iter().find(|row| row["own_method"] == method);
        row.map_or(0.0, |row| row["new"]["amount"].as_f64().unwrap())
    };
    assert!(amount(QUOTE) > 100e9 && amount(DISPATCH) == 0.0, "{} {}", amount(QUOTE), amount(DISPATCH));
    let page = dataset.with_extension("html");
    output_of(&["report", input, "-o", page.to_str().unwrap()]);
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains(QUOTE), "the page names it");

    let view = "SELECT own_method FROM waits_by_site WHERE own_method IS NOT NULL GROUP BY ALL ORDER BY sum(total_ms) DESC LIMIT 1";
    let Some(python) = python(test) else { return };
    let found = ask_views(&python, &dataset, "print(c.execute(sys.argv[1]).fetchone()[0])", view);
    assert_eq!(String::from_utf8(found.stdout).unwrap().trim(), QUOTE);
}

/// `Deduplicator.Distinct` and its lambda are in the optimized code of `ImportHandler.Import`. What they call says so; of samples in the code
/// itself the events do not say whose they are.
#[test]
fn samples_in_code_with_other_methods_in_it_are_not_surely_its_own() {
    let test = "samples_in_code_with_other_methods_in_it_are_not_surely_its_own";
    let Some((_folder, dataset)) = dataset(test, "quadheavy-buggy.all") else { return };
    let Some(python) = python(test) else { return };
    let query = "SELECT own_method, sum(samples)::INT, sum(unsure_samples)::INT, max(may_belong_to) FROM cpu_by_site \
                 WHERE own_method LIKE 'Contoso.Crm.%' GROUP BY ALL ORDER BY 2 DESC LIMIT 2";
    let found = ask_views(&python, &dataset, "print(*c.execute(sys.argv[1]).fetchall(), sep='\\n')", query);
    let found = String::from_utf8(found.stdout).unwrap();
    let lines: Vec<&str> = found.lines().collect();
    assert!(lines[0].starts_with("('Contoso.Crm.Deduplicator.Distinct', "), "{found}");
    assert!(lines[1].starts_with("('Contoso.Crm.ImportHandler.Import', "), "{found}");
    let numbers: Vec<u64> = lines[1].split(", ").skip(1).take(2).map(|number| number.parse().unwrap()).collect();
    assert!(numbers[1] * 100 > numbers[0] * 99, "{found}");
    assert!(
        lines[1].contains("'Contoso.Crm.Deduplicator.Distinct, Contoso.Crm.Deduplicator.Distinct.<lambda_0>"),
        "{found}"
    );

    // Each surface says that it may be these methods: as a frame below that of the code, and beside the name of the own method.
    let input = dataset.to_str().unwrap();
    let or = "Contoso.Crm.ImportHandler.Import (or Contoso.Crm.Deduplicator.Distinct, ";
    let folded = output_of(&["export", input, "--format", "folded"]);
    let of = |part: &str| -> u64 {
        let lines = folded.lines().filter_map(|line| line.rsplit_once(' '));
        let leaves = lines.filter(|(stack, _)| stack.rsplit(';').next().unwrap().starts_with(part));
        leaves.map(|(_, ns)| ns.parse::<u64>().unwrap()).sum()
    };
    let (own, unsure) = (of("Contoso.Crm.ImportHandler.Import(int32)"), of(or));
    assert!(unsure > 100 * own, "{unsure} ns may be others', {own} ns are its own");
    let difference: Value = serde_json::from_str(&output_of(&["diff", input, input, "--json"])).unwrap();
    let cpu = difference["sections"].as_array().unwrap().iter().find(|section| section["what"] == "cpu").unwrap();
    let row = |method: &str| cpu["rows"].as_array().unwrap().iter().find(|row| row["own_method"] == method).unwrap();
    let others = row("Contoso.Crm.ImportHandler.Import")["may_belong_to"].as_str().unwrap();
    assert!(others.starts_with("Contoso.Crm.Deduplicator.Distinct, "), "{others}");
    // Of this one most samples are surely its own, or those of what it calls.
    assert!(row("Contoso.Crm.Deduplicator.Distinct")["may_belong_to"].is_null());
    assert!(output_of(&["diff", input, input, "--all"]).contains(or));
    let explained = output_of(&["explain", input]);
    let summary = explained.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(summary.contains("Contoso.Crm.ImportHandler.Import (or methods inlined into it) 22.4 %"), "{explained}");
    assert!(output_of(&["report", input]).contains(or), "the flame graph of the page");
}

/// The same without events of the compiler: by the stacks alone.
#[test]
fn stacks_alone_say_who_waits() {
    let Some((_folder, dataset)) = dataset("stacks_alone_say_who_waits", "syncasync-buggy.dt") else { return };
    let all: Value =
        serde_json::from_str(&output_of(&["explain", dataset.to_str().unwrap(), "--format", "json"])).unwrap();
    let finding = all[0]["findings"].as_array().unwrap().iter().find(|finding| finding["rule"] == "blocked_workers");
    assert_eq!(finding.unwrap()["own_method"], QUOTE);
}

/// Rows of what a thread ran for a task add up to how long the task ran.
#[test]
fn what_ran_for_a_task_is_as_long_as_the_task_ran() {
    let test = "what_ran_for_a_task_is_as_long_as_the_task_ran";
    let shared =
        shared_folder(test, "fourth/bugs").map(|folder| folder.join("healthy_fillcache-healthy.allplus.nettrace.zst"));
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/awaits.nettrace.zst");
    for recording in [Some(own), shared].into_iter().flatten() {
        let dataset = Dataset::of(&recording);
        let mut ran: BTreeMap<u64, i64> = BTreeMap::new();
        let runs = dataset.table("async_callsite");
        for (task, ns) in runs.numbers("task_id").into_iter().zip(runs.signed("duration_ns")) {
            *ran.entry(task).or_default() += ns.unwrap();
        }
        let tasks = dataset.table("async_task");
        let mut stated: BTreeMap<u64, i64> = BTreeMap::new();
        for (task, ns) in tasks.numbers("task_id").into_iter().zip(tasks.signed("running_ns")) {
            *stated.entry(task).or_default() += ns.unwrap_or_default();
        }
        stated.retain(|_, ns| *ns > 0);
        assert!(stated.len() > 10, "{}", recording.display());
        assert_eq!(ran, stated, "{}", recording.display());
    }
}

/// An EventSource whose events have one number writes nothing but that: the only trace of 100 events.
#[test]
fn an_event_source_that_lost_its_events_is_named() {
    let test = "an_event_source_that_lost_its_events_is_named";
    let Some(folder) = shared_folder(test, "fourth/sources") else { return };
    let input = folder.join("es.nettrace");
    let said = "My-Broken-Source: ERROR: Exception in Command Processing for EventSource My-Broken-Source: Event ChunkLoadEnd has \
                ID 3 which is already in use.";
    let words_of = |arguments: &[&str]| output_of(arguments).split_whitespace().collect::<Vec<_>>().join(" ");
    let input_name = input.to_str().unwrap();
    assert!(words_of(&["inspect", input_name]).contains(said));
    let explained = words_of(&["explain", input_name]);
    assert!(explained.contains("event_source_faults: EventSources could not write their events"), "{explained}");
    assert!(explained.contains(said), "{explained}");
    let dataset = Dataset::of(&input);
    let diagnostics = dataset.table("diagnostic");
    assert_eq!(
        (diagnostics.texts("code")[0].as_str(), diagnostics.texts("message")[0].as_str()),
        ("event_source_fault", said)
    );
    // .NET Core 3.1 does not describe the field of the event.
    let old = Dataset::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/events-3.1.nettrace"));
    let messages = old.table("diagnostic").texts("message");
    let refused = "Tracequet-Churn-Described: EventSourceException while processing event \"Refused\"";
    assert!(messages.iter().any(|message| message.starts_with(refused)), "{messages:#?}");
}

/// DiagnosticSource ignores specifications that it does not understand, or has already. Only two of its messages say so.
#[test]
fn specifications_that_diagnostic_source_ignores_are_named() {
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/habits/specs.nettrace.zst");
    let ignored = "Microsoft-Diagnostics-DiagnosticSource: DiagnosticSource: Ignoring ";
    let first = "filterAndPayloadSpec '[AS]Depot.Rates/-ParentRatioSampler(all)' because sampling ratio was invalid";
    let second = "wildcard activity source filterAndPayloadSpec rule because a previous rule was defined";
    let dataset = Dataset::of(&input);
    let diagnostics = dataset.table("diagnostic");
    let faults: Vec<String> = diagnostics
        .texts("code")
        .into_iter()
        .zip(diagnostics.texts("message"))
        .filter_map(|(code, message)| (code == "event_source_fault").then_some(message))
        .collect();
    assert_eq!(faults, [first, second].map(|said| format!("{ignored}{said}")));
    let words_of =
        |command: &str| output_of(&[command, input.to_str().unwrap()]).split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [words_of("inspect"), words_of("explain")] {
        assert!(said.contains(&format!("{ignored}{first}")), "{said}");
    }
    let explained = words_of("explain");
    assert!(explained.contains("event_source_faults: EventSources could not write their events"), "{explained}");
    assert!(explained.contains("and correct the `FilterAndPayloadSpecs` that is ignored"), "{explained}");
}

/// Wrappers of COM objects have names in brackets, as groups of roots have. The address of one is no part of its type.
#[test]
fn wrappers_of_com_are_types_of_a_heap_dump() {
    let Some(folder) = shared_folder("wrappers_of_com_are_types_of_a_heap_dump", "fourth/right") else { return };
    let dataset = Dataset::of(&folder.join("rcw.gcdump"));
    let (types, objects) = (dataset.table("type"), dataset.table("heap_object"));
    let names: BTreeMap<u64, String> = types.numbers("type_id").into_iter().zip(types.texts("name")).collect();
    let mut found: Vec<&str> = objects.numbers("type_id").iter().map(|id| names[id].as_str()).collect();
    found.sort_unstable();
    assert_eq!(found, ["App.Node", "[CCW for type App.Callback]", "[RCW App.ComThing]"]);
    assert_eq!(names.len(), 3, "groups of roots are no types: {names:?}");
}

/// A profiler that watches collections switches background collections off.
#[test]
fn what_the_recorder_causes_is_not_judged() {
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/callbacks.corprof");
    let all: Value =
        serde_json::from_str(&output_of(&["explain", input.to_str().unwrap(), "--format", "json"])).unwrap();
    let findings = all[0]["findings"].as_array().unwrap();
    for rule in ["blocking_full", "long_pause", "pause_share", "odd_pause", "gen2_free_on_entry"] {
        let finding = findings.iter().find(|finding| finding["rule"] == rule).unwrap();
        assert_eq!(finding["verdict"], "not_recorded", "{finding:#}");
    }
}
