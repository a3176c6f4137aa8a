//! Recorded profiler callbacks (`.corprof`): what the reader makes of them, and the recorder in real runtimes.

#[cfg(target_os = "linux")]
mod attach;
#[cfg(unix)]
mod c;
pub mod damage;
#[cfg(target_os = "linux")]
mod dual;
#[cfg(target_os = "linux")]
mod harmless;
#[cfg(target_os = "linux")]
mod heap;
mod holes;
mod pairs;
mod ranges;
#[cfg(target_os = "linux")]
mod readme;
#[cfg(target_os = "linux")]
mod runtime;
mod survived;
mod truth;
