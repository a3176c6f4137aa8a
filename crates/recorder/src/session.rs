//! Begin and end of a recording: what the runtime is asked for, the header, the helper thread.

use std::ffi::c_void;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use corprof::Header;

use crate::com::{E_FAIL, Hr, S_OK};
use crate::settings::{UNLOADS, of_recording as settings};
use crate::{helper, info, log, names, platform};

/// Begins the recording: `unknown` is what the runtime passed to Initialize. `callbacks` is the newest version of
/// ICorProfilerCallback that it was given.
///
/// # Safety
/// `unknown` is a COM object.
pub unsafe fn begin(unknown: *mut c_void, attached: bool, callbacks: &AtomicU32) -> Hr {
    // SAFETY: the caller vouches for it.
    if !unsafe { info::adopt(unknown) } {
        platform::say(format_args!("the runtime has no ICorProfilerInfo2: nothing is recorded"));
        return E_FAIL;
    }
    let settings = settings();
    for problem in &settings.problems {
        platform::say(format_args!("{problem}"));
    }
    let asked = if attached { settings.attach_masks } else { settings.masks };
    let mut hr = info::set_masks(asked);
    if hr < 0 {
        hr = info::set_masks([asked[0] & !UNLOADS[0], asked[1] & !UNLOADS[1]]);
    }
    if hr < 0 {
        platform::say(format_args!("the runtime refuses the event mask {asked:x?} ({hr:#x}): nothing is recorded"));
        return hr;
    }
    if settings.idle {
        return S_OK;
    }
    let header = header(asked, attached, callbacks.load(Ordering::Relaxed));
    if let Err(error) = log::begin(&settings.path(), &header) {
        platform::say(format_args!("{}: {error}: nothing is recorded", settings.path().display()));
        return E_FAIL;
    }
    for problem in &settings.problems {
        log::note(corprof::NOTE_SETTING, problem);
    }
    helper::start();
    S_OK
}

fn header(asked: [u32; 2], attached: bool, callback_version: u32) -> Header {
    let runtime_path = platform::runtime_path();
    let (clr_instance_id, runtime_kind, mut runtime_version) = info::runtime();
    // .NET Core 3.1 calls itself 4.0; the folder of its library has the true version.
    let folder = Path::new(&runtime_path).parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    if folder.starts_with(|c: char| c.is_ascii_digit()) {
        runtime_version = folder.into_owned();
    }
    Header {
        chunk_align: log::ALIGN as u32,
        pointer_size: size_of::<usize>() as u8,
        os: platform::OS,
        arch: platform::ARCH,
        attached,
        processors: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        process_id: u64::from(std::process::id()),
        process_start_utc_ns: platform::process_start_utc_ns(),
        frequency: platform::frequency(),
        start_ticks: platform::ticks(),
        start_utc_ns: platform::utc_ns(),
        asked,
        granted: info::masks(),
        callback_version: callback_version as u16,
        info_version: info::version() as u16,
        policy: settings().policy,
        clr_instance_id,
        runtime_kind,
        clock_name: platform::CLOCK.to_owned(),
        command_line: platform::command_line(),
        runtime_path,
        runtime_version,
        profiler: concat!("tracequet-recorder ", env!("CARGO_PKG_VERSION")).to_owned(),
    }
}

/// Ends it.
pub fn end() {
    helper::stop();
    names::resolve();
    helper::clock();
    log::end();
}
