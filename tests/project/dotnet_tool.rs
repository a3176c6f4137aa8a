//! The packages of `dotnet tool install tracequet`, as .NET 10's command line reads them: which package it goes to,
//! what it runs there.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::skip::skip;

/// Files of a package, by their paths, with whether they may be run.
fn unpacked(path: &Path) -> BTreeMap<String, (Vec<u8>, bool)> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path).expect("a package")).expect("a zip file");
    let mut files = BTreeMap::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).expect("a file");
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).expect("its bytes");
        let runs = file.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
        files.insert(file.name().expect("a name").into_owned(), (bytes, runs));
    }
    files
}

/// The values of an attribute of all elements of a name.
fn attributes<'t>(text: &'t str, element: &str, attribute: &str) -> Vec<&'t str> {
    let begin = format!("<{element} ");
    let elements = text.split(&begin).skip(1).map(|rest| rest.split_once("/>").expect("an end").0);
    let value =
        |inside: &'t str| inside.split_once(&format!("{attribute}=\""))?.1.split_once('"').map(|(value, _)| value);
    elements.filter_map(value).collect()
}

fn element<'t>(text: &'t str, name: &str) -> &'t str {
    let (_, rest) = text.split_once(&format!("<{name}>")).expect(name);
    rest.split_once(&format!("</{name}>")).expect("its end").0
}

/// What ends in DotnetToolSettings.xml below `tools`: `dotnet` wants exactly one.
fn settings(files: &BTreeMap<String, (Vec<u8>, bool)>) -> (&str, &str) {
    let found: Vec<_> = files.iter().filter(|(path, _)| path.ends_with("/DotnetToolSettings.xml")).collect();
    let [(path, (bytes, _))] = found.as_slice() else { panic!("{:?}", files.keys()) };
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    assert_eq!(text.matches("<DotNetCliTool Version=\"2\">").count(), 1, "{text}");
    assert_eq!(attributes(text, "Command", "Name"), ["tracequet"], "exactly one command: {text}");
    (path, text)
}

fn pack(out: &Path, systems: &[String]) -> std::process::Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(".ci/dotnet_tool.py");
    Command::new("python3").arg(script).arg(out).args(systems).output().expect("python3")
}

#[test]
fn the_packages_of_a_dotnet_tool_lead_to_the_program() {
    const TEST: &str = "the_packages_of_a_dotnet_tool_lead_to_the_program";
    let has_python = Command::new("python3").args(["-c", "import tomllib"]).output().is_ok_and(|o| o.status.success());
    if !has_python {
        return skip(TEST, "there is no python3 of version 3.11 or later", "install Python 3.11 or later");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = PathBuf::from(env!("CARGO_BIN_EXE_tracequet"));
    let here = if cfg!(windows) { "win-x64" } else { "linux-x64" };
    let other = if cfg!(windows) { "linux-x64" } else { "win-x64" };
    let systems = [(here, true), (other, false), ("osx-arm64", false)].map(|(rid, is_real)| {
        let directory = folder.path().join(rid);
        std::fs::create_dir(&directory).expect("room");
        let name = if rid.starts_with("win") { "tracequet.exe" } else { "tracequet" };
        match is_real {
            true => drop(std::fs::copy(&program, directory.join(name)).expect("room")),
            false => std::fs::write(directory.join(name), rid).expect("room"),
        }
        std::fs::write(directory.join("libtracequet_recorder.so"), "a library").expect("room");
        std::fs::write(directory.join("notes.txt"), "of nobody's concern").expect("room");
        format!("{rid}={}", directory.display())
    });
    let out = folder.path().join("packages");
    let output = pack(&out, &systems);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    // `dotnet tool install tracequet` reads the package of this name, which leads to those of the systems.
    let version = env!("CARGO_PKG_VERSION");
    let package = |id: &str| unpacked(&out.join(format!("{id}.{version}.nupkg")));
    let leading = package("tracequet");
    let nuspec = |files: &BTreeMap<String, (Vec<u8>, bool)>, id: &str, kind: &str| {
        let text = String::from_utf8(files[&format!("{id}.nuspec")].0.clone()).expect("UTF-8");
        assert_eq!((element(&text, "id"), element(&text, "version")), (id, version));
        assert_eq!(attributes(&text, "packageType", "name"), [kind]);
        assert!(files.contains_key(element(&text, "readme")) && files.contains_key("[Content_Types].xml"));
        let relations = String::from_utf8(files["_rels/.rels"].0.clone()).expect("UTF-8");
        assert_eq!(attributes(&relations, "Relationship", "Target"), [format!("/{id}.nuspec")]);
    };
    nuspec(&leading, "tracequet", "DotnetTool");
    let (path, text) = settings(&leading);
    assert_eq!(path, "tools/net10.0/any/DotnetToolSettings.xml", "any SDK from .NET 10 on");
    let rids = attributes(text, "RuntimeIdentifierPackage", "RuntimeIdentifier");
    let ids = attributes(text, "RuntimeIdentifierPackage", "Id");
    assert_eq!(rids, [here, other, "osx-arm64"]);
    assert!(leading.keys().filter(|path| path.starts_with("tools/")).count() == 1, "nothing is run from here");

    // It takes the package of its system, and runs the file beside the settings that these name.
    for (rid, id) in rids.iter().zip(ids) {
        let files = package(id);
        nuspec(&files, id, "DotnetToolRidPackage");
        let (path, text) = settings(&files);
        assert_eq!(
            (path, attributes(text, "Command", "Runner")),
            (&*format!("tools/any/{rid}/DotnetToolSettings.xml"), vec!["executable"])
        );
        let entry = attributes(text, "Command", "EntryPoint")[0];
        let (bytes, runs) = &files[&format!("tools/any/{rid}/{entry}")];
        assert!(runs, "{rid}");
        assert!(files.contains_key(&format!("tools/any/{rid}/libtracequet_recorder.so")), "{:?}", files.keys());
        assert!(!files.keys().any(|path| path.ends_with("notes.txt")));
        if *rid == here {
            let installed = folder.path().join(entry);
            std::fs::write(&installed, bytes).expect("room");
            #[cfg(unix)]
            std::fs::set_permissions(&installed, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
            let said = Command::new(&installed).arg("--version").output().expect("a program");
            assert_eq!(String::from_utf8_lossy(&said.stdout).trim(), format!("tracequet {version}"));
        } else {
            assert_eq!(bytes, rid.as_bytes());
        }
    }

    // What is missing is said, and not packed.
    for wrong in [format!("{here}={}", out.display()), format!("solaris-x64={}", folder.path().join(here).display())] {
        let output = pack(&folder.path().join("none"), &[wrong]);
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains("expected a known system"));
    }
}
