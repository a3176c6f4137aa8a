//! Differences when a recording is read while it is written.

use super::state::NettraceState;
use crate::source::Source;

/// Waits for the next bytes of a live stream. While it is silent, what is held back for its order is delivered: the
/// runtime has written all events that it had, and an idle program may send the next ones much later.
pub fn wait<'a>(state: &mut NettraceState<'a, '_>, source: &mut Source<'a>) {
    while source.is_live() && !state.stopped && !source.comes(1) {
        if let Some(newest) = state.region.newest() {
            state.flush(source, newest);
        }
        state.out.visitor.progress(source.position());
    }
}
