//! Writes the structs of rows, made from `schemas/tables`, for `src/fact.rs`.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = std::env::var("OUT_DIR")?;
    std::fs::write(Path::new(&out).join("rows.rs"), tracequet_schemas::generate::rows()?)?;
    Ok(())
}
