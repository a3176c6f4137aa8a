//! A thread of our own for what callbacks must not wait for: room in the file, names, the wall clock.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::{format, log, names, platform};

const STEP: Duration = Duration::from_millis(5);
const CLOCK_STEP: Duration = Duration::from_secs(5);

static STOP: AtomicBool = AtomicBool::new(false);
/// Held while names are looked up, so that the runtime does not go away meanwhile.
static BUSY: Mutex<()> = Mutex::new(());

/// Starts the thread.
pub fn start() {
    let run = || {
        let mut said = Instant::now();
        while !STOP.load(Ordering::Acquire) {
            std::thread::sleep(STEP);
            log::map_ahead();
            {
                let _busy = BUSY.lock();
                if !STOP.load(Ordering::Acquire) {
                    names::resolve();
                }
            }
            if said.elapsed() >= CLOCK_STEP {
                said = Instant::now();
                clock();
                log::report_lost();
            }
        }
    };
    std::thread::Builder::new().name("corprof".into()).spawn(run).ok();
}

/// Stops it.
pub fn stop() {
    STOP.store(true, Ordering::Release);
    let patience = Instant::now();
    while BUSY.try_lock().is_err() && patience.elapsed() < Duration::from_millis(500) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Writes down what the wall clock says.
pub fn clock() {
    if let Some(entry) = log::enter() {
        log::put(entry, format::kind::CLOCK, 0, &platform::utc_ns().to_le_bytes());
    }
}
