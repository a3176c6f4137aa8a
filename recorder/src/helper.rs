//! A thread of our own for what callbacks must not wait for: room in the file, names, the wall clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use corprof as format;

use crate::{log, names, platform};

const STEP: Duration = Duration::from_millis(5);
const CLOCK_STEP: Duration = Duration::from_secs(5);

static STOP: AtomicBool = AtomicBool::new(false);
static THREAD: OnceLock<std::thread::Thread> = OnceLock::new();
/// Held while the thread works: the runtime must not go away while names are looked up, and the file has one master.
static BUSY: Mutex<()> = Mutex::new(());

/// Starts the thread.
pub fn start() {
    let run = || {
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
    };
    if let Ok(started) = std::thread::Builder::new().name("corprof".into()).spawn(run) {
        THREAD.set(started.thread().clone()).ok();
    }
}

/// Lets it work now: there is, or soon will be, no room in the file.
pub fn wake() {
    if let Some(thread) = THREAD.get() {
        thread.unpark();
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

/// Writes down what the wall clock says.
pub fn clock() {
    if let Some(entry) = log::enter() {
        log::put(entry, format::kind::CLOCK, 0, &platform::utc_ns().to_le_bytes());
    }
}
