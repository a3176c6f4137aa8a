//! What there is on Windows only: live sessions, the recorder's library. Runs on Wine as well.
//!
//! The functions of ETW are replaced at link time, for this binary and not for the program: a symbol that is defined
//! here wins over the import library, so that ferrisetw runs whole and unchanged. It says what its author believes of
//! ETW, and proves nothing about ETW itself.
#![allow(unsafe_code, non_snake_case, reason = "stands in for functions of Windows, by their names")]

use std::ffi::c_void;
use std::process::Command;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use tracequet::Convert;
use tracequet::trace::guid::Guid;
use tracequet::trace::source::etw;
use tracequet::trace::source::live::{Live, Provider, ProviderId, Request};

use ::windows::Win32::System::Diagnostics::Etw::*;
use ::windows::core::{GUID, PCWSTR};

use crate::support::dataset::Dataset;
use crate::support::story::{RUNTIME, SURVIVING, collection};

const ACCESS_DENIED: u32 = 5;
const ALREADY_EXISTS: u32 = 183;
const NO_SUCH_SESSION: u32 = 4201;

/// A session of the machine, as it would be.
#[derive(Clone, Default)]
struct Session {
    name: String,
    handle: u64,
    running: bool,
    enabled: Vec<(GUID, u64, u8)>,
    callback: usize,
    context: usize,
    closed: bool,
}

static SESSIONS: Mutex<Vec<Session>> = Mutex::new(Vec::new());
static CHANGED: Condvar = Condvar::new();
/// No provider can be enabled in a session of this name.
const REFUSED: &str = "refused";
/// A session of this name delivers events of 32-bit processes with the old header.
const CLASSIC: &str = "classic";

fn sessions() -> std::sync::MutexGuard<'static, Vec<Session>> {
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn session(name: &str) -> Session {
    sessions().iter().rev().find(|s| s.name == name).cloned().unwrap_or_default()
}

/// # Safety
/// `name` ends with a zero, or is null.
unsafe fn text(name: *const u16) -> String {
    if name.is_null() { String::new() } else { unsafe { PCWSTR(name).to_string() }.unwrap() }
}

#[unsafe(no_mangle)]
unsafe extern "system" fn StartTraceW(handle: *mut u64, name: *const u16, head: *mut EVENT_TRACE_PROPERTIES) -> u32 {
    let name = unsafe { text(name) };
    let mut all = sessions();
    if all.iter().any(|s| s.running && s.name == name) {
        return ALREADY_EXISTS;
    }
    let mode = unsafe { (*head).LogFileMode };
    assert_eq!(mode, EVENT_TRACE_REAL_TIME_MODE, "in real time, with buffers for each processor");
    let number = all.len() as u64 + 1;
    unsafe { *handle = number };
    all.push(Session { name, handle: number, running: true, ..Session::default() });
    0
}

#[unsafe(no_mangle)]
unsafe extern "system" fn EnableTraceEx2(
    handle: u64,
    provider: *const GUID,
    code: u32,
    level: u8,
    any: u64,
    _all: u64,
    _timeout: u32,
    _parameters: *const ENABLE_TRACE_PARAMETERS,
) -> u32 {
    assert_eq!(code, EVENT_CONTROL_CODE_ENABLE_PROVIDER.0);
    let provider = unsafe { *provider };
    let mut all = sessions();
    let session = all.iter_mut().find(|s| s.handle == handle).expect("a session");
    if session.name == REFUSED {
        return ACCESS_DENIED;
    }
    session.enabled.push((provider, any, level));
    0
}

#[unsafe(no_mangle)]
unsafe extern "system" fn OpenTraceW(log: *mut EVENT_TRACE_LOGFILEW) -> u64 {
    let log = unsafe { &mut *log };
    let name = unsafe { text(log.LoggerName.0) };
    let mut all = sessions();
    let Some(session) = all.iter_mut().find(|s| s.running && s.name == name) else { return u64::MAX };
    session.callback = unsafe { log.Anonymous2.EventRecordCallback }.map_or(0, |f| f as usize);
    session.context = log.Context as usize;
    session.handle + 1000
}

