//! Lists the files of `events`, `manifests`, `tables` and `views`, each with its text, for `src/lib.rs`. The text of TOML is
//! written as JSON there: programs read it in less time, with less code, and have a reader of JSON anyway.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use toml::Value;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=build.rs");
    for (folder, extension) in [("events", "toml"), ("manifests", "toml"), ("tables", "toml"), ("views", "sql")] {
        std::fs::write(out.join(format!("{folder}.rs")), listed(&root.join(folder), extension)?)?;
    }
    for name in ["metrics", "presets", "profiles"] {
        let file = root.join(format!("{name}.toml"));
        println!("cargo::rerun-if-changed={}", file.display());
        std::fs::write(out.join(format!("{name}.json")), json(&file)?)?;
    }
    Ok(())
}

/// Name and text of each file of a folder, in the order of names.
fn listed(folder: &Path, extension: &str) -> Result<String> {
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
        match extension {
            "toml" => writeln!(out, "    ({name:?}, {:?}),", json(&path)?)?,
            _ => writeln!(out, "    ({name:?}, include_str!({path:?})),")?,
        }
    }
    out.push_str("]\n");
    Ok(out)
}

/// The content of a file of TOML as JSON.
fn json(path: &Path) -> Result<String> {
    let wrong = |error: &dyn Error| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let value = text.parse::<toml::Table>().map_err(|error| wrong(&error))?;
    let mut out = String::new();
    write_json(&Value::Table(value), &mut out)?;
    Ok(out)
}

fn write_json(value: &Value, out: &mut String) -> Result<()> {
    match value {
        Value::String(text) => write_text(text, out)?,
        Value::Integer(number) => write!(out, "{number}")?,
        // With its point, also where nothing follows it.
        Value::Float(number) => write!(out, "{number:?}")?,
        Value::Boolean(is) => write!(out, "{is}")?,
        Value::Datetime(time) => return Err(format!("a time, {time}, has no form in JSON").into()),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                write_json(item, out)?;
            }
            out.push(']');
        }
        Value::Table(pairs) => {
            // Texts first: who looks for the GUID of a provider does not go through its events.
            let (texts, others): (Vec<_>, Vec<_>) = pairs.iter().partition(|(_, value)| value.is_str());
            out.push('{');
            for (index, (key, value)) in texts.into_iter().chain(others).enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                write_text(key, out)?;
                out.push(':');
                write_json(value, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

fn write_text(text: &str, out: &mut String) -> Result<()> {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            control if control < ' ' => write!(out, "\\u{:04x}", u32::from(control))?,
            other => out.push(other),
        }
    }
    out.push('"');
    Ok(())
}
