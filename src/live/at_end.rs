//! A heap dump at the end of a recording: another session makes the runtime collect, and this one gets the objects.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tracequet::trace::source::diagnostics::port::Target;
use tracequet::trace::source::diagnostics::{Control, Reason, dump_heap};

use super::super::lock::lock;
use super::super::output::print_note;

/// The time between two looks whether the recording has ended by itself.
const LOOK: Duration = Duration::from_millis(100);

/// Says when the recording is to end; clones say it of the same one.
#[derive(Clone, Default)]
pub struct AtEnd(Arc<(Mutex<bool>, Condvar)>);

impl AtEnd {
    /// The heap is dumped now.
    pub fn now(&self) {
        *lock(&self.0.0) = true;
        self.0.1.notify_all();
    }

    /// Waits until that was said or the time is over; `false` when the recording has ended meanwhile.
    fn wait(&self, control: &Control, duration: Option<Duration>) -> bool {
        let mut left = duration;
        loop {
            let asked = lock(&self.0.0);
            let step = left.map_or(LOOK, |left| left.min(LOOK));
            let waited = self.0.1.wait_timeout_while(asked, step, |asked| !*asked);
            let is_asked = *waited.unwrap_or_else(PoisonError::into_inner).0;
            if control.is_stopping() || control.has_ended() {
                return false;
            }
            left = left.map(|left| left.saturating_sub(step));
            if is_asked || left.is_some_and(|left| left.is_zero()) {
                return true;
            }
        }
    }

    /// Dumps the heap when it is time; `false` when the recording ended before, or ends because that failed.
    pub fn run(&self, target: &Target, control: &Control, duration: Option<Duration>, quiet: bool) -> bool {
        if !self.wait(control, duration) {
            return false;
        }
        if !quiet {
            print_note("the process is paused while its heap is dumped\n").ok();
        }
        if let Err(error) = dump_heap(target) {
            control.stop(Reason::Failed(format!("the heap was not dumped: {error}")));
            return false;
        }
        true
    }
}
