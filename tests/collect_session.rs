//! `tracequet collect` stores what it asked for: with it no events of a kind mean that there were none.

use crate::support::dataset::Table;
use crate::support::live::{Folder, Program, each_runtime, run, text};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

#[test]
fn what_was_asked_for_says_what_no_events_mean() {
    for runtime in each_runtime("collect and its session") {
        let program = Program::start(runtime, &["steps", "60000", "10"]);
        let (folder, pid) = (Folder::new(), program.id().to_string());
        let (out, keep, again) = (folder.text("out"), folder.text("kept.nettrace"), folder.text("again"));
        let how = ["--for", "gc,exceptions", "--duration", "2", "--keep", &keep, "-o", &out];
        let output = run(&[&["collect", "-p", &pid], &how[..]].concat());
        assert_eq!(output.status.code(), Some(0), "{}: {}", runtime.name, text(&output));
        let asked = Table::open(&folder.path("out").join("session_provider.parquet"));
        // The private provider has waits to allocate large objects.
        let providers = [RUNTIME.to_owned(), format!("{RUNTIME}Private")];
        assert_eq!((asked.texts("provider_name"), asked.numbers("level")), (providers.to_vec(), vec![4, 4]));
        let filters = vec!["all".to_owned(); 2];
        assert_eq!((asked.numbers("keywords"), asked.texts("event_filter")), (vec![0x8039, 0x1], filters));
        assert_eq!(run(&["convert", "-q", &keep, "-o", &again]).status.code(), Some(0));
        let figure = |dataset: &str, name: &str| {
            let stats = run(&["stats", dataset, "--json"]);
            let all: serde_json::Value = serde_json::from_slice(&stats.stdout).expect("JSON");
            let found = all[0]["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == name).cloned();
            let found = found.unwrap_or_else(|| panic!("no {name}"));
            (found["value"].as_f64(), found["missing"].as_str().unwrap_or_default().to_owned())
        };
        // The program throws nothing, and that was seen.
        assert_eq!(figure(&out, "exception.count"), (Some(0.0), String::new()), "{}", runtime.name);
        assert_eq!(figure(&out, "contention.count"), (None, "not_asked".into()), "{}", runtime.name);
        assert!(figure(&out, "gc.count").0.is_some_and(|count| count > 0.0), "{}", runtime.name);
        // The recording itself does not say what was asked for.
        assert_eq!(figure(&again, "exception.count"), (None, "not_seen".into()), "{}", runtime.name);
    }
}
