//! Whose socket it is: of strangers, behind links, in other namespaces.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may stop where it stands")]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use diagnostics_port::frame::{ANSWER, Message, OK, read_message};
use diagnostics_port::{Error, Owner, Port, Server, Target, candidates, find, process_info};
use tracequet_untested::skip;

/// What the made-up runtime in another process adds to its process id when it says it.
const LIE: &str = "DIAGNOSTICS_PORT_TEST_LIE";

/// Not a test: the made-up runtime, in a process of its own. Its socket is in TMPDIR, as that of a runtime is.
#[test]
#[ignore = "run by the tests below"]
fn a_runtime_in_another_process() {
    let (folder, process) = (std::env::var("TMPDIR").unwrap(), std::process::id());
    let lie: u64 = std::env::var(LIE).map_or(0, |text| text.parse().unwrap());
    let path = format!("{folder}/dotnet-diagnostic-{process}-1-socket");
    let server = Server::bind(Port::Socket(path.into())).unwrap();
    println!("ready {process}");
    loop {
        let mut connection = server.accept().unwrap();
        let Ok(_) = read_message(&mut connection) else { continue };
        let message = Message::new(ANSWER, OK).u32(1).u64(u64::from(process) + lie).raw(&[9; 16]);
        let words = ["made-up", "Linux", "x64", "app", "10.0.1", "linux-x64"];
        let message = words.iter().fold(message, |message, word| message.string(word));
        connection.write_all(&message.finish().unwrap()).unwrap();
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("diagnostics-port-trust-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn socket_of(&self, process: u32) -> PathBuf {
        self.0.join(format!("dotnet-diagnostic-{process}-1-socket"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Starts the made-up runtime behind the words of `before`, and gives its id as it is seen from here.
fn runtime(folder: &Path, before: &[&str], lie: u32) -> Option<(Running, u32)> {
    let program = std::env::current_exe().unwrap();
    let mut words: Vec<&str> = before.to_vec();
    words.push(program.to_str().unwrap());
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["--exact", "a_runtime_in_another_process", "--ignored", "--nocapture"]);
    command.env("TMPDIR", folder).env(LIE, lie.to_string()).stdout(Stdio::piped());
    let mut child = Running(command.spawn().unwrap());
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let ready = lines.map_while(Result::ok).find(|line| line.contains("ready "))?;
    let inner: u32 = ready.split_whitespace().last().unwrap().parse().unwrap();
    let id = child.0.id();
    // What came before may have started it as a child.
    let is_it = |process: &u32| std::fs::read_link(format!("/proc/{process}/exe")).is_ok_and(|exe| exe == program);
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let mut processes = std::iter::once(id).chain(children.split_whitespace().map(|id| id.parse().unwrap()));
    processes.find(is_it).or(Some(inner)).map(|process| (child, process))
}

/// A process without a runtime, whose temporary files are in a folder.
/// A process whose ports are in a folder.
fn victim(folder: &Path) -> Running {
    let victim = Running(Command::new("sleep").arg("1000").env("TMPDIR", folder).spawn().unwrap());
    // Until it has become `sleep` its environment is the one of this process.
    let environment = format!("/proc/{}/environ", victim.0.id());
    let folder = folder.as_os_str().as_encoded_bytes();
    while !std::fs::read(&environment).unwrap().windows(folder.len()).any(|part| part == folder) {
        std::thread::yield_now();
    }
    victim
}

fn listed(process: u32) -> bool {
    candidates().unwrap().iter().any(|candidate| candidate.process == process)
}

#[test]
fn only_the_process_itself_is_connected_to() {
    let folder = Folder::new();
    let (socket, link) = (folder.0.join("socket"), folder.0.join("link"));
    let _listener = UnixListener::bind(&socket).unwrap();
    std::os::unix::fs::symlink(&socket, &link).unwrap();
    let me = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&socket).unwrap());
    let owner = |visible| Owner { process: 7, inner: 7, visible: Some(visible), users: vec![me] };
    let ours = owner(std::process::id());
    assert!(Port::Owned(socket.clone(), ours.clone()).connect().is_ok());
    assert!(matches!(Port::Owned(link.clone(), ours).connect(), Err(Error::Link(path)) if path == link));
    let error = Port::Owned(socket, owner(1)).connect().unwrap_err();
    assert!(matches!(error, Error::Stranger { process: 7, .. }), "{error}");
    assert!(error.to_string().contains(&format!("process {} of", std::process::id())), "{error}");
}

#[test]
fn a_process_that_says_its_own_id_is_found() {
    let folder = Folder::new();
    let (_running, process) = runtime(&folder.0, &["env"], 0).unwrap();
    let port = find(process).unwrap();
    assert_eq!(port.path(), folder.socket_of(process));
    assert_eq!(process_info(&Target::Port(port)).unwrap().process, u64::from(process));
    assert!(listed(process));
}

#[test]
fn a_process_that_says_another_id_is_refused() {
    let folder = Folder::new();
    let (_running, process) = runtime(&folder.0, &["env"], 1).unwrap();
    let error = process_info(&Target::Port(find(process).unwrap())).unwrap_err();
    assert!(matches!(error, Error::Stranger { process: asked, .. } if asked == process), "{error}");
}

#[test]
fn a_stranger_at_the_socket_of_a_process_is_sent_nothing() {
    let folder = Folder::new();
    let victim = victim(&folder.0);
    let process = victim.0.id();
    let listener = UnixListener::bind(folder.socket_of(process)).unwrap();
    let error = find(process).unwrap_err();
    assert!(matches!(error, Error::Stranger { .. }), "{error}");
    assert!(error.to_string().contains(&format!("process {} of", std::process::id())), "{error}");
    assert!(!listed(process), "it is no process with a runtime");
    // Both have connected, and left without a word.
    listener.set_nonblocking(true).unwrap();
    let mut connections = 0;
    while let Ok((mut stream, _)) = listener.accept() {
        connections += 1;
        assert_eq!(stream.read(&mut [0; 100]).unwrap(), 0);
    }
    // The tests beside this one look for runtimes, too.
    assert!(connections >= 2, "{connections}");
}

#[test]
fn a_link_at_the_socket_of_a_process_is_not_followed() {
    let (folder, elsewhere) = (Folder::new(), Folder::new());
    let (_running, other) = runtime(&elsewhere.0, &["env"], 0).unwrap();
    let victim = victim(&folder.0);
    let process = victim.0.id();
    std::os::unix::fs::symlink(elsewhere.socket_of(other), folder.socket_of(process)).unwrap();
    let error = find(process).unwrap_err();
    assert!(matches!(error, Error::Link(_)), "{error}");
    assert!(!listed(process));
}

/// As systemd's PrivateTmp does: the same root with another folder of temporary files on it.
#[test]
fn a_process_with_mounts_of_its_own_is_found_through_its_root() {
    const TEST: &str = "a_process_with_mounts_of_its_own_is_found_through_its_root";
    let folder = Folder::new();
    let mount = "mount -t tmpfs none \"$TMPDIR\" && exec \"$@\"";
    let Some((_running, process)) = runtime(&folder.0, &["unshare", "-m", "sh", "-c", mount, "sh"], 0) else {
        return skip(
            TEST,
            "a process may not have mounts of its own here",
            "run the tests as root: they make namespaces",
        );
    };
    let port = find(process).unwrap();
    let inside = folder.socket_of(process);
    assert_eq!(port.path(), Path::new(&format!("/proc/{process}/root")).join(inside.strip_prefix("/").unwrap()));
    assert_eq!(process_info(&Target::Port(port)).unwrap().process, u64::from(process));
    assert!(listed(process) && !inside.exists());
}

/// In a pid namespace a process has another id, which is in the name of its socket and in what it says.
#[test]
fn a_process_in_a_pid_namespace_is_known_by_both_ids() {
    const TEST: &str = "a_process_in_a_pid_namespace_is_known_by_both_ids";
    let folder = Folder::new();
    let Some((_running, process)) = runtime(&folder.0, &["unshare", "--pid", "--fork", "--kill-child"], 0) else {
        return skip(
            TEST,
            "a process may not have a pid namespace of its own here",
            "run the tests as root: they make namespaces",
        );
    };
    assert_ne!(process, 1);
    let port = find(process).unwrap();
    assert_eq!(port.path(), folder.socket_of(1));
    assert_eq!(process_info(&Target::Port(port)).unwrap().process, 1);
    // The first process of another pid namespace has the same id there, and the same folder.
    let words = ["--pid", "--fork", "--kill-child", "sh", "-c", "echo ready; exec sleep 1000"];
    let mut other = Command::new("unshare");
    let mut other = Running(other.args(words).env("TMPDIR", &folder.0).stdout(Stdio::piped()).spawn().unwrap());
    assert!(BufReader::new(other.0.stdout.take().unwrap()).lines().next().is_some());
    let id = other.0.id();
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    let children: Vec<u32> = children.split_whitespace().map(|id| id.parse().unwrap()).collect();
    assert_eq!(children.len(), 1);
    assert!(listed(process) && !listed(children[0]), "the runtime is listed once");
}
