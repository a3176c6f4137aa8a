//! Recordings that a .NET process makes of itself, through its diagnostics port.
//!
//! ```text
//!  runtime --socket--> pump --> spool (a file) --> reader, conversion
//!     ^                 |
//!     +--- StopTracing -+-- Ctrl+C, time, size, a trigger
//! ```
//! The port itself (finding it, commands, sessions) is the crate `tracequet-diagnostics-port`.

mod flush;
mod launch;
mod presets;
mod recording;
mod spool;

pub use diagnostics_port as port;
pub use flush::{dump_heap, flush_types};
pub use launch::{Launched, Listener, exit_text, launch, listen};
pub use presets::{
    Preset, Presets, ProviderText, Wanted, merge, parse_clr_events, parse_event_ids, parse_level, parse_provider_texts,
    parse_providers,
};
pub use recording::{Control, Ending, Limits, PortRecording, Reason};
pub use spool::{SpoolReader, SpoolWriter, spool};

use crate::error::{Error, Named};

impl From<port::Error> for Error {
    fn from(error: port::Error) -> Error {
        let message = error.to_string();
        match error {
            port::Error::NoProcess(_) | port::Error::NotDotnet(_) => Error::NotFound { what: Named::Process, message },
            port::Error::Denied { .. } | port::Error::Stranger { .. } | port::Error::Link(_) => Error::Refused(message),
            port::Error::Refused { .. } => Error::Refused(message),
            port::Error::Silent { .. } => Error::TimedOut(message),
            port::Error::TooLong { .. } | port::Error::Taken(_) | port::Error::TooLarge { .. } => Error::Usage(message),
            _ => Error::Unreachable(message),
        }
    }
}
