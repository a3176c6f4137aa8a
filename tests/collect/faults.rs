//! What `tracequet collect` does with runtimes that do what no runtime should: it ends, says why, and leaves nothing
//! half there.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use crate::support::fake_runtime::{Answers, Stopped, start};
use crate::support::live::{Folder, ended, rows, run, text, tracequet, wait_for_bytes};
use crate::support::writer::{Form, Kind, Row, Writer};

const KIND: Kind<'_> = Kind { id: 1, provider: "A", event_id: 1, version: 0, name: "One" };

/// Records a made-up runtime.
fn record(
    folder: &Folder,
    more: &[&str],
    answers: Answers,
    session: impl Fn(UnixStream, Stopped) + Send + Sync + 'static,
) -> Output {
    let (port, out) = (folder.text("port"), folder.text("out"));
    let arguments = [&["collect", "--port", &port, "-o", &out], more].concat();
    let collect = tracequet(&arguments).spawn().expect("it starts");
    start(&folder.path("port"), answers, Arc::new(session));
    ended(collect, "collect of a made-up runtime")
}

/// The beginning of a recording with some events.
fn some_events() -> Vec<u8> {
    let mut recording = Writer::new(Form::V4);
    recording.metadata(&[KIND]).events(&rows_from(1, 3));
    recording.bytes.clone()
}

fn rows_from(first: u32, count: u32) -> Vec<Row> {
    let row =
        |n| Row { metadata_id: 1, sequence: n, capture_thread: 5, thread: 5, ticks: i64::from(n), ..Row::default() };
    (first..first + count).map(row).collect()
}

#[test]
fn what_is_no_runtime_is_told_and_leaves_nothing() {
    let http: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    // A success whose payload ends before the id of the session.
    let short: &[u8] = b"DOTNET_IPC_V1\0\x16\0\xff\0\0\0\x01\x02";
    for (answers, words) in [
        (Answers::Bytes(http), "no .NET runtime listens there"),
        (Answers::Bytes(short), "no .NET runtime listens there"),
        (Answers::Bytes(b""), "no .NET runtime listens there"),
        (Answers::Refuses(0x8007_000E), "choose a smaller buffer"),
        (Answers::Refuses(0x8013_1385), "this runtime is too old for it"),
    ] {
        let is_first = answers == Answers::Bytes(http);
        for more in [&[][..], &["--follow"]].into_iter().take(if is_first { 2 } else { 1 }) {
            let folder = Folder::new();
            let output = record(&folder, more, answers, |_, _| {});
            let said = text(&output);
            assert!(output.status.code() == Some(1) && said.contains(words), "{answers:?} {more:?}: {said}");
            assert!(!folder.path("out").exists() && !folder.path("port").exists(), "{answers:?} {more:?}");
        }
    }
}

#[test]
fn a_session_that_sends_nothing_or_no_recording_is_told() {
    for (bytes, words) in [
        (Vec::new(), "the process ended before its runtime sent anything"),
        (b"Nettr".to_vec(), "5 bytes in all"),
        (vec![0x55; 5000], "expected"),
    ] {
        let folder = Folder::new();
        let output = record(&folder, &[], Answers::Right, move |mut stream, _| {
            stream.write_all(&bytes).ok();
        });
        let said = text(&output);
        assert!(output.status.code() == Some(1) && said.contains(words), "{words}: {said}");
        assert!(!folder.path("out").exists(), "{words}");
    }
}

#[test]
fn garbage_behind_events_costs_only_itself() {
    let folder = Folder::new();
    let output = record(&folder, &[], Answers::Right, |mut stream, _| {
        stream.write_all(&some_events()).expect("a reader");
        stream.write_all(&vec![0x55; 100_000]).ok();
    });
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert_eq!(rows(&folder.path("out"), "event/A/One"), 3);
}

#[test]
fn a_runtime_that_ignores_stop_is_left_at_the_second_interrupt() {
    let folder = Folder::new();
    let (port, out, keep) = (folder.text("port"), folder.text("out"), folder.path("kept.nettrace"));
    let arguments = ["collect", "--port", &port, "--keep", &keep.to_string_lossy(), "-o", &out];
    let collect = tracequet(&arguments).spawn().expect("it starts");
    let process = collect.id().to_string();
    let interrupt = move || Command::new("kill").args(["-INT", &process]).status().expect("kill");
    let session = move |mut stream: UnixStream, stopped: Stopped| {
        let events = some_events();
        stream.write_all(&events).expect("a reader");
        wait_for_bytes(&keep, events.len() as u64, "the events");
        interrupt();
        // Each interrupt is taken notice of before the next one. Neither ends nor sends anything more.
        stopped.wait();
        // Two within half a second are one.
        std::thread::sleep(Duration::from_millis(600));
        interrupt();
        std::thread::sleep(Duration::from_secs(100));
    };
    start(&folder.path("port"), Answers::Right, Arc::new(session));
    let output = ended(collect, "collect of a runtime that ignores stop");
    let said = text(&output);
    assert!(
        output.status.code() == Some(2) && said.contains("the rest is discarded; the recording before it is kept"),
        "{said}"
    );
    assert_eq!(rows(&folder.path("out"), "event/A/One"), 3);
}