/// Delivers the events that are there, then waits for the end of the session and delivers those that came last.
#[unsafe(no_mangle)]
unsafe extern "system" fn ProcessTrace(handles: *const u64, _: u32, _: *const c_void, _: *const c_void) -> u32 {
    let handle = unsafe { *handles } - 1000;
    let of = |all: &[Session]| all.iter().find(|s| s.handle == handle).cloned().expect("a session");
    let opened = of(&sessions());
    let runtime = GUID::from_u128(0xe13c0d23_ccbc_4e12_931b_d9cc2eee27e4);
    let keywords = opened.enabled.iter().find(|(guid, ..)| *guid == runtime).map_or(0, |(_, any, _)| *any);
    let events: Vec<_> = collection().into_iter().filter(|event| event.keyword & keywords != 0).collect();
    let send = |record: &mut EVENT_RECORD| {
        record.UserContext = opened.context as *mut c_void;
        // SAFETY: the address is that of the callback that OpenTraceW was given.
        let callback: unsafe extern "system" fn(*mut EVENT_RECORD) = unsafe { std::mem::transmute(opened.callback) };
        unsafe { callback(record) };
    };
    let (now, late) = events.split_at(events.len() / 2);
    let mut ticks = 134_000_000_000_000_000;
    let mut send_all = |events: &[crate::support::story::ClrEvent]| {
        for event in events {
            ticks += 10;
            let mut payload = event.payload.clone();
            let mut record = EVENT_RECORD::default();
            record.EventHeader.ProviderId = runtime;
            record.EventHeader.TimeStamp = ticks;
            // A process that runs, so that its name can be asked for.
            (record.EventHeader.ProcessId, record.EventHeader.ThreadId) = (std::process::id(), 7);
            record.EventHeader.Flags =
                EVENT_HEADER_FLAG_64_BIT_HEADER as u16 | EVENT_HEADER_FLAG_PROCESSOR_INDEX as u16;
            record.BufferContext.Anonymous.ProcessorIndex = 300;
            let descriptor = &mut record.EventHeader.EventDescriptor;
            (descriptor.Id, descriptor.Version, descriptor.Opcode) = (event.id, event.version, event.opcode);
            (descriptor.Level, descriptor.Keyword) = (4, event.keyword);
            record.UserData = payload.as_mut_ptr().cast();
            record.UserDataLength = payload.len() as u16;
            // A stack with a related activity before it.
            let activity = [0xABu8; 16];
            let stack: [u64; 3] = [0, 0x7FF6_0000_1000, 0x7FF6_0000_2000];
            let item = |kind: u32, bytes: usize, at: *const c_void| EVENT_HEADER_EXTENDED_DATA_ITEM {
                ExtType: kind as u16,
                DataSize: bytes as u16,
                DataPtr: at as u64,
                ..Default::default()
            };
            let mut items = [
                item(EVENT_HEADER_EXT_TYPE_RELATED_ACTIVITYID, 16, activity.as_ptr().cast()),
                item(EVENT_HEADER_EXT_TYPE_STACK_TRACE64, 24, stack.as_ptr().cast()),
            ];
            if event.id == 1 {
                record.EventHeader.Flags |= EVENT_HEADER_FLAG_EXTENDED_INFO as u16;
                (record.ExtendedData, record.ExtendedDataCount) = (items.as_mut_ptr(), 2);
            }
            if opened.name == CLASSIC {
                record.EventHeader.Flags =
                    EVENT_HEADER_FLAG_32_BIT_HEADER as u16 | EVENT_HEADER_FLAG_CLASSIC_HEADER as u16;
            }
            send(&mut record);
        }
    };
    send_all(now);
    drop(CHANGED.wait_while(sessions(), |all| of(all).running).unwrap_or_else(PoisonError::into_inner));
    send_all(late);
    0
}

