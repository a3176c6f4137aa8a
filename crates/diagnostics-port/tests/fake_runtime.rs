//! A made-up runtime behind a real port (a socket, on Windows a pipe): commands, sessions, reverse connections.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may stop where it stands")]

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use diagnostics_port::frame::{ANSWER, ERROR, Fields, Message, OK, Received, read_message};
use diagnostics_port::{
    Connection, Error, EventFilter, Hub, Port, Provider, Rundown, Server, SessionRequest, Target, WhenFull,
    process_info, resume, start_session, stop_session,
};

const UNKNOWN_COMMAND: u32 = 0x8013_1385;

/// A port that no other test has.
fn port() -> Port {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("tracequet-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    if cfg!(windows) {
        Port::from_path(&PathBuf::from(name))
    } else {
        Port::from_path(&std::env::temp_dir().join(name))
    }
}

fn ok(payload: Message) -> Vec<u8> {
    payload.finish().unwrap()
}

fn refusal(hresult: u32) -> Vec<u8> {
    ok(Message::new(ANSWER, ERROR).u32(hresult))
}

/// Commands that a runtime was sent, as (set, command).
type Log = Arc<Mutex<Vec<(u8, u8)>>>;

/// Answers what it is asked for until its session is stopped: it knows commands up to `newest` of each set.
fn serve(port: &Port, newest: [u8; 5]) -> (Target, Log) {
    let server = Server::bind(port.clone()).unwrap();
    let log = Log::default();
    let noted = log.clone();
    std::thread::spawn(move || {
        let (stop, stopped) = channel();
        let (stop, stopped) = (Arc::new(Mutex::new(stop)), Arc::new(Mutex::new(stopped)));
        while let Ok(mut connection) = server.accept() {
            let (noted, stop, stopped) = (noted.clone(), stop.clone(), stopped.clone());
            std::thread::spawn(move || {
                let Ok(command) = read_message(&mut connection) else { return };
                noted.lock().unwrap().push((command.command_set, command.command));
                answer(command, connection, newest, &stop, &stopped);
            });
        }
    });
    (Target::Port(port.clone()), log)
}

fn answer(
    command: Received,
    mut connection: Connection,
    newest: [u8; 5],
    stop: &Mutex<Sender<()>>,
    stopped: &Mutex<Receiver<()>>,
) {
    let (set, id) = (command.command_set, command.command);
    if id > newest[usize::from(set)] {
        connection.write_all(&refusal(UNKNOWN_COMMAND)).unwrap();
        return;
    }
    match (set, id) {
        (2, 1) => {
            assert_eq!(Fields(&command.payload).u64("id").unwrap(), 77);
            stop.lock().unwrap().send(()).unwrap();
            connection.write_all(&ok(Message::new(ANSWER, OK).u64(77))).unwrap();
        }
        (2, _) => {
            connection.write_all(&ok(Message::new(ANSWER, OK).u64(77))).unwrap();
            connection.write_all(b"Nettrace and so on").unwrap();
            stopped.lock().unwrap().recv_timeout(Duration::from_secs(20)).unwrap();
            connection.write_all(b", rundown").unwrap();
        }
        (4, 1) => connection.write_all(&ok(Message::new(ANSWER, OK))).unwrap(),
        (4, _) => {
            let mut message = Message::new(ANSWER, OK);
            if id == 8 {
                message = message.u32(1);
            }
            message = message.u64(42).raw(&[9; 16]).string("dotnet app.dll").string("Linux").string("x64");
            if id >= 4 {
                message = message.string("app").string("10.0.1");
            }
            if id == 8 {
                message = message.string("linux-x64");
            }
            connection.write_all(&ok(message)).unwrap();
        }
        _ => panic!("{set}/{id}"),
    }
    connection.flush().unwrap();
    // The client closes when it has read all: on Windows closing here would throw away what is under way.
    connection.read_exact(&mut [0]).ok();
}

fn request(rundown: Rundown, stacks: bool) -> SessionRequest {
    let (name, arguments, events) = ("A".into(), String::new(), EventFilter::All);
    let provider = Provider { name, keywords: 1, level: 4, arguments, events };
    SessionRequest { buffer_mb: 16, when_full: WhenFull::Drop, rundown, stacks, providers: vec![provider] }
}

#[test]
fn a_runtime_is_asked_with_the_newest_command_that_it_knows() {
    for (newest, commands) in [(8, vec![8]), (4, vec![8, 4]), (0, vec![8, 4, 0])] {
        let (target, log) = serve(&port(), [0, 0, 0, 0, newest]);
        let info = process_info(&target).unwrap();
        assert_eq!((info.process, info.cookie, info.command_line.as_str()), (42, [9; 16], "dotnet app.dll"));
        assert_eq!((info.os.as_str(), info.architecture.as_str()), ("Linux", "x64"));
        let newer = if newest >= 4 { ("app", "10.0.1") } else { ("", "") };
        assert_eq!((info.entry_assembly.as_str(), info.runtime_version.as_str()), newer);
        assert_eq!(info.runtime_identifier, if newest == 8 { "linux-x64" } else { "" });
        assert_eq!(*log.lock().unwrap(), commands.iter().map(|id| (4, *id)).collect::<Vec<_>>());
    }
}

