//! What makes runs comparable, of runs of one program whose collector was set up in several ways.

use crate::support::live::{Folder, Program, command, each_runtime, run, text};

#[test]
fn runs_whose_collector_is_set_up_otherwise_are_not_comparable() {
    for runtime in each_runtime("fingerprints of the collector").iter().filter(|runtime| !runtime.is_old()).take(1) {
        let folder = Folder::new();
        let (out, rules) = (folder.text("lake"), folder.text("rules.toml"));
        std::fs::write(&rules, "rules = ['gc.count <= baseline * 100']").expect("written");
        for (kind, settings) in [
            ("plain", &[][..]),
            ("again", &[]),
            ("limit", &[("GCHeapHardLimit", "0x10000000")]),
            ("alone", &[("gcConcurrent", "0")]),
            ("fixed", &[("gcServer", "1"), ("GCDynamicAdaptationMode", "0")]),
            ("datas", &[("gcServer", "1"), ("GCDynamicAdaptationMode", "1")]),
        ] {
            let mut program = command(runtime, &["steps", "60000", "10"]);
            // With a fixed budget the collector does not adapt.
            program.env_remove("DOTNET_GCgen0size");
            program.envs(settings.iter().map(|(name, value)| (format!("DOTNET_{name}"), *value)));
            let program = Program::start_as(program, runtime);
            let (pid, label) = (program.id().to_string(), format!("kind={kind}"));
            let how = ["--for", "gc", "--duration", "3s", "-o", &out, "--append", "--label", &label];
            let output = run(&[&["collect", "-p", &pid], &how[..]].concat());
            assert_eq!(output.status.code(), Some(0), "{kind}: {}", text(&output));
        }
        let check = |new: &str, base: &str| {
            let [new, base] = [new, base].map(|kind| format!("kind={kind}"));
            text(&run(&["check", &out, "--rules", &rules, "--new", &new, "--baseline", &base]))
        };
        let same = check("again", "plain");
        assert!(same.contains("1 passed"), "{}: {same}", runtime.name);
        for (new, base, why) in [
            ("limit", "plain", "GC heap hard limit was none, now 268435456 bytes"),
            ("alone", "plain", "startup flags was CONCURRENT_GC, now none"),
            ("datas", "fixed", "DATAS was off, now on"),
        ] {
            let said = check(new, base);
            assert!(
                said.replace("\n      ", " ").contains(&format!("not comparable: {why}")),
                "{}: {said}",
                runtime.name
            );
        }
        let server = check("fixed", "plain");
        assert!(server.contains("not comparable: "), "{}: {server}", runtime.name);
    }
}