#[unsafe(no_mangle)]
unsafe extern "system" fn ControlTraceW(
    handle: u64,
    name: *const u16,
    head: *mut EVENT_TRACE_PROPERTIES,
    code: u32,
) -> u32 {
    let name = unsafe { text(name) };
    let mut all = sessions();
    let found = all.iter_mut().find(|s| s.running && if handle == 0 { s.name == name } else { s.handle == handle });
    let Some(session) = found else { return NO_SUCH_SESSION };
    let head = unsafe { &mut *head };
    assert!(head.Wnode.BufferSize as usize > size_of::<EVENT_TRACE_PROPERTIES>());
    head.Wnode.Anonymous1.HistoricalContext = session.handle;
    (head.EventsLost, head.RealTimeBuffersLost, head.LogBuffersLost) = (11, 2, 1);
    if code == EVENT_TRACE_CONTROL_STOP.0 {
        session.running = false;
        CHANGED.notify_all();
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "system" fn CloseTrace(handle: u64) -> u32 {
    sessions().iter_mut().filter(|s| s.handle + 1000 == handle).for_each(|s| s.closed = true);
    0
}

fn request(name: &str, keywords: u64, duration: Option<Duration>) -> Request {
    let runtime = Provider { id: ProviderId::Guid(Guid(RUNTIME)), keywords, level: 5 };
    Request { name: name.to_owned(), providers: vec![runtime], duration }
}

fn start(name: &str, keywords: u64, duration: Option<Duration>) -> Live {
    etw::start(&request(name, keywords, duration)).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_session_becomes_tables_and_stops_in_time() {
    let live = start("by time", 0x40_0001, Some(Duration::from_millis(300)));
    let dataset = Dataset::of_live(Convert::default(), live);
    let input = &dataset.summary.inputs[0];
    assert_eq!((input.events, input.collections, input.complete), (8, 1, true), "{:?}", input.problems);
    let gc = dataset.table("gc");
    assert_eq!(
        (gc.numbers("gc_number"), gc.numbers("generation"), gc.bools("complete")),
        (vec![5], vec![1], vec![true])
    );
    assert_eq!(gc.numbers("process_id"), [u64::from(std::process::id())]);
    let ranges = dataset.table("gc_surviving_range");
    assert_eq!(ranges.numbers("range_start"), SURVIVING.map(|r| r[0]));
    assert_eq!(ranges.numbers("range_length"), SURVIVING.map(|r| r[1]));
    let pauses = dataset.table("gc_pause");
    assert_eq!((pauses.rows(), pauses.signed("duration_ns")[0]), (1, Some(7000)));
    // The extended items of GCStart, in their order.
    let event = dataset.table("event/Microsoft-Windows-DotNETRuntime/GCStart");
    assert_eq!(event.numbers("processor"), [300]);
    assert_eq!(event.texts("related_activity_id"), ["abababab-abab-abab-abab-abababababab"]);
    assert_eq!(dataset.table("callsite").numbers("address"), [0x7FF6_0000_2000, 0x7FF6_0000_1000]);
    // The process is this one, as the system names it.
    let this = std::env::current_exe().unwrap();
    let name = this.file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(dataset.table("process").texts("name"), [name]);
    // What ControlTraceW says.
    assert_eq!(dataset.problems(), [("dropped_buffers", 3), ("dropped_events", 11), ("unnamed_frames", 2)]);
    assert_eq!(input.dropped_events, 11);
    assert!(input.has_losses());
    let end = session("by time");
    assert!(!end.running && end.closed);
    assert_eq!(end.enabled, [(GUID::from_u128(0xe13c0d23_ccbc_4e12_931b_d9cc2eee27e4), 0x40_0001, 5)]);
}

#[test]
fn a_session_stops_when_asked_to() {
    let live = start("by hand", 1, None);
    let stop = live.stop();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        stop.request();
    });
    let dataset = Dataset::of_live(Convert::default(), live);
    // Without the keyword of ranges there are none.
    assert_eq!(dataset.summary.inputs[0].events, 6);
    assert!(session("by hand").closed);
}

#[test]
fn events_with_the_old_header_are_told_apart_by_class_and_opcode() {
    let live = start(CLASSIC, u64::MAX, Some(Duration::from_millis(100)));
    let dataset = Dataset::of_live(Convert::default(), live);
    assert_eq!(dataset.summary.inputs[0].events, 8);
    let types = dataset.table("event_type");
    let mut opcodes: Vec<(u64, u64)> = types.numbers("opcode").into_iter().zip(types.numbers("event_count")).collect();
    opcodes.sort_unstable();
    assert_eq!(opcodes, [(1, 1), (2, 1), (10, 1), (25, 2), (132, 1), (136, 1), (137, 1)]);
    assert_eq!(dataset.table("thread").numbers("thread_id"), [7]);
}

#[test]
fn a_session_that_nobody_reads_is_stopped() {
    drop(start("not read", 1, None));
    let end = session("not read");
    assert!(!end.running && end.closed);
}

#[test]
fn a_name_that_is_taken_is_refused_and_its_session_left_alone() {
    let first = start("taken", 1, None);
    let error = etw::start(&request("taken", 1, None)).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("exists already") && error.contains("logman stop taken -ets"), "{error}");
    assert!(session("taken").running);
    drop(first);
}

