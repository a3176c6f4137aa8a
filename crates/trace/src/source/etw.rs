//! Live ETW sessions of Windows, through ferrisetw: the one file of this crate that is built for Windows only.
//!
//! The callback copies an event into the bytes that an .etl has for it (header, extended items, payload) and offers
//! them to the queue of [`super::live`]; what they mean is the reader's business.
//!
//! Sources: `evntcons.h` (EVENT_RECORD, EVENT_HEADER), `evntrace.h` (EVENT_TRACE_PROPERTIES, ControlTrace), ferrisetw
//! 1.2.0.
#![allow(unsafe_code, reason = "calls of Windows, and events that Windows hands over as pointers")]

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::mpsc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ferrisetw::EventRecord;
use ferrisetw::native::{EvntraceNativeError, TraceHandle};
use ferrisetw::provider::Provider as EtwProvider;
use ferrisetw::trace::{LoggingMode, TraceError, TraceProperties, TraceTrait, UserTrace};
use windows::Win32::Foundation::{BOOL, CloseHandle};
use windows::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};
use windows::Win32::System::Diagnostics::Etw::{
    CONTROLTRACE_HANDLE, CloseTrace, ControlTraceW, EVENT_HEADER, EVENT_HEADER_EXTENDED_DATA_ITEM,
    EVENT_HEADER_FLAG_32_BIT_HEADER, EVENT_HEADER_FLAG_CLASSIC_HEADER, EVENT_HEADER_FLAG_PROCESSOR_INDEX, EVENT_RECORD,
    EVENT_TRACE_CONTROL, EVENT_TRACE_CONTROL_QUERY, EVENT_TRACE_CONTROL_STOP, EVENT_TRACE_PROPERTIES,
};
use windows::Win32::System::Threading::{
    OpenProcess, PROCESS_NAME_WIN32, PROCESS_QUERY_LIMITED_INFORMATION, QueryFullProcessImageNameW,
};
use windows::core::{GUID, HSTRING, PWSTR};

use super::live::{Ending, Live, Packet, Provider, ProviderId, Request, Stop};
use crate::error::{Error, Named, Result};
use crate::guid::Guid;
use crate::time::FILE_TIME_UNIX_EPOCH;

/// Buffers of the session, in kB and pieces: a collection of a large heap writes tens of megabytes at once.
const BUFFER_KB: u32 = 256;
const MIN_BUFFERS: u32 = 64;
const MAX_BUFFERS: u32 = 512;
/// The longest time that the contents of buffers of a stopped session may take on their way here.
const DRAIN: Duration = Duration::from_secs(20);
/// Windows ends a program whose window was closed after five seconds.
const CLOSING: Duration = Duration::from_secs(4);

