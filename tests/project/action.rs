//! The scripts of the action and of a release, as the workflows run them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tracequet::dataset::read::Dataset;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The scripts of action.yml, by the environment that it gives them.
#[test]
fn the_scripts_of_the_action_convert_and_check() {
    let text = std::fs::read_to_string(root().join("action.yml")).unwrap();
    let called: Vec<&str> = text.split("$GITHUB_ACTION_PATH/").skip(1).map(|t| t.split('"').next().unwrap()).collect();
    assert_eq!(called, ["action/install.sh", "action/check.sh"]);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let bin = Path::new(env!("CARGO_BIN_EXE_tracequet")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let script = |name: &str| {
        let mut script = std::process::Command::new(root().join(name));
        script.current_dir(root()).env("PATH", &path).env_remove("GITHUB_STEP_SUMMARY");
        script
    };
    // A program on the PATH is used, and none is installed.
    let installed = script("action/install.sh").args(["latest", "/nonexistent"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&installed.stdout).trim(), bin.to_str().unwrap());
    let check = |kind: &str, baseline: &str| {
        let mut check = script("action/check.sh");
        check.env("RECORDINGS", format!("samples/ci/recordings/{kind}-[1-4].nettrace.zst"));
        check.env("RULES", "samples/ci/perf.toml").env("DATASET", at("lake")).env("REPORTS", at(kind));
        check.env("LABELS", format!("branch={kind}\n\nnote=two words\n")).env("NEW", format!("branch={kind}"));
        let output = check.env("BASELINE", baseline).env("GITHUB_STEP_SUMMARY", at("steps.md")).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, out) = check("main", "");
    assert_eq!(code, Some(2), "rules about a baseline need one: {out}");
    // A baseline without any recording, such as a misspelled one, does not let a check pass.
    let (code, out) = check("main", "branch=mian");
    assert!(code == Some(2) && out.contains("the baseline has no recording"), "{out}");
    // The first run of the branch that others are compared with.
    std::fs::remove_dir_all(at("lake")).unwrap();
    let (code, out) = check("main", "branch=main");
    assert!(code == Some(0) && out.contains(" 0 failed, 0 undecided"), "{out}");
    let summary = std::fs::read_to_string(at("main/summary.md")).unwrap();
    assert!(summary.contains("the first recordings of the baseline: later ones are compared with them"), "{summary}");
    assert_eq!(Dataset::open(at("lake")).unwrap().recordings().len(), 4, "the run is kept");
    let (code, out) = check("change", "branch=main");
    assert_eq!(code, Some(3), "{out}");
    assert!(std::fs::read_to_string(at("change/junit.xml")).unwrap().contains("failures=\"1\""));
    let summary = std::fs::read_to_string(at("change/summary.md")).unwrap();
    assert!(std::fs::read_to_string(at("steps.md")).unwrap().ends_with(&summary) && summary.contains("FAILED"));
    let lake = Dataset::open(at("lake")).unwrap();
    assert_eq!(lake.recordings()[0].labels["note"], "two words");
    let (code, _) = check("nothing", "");
    assert_eq!(code, Some(1), "a pattern that no file has");
}

/// A folder with a program that is a script of `bash`.
fn script(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/usr/bin/env bash\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn run_in(folder: &Path, command: &str, environment: &[(&str, &str)]) -> (bool, String) {
    let mut bash = Command::new("bash");
    let output =
        bash.args(["-euc", command]).current_dir(folder).envs(environment.iter().copied()).output().expect("bash");
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    (output.status.success(), text)
}

/// A release with a packed archive, from which the script takes the program of each system.
#[test]
fn the_program_of_each_system_is_installed() {
    let systems = [
        ("Linux x86_64", "", "x86_64-unknown-linux-gnu", "tar.gz"),
        ("Darwin arm64", "", "aarch64-apple-darwin", "tar.gz"),
        ("MINGW64_NT-10.0-20348 x86_64", "X64", "x86_64-pc-windows-msvc", "zip"),
        ("MINGW64_NT-10.0-26100 x86_64", "ARM64", "aarch64-pc-windows-msvc", "zip"),
    ];
    for (system, processor, target, kind) in systems {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        ["bin", "release"].iter().for_each(|name| std::fs::create_dir(at(name)).unwrap());
        script(&at("bin"), "uname", &format!("echo '{system}'"));
        script(&at("bin"), "gh", r#"echo "$@" > "$RELEASE/asked"; cp "$RELEASE"/tracequet-* "$RELEASE/SHA256SUMS" ."#);
        if kind == "zip" {
            script(&at("bin"), "cygpath", r#"[ "$1" = -w ] && echo "WINDOWS:$2""#);
        }
        let name = format!("tracequet-1.2.3-{target}");
        let pack = match kind {
            "zip" => format!("zip -q -r {name}.zip {name}"),
            _ => format!("tar -czf {name}.tar.gz {name}"),
        };
        let made = run_in(
            &at("release"),
            &format!(
                "mkdir -p {name}/recorder; echo program > {name}/tracequet; {pack}; rm -r {name}; \
                 sha256sum * > SHA256SUMS"
            ),
            &[],
        );
        assert!(made.0, "{made:?}");
        let install = root().join("action/install.sh");
        let (path, release) = (format!("{}:/usr/bin:/bin", at("bin").display()), at("release"));
        let environment = [
            ("PATH", path.as_str()),
            ("RUNNER_ARCH", processor),
            ("REPOSITORY", "owner/tracequet"),
            ("RELEASE", release.to_str().unwrap()),
        ];
        let command = format!("{} v1.2.3 {}", install.display(), at("installed").display());
        // A second time over what the first has left.
        for _ in 0..2 {
            let (is_done, printed) = run_in(folder.path(), &command, &environment);
            assert!(is_done, "{system}: {printed}");
            let place = std::fs::canonicalize(at("installed")).unwrap().display().to_string();
            let expected = if kind == "zip" { format!("WINDOWS:{place}") } else { place };
            assert_eq!(printed.lines().next(), Some(expected.as_str()), "{system}: {printed}");
        }
        assert_eq!(std::fs::read_to_string(at("installed/tracequet")).unwrap(), "program\n");
        let asked = std::fs::read_to_string(at("release/asked")).unwrap();
        assert!(asked.contains(&format!("tracequet-*-{target}.{kind} ")) && asked.contains(" v1.2.3"), "{asked}");
        // An archive that is not the one of the sums.
        std::fs::write(at("release").join(format!("{name}.{kind}")), "another").unwrap();
        assert!(!run_in(folder.path(), &command, &environment).0, "{system}");
    }
}

/// The step of the release that makes an archive, on files that stand for what was built.
#[test]
fn an_archive_of_a_release_has_all_programs() {
    let workflow = std::fs::read_to_string(root().join(".github/workflows/release.yml")).unwrap();
    let (_, step) = workflow.split_once("- name: Archive\n        run: |\n").unwrap();
    let (step, _) = step.split_once("\n      - name:").unwrap();
    let programs: Vec<String> = std::fs::read_dir(root().join("crates/recorder/src/bin"))
        .unwrap()
        .map(|entry| PathBuf::from(entry.unwrap().file_name()).file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(programs, ["tracequet-attach"]);
    let (linux, mac) = ("libtracequet_duckdb.so", "libtracequet_duckdb.dylib");
    let systems = [
        ("x86_64-unknown-linux-gnu", ["tracequet", "tracequet-attach", "libtracequet_recorder.so"].as_slice(), linux),
        ("x86_64-apple-darwin", &["tracequet", "tracequet-attach", "libtracequet_recorder.dylib"], mac),
        ("x86_64-unknown-linux-musl", &["tracequet"], ""),
    ];
    for (target, files, extension) in systems {
        let folder = tempfile::tempdir().unwrap();
        let built = folder.path().join("target").join(target).join("release");
        std::fs::create_dir_all(&built).unwrap();
        std::fs::create_dir_all(folder.path().join("crates/recorder")).unwrap();
        std::fs::create_dir_all(folder.path().join("crates/duckdb")).unwrap();
        for file in ["Cargo.toml", "crates/duckdb/package.py"] {
            std::fs::copy(root().join(file), folder.path().join(file)).unwrap();
        }
        for file in files {
            std::fs::write(built.join(file), file).unwrap();
        }
        for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "crates/recorder/corprof.h"] {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        script(&folder.path().join("bin"), "python", "exec python3 \"$@\"");
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", folder.path().join("bin").display());
        let duckdb = if extension.is_empty() { "" } else { "linux_amd64" };
        if !extension.is_empty() {
            std::fs::write(built.join(extension), extension).unwrap();
        }
        let environment = [("TARGET", target), ("NAME", "made"), ("DUCKDB", duckdb), ("PATH", &path)];
        let made = run_in(folder.path(), step, &environment);
        assert!(made.0, "{target}: {made:?}");
        let (_, listed) = run_in(folder.path(), "tar -tzf made.tar.gz", &[]);
        for file in files.iter().chain(&["recorder/corprof.h", "LICENSE-MIT"]) {
            assert!(listed.lines().any(|line| line == format!("made/{file}")), "{target} {file}: {listed}");
        }
        let has_extension = listed.lines().any(|line| line == "made/duckdb/tracequet.duckdb_extension");
        assert_eq!(has_extension, !extension.is_empty(), "{target}: {listed}");
        // A program or an extension that was not built makes no release.
        for file in [files[files.len() - 1], extension] {
            if file.is_empty() {
                continue;
            }
            std::fs::remove_file(built.join(file)).unwrap();
            assert!(run_in(folder.path(), "rm -rf made made.tar.gz", &[]).0);
            assert!(!run_in(folder.path(), step, &environment).0, "{target} {file}");
            std::fs::write(built.join(file), file).unwrap();
        }
    }
}
