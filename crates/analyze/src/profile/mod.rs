//! Profiles of call stacks: read from the tables of a dataset, written in the formats of the tools that draw them.
//!
//! A [`Profile`] is what was sampled (processor time, allocations, exceptions, waits, or the rows of any table with
//! stacks), thread by thread, each sample with its call stack and a weight.

mod choice;
mod firefox;
mod folded;
mod labels;
mod model;
pub mod perfetto;
mod pprof;
mod protobuf;
mod read;
mod speedscope;
mod strings;

use std::io::{self, Write};

pub use choice::{Choice, TABLES};
pub use model::{Code, Function, Profile, ProfileFormat, ProfileFrame, Sample, ThreadSamples, Unit, What};
pub use read::{read, read_chosen};

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

    /// Writes the folded stacks with the largest weights, the largest first.
    pub fn write_largest(&self, by_thread: bool, most: usize, out: &mut dyn Write) -> io::Result<()> {
        folded::write_largest(self, by_thread, most, out)
    }

    /// Writes how it differs from a base. Only folded stacks and pprof can say that.
    pub fn write_difference(
        &self,
        base: &Profile,
        format: ProfileFormat,
        by_thread: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match format {
            ProfileFormat::Folded => folded::write_difference(self, base, by_thread, out),
            ProfileFormat::Pprof => out.write_all(&pprof::encode_difference(self, base)?),
            ProfileFormat::Speedscope | ProfileFormat::Firefox => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "a difference is folded stacks or pprof"))
            }
        }
    }
}