/// Starts a session and the threads that serve it. It ends by [`Live::stop`], by its duration, or by someone else's
/// hand.
///
/// Fails when the caller may not start sessions, when one of this name runs already, or when a provider is not
/// known.
pub fn start(request: &Request) -> Result<Live> {
    let name = &request.name;
    if control(name, EVENT_TRACE_CONTROL_QUERY).is_some_and(|answer| answer.handle != 0) {
        return Err(taken(name));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() / 100;
    let start = i64::try_from(now).unwrap_or_default().saturating_add(FILE_TIME_UNIX_EPOCH);
    let (feed, live) = Live::new(name, start, process_name);
    let mut builder = UserTrace::new().named(name.clone()).set_trace_properties(TraceProperties {
        buffer_size: BUFFER_KB,
        min_buffer: MIN_BUFFERS,
        max_buffer: MAX_BUFFERS,
        flush_timer: Duration::from_secs(1),
        log_file_mode: LoggingMode::EVENT_TRACE_REAL_TIME_MODE,
    });
    for provider in &request.providers {
        let feed = feed.clone();
        let wanted = EtwProvider::by_guid(guid_of(provider)?).any(provider.keywords).level(provider.level);
        let callback = move |record: &EventRecord, _: &_| match packet(record) {
            Some(packet) => feed.offer(packet),
            None => feed.refuse(),
        };
        builder = builder.enable(wanted.add_callback(callback).build());
    }
    let (trace, handle) = builder.start().map_err(|error| {
        // The start fails at any of three calls, of which the first may have begun the session.
        control(name, EVENT_TRACE_CONTROL_STOP);
        refused(name, error)
    })?;

    let stop = live.stop();
    let (done, processed) = mpsc::channel();
    let no_thread = |error: std::io::Error| {
        control(&request.name, EVENT_TRACE_CONTROL_STOP);
        Error::io("starting a thread")(error)
    };
    let deliver = move || {
        // Returns when the session has ended and all of it was delivered.
        done.send(UserTrace::process_from_handle(handle)).ok();
        stop.request();
    };
    std::thread::Builder::new().name("etw".into()).spawn(deliver).map_err(no_thread)?;
    let (stop, name, duration) = (live.stop(), name.clone(), request.duration);
    let end = move || {
        stop.wait(duration);
        feed.end(finish(trace, handle, &name, &processed));
    };
    let session = std::thread::Builder::new().name("end of etw".into()).spawn(end).map_err(no_thread)?;
    Ok(live.of_session(session))
}

/// Stops the session, lets what lies in its buffers arrive, and asks what it lost.
fn finish(
    trace: UserTrace,
    handle: TraceHandle,
    name: &str,
    processed: &mpsc::Receiver<std::result::Result<(), TraceError>>,
) -> Ending {
    // Not by ferrisetw: it closes first, and what is still in the buffers is thrown away.
    let Some(answer) = control(name, EVENT_TRACE_CONTROL_STOP) else {
        drop(trace);
        let failure = Some("another program ended the session; its losses are unknown".into());
        return Ending { failure, ..Ending::default() };
    };
    let failure = match processed.recv_timeout(DRAIN) {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("the session broke off: {}", cause(error))),
        Err(_) => Some("the last events did not arrive in time".into()),
    };
    // SAFETY: the handle is that of OpenTrace, and is closed here only, since the trace that owns it is not dropped.
    let _ = unsafe { CloseTrace(handle) };
    // Dropped, it would stop whatever session has the number of this one by now. It leaks some hundred bytes.
    std::mem::forget(trace);
    Ending { lost_events: answer.lost_events, lost_buffers: answer.lost_buffers, overruns: 0, failure }
}

/// A session's description of itself.
struct Answer {
    handle: u64,
    lost_events: u64,
    lost_buffers: u64,
}

/// Asks or stops the session of a name; `None` when there is none, or it may not be touched.
fn control(name: &str, what: EVENT_TRACE_CONTROL) -> Option<Answer> {
    /// The structure with room behind it for two names, which `ControlTrace` fills in.
    #[repr(C)]
    struct Properties {
        head: EVENT_TRACE_PROPERTIES,
        names: [u16; 2 * 1024],
    }
    let mut properties = Properties { head: EVENT_TRACE_PROPERTIES::default(), names: [0; 2 * 1024] };
    properties.head.Wnode.BufferSize = size_of::<Properties>() as u32;
    properties.head.LoggerNameOffset = std::mem::offset_of!(Properties, names) as u32;
    properties.head.LogFileNameOffset = properties.head.LoggerNameOffset + 2 * 1024;
    let pointer = (&raw mut properties).cast::<EVENT_TRACE_PROPERTIES>();
    // SAFETY: the pointer is to a structure of the size that it names, with room for the names where it says.
    let result = unsafe { ControlTraceW(CONTROLTRACE_HANDLE::default(), &HSTRING::from(name), pointer, what) };
    result.ok().ok()?;
    let head = &properties.head;
    // SAFETY: both members of the union are plain numbers.
    let handle = unsafe { head.Wnode.Anonymous1.HistoricalContext };
    let lost_buffers = u64::from(head.RealTimeBuffersLost) + u64::from(head.LogBuffersLost);
    Some(Answer { handle, lost_events: head.EventsLost.into(), lost_buffers })
}

fn guid_of(provider: &Provider) -> Result<GUID> {
    match &provider.id {
        ProviderId::Guid(Guid([a, b, c, d, e, f, g, h, tail @ ..])) => Ok(GUID::from_values(
            u32::from_le_bytes([*a, *b, *c, *d]),
            u16::from_le_bytes([*e, *f]),
            u16::from_le_bytes([*g, *h]),
            *tail,
        )),
        ProviderId::Name(name) => match EtwProvider::by_name(name) {
            Ok(found) => Ok(found.build().guid()),
            Err(_) => {
                let message = format!("{name}: no provider that this system knows by name, expected its GUID");
                Err(Error::NotFound { what: Named::Provider, message })
            }
        },
    }
}

const ACCESS_DENIED: i32 = 5;
const ALREADY_EXISTS: i32 = 183;

