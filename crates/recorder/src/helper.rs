//! A thread of our own for what callbacks must not wait for: room in the file, names, the wall clock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use corprof::kind;

use crate::{log, names, platform};

const STEP: Duration = Duration::from_millis(5);
const CLOCK_STEP: Duration = Duration::from_secs(5);

static STOP: AtomicBool = AtomicBool::new(false);
/// Held while the thread works: the runtime must not go away while names are looked up, and the file has one master.
static BUSY: Mutex<()> = Mutex::new(());

/// Starts the thread.
pub fn start() {
    let run = || {
        // Without it records go into memory until that is full, and are counted as lost then.
        if catch_unwind(AssertUnwindSafe(work)).is_err() {
            log::fail("a thread of the recorder failed");
        }
    };
    if let Ok(started) = std::thread::Builder::new().name("corprof".into()).spawn(run) {
        log::set_helper(started.thread().clone());
    }
}

fn work() {
    let mut said = Instant::now();
    while !STOP.load(Ordering::Acquire) {
        std::thread::park_timeout(STEP);
        {
            let _busy = BUSY.lock();
            if !STOP.load(Ordering::Acquire) {
                log::map_ahead();
                names::resolve();
            }
        }
        if said.elapsed() >= CLOCK_STEP {
            said = Instant::now();
            clock();
            log::report_lost();
        }
    }
}

/// Stops it.
pub fn stop() {
    STOP.store(true, Ordering::Release);
    let patience = Instant::now();
    while BUSY.try_lock().is_err() && patience.elapsed() < Duration::from_millis(500) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Records the wall clock.
pub fn clock() {
    if let Some(entry) = log::enter() {
        log::put(entry, kind::CLOCK, 0, &platform::utc_ns().to_le_bytes());
    }
}
