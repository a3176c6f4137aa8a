//! What a person sees: lines that fit, names that can be read, colours where they are wanted.

use std::process::Command;

/// Output, errors and exit code of the program, with these variables and no others of terminals.
fn run(arguments: &[&str], variables: &[(&str, &str)]) -> (String, String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracequet"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments);
    for name in ["COLUMNS", "NO_COLOR", "TERM"] {
        command.env_remove(name);
    }
    let output = command.envs(variables.iter().copied()).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().expect("lines")
}

const RULES: &str = "[[rule]]
check = \"gc.count >= 1\"

[[rule]]
check = \"allocation.bytes <= 1\"
severity = \"warn\"

[[rule]]
check = \"cpu.samples >= 1\"
";

#[test]
fn tables_fit_into_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.toml");
    std::fs::write(&rules, RULES).unwrap();
    let sample = "samples/stacks.nettrace";
    let other = "samples/subjects.nettrace";
    let commands: [&[&str]; 3] =
        [&["stats", sample], &["diff", sample, other], &["check", sample, "--rules", rules.to_str().unwrap()]];
    for command in commands {
        let (narrow, _, _) = run(command, &[("COLUMNS", "80")]);
        assert!(narrow.lines().count() > 3 && widest(&narrow) <= 80, "{command:?}: {}\n{narrow}", widest(&narrow));
        let (wide, _, _) = run(command, &[("COLUMNS", "1000")]);
        assert!(widest(&wide) > 80 && !wide.contains('…'), "{command:?}\n{wide}");
        let (some, _, _) = run(command, &[("COLUMNS", "60")]);
        assert!(widest(&some) <= 60, "{command:?}: {}\n{some}", widest(&some));
    }
    let (stats, ..) = run(&["stats", sample], &[("COLUMNS", "80")]);
    assert!(stats.contains('…'), "{stats}");
    let (stats, ..) = run(&["stats", sample], &[("COLUMNS", "1000")]);
    // A method that has no namesake is shown without its arguments.
    assert!(stats.contains("cpu.by_method[Stacks.Spin]"), "{stats}");
}

#[test]
fn verdicts_have_colours_where_they_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.toml");
    std::fs::write(&rules, RULES).unwrap();
    let check = |more: &[&str]| {
        let arguments = ["check", "samples/stacks.nettrace", "--rules", rules.to_str().unwrap()];
        run(&[&arguments[..], more].concat(), &[])
    };
    let (plain, _, code) = check(&[]);
    assert!(code == Some(3) && !plain.contains('\u{1b}'), "{plain}");
    let (colored, ..) = check(&["--color", "always"]);
    for (word, color) in [("FAILED", 31), ("passed", 32), ("warning", 33)] {
        let begins = |text: &str, with: &str| text.lines().filter(|line| line.trim_start().starts_with(with)).count();
        // The words of the head begin a line, too, where it is wrapped.
        let verdict = format!("\u{1b}[{color}m{word}");
        assert_eq!(begins(&colored, &verdict), 1, "{word}: {colored}");
        assert_eq!(colored.matches('\u{1b}').count(), 6, "{colored}");
    }
    let (never, ..) = check(&["--color", "never"]);
    assert_eq!(never, plain);
    // A warning is no failure.
    assert!(plain.contains(" 1 failed"), "{plain}");
}

#[test]
fn an_address_where_the_collection_belongs_is_noticed() {
    let sample = "samples/gc-churn.nettrace";
    let (_, said, code) = run(&["survived", sample, "0x7f0000001000", "3"], &[]);
    assert!(code == Some(1) && said.contains("seem to be swapped: an address comes behind"), "{said}");
    let (_, said, code) = run(&["survived", sample, "4096000", "3"], &[]);
    assert!(code == Some(1) && said.contains("has no collection 4096000"), "{said}");
    assert!(said.contains("seem to be swapped: 3 is a collection"), "{said}");
    let (_, said, code) = run(&["survived", sample, "x", "3"], &[]);
    assert!(code == Some(1) && said.contains("expected the number of a collection"), "{said}");
}

/// A page, a profile or bytes are nothing to read in a terminal.
#[test]
fn what_other_programs_read_is_not_poured_onto_a_terminal() {
    let program = env!("CARGO_BIN_EXE_tracequet");
    let on_terminal = |arguments: &str| {
        let command = format!("{program} {arguments}");
        let mut script = Command::new("script");
        script.current_dir(env!("CARGO_MANIFEST_DIR")).args(["-qec", &command, "/dev/null"]);
        script.stdin(std::process::Stdio::null()).output()
    };
    let formats = ["speedscope", "folded", "pprof", "firefox", "perfetto", "otlp"];
    let exports = formats.map(|format| format!("export samples/stacks.nettrace --format {format}"));
    for arguments in exports.into_iter().chain(["report samples/gc-churn.nettrace".to_owned()]) {
        let Ok(output) = on_terminal(&arguments) else {
            crate::support::skip::skip("what_other_programs_read", "no script", "`apt-get install util-linux`");
            return;
        };
        let shown = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{arguments}: {shown}");
        assert!(shown.contains("the result is not for a terminal, expected -o FILE or a pipe"), "{arguments}: {shown}");
        assert!(shown.len() < 500, "{arguments}: {shown}");
    }
}

#[test]
fn a_recording_without_ranges_is_told_how_to_record_them() {
    let (_, said, code) = run(&["lifetimes", "samples/stacks.nettrace"], &[]);
    assert!(code == Some(1) && said.contains("`tracequet collect --for lifetimes` records them"), "{said}");
}