/// Why a session could not be started.
fn refused(name: &str, error: TraceError) -> Error {
    let source = cause(error);
    match source.raw_os_error() {
        Some(ACCESS_DENIED) => Error::Refused(format!(
            "ETW session {name}: access denied; live sessions need administrator rights or membership in the group \
             Performance Log Users"
        )),
        Some(ALREADY_EXISTS) => taken(name),
        _ => Error::Io { path: format!("ETW session {name}").into(), source },
    }
}

fn taken(name: &str) -> Error {
    Error::Usage(format!(
        "ETW session {name} exists already; give the session another name, or end what an earlier run left: \
         logman stop {name} -ets"
    ))
}

fn cause(error: TraceError) -> std::io::Error {
    match error {
        TraceError::InvalidTraceName => std::io::ErrorKind::InvalidInput.into(),
        TraceError::EtwNativeError(EvntraceNativeError::AlreadyExist) => {
            std::io::Error::from_raw_os_error(ALREADY_EXISTS)
        }
        TraceError::EtwNativeError(EvntraceNativeError::InvalidHandle) => std::io::Error::other("invalid handle"),
        // Some come as HRESULT, which has the number in its lower half.
        TraceError::EtwNativeError(EvntraceNativeError::IoError(error)) => match error.raw_os_error() {
            Some(code) => std::io::Error::from_raw_os_error(code & 0xFFFF),
            None => error,
        },
    }
}

// The layouts that `raw` relies on, as far as they can be checked.
const _: () = assert!(size_of::<EventRecord>() == size_of::<EVENT_RECORD>());
const _: () = assert!(align_of::<EventRecord>() == align_of::<EVENT_RECORD>());
const _: () = assert!(size_of::<EVENT_HEADER>() == HEADER);

/// Bytes of the header EVENT.
const HEADER: usize = 0x50;

/// The event behind ferrisetw's type, which shows no payload.
fn raw(record: &EventRecord) -> &EVENT_RECORD {
    // SAFETY: in ferrisetw 1.2.0, which Cargo.toml pins, EventRecord is `#[repr(transparent)]` over this EVENT_RECORD.
    unsafe { &*std::ptr::from_ref(record).cast::<EVENT_RECORD>() }
}

/// Bytes that an event points to.
///
/// # Safety
///
/// A pointer that is not null must be to `len` bytes that live as long as the event.
unsafe fn bytes_at<'r>(_event: &'r EVENT_RECORD, pointer: *const c_void, len: u16) -> &'r [u8] {
    if pointer.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(pointer.cast(), usize::from(len)) }
}

/// An event in the form of an .etl; `None` when it is too large for one.
fn packet(record: &EventRecord) -> Option<Packet> {
    let event = raw(record);
    let header = &event.EventHeader;
    let has = |flag: u32| u32::from(header.Flags) & flag != 0;
    // SAFETY: Windows hands over an event with its payload, for the time of the callback.
    let payload = unsafe { bytes_at(event, event.UserData, event.UserDataLength) };
    let mut bytes = Vec::with_capacity(HEADER + payload.len() + 64);
    let is_32_bit = has(EVENT_HEADER_FLAG_32_BIT_HEADER);
    if has(EVENT_HEADER_FLAG_CLASSIC_HEADER) {
        let descriptor = &header.EventDescriptor;
        bytes.extend([0, 0, if is_32_bit { 10 } else { 20 }, 0xC0, descriptor.Opcode, descriptor.Level]);
        bytes.extend(u16::from(descriptor.Version).to_le_bytes());
        bytes.extend(header.ThreadId.to_le_bytes());
        bytes.extend(header.ProcessId.to_le_bytes());
        bytes.extend(header.TimeStamp.to_le_bytes());
        bytes.extend(bytes_of(&header.ProviderId.to_u128()));
        bytes.extend([0; 8]);
    } else {
        // SAFETY: the structure is 80 bytes of plain numbers without gaps; the header EVENT is its image.
        let image = unsafe { bytes_at(event, std::ptr::from_ref(header).cast(), HEADER as u16) };
        bytes.extend(image);
        let items = items(event);
        let [_, _, form, kind, flags, ..] = bytes.as_mut_slice() else { return None };
        (*form, *kind) = (if is_32_bit { 18 } else { 19 }, 0xC0);
        *flags = *flags & !1 | u8::from(!items.is_empty());
        bytes.extend(items);
    }
    bytes.extend(payload);
    let size = u16::try_from(bytes.len()).ok()?;
    bytes.first_chunk_mut::<2>()?.copy_from_slice(&size.to_le_bytes());
    // SAFETY: both members of the union are numbers.
    let index = unsafe { event.BufferContext.Anonymous.ProcessorIndex };
    let processor = if has(EVENT_HEADER_FLAG_PROCESSOR_INDEX) { index } else { index & 0xFF };
    Some(Packet { processor, bytes })
}

