//! Programs that are recorded from their first instruction on: they connect to a port of ours.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use diagnostics_port::{Cookie, Hub, Port, ProcessInfo, Target, find, process_info, resume};

use crate::error::{Error, Named, Result};

/// The longest time from the start of a program until a runtime in it connects.
const START_UP: Duration = Duration::from_secs(60);
/// The time between two looks whether the program still runs.
const LOOK: Duration = Duration::from_millis(20);
/// The longest time until a runtime connects again after a command.
const RECONNECT: Duration = Duration::from_secs(1);
/// The variable with the port that a runtime connects to.
const PORTS: &str = "DOTNET_DiagnosticPorts";

/// A runtime that connected to us, or the program that we started.
pub struct Launched {
    /// The way to reach the runtime.
    pub target: Target,
    /// Whether it waits at its start until [`Launched::resume`].
    pub is_suspended: bool,
    /// Process id, as the runtime knows it.
    pub process: u64,
    child: Option<Child>,
    /// Holds the socket.
    _folder: Option<tempfile::TempDir>,
    _socket: Option<RemovedAtEnd>,
}

/// A socket that is removed when its listener has ended. The thread that lets other runtimes go on may keep the
/// listener itself longer than the process runs.
struct RemovedAtEnd(PathBuf);

impl Drop for RemovedAtEnd {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

/// Starts a program and waits for its runtime. .NET Core 3.1 cannot be held at its start: it is reached by its own
/// port.
pub fn launch(command: &[OsString]) -> Result<Launched> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Error::Usage("no program was given to start".into()));
    };
    let (folder, port) = private_port()?;
    let hub = Arc::new(Hub::listen(port)?);
    let mut ports = std::env::var_os(PORTS).unwrap_or_default();
    if !ports.is_empty() {
        ports.push(";");
    }
    ports.push(hub.port().path());
    ports.push(",suspend");
    let shown = Path::new(program).display();
    let mut child =
        Command::new(program).args(arguments).env(PORTS, ports).spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                let message = format!("{shown}: there is no such program; a program in this folder is ./{shown}");
                Error::NotFound { what: Named::Program, message }
            }
            std::io::ErrorKind::PermissionDenied => {
                Error::Refused(format!("{shown}: may not be run; for an assembly: dotnet {shown}"))
            }
            _ => Error::Usage(format!("{shown}: cannot be started: {error}")),
        })?;
    let begin = Instant::now();
    loop {
        if let Some(cookie) = hub.wait(LOOK, |_| true) {
            let target = Target::Reverse(hub.clone(), cookie);
            resume_others(&hub, cookie);
            let process = cookie.process;
            return Ok(Launched {
                target,
                is_suspended: true,
                process,
                child: Some(child),
                _folder: folder,
                _socket: None,
            });
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(Error::Unreachable(format!(
                "{shown} ended ({}) before a .NET runtime started in it; is it a .NET program?",
                exit_text(status)
            )));
        }
        if let Some(target) = own_port(child.id()) {
            let process = u64::from(child.id());
            return Ok(Launched {
                target,
                is_suspended: false,
                process,
                child: Some(child),
                _folder: folder,
                _socket: None,
            });
        }
        if begin.elapsed() > START_UP {
            return Err(Error::TimedOut(format!(
                "{shown} runs, but no .NET runtime has started in it within {} s; it is left running; is it a .NET \
                program?",
                START_UP.as_secs()
            )));
        }
    }
}

/// Listens at `path` and waits until a runtime connects, or `stop` ends the wait.
pub fn listen(path: &Path, mut stop: impl FnMut() -> bool) -> Result<Option<Launched>> {
    let hub = Arc::new(Hub::listen(Port::from_path(path))?);
    while !stop() {
        if let Some(cookie) = hub.wait(Duration::from_millis(100), |_| true) {
            let target = Target::Reverse(hub.clone(), cookie);
            resume_others(&hub, cookie);
            let (process, socket) = (cookie.process, Some(RemovedAtEnd(path.to_owned())));
            let launched =
                Launched { target, is_suspended: true, process, child: None, _folder: None, _socket: socket };
            return Ok(Some(launched));
        }
    }
    Ok(None)
}

