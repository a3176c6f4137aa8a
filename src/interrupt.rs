//! Requests to end the program: Ctrl+C, SIGINT and SIGTERM, closing the terminal.
//!
//! Unix goes by `signal-hook`, which says which signal came (the exit code depends on it; `ctrlc` does not say), and
//! calls the handler on a thread that may take locks. Windows goes by the handler of `source::etw`.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::lock::lock;

/// Directories to remove before the program ends.
static LEFT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Whether the program ends when it is asked to.
static ENDS: AtomicBool = AtomicBool::new(false);

/// The reason for the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// SIGINT, or Ctrl+C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal was closed.
    HangUp,
}

impl Asked {
    /// 128 and the number of the signal, as a shell says it of a program that a signal ended.
    fn exit_code(self) -> i32 {
        match self {
            Asked::Interrupt => 130,
            Asked::Terminate => 143,
            Asked::HangUp => 129,
        }
    }
}

/// Calls `handler` each time, on a thread of its own. Once in a program.
pub fn on_interrupt(handler: impl FnMut(Asked) + Send + 'static) -> anyhow::Result<()> {
    listen(&[Asked::Interrupt, Asked::Terminate, Asked::HangUp], handler)
}

/// From here on SIGINT, SIGTERM and Ctrl+C remove what is half done, and end the program with 130 or 143. May be said
/// again.
pub fn end_at_interrupt() -> anyhow::Result<()> {
    if ENDS.swap(true, Ordering::AcqRel) {
        return Ok(());
    }
    listen(&[Asked::Interrupt, Asked::Terminate], |asked| end(asked))
}

/// Removes a directory with all that is in it, if the program is asked to end before it is dropped.
pub fn remove_at_end(folder: &Path) {
    lock(&LEFT).push(folder.to_owned());
}

/// Removes what is half done, and ends the program.
pub fn end(asked: Asked) -> ! {
    tracequet::dataset::write::abandon_all();
    for folder in lock(&LEFT).iter() {
        std::fs::remove_dir_all(folder).ok();
    }
    std::process::exit(asked.exit_code())
}

#[cfg(unix)]
fn listen(to: &[Asked], mut handler: impl FnMut(Asked) + Send + 'static) -> anyhow::Result<()> {
    use anyhow::Context;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    let number = |asked: &Asked| match asked {
        Asked::Interrupt => SIGINT,
        Asked::Terminate => SIGTERM,
        Asked::HangUp => SIGHUP,
    };
    let mut signals = signal_hook::iterator::Signals::new(to.iter().map(number)).context("signals cannot be caught")?;
    let wait = move || {
        for signal in signals.forever() {
            handler(match signal {
                SIGTERM => Asked::Terminate,
                SIGHUP => Asked::HangUp,
                _ => Asked::Interrupt,
            });
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(wait).context("signals cannot be caught")?;
    Ok(())
}

/// The first Ctrl+C calls the handler; the second ends the program.
#[cfg(windows)]
fn listen(_: &[Asked], mut handler: impl FnMut(Asked) + Send + 'static) -> anyhow::Result<()> {
    let stop = tracequet::trace::source::live::Stop::default();
    tracequet::trace::source::etw::stop_on_interrupt(stop.clone())?;
    let wait = move || {
        stop.wait(None);
        handler(Asked::Interrupt);
    };
    Ok(std::thread::Builder::new().name("signals".into()).spawn(wait).map(drop)?)
}
