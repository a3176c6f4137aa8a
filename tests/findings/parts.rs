//! Findings of the first seconds of a recording, and of a recording that lacks some of its events.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::expected::shared_folder;
use crate::support::lossy::without_blocks;
use crate::support::mutate::Random;
use crate::support::program::run;

/// Programs with a bug, and what stands first for their first three seconds: rule and own method.
const FIRST: &[(&str, &str, &str)] = &[
    ("bugs/sync", "blocked_workers", "Shop.Prices.Answer"),
    ("bugs/large", "large_object_triggers", "Shop.Pictures.Answer"),
    ("bugs/boxing", "boxing", "Shop.Totals.Answer"),
    ("bugs/convoy", "lock_convoy", "Shop.Stock.Answer"),
    ("bugs/exceptions", "exceptions", "Shop.Orders.Read"),
    ("bugs/queries", "n_plus_one", "Shop.Baskets.AnswerAsync"),
    ("bugs/calls", "n_plus_one_calls", "Shop.Shelves.AnswerAsync"),
    ("fourth/bugs/finalizer-buggy.all", "blocked_finalizer", "Contoso.Legacy.GatewayConnection.Finalize"),
    ("fourth/bugs/poolsleep-buggy.all", "blocked_workers", "Contoso.Polling.StatusHandler.WaitFor"),
    ("fourth/bugs/quadheavy-buggy.all", "hot_method", "Contoso.Crm.Deduplicator.Distinct"),
    ("fourth/bugs/regexnew-buggy.all", "code_made_again", "Contoso.Validation.AddressRule.Check"),
    ("fourth/bugs/syncasync-buggy.all", "blocked_workers", "Contoso.Pricing.PriceService.Quote"),
];

/// In three seconds memory that grows looks as in a program that starts: `explain` says that it needs more time.
const TOO_SHORT: &[&str] = &["bugs/leak", "fourth/bugs/cachegrow-buggy.all"];

/// Programs that do the same work without the bugs.
const HEALTHY: &[&str] = &[
    "bugs/sync-clean",
    "bugs/leak-clean",
    "bugs/queries-clean",
    "fourth/bugs/regexnew-healthy.all",
    "fourth/bugs/syncasync-healthy.all",
    "fourth/bugs/healthy_fillcache-healthy.allplus",
];

/// A recording of the project, or one of the shared ones where they are there.
fn recording(test: &str, name: &str) -> Option<PathBuf> {
    let name = format!("{name}.nettrace.zst");
    match name.strip_prefix("fourth/") {
        Some(name) => Some(shared_folder(test, "fourth")?.join(name)),
        None => Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name)),
    }
}

/// The findings of the only recording, the most important first.
fn explained(input: &Path) -> Vec<Value> {
    let made = run(&["explain", input.to_str().unwrap(), "--format", "json"]);
    assert!(matches!(made.code, Some(0 | 2)), "{}: {}", input.display(), made.err);
    let all: Value = serde_json::from_str(&made.out).unwrap();
    all[0]["findings"].as_array().unwrap().clone()
}

fn warnings(found: &[Value]) -> Vec<&Value> {
    found.iter().filter(|finding| finding["verdict"] == "warning").collect()
}

#[test]
fn three_seconds_name_the_same_cause_or_say_why_not() {
    let test = "three_seconds_name_the_same_cause_or_say_why_not";
    let folder = tempfile::tempdir().unwrap();
    let first_seconds = |name: &str| {
        let out = folder.path().join(name.replace('/', "-"));
        let (input, output) = (recording(test, name)?, out.to_str().unwrap().to_owned());
        let cut = ["convert", "-q", input.to_str().unwrap(), "--to", "3s", "--lifetimes", "-o", &output];
        let made = run(&cut);
        assert!(matches!(made.code, Some(0 | 2)), "{name}: {}", made.err);
        Some(out)
    };
    for (name, rule, method) in FIRST {
        let Some(input) = first_seconds(name) else { continue };
        let found = explained(&input);
        let (of, by) = (&found[0]["rule"], &found[0]["own_method"]);
        assert_eq!((of.as_str(), by.as_str()), (Some(*rule), Some(*method)), "{name}: {:#}", found[0]);
    }
    for name in TOO_SHORT {
        let Some(input) = first_seconds(name) else { continue };
        let text = run(&["explain", input.to_str().unwrap()]).out;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (_, said) = text.split_once("Too little for a verdict ").unwrap_or_else(|| panic!("{name}: {text}"));
        assert!(
            said.contains("leak: 5.00 s are needed, and there are ") || said.contains("leak: There is no"),
            "{name}: {said}"
        );
        assert!(said.contains("tracequet collect --for lifetimes --duration "), "{name}: {said}");
    }
    for name in HEALTHY {
        let Some(input) = first_seconds(name) else { continue };
        let found = explained(&input);
        assert!(warnings(&found).is_empty(), "{name}: {:#?}", warnings(&found));
    }
}

/// A tenth of the blocks is gone: that is said, and nothing is warned of that the whole recording does not have.
#[test]
fn a_loss_is_said_and_makes_no_warning() {
    let test = "a_loss_is_said_and_makes_no_warning";
    let folder = tempfile::tempdir().unwrap();
    let names = FIRST.iter().map(|(name, ..)| *name).chain(TOO_SHORT.iter().chain(HEALTHY).copied());
    let mut random = Random(48);
    for name in names {
        let Some(input) = recording(test, name) else { continue };
        let bytes = zstd::decode_all(std::fs::File::open(&input).unwrap()).unwrap();
        let (lossy, lost) = without_blocks(&bytes, &mut random);
        assert!(lost > 0 && lossy.len() < bytes.len(), "{name}");
        let cut = folder.path().join("lossy.nettrace");
        std::fs::write(&cut, lossy).unwrap();
        let of = |found: &[Value]| -> BTreeMap<String, String> {
            let verdict = |one: &Value| [&one["rule"], &one["verdict"]].map(|text| text.as_str().unwrap().to_owned());
            found.iter().map(verdict).map(|[rule, verdict]| (rule, verdict)).collect()
        };
        let (whole, found) = (of(&explained(&input)), explained(&cut));
        assert!(
            matches!(of(&found)["lost_events"].as_str(), "info" | "warning"),
            "{name}: {lost} blocks: {:?}",
            of(&found)
        );
        for warning in warnings(&found).into_iter().filter(|warning| warning["of_recording"] != true) {
            let known = &whole[warning["rule"].as_str().unwrap()];
            assert!(matches!(known.as_str(), "info" | "warning"), "{name}: {known} without the loss, {warning:#}");
        }
    }
}
