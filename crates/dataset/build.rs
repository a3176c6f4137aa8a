//! Writes the builders of tables, made from `schemas/tables`, for `src/table/builders.rs`.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = std::env::var("OUT_DIR")?;
    std::fs::write(Path::new(&out).join("builders.rs"), tracequet_schemas::generate::builders()?)?;
    Ok(())
}
