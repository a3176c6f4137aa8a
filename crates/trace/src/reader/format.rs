//! The front door of all readers: which format a recording has is seen by its first bytes, never by its name.

use super::{End, Order, Visitor, callback, etl, foreign, gcdump, nettrace};
use crate::error::{Error, Result};
use crate::source::Input;

/// The formats of recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// NetPerf and NetTrace ([`nettrace`]).
    EventPipe,
    /// A Windows event log ([`etl`]).
    Etl,
    /// A heap dump ([`gcdump`]), which has no events.
    GcDump,
    /// Profiler callbacks ([`callback`]), which have a reader and a visitor of their own.
    Callbacks,
}

impl Format {
    /// The format of a recording that begins with these bytes ([`crate::source::HEAD`] of them are enough).
    pub fn detect(head: &[u8]) -> Option<Format> {
        // Before the others of its serializer.
        if gcdump::is_gcdump(head) {
            return Some(Format::GcDump);
        }
        if nettrace::is_eventpipe(head) || head.starts_with(b"Nettrace") {
            return Some(Format::EventPipe);
        }
        if callback::is_corprof(head) {
            return Some(Format::Callbacks);
        }
        etl::is_etl(head).then_some(Format::Etl)
    }
}

/// Reads a recording of events, of any format, from its first byte to its end and hands everything to `visitor`.
pub fn read(input: Input, order: Order, visitor: &mut dyn Visitor) -> Result<End> {
    if let Some((what, expected)) = foreign::known(input.head()) {
        let (what, expected) = (what.to_owned(), expected.to_owned());
        return Err(Error::Unreadable { path: input.path().to_owned(), offset: 0, what, expected });
    }
    match Format::detect(input.head()) {
        Some(Format::EventPipe) => nettrace::read(input, order, visitor),
        Some(Format::Etl) => etl::read(input, order, visitor),
        Some(Format::GcDump) => Err(Error::Unreadable {
            path: input.path().to_owned(),
            offset: 0,
            what: "a heap dump, which has no events".into(),
            expected: "a recording of events; convert and heap read heap dumps".into(),
        }),
        Some(Format::Callbacks) => Err(Error::Unreadable {
            path: input.path().to_owned(),
            offset: 0,
            what: "a recording of callbacks".into(),
            expected: "a recording of events".into(),
        }),
        // A file that was cut inside its magic gets its message from the format that it began as.
        None if b"Nettrace".starts_with(input.head()) => nettrace::read(input, order, visitor),
        None => Err(Error::Unreadable {
            path: input.path().to_owned(),
            offset: 0,
            what: "no recording that tracequet knows".into(),
            expected: "\"Nettrace\", \"!FastSerialization.1\" (.netperf, .gcdump), \".corprof\" or the header buffer \
                of an .etl"
                .into(),
        }),
    }
}
