//! Profiles of call stacks: read from the tables of a dataset, written in the formats of the tools that draw them.
//!
//! A [`Profile`] is what was sampled (processor time, allocations, exceptions, waits for locks), thread by thread, each
//! sample with its call stack and a weight.

mod firefox;
mod folded;
mod model;
mod pprof;
mod read;
mod speedscope;
mod strings;

use std::io::{self, Write};

pub use model::{Code, Function, Pause, Profile, ProfileFormat, ProfileFrame, Sample, ThreadSamples, Unit, What};
pub use read::{TABLES, read};

impl Profile {
    /// Writes it. With `by_thread` each stack of the folded format begins with its thread; the other formats separate
    /// threads anyway.
    pub fn write(&self, format: ProfileFormat, by_thread: bool, out: &mut dyn Write) -> io::Result<()> {
        match format {
            ProfileFormat::Speedscope => speedscope::write(self, out),
            ProfileFormat::Folded => folded::write(self, by_thread, out),
            ProfileFormat::Pprof => out.write_all(&pprof::encode(self)?),
            ProfileFormat::Firefox => firefox::write(self, out),
        }
    }
}
