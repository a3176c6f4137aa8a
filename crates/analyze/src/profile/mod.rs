//! Profiles of call stacks: read from the tables of a dataset, written in the formats of the tools that draw them.
//!
//! A [`Profile`] is what was sampled (processor time, allocations, exceptions, waits, or the rows of any table with
//! stacks), thread by thread, each sample with its call stack and a weight.

mod choice;
mod export;
mod firefox;
mod folded;
mod heap;
mod labels;
mod model;
mod otlp;
pub mod perfetto;
mod pprof;
mod protobuf;
mod read;
mod spans;
mod speedscope;
mod strings;

use std::io::{self, Write};

pub use choice::{Choice, TABLES};
pub use export::Export;
pub use heap::of as of_heap;
pub use labels::Labels;
pub use model::{Code, Function, Profile, ProfileFormat, ProfileFrame, Sample, ThreadSamples, Unit, What};
pub use read::{read, read_chosen};

impl Profile {
    /// Writes it. With `by_thread` each stack of the folded format begins with its thread; the other formats separate threads anyway.
    /// A trace for Perfetto and profiles of OpenTelemetry have more than a profile: see [`Export`].
    pub fn write(&self, format: ProfileFormat, by_thread: bool, out: &mut dyn Write) -> io::Result<()> {
        match format {
            ProfileFormat::Speedscope => speedscope::write(self, out),
            ProfileFormat::Folded => folded::write(self, by_thread, out),
            ProfileFormat::Pprof => out.write_all(&pprof::encode(self)?),
            ProfileFormat::Firefox => firefox::write(self, out),
            ProfileFormat::Otlp | ProfileFormat::Perfetto => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "it has more than a profile"))
            }
        }
    }

    /// Writes the folded stacks with the largest weights, the largest first.
    pub fn write_largest(&self, by_thread: bool, most: usize, out: &mut dyn Write) -> io::Result<()> {
        folded::write_largest(self, by_thread, most, out)
    }

    fn write_difference(
        &self,
        base: &Profile,
        format: ProfileFormat,
        by_thread: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match format {
            ProfileFormat::Folded => folded::write_difference(self, base, by_thread, out),
            ProfileFormat::Pprof => out.write_all(&pprof::encode_difference(self, base)?),
            _ => Err(io::Error::new(io::ErrorKind::Unsupported, "a difference is folded stacks or pprof")),
        }
    }
}
