//! The hash by which datasets know their recordings, with the methods of `hashlib`.

use pyo3::prelude::*;

/// BLAKE3 of bytes that come in pieces.
#[pyclass(module = "tracequet._tracequet")]
#[derive(Default)]
pub struct Blake3(blake3::Hasher);

#[pymethods]
impl Blake3 {
    #[new]
    fn new() -> Blake3 {
        Blake3::default()
    }

    fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    fn hexdigest(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}