/// A GUID in the byte order of Windows.
fn bytes_of(guid: &u128) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h, tail @ ..] = guid.to_be_bytes();
    let [i, j, k, l, m, n, o, p] = tail;
    [d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p]
}

/// The extended items of an event, in the form of an .etl.
fn items(event: &EVENT_RECORD) -> Vec<u8> {
    let mut out = Vec::new();
    let count = usize::from(event.ExtendedDataCount);
    if event.ExtendedData.is_null() || count == 0 {
        return out;
    }
    // SAFETY: Windows hands over this many items, for the time of the callback.
    let items: &[EVENT_HEADER_EXTENDED_DATA_ITEM] = unsafe { std::slice::from_raw_parts(event.ExtendedData, count) };
    for (index, item) in items.iter().enumerate() {
        // SAFETY: as above, with the bytes that they point to.
        let data = unsafe { bytes_at(event, item.DataPtr as *const c_void, item.DataSize) };
        let whole = (8 + data.len()).next_multiple_of(8);
        let more = u16::from(index + 1 < count);
        for word in [whole as u16, item.ExtType, more, data.len() as u16] {
            out.extend(word.to_le_bytes());
        }
        out.extend(data);
        out.resize(out.len().next_multiple_of(8), 0);
    }
    out
}

/// File name of a process.
fn process_name(process_id: u32) -> Option<String> {
    let mut text = [0u16; 1024];
    let mut len = text.len() as u32;
    // SAFETY: the handle is closed below; the text has the stated length.
    let found = unsafe {
        let process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, false, process_id).ok()?;
        let found = QueryFullProcessImageNameW(process, PROCESS_NAME_WIN32, PWSTR(text.as_mut_ptr()), &mut len);
        CloseHandle(process).ok();
        found
    };
    found.ok()?;
    let path = String::from_utf16_lossy(text.get(..len as usize)?);
    path.rsplit('\\').next().filter(|name| !name.is_empty()).map(str::to_owned)
}

static INTERRUPTED: OnceLock<Stop> = OnceLock::new();

/// Stops a session at Ctrl+C and when the window is closed, instead of ending the program with the session left behind.
/// A second Ctrl+C ends the program. For one session of a process.
pub fn stop_on_interrupt(stop: Stop) -> Result<()> {
    INTERRUPTED.get_or_init(|| stop);
    // SAFETY: the handler lives as long as the program.
    let set = unsafe { SetConsoleCtrlHandler(Some(interrupted), true) };
    set.map_err(|error| Error::Io { path: "Ctrl+C".into(), source: error.into() })
}

/// Called by the system on a thread of its own.
unsafe extern "system" fn interrupted(event: u32) -> BOOL {
    let Some(stop) = INTERRUPTED.get() else { return false.into() };
    let again = stop.is_requested();
    stop.request();
    let by_key = [CTRL_C_EVENT, CTRL_BREAK_EVENT].contains(&event);
    if !by_key {
        // The program is ended when this returns.
        std::thread::sleep(CLOSING);
    }
    (by_key && !again).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_interrupt_stops_the_session_and_the_second_ends_the_program() {
        let stop = Stop::default();
        stop_on_interrupt(stop.clone()).unwrap();
        assert!(!stop.is_requested());
        // SAFETY: as the system calls it.
        let handled = [(); 2].map(|()| unsafe { interrupted(CTRL_C_EVENT) }.as_bool());
        assert!(stop.is_requested());
        assert_eq!(handled, [true, false]);
    }

    #[test]
    fn a_guid_is_the_same_here_and_there() {
        let guid = Guid::parse("e13c0d23-ccbc-4e12-931b-d9cc2eee27e4").unwrap();
        let provider = Provider { id: ProviderId::Guid(guid), keywords: 0, level: 5 };
        assert_eq!(bytes_of(&guid_of(&provider).unwrap().to_u128()), guid.0);
    }

    #[test]
    fn this_process_has_a_name_and_no_process_has_none() {
        let this = std::env::current_exe().unwrap();
        assert_eq!(process_name(std::process::id()).as_deref(), this.file_name().and_then(|name| name.to_str()));
        assert_eq!(process_name(0xFFFF_FFF0), None);
    }
}
