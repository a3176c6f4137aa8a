//! Sessions whose events are not wanted: what the runtime does when one begins or ends is.

use std::io::Read;
use std::time::Duration;

use diagnostics_port::{EventFilter, Provider, Rundown, SessionRequest, Target, WhenFull, start_session, stop_session};

use crate::error::{Error, Result};

/// The longest time that the session may take to stop, and its stream to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two looks whether its stream has ended.
const LOOK: Duration = Duration::from_millis(5);
/// Keyword of the runtime: its collections.
const GC: u64 = 1;
/// Keyword of the runtime: collect now.
const GC_HEAP_COLLECT: u64 = 0x80_0000;

/// Begins a session and ends it at once. A runtime writes the name of a type once for all sessions that listen
/// together; after one has ended it starts again, so that the next session gets all names.
pub fn flush_types(target: &Target) -> Result<()> {
    // .NET Core 3.1 repeats what it has reported only after its own provider is turned on or off; its collections
    // are the least that it can be asked for.
    begin_and_end(target, GC)
}

/// Makes the runtime collect its whole heap. Sessions with the keyword GCHeapDump get all objects. Returns when that is
/// done.
pub fn dump_heap(target: &Target) -> Result<()> {
    begin_and_end(target, GC | GC_HEAP_COLLECT)
}

fn begin_and_end(target: &Target, keywords: u64) -> Result<()> {
    let provider = Provider {
        name: "Microsoft-Windows-DotNETRuntime".into(),
        keywords,
        level: 4,
        arguments: String::new(),
        events: EventFilter::All,
    };
    let when_full = WhenFull::Drop;
    let request =
        SessionRequest { buffer_mb: 16, when_full, rundown: Rundown::Off, stacks: true, providers: vec![provider] };
    let session = start_session(target, &request)?;
    let mut connection = session.connection;
    let close = connection.closer();
    // The answer to Stop comes when everything was read.
    let drain = std::thread::Builder::new().name("flush".into()).spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while connection.read(&mut buffer).is_ok_and(|read| read > 0) {}
    });
    let drain = drain.map_err(Error::io("starting a thread"))?;
    stop_session(target, session.id, PATIENCE)?;
    let mut waited = Duration::ZERO;
    while !drain.is_finished() && waited < PATIENCE {
        std::thread::sleep(LOOK);
        waited += LOOK;
    }
    close();
    Ok(())
}
