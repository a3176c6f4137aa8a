//! Writes what is made from `schemas/tables`: the builders of tables for `src/table/builders.rs`, and their columns as
//! types for `src/read/tables.rs`.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = std::env::var("OUT_DIR")?;
    std::fs::write(Path::new(&out).join("builders.rs"), tracequet_schemas::generate::builders()?)?;
    std::fs::write(Path::new(&out).join("columns.rs"), tracequet_schemas::generate::columns()?)?;
    Ok(())
}
