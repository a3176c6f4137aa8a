//! Lists the files of `events`, `manifests`, `tables` and `views`, each with its text, for `src/lib.rs`.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let root = std::env::var("CARGO_MANIFEST_DIR")?;
    let out = std::env::var("OUT_DIR")?;
    println!("cargo::rerun-if-changed=build.rs");
    for (folder, extension) in [("events", "toml"), ("manifests", "toml"), ("tables", "toml"), ("views", "sql")] {
        let list = listed(&Path::new(&root).join(folder), extension)?;
        std::fs::write(Path::new(&out).join(format!("{folder}.rs")), list)?;
    }
    Ok(())
}

/// Name and text of each file of a folder, in the order of names.
fn listed(folder: &Path, extension: &str) -> Result<String, Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|found| found != extension) {
            return Err(format!("{} is no .{extension} file", path.display()).into());
        }
        let name = path.file_stem().and_then(|stem| stem.to_str()).ok_or("a name that is not UTF-8")?;
        files.push((name.to_owned(), path));
    }
    files.sort();
    let mut out = String::from("&[\n");
    for (name, path) in files {
        writeln!(out, "    ({name:?}, include_str!({path:?})),")?;
    }
    out.push_str("]\n");
    Ok(out)
}