#[test]
fn a_session_streams_until_it_is_stopped_on_another_connection() {
    let (target, log) = serve(&port(), [0, 0, 6, 0, 8]);
    let mut session = start_session(&target, &request(Rundown::Keywords(0x80), false)).unwrap();
    assert_eq!((session.id, session.compromises.len()), (77, 0));
    let mut first = [0; 18];
    session.connection.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"Nettrace and so on");
    let reading = std::thread::spawn(move || {
        let mut rest = Vec::new();
        session.connection.read_to_end(&mut rest).unwrap();
        rest
    });
    stop_session(&target, 77, Duration::from_secs(20)).unwrap();
    // The fake waits for us to close before it closes: it does so after its last byte was read on sockets only.
    if cfg!(unix) {
        drop(target);
    }
    assert_eq!(*log.lock().unwrap(), [(2, 5), (2, 1)]);
    drop(reading);
}

#[test]
fn an_old_runtime_gets_an_old_command_and_the_rest_is_said() {
    let (target, log) = serve(&port(), [0, 0, 2, 0, 0]);
    let session = start_session(&target, &request(Rundown::Off, false)).unwrap();
    assert_eq!(*log.lock().unwrap(), [(2, 4), (2, 3), (2, 2)]);
    let said = session.compromises.join(" ");
    assert!(said.contains("cannot leave its rundown out") && said.contains("cannot leave call stacks out"), "{said}");
    stop_session(&target, session.id, Duration::from_secs(20)).unwrap();
}

#[test]
fn events_are_chosen_where_the_runtime_can_and_that_is_said_where_it_cannot() {
    for (newest, commands, said) in [(6, vec![6], 0), (3, vec![6, 2], 1)] {
        let (target, log) = serve(&port(), [0, 0, newest, 0, 0]);
        let mut request = request(Rundown::Default, true);
        request.providers[0].events = EventFilter::Only(vec![1, 2]);
        let session = start_session(&target, &request).unwrap();
        assert_eq!(*log.lock().unwrap(), commands.iter().map(|id| (2, *id)).collect::<Vec<_>>());
        assert_eq!(session.compromises.len(), said);
        assert!(session.compromises.iter().all(|text| text.contains("all events of the keywords are recorded")));
        stop_session(&target, session.id, Duration::from_secs(20)).unwrap();
    }
}

#[test]
fn a_runtime_that_can_waits_instead_of_losing_events() {
    for (newest, commands, said) in [(7, vec![7], 0), (6, vec![7, 3], 1), (2, vec![7, 3, 2], 2)] {
        let (target, log) = serve(&port(), [0, 0, newest, 0, 0]);
        let request = SessionRequest { when_full: WhenFull::Block, ..request(Rundown::Off, true) };
        let session = start_session(&target, &request).unwrap();
        assert_eq!(*log.lock().unwrap(), commands.iter().map(|id| (2, *id)).collect::<Vec<_>>());
        assert_eq!(session.compromises.len(), said);
        assert!(said == 0 || session.compromises[0].contains("it drops events then (needs .NET 11)"));
        stop_session(&target, session.id, Duration::from_secs(20)).unwrap();
    }
}

