//! Errors of the library as exceptions of the package (`tracequet/_errors.py`).

use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tracequet::Error;
use tracequet::trace::error::Error as TraceError;

/// The exception that says what an error says, with path and offset where it has them.
pub fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let message = error.to_string();
    let made = match error {
        Error::Io { path, source } => {
            let path = path.display().to_string();
            return match source.raw_os_error() {
                // With a number Python chooses the class: FileNotFoundError, PermissionError.
                Some(number) => PyOSError::new_err((number, source.to_string(), path)),
                None => PyOSError::new_err(message),
            };
        }
        Error::Trace(TraceError::Unreadable { path, offset, .. } | TraceError::Damaged { path, offset, .. }) => {
            make(py, "RecordingError", &message, Some(&path.display().to_string()), Some(*offset))
        }
        Error::Dataset { path, .. } => make(py, "DatasetError", &message, Some(&path.display().to_string()), None),
        error if error.is_of_request() => make(py, "UsageError", &message, None, None),
        Error::OverMemory(_) | Error::TooLarge(_) => make(py, "UsageError", &message, None, None),
        Error::Trace(TraceError::Unreachable(_) | TraceError::Refused(_) | TraceError::TimedOut(_)) => {
            make(py, "ProcessError", &message, None, None)
        }
        _ => make(py, "Error", &message, None, None),
    };
    made.unwrap_or_else(|_| PyRuntimeError::new_err(message))
}

fn make(py: Python<'_>, class: &str, message: &str, path: Option<&str>, offset: Option<u64>) -> PyResult<PyErr> {
    let named = PyDict::new(py);
    named.set_item("path", path)?;
    named.set_item("offset", offset)?;
    let class = py.import("tracequet._errors")?.getattr(class)?;
    Ok(PyErr::from_value(class.call((message,), Some(&named))?))
}
