//! One recording through the layers: reader, events, facts, tables.

mod callback_run;
mod chosen;
mod conversion;
mod course;
mod event_run;
mod gcdump_run;
mod output;
mod process_filter;
mod read;
mod threads;
mod watched;

pub(crate) use conversion::Conversion;
pub(crate) use event_run::EventRun;
#[cfg(feature = "live")]
pub(crate) use output::Limits;
pub(crate) use output::TableOutput;
pub(crate) use read::{options, read_one};
pub use watched::Watch;
#[cfg(feature = "live")]
pub(crate) use watched::Watched;