#[test]
fn what_refuses_or_is_no_runtime_is_told_in_a_sentence() {
    for (answer, words) in [
        (refusal(0x8007_0057), "the arguments are not valid"),
        (refusal(0x8013_1384), "does not understand the request"),
        (refusal(0x8013_1386), "another version of the protocol"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "no .NET runtime"),
        (Vec::new(), "no .NET runtime"),
    ] {
        let server = Server::bind(port()).unwrap();
        let target = Target::Port(server.port().clone());
        std::thread::spawn(move || {
            let mut connection = server.accept().unwrap();
            read_message(&mut connection).unwrap();
            connection.write_all(&answer).unwrap();
            if !answer.is_empty() {
                connection.read_exact(&mut [0]).ok();
            }
        });
        let error = start_session(&target, &request(Rundown::Default, true)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn one_that_never_answers_is_waited_for_ten_seconds() {
    let server = Server::bind(port()).unwrap();
    let target = Target::Port(server.port().clone());
    let begin = Instant::now();
    let error = process_info(&target).unwrap_err().to_string();
    assert!(error.contains("no answer to ProcessInfo within 10 s; is the process stopped"), "{error}");
    assert!((9..20).contains(&begin.elapsed().as_secs()));
    drop(server);
}

/// A runtime that connects to us: says who it is, takes one command, connects again.
fn connect_back(port: &Port, id: u8, commands: usize) -> std::thread::JoinHandle<Vec<(u8, u8)>> {
    let port = port.clone();
    std::thread::spawn(move || {
        let mut log = Vec::new();
        for _ in 0..commands {
            let mut connection = port.connect().unwrap();
            let introduction = [&b"ADVR_V1\0"[..], &[id; 16], &u64::from(id).to_le_bytes(), &[0, 0]].concat();
            connection.write_all(&introduction).unwrap();
            let command = read_message(&mut connection).unwrap();
            log.push((command.command_set, command.command));
            connection.write_all(&ok(Message::new(ANSWER, OK).u64(77))).unwrap();
            connection.read_exact(&mut [0]).ok();
        }
        log
    })
}

#[test]
fn runtimes_connect_to_a_hub_once_for_each_command() {
    let hub = Arc::new(Hub::listen(port()).unwrap());
    // A silent port and one without a runtime do not block the others.
    let _silent = hub.port().connect().unwrap();
    let mut other = hub.port().connect().unwrap();
    other.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n").unwrap();
    let runtimes = [connect_back(hub.port(), 1, 2), connect_back(hub.port(), 2, 1)];
    let first = hub.wait(Duration::from_secs(5), |cookie| cookie.process == 1).unwrap();
    let second = hub.wait(Duration::from_secs(5), |cookie| *cookie != first).unwrap();
    assert_eq!((first.id, second.id), ([1; 16], [2; 16]));
    let session = start_session(&Target::Reverse(hub.clone(), first), &request(Rundown::Default, true)).unwrap();
    assert_eq!(session.id, 77);
    drop(session);
    resume(&Target::Reverse(hub.clone(), first)).unwrap();
    resume(&Target::Reverse(hub.clone(), second)).unwrap();
    let logs = runtimes.map(|runtime| runtime.join().unwrap());
    assert_eq!(logs, [vec![(2, 2), (4, 1)], vec![(4, 1)]]);
    assert!(hub.wait(Duration::from_millis(50), |cookie| cookie.process == 3).is_none());
}

#[test]
fn a_port_that_is_taken_is_not_taken_away() {
    if std::env::var_os("TRACEQUET_ON_WINE").is_some() {
        let why = "Wine 8 gives a pipe's name to two servers, whatever FILE_FLAG_FIRST_PIPE_INSTANCE says";
        return tracequet_untested::note("a_port_that_is_taken_is_not_taken_away", why, "run them on Windows");
    }
    let server = Server::bind(port()).unwrap();
    let error = Server::bind(server.port().clone()).unwrap_err();
    // Windows says that access is denied.
    assert!(matches!(error, Error::Taken(_) | Error::Denied { .. }), "{error}");
}

#[cfg(unix)]
#[test]
fn a_socket_that_was_left_behind_is_told() {
    let port = port();
    drop(std::os::unix::net::UnixListener::bind(port.path()).unwrap());
    let error = process_info(&Target::Port(port.clone())).unwrap_err().to_string();
    assert!(error.contains("no process listens at") && error.contains("remove the file"), "{error}");
    std::fs::remove_file(port.path()).unwrap();
    let error = process_info(&Target::Port(port)).unwrap_err().to_string();
    assert!(error.contains("there is no such socket"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_path_that_is_too_long_for_a_socket_is_told() {
    let long = std::env::temp_dir().join("x".repeat(120));
    let error = Hub::listen(Port::Socket(long.clone())).err().unwrap().to_string();
    assert!(error.contains("choose a shorter path"), "{error}");
    let error = process_info(&Target::Port(Port::Socket(long))).unwrap_err().to_string();
    assert!(error.contains("shorter path") || error.contains("no such socket"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_long_folder_before_a_socket_is_no_obstacle_on_linux() {
    let base = std::env::temp_dir().join(format!("tracequet-long-{}", std::process::id()));
    let folder = base.join("y".repeat(120));
    std::fs::create_dir_all(&folder).unwrap();
    // Made under a short name, and reached by the long one.
    let short = std::env::temp_dir().join(format!("tracequet-short-{}", std::process::id()));
    std::os::unix::fs::symlink(&folder, &short).unwrap();
    let (_, log) = serve(&Port::Socket(short.join("s")), [0, 0, 0, 0, 8]);
    process_info(&Target::Port(Port::Socket(folder.join("s")))).unwrap();
    assert_eq!(log.lock().unwrap().len(), 1);
    std::fs::remove_dir_all(&base).unwrap();
    std::fs::remove_file(&short).unwrap();
}