/// A port of ours that stays, to which runtimes connect that come and go. One that waits at its start is let go at
/// once.
pub struct Listener {
    hub: Arc<Hub>,
    _socket: RemovedAtEnd,
}

/// Runtimes that a listener knows, at most.
const KNOWN: usize = 64;

impl Listener {
    /// Begins to listen at `path`.
    pub fn new(path: &Path) -> Result<Listener> {
        let hub = Arc::new(Hub::listen(Port::from_path(path))?);
        let weak = Arc::downgrade(&hub);
        let resume_each = move || {
            let mut known = Vec::new();
            while let Some(hub) = weak.upgrade() {
                if let Some(new) = hub.wait(Duration::from_millis(200), |cookie| !known.contains(cookie)) {
                    // The program may have ended already.
                    resume(&Target::Reverse(hub.clone(), new)).ok();
                    known.push(new);
                    let left = hub.keep_newest(KNOWN);
                    known.retain(|cookie| left.contains(cookie));
                }
            }
        };
        std::thread::Builder::new()
            .name("runtimes".into())
            .spawn(resume_each)
            .map_err(Error::io("starting a thread"))?;
        Ok(Listener { hub, _socket: RemovedAtEnd(path.to_owned()) })
    }

    /// The runtime that connected last and answers, with what it says of itself; nothing if there is none.
    pub fn newest(&self) -> Option<(Target, ProcessInfo)> {
        while let Some(cookie) = self.hub.newest() {
            let target = Target::Reverse(self.hub.clone(), cookie);
            match process_info(&target) {
                Ok(info) => return Some((target, info)),
                Err(_) => self.hub.forget(cookie),
            }
        }
        None
    }
}

impl Launched {
    /// Lets the program begin.
    pub fn resume(&self) -> Result<()> {
        if self.is_suspended { Ok(resume(&self.target)?) } else { Ok(()) }
    }

    /// Lets a program go on whose recording could not begin. A runtime connects again at once; one that is gone is not
    /// waited for.
    pub fn let_go(&self) {
        if let Target::Reverse(hub, cookie) = &self.target
            && self.is_suspended
            && hub.is_connected(*cookie, RECONNECT)
        {
            resume(&self.target).ok();
        }
    }

    /// The exit status of the program; waits a little for it. `None` when it still runs, or was not started by us.
    pub fn exit_status(&mut self, limit: Duration) -> Option<ExitStatus> {
        let child = self.child.as_mut()?;
        let begin = Instant::now();
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if begin.elapsed() < limit => std::thread::sleep(LOOK),
                _ => return None,
            }
        }
    }
}

/// A socket in a private folder; on Windows a pipe with a unique name.
fn private_port() -> Result<(Option<tempfile::TempDir>, Port)> {
    if cfg!(windows) {
        let name = format!("tracequet-{}", std::process::id());
        return Ok((None, Port::from_path(Path::new(&name))));
    }
    let folder = tempfile::Builder::new().prefix("tracequet-").tempdir().map_err(Error::io("temporary folder"))?;
    let port = Port::from_path(&folder.path().join("port"));
    Ok((Some(folder), port))
}

/// The port of a runtime that does not connect to others: one that does not know what ProcessInfo is.
fn own_port(process: u32) -> Option<Target> {
    let target = Target::Port(find(process).ok()?);
    matches!(process_info(&target), Err(error) if error.is_unknown_command()).then_some(target)
}

/// Resumes all other runtimes that connect here: those of programs that the program starts.
fn resume_others(hub: &Arc<Hub>, ours: Cookie) {
    let hub: Weak<Hub> = Arc::downgrade(hub);
    let mut known = vec![ours];
    let resume_each = move || {
        while let Some(hub) = hub.upgrade() {
            if let Some(other) = hub.wait(Duration::from_millis(200), |cookie| !known.contains(cookie)) {
                known.push(other);
                // The program may have ended already.
                resume(&Target::Reverse(hub, other)).ok();
            }
        }
    };
    std::thread::Builder::new().name("other runtimes".into()).spawn(resume_each).ok();
}

/// The end of a process, in words.
pub fn exit_text(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("killed by signal {signal}");
    }
    status.code().map_or_else(|| "no exit code".into(), |code| format!("exit code {code}"))
}
