//! All integration tests in one binary, one file per subject.

mod callback;
mod callback_damage;
#[cfg(target_os = "linux")]
mod callback_dual;
#[cfg(feature = "tables")]
mod callback_survived;
#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "packed")]
mod hostile;
#[cfg(feature = "packed")]
mod shared;
mod support;