#[test]
fn a_session_that_cannot_begin_leaves_nothing_behind() {
    let error = etw::start(&request(REFUSED, 1, None)).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("administrator rights") && error.contains("Performance Log Users"), "{error}");
    assert!(!session(REFUSED).running && session(REFUSED).handle != 0);
}

/// The program itself, without stand-ins. Where it may start sessions (an administrator on Windows) it is left alone.
#[test]
fn the_program_says_which_rights_it_needs() {
    if !on_wine() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracequet"));
    let output = command.args(["collect", "--etw", "--duration", "1", "-o"]).arg(&out).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.starts_with("tracequet: ETW session tracequet: access denied"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(!out.exists());
}

fn on_wine() -> bool {
    // Wine says so by a function of its own.
    unsafe extern "system" {
        fn GetModuleHandleA(name: *const u8) -> *mut c_void;
        fn GetProcAddress(module: *mut c_void, name: *const u8) -> *mut c_void;
    }
    // SAFETY: both names end with a zero; ntdll is in every process.
    !unsafe { GetProcAddress(GetModuleHandleA(c"ntdll.dll".as_ptr().cast()), c"wine_get_version".as_ptr().cast()) }
        .is_null()
}

/// The recorder's library does what the runtime does first: gives a class factory, and of that the callback interface.
#[test]
fn the_recorder_gives_its_callbacks() {
    unsafe extern "system" {
        fn LoadLibraryW(name: *const u16) -> *mut c_void;
        fn GetProcAddress(module: *mut c_void, name: *const u8) -> *mut c_void;
    }
    type GetClassObject = unsafe extern "system" fn(*const GUID, *const GUID, *mut *mut c_void) -> i32;
    type CreateInstance = unsafe extern "system" fn(*mut c_void, *mut c_void, *const GUID, *mut *mut c_void) -> i32;
    let library = crate::support::dual::recorder().expect("TRACEQUET_RECORDER, or a library that can be built");
    let wide: Vec<u16> = library.to_string_lossy().encode_utf16().chain([0]).collect();
    let factory_id = GUID::from_u128(0x00000001_0000_0000_C000_000000000046);
    let callback_11 = GUID::from_u128(0x42350846_AAED_47F7_B128_FD0C98881CDE);
    let class = GUID::from_u128(1);
    // SAFETY: the signatures are those of COM, and the names end with a zero.
    unsafe {
        let module = LoadLibraryW(wide.as_ptr());
        assert!(!module.is_null(), "{}: {}", library.display(), std::io::Error::last_os_error());
        let get_class = GetProcAddress(module, c"DllGetClassObject".as_ptr().cast());
        let can_unload = GetProcAddress(module, c"DllCanUnloadNow".as_ptr().cast());
        assert!(!get_class.is_null() && !can_unload.is_null());
        let get_class: GetClassObject = std::mem::transmute(get_class);
        let can_unload: unsafe extern "system" fn() -> i32 = std::mem::transmute(can_unload);
        let (mut factory, mut callback) = (std::ptr::null_mut::<c_void>(), std::ptr::null_mut::<c_void>());
        assert_eq!(get_class(&class, &factory_id, &mut factory), 0);
        let create = (*factory.cast::<*const usize>()).add(3).read();
        let create: CreateInstance = std::mem::transmute(create);
        assert_eq!(create(factory, std::ptr::null_mut(), &callback_11, &mut callback), 0);
        assert!(!callback.is_null() && callback != factory);
        assert!((0..98).all(|slot| (*callback.cast::<*const usize>()).add(slot).read() != 0), "all slots are filled");
        // 1: not while the process runs.
        assert_eq!(can_unload(), 1);
    }
}