#[test]
fn a_runtime_that_does_not_answer_is_left_at_the_second_interrupt() {
    let folder = Folder::new();
    let collect = tracequet(&["collect", "--port", &folder.text("port"), "-o", &folder.text("out")]).spawn();
    let collect = collect.expect("it starts");
    let process = collect.id().to_string();
    let session = move |mut stream: UnixStream, _| {
        stream.set_read_timeout(Some(Duration::from_millis(500))).expect("a limit");
        // Until the connection is closed: signals that come at once are one.
        while Command::new("kill").args(["-INT", &process]).status().is_ok() && stream.read(&mut [0]).is_err() {}
    };
    start(&folder.path("port"), Answers::Silent, Arc::new(session));
    let output = ended(collect, "collect of a runtime that does not answer");
    let said = text(&output);
    assert!(output.status.code() == Some(130) && said.contains("Ctrl+C again ends at once"), "{output:?}");
    assert!(!folder.path("out").exists() && !said.contains("no answer"), "{said}");
}

#[test]
fn a_runtime_that_goes_on_sending_when_it_was_asked_to_stop_is_left() {
    let folder = Folder::new();
    let more = ["--duration", "1", "--stop-timeout", "2s", "--max-spool", "1M", "--tables", "trace,diagnostic"];
    let output = record(&folder, &more, Answers::Right, |mut stream, _| {
        let mut recording = Writer::new(Form::V4);
        recording.metadata(&[KIND]);
        let (mut next, mut sent) = (1, 0);
        loop {
            recording.events(&rows_from(next, 2000));
            next += 2000;
            let Some(bytes) = recording.bytes.get(sent..) else { return };
            if stream.write_all(bytes).is_err() {
                return;
            }
            sent = recording.bytes.len();
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let said = text(&output);
    let why = "did not end its session within 2 s: it continues to send";
    assert!(output.status.code() == Some(2) && said.contains(why), "{:?} {said}", output.status);
    assert_eq!(rows(&folder.path("out"), "trace"), 1);
}

/// Ctrl+C between the beginning of the session and that of the recording is not lost.
#[test]
fn an_interrupt_while_the_recording_begins_ends_it() {
    let folder = Folder::new();
    let (port, out) = (folder.text("port"), folder.text("out"));
    let collect = tracequet(&["collect", "--port", &port, "-o", &out]).spawn().expect("it starts");
    let process = collect.id().to_string();
    let session = move |mut stream: UnixStream, stopped: Stopped| {
        stream.write_all(&some_events()).expect("a reader");
        Command::new("kill").args(["-INT", &process]).status().expect("kill");
        stopped.wait();
    };
    start(&folder.path("port"), Answers::LateResume, Arc::new(session));
    let output = ended(collect, "collect that is interrupted early");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert_eq!(rows(&folder.path("out"), "event/A/One"), 3);
}

/// A process that writes faster than tables are made: its bytes are taken all the same.
#[test]
fn a_flood_is_spooled_and_ends_at_its_size() {
    const BYTES: usize = 6 << 20;
    let folder = Folder::new();
    let output = record(&folder, &["--max-size", "3M", "--tables", "trace,diagnostic"], Answers::Right, |stream, _| {
        let mut stream = stream;
        let mut recording = Writer::new(Form::V4);
        recording.metadata(&[KIND]);
        let mut next = 1;
        while recording.bytes.len() < BYTES {
            recording.events(&rows_from(next, 2000));
            next += 2000;
        }
        stream.write_all(&recording.end()).expect("all of it is taken");
    });
    let said = text(&output);
    assert!(output.status.code() == Some(0) && said.contains("stopped at --max-size"), "{said}");
}

/// Ids of processes come again, and a runtime that was killed leaves its socket.
#[cfg(target_os = "linux")]
#[test]
fn a_socket_of_an_earlier_process_makes_no_runtime_of_ours() {
    let folder = Folder::new();
    let mut other = Command::new("sleep").arg("100").env("TMPDIR", folder.path("")).spawn().expect("sleep");
    let socket = folder.path(&format!("dotnet-diagnostic-{}-1-socket", other.id()));
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("a socket"));
    let output = run(&["collect", "-p", &other.id().to_string(), "-o", &folder.text("out")]);
    other.kill().and_then(|()| other.wait()).expect("killed");
    let said = text(&output);
    assert!(socket.exists() && output.status.code() == Some(1), "{:?} {said}", output.status);
    assert!(said.contains("has no .NET runtime; `tracequet ps` lists"), "{said}");
}
