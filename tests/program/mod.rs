//! The program as a person or a script runs it: options, output, exit codes, signals, failures.

mod cli;
mod convert;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(unix)]
mod interrupt;
mod lists;
mod outcome;
#[cfg(target_os = "linux")]
mod processors;
#[cfg(unix)]
mod record;
mod same_bytes;
#[cfg(target_os = "linux")]
mod same_rows;
mod terminal;
