//! `tracequet collect` stores what it asked for: with it no events of a kind mean that there were none.

use crate::support::dataset::Table;
use crate::support::live::{self, Folder, Program, each_runtime, ended, run, text, tracequet};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// Start and Stop events of an EventSource are pairs by their activity ids, which `--for requests` records.
#[test]
fn starts_and_stops_have_activity_ids_where_they_are_recorded() {
    for runtime in each_runtime("activity ids").iter().filter(|runtime| !runtime.is_old()) {
        let folder = Folder::new();
        let recorded = |name: &str, more: &[&str]| {
            let out = folder.text(name);
            let program = live::command(runtime, &["subjects"]);
            let mut command = tracequet(&["collect", "--providers", "Tracequet-Subjects", "-o", &out]);
            command.args(more).arg("--").arg(program.get_program()).args(program.get_args());
            let output = ended(command.spawn().expect("it starts"), "launch");
            assert_eq!(output.status.code(), Some(0), "{}: {}", runtime.name, text(&output));
            let table = |table: &str| Table::open(&folder.path(name).join(format!("{table}.parquet")));
            let naps = table("activity").texts("name").iter().filter(|name| *name == "Nap").count();
            let messages = table("diagnostic").texts("message");
            (naps, messages.into_iter().find(|message| message.contains("TplEventSource:0x80")))
        };
        let (naps, diagnostic) = recorded("without", &[]);
        assert!(
            naps == 0 && diagnostic.is_some_and(|text| text.contains("Tracequet-Subjects/Nap")),
            "{}",
            runtime.name
        );
        let (naps, diagnostic) = recorded("with", &["--for", "requests"]);
        assert!(naps > 2 && diagnostic.is_none(), "{}: {naps} naps, {diagnostic:?}", runtime.name);
    }
}

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

/// A control group, in the layout that this system has.
#[cfg(target_os = "linux")]
struct Group(Vec<std::path::PathBuf>);

#[cfg(target_os = "linux")]
impl Group {
    /// One that allows this much, with a process in it. `None` where groups cannot be made.
    fn of(process: u32, memory_bytes: u64, cpu_millicores: u64) -> Option<Group> {
        let name = format!("tracequet-test-{process}");
        let (memory, cpu, quota) =
            (memory_bytes.to_string(), format!("{} 100000", cpu_millicores * 100), cpu_millicores * 100);
        let quota = quota.to_string();
        // Where a group is mounted, and its files with what is written to them.
        type Mount<'t> = (&'t str, &'t [(&'t str, &'t str)]);
        let layouts: [&[Mount<'_>]; 2] = [
            &[("", &[("memory.max", &memory), ("cpu.max", &cpu)])],
            &[("memory", &[("memory.limit_in_bytes", &memory)]), ("cpu", &[("cpu.cfs_quota_us", &quota)])],
        ];
        layouts.iter().find_map(|layout| {
            let mut group = Group(Vec::new());
            for (mount, limits) in layout.iter() {
                let folder = std::path::Path::new("/sys/fs/cgroup").join(mount).join(&name);
                std::fs::create_dir(&folder).ok()?;
                group.0.push(folder.clone());
                for (file, limit) in limits.iter() {
                    // Without `create`: a new file with this name would limit nothing.
                    let mut file = std::fs::OpenOptions::new().write(true).open(folder.join(file)).ok()?;
                    std::io::Write::write_all(&mut file, limit.as_bytes()).ok()?;
                }
                std::fs::write(folder.join("cgroup.procs"), process.to_string()).ok()?;
            }
            Some(group)
        })
    }
}

#[cfg(target_os = "linux")]
impl Drop for Group {
    fn drop(&mut self) {
        // The process is in them until it has ended.
        for folder in &self.0 {
            let gone = |_: &u32| std::fs::remove_dir(folder).is_ok() || !folder.exists();
            (0..100).find(|attempt| {
                gone(attempt) || {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    false
                }
            });
        }
    }
}

/// What a container allows belongs to what makes runs comparable.
#[cfg(target_os = "linux")]
#[test]
fn limits_of_control_groups_are_recorded() {
    const TEST: &str = "limits_of_control_groups_are_recorded";
    let Some(runtime) = each_runtime(TEST).first() else { return };
    // Declared before the program, so that it is removed after the program has ended.
    let group;
    let program = Program::start(runtime, &["steps", "60000", "10"]);
    let (folder, pid) = (Folder::new(), program.id().to_string());
    let collect = |name: &str| {
        let out = folder.text(name);
        let output = run(&["collect", "-p", &pid, "--for", "gc", "--duration", "1", "-o", &out]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        let trace = Table::open(&folder.path(name).join("trace.parquet"));
        let stats = run(&["stats", &out, "--json"]);
        let all: serde_json::Value = serde_json::from_slice(&stats.stdout).expect("JSON");
        let fingerprint = all[0]["fingerprint"]["limits of the container"].as_str().map(str::to_owned);
        let limits = (trace.optional("memory_limit_bytes")[0], trace.optional("cpu_limit_millicores")[0]);
        (trace.bools("cgroup_known")[0], limits, fingerprint)
    };
    let (is_known, limits, said) = collect("free");
    assert_eq!(said.as_deref().unwrap_or_default().is_empty(), !is_known, "{limits:?}");
    group = Group::of(program.id(), 1 << 30, 750);
    if group.is_none() {
        return crate::support::skip::note(
            TEST,
            "no control group can be made here",
            "run the tests as root: they make control groups",
        );
    }
    let limited = collect("limited");
    let expected = "1073741824 bytes and 750 millicores".to_owned();
    assert_eq!(limited, (true, (Some(1 << 30), Some(750)), Some(expected.clone())));
    assert_ne!(said, Some(expected));
    let compared = run(&["diff", &folder.text("limited"), &folder.text("free")]);
    assert!(text(&compared).contains("not comparable: limits of the container"), "{}", text(&compared));
}
