//! Ctrl+C, and what else asks a program to end (SIGTERM, SIGHUP; on Windows closing the console).

/// Calls `handler` at each interrupt, on a thread of its own. Once in a program.
pub fn on_interrupt(handler: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
    ctrlc::set_handler(handler).map_err(|error| anyhow::anyhow!("Ctrl+C cannot be caught: {error}"))
}
