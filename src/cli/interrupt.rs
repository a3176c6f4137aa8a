//! Ctrl+C, and what else asks a program to end.

/// Calls `handler` at each interrupt (SIGINT, SIGTERM, SIGHUP), on a thread of its own. Once in a program.
#[cfg(unix)]
pub fn on_interrupt(mut handler: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    let refused = |error| anyhow::anyhow!("Ctrl+C cannot be caught: {error}");
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(refused)?;
    let wait = move || signals.forever().for_each(|_| handler());
    std::thread::Builder::new().name("interrupts".into()).spawn(wait).map(drop).map_err(refused)
}

/// Calls `handler` at the first Ctrl+C, on a thread of its own; the second ends the program. Once in a program.
#[cfg(windows)]
pub fn on_interrupt(mut handler: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
    let stop = tracequet::source::live::Stop::default();
    tracequet::source::etw::stop_on_interrupt(stop.clone())?;
    let wait = move || {
        stop.wait(None);
        handler();
    };
    Ok(std::thread::Builder::new().name("interrupts".into()).spawn(wait).map(drop)?)
}
