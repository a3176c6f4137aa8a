//! The part of the Python package `tracequet` that is written in Rust: tables of recordings and datasets as streams of
//! Arrow batches, and the command line. Everything that a user of the package sees is in `package/tracequet`.

mod capsule;
mod dataset;
mod errors;
mod feed;
mod hash;
mod inputs;
mod interrupt;
mod recordings;
mod stream;
mod values;

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs a command line, the program's name first, and gives its exit code. The process may end in it (Ctrl+C).
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| tracequet_cli::code(arguments))
}

#[pymodule]
fn _tracequet(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(inputs::expand, module)?)?;
    module.add_function(wrap_pyfunction!(inputs::is_recording_name, module)?)?;
    module.add_class::<hash::Blake3>()?;
    module.add_class::<recordings::Recordings>()?;
    module.add_class::<dataset::Dataset>()?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<stream::Batches>()?;
    module.add_class::<stream::Schema>()
}
