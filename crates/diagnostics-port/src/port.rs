//! Where a runtime listens, and a connection to it.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cgroup::CgroupLimits;
#[cfg(target_os = "linux")]
use crate::cgroup::cgroup_limits;
use crate::error::{Error, Result};
use crate::frame;
use crate::owner::Owner;
use crate::wait::{PATIENCE, within};

/// Bytes of a path that fit into a socket address, without the NUL.
#[cfg(unix)]
pub(crate) const MAX_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// Where a runtime listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Port {
    /// A Unix socket, whoever listens there.
    Socket(PathBuf),
    /// A Unix socket at which a certain process must listen.
    Owned(PathBuf, Owner),
    /// A named pipe of Windows, as `\\.\pipe\dotnet-diagnostic-1234`.
    Pipe(PathBuf),
}

impl Port {
    /// The path of the socket or pipe.
    pub fn path(&self) -> &Path {
        match self {
            Port::Socket(path) | Port::Owned(path, _) | Port::Pipe(path) => path,
        }
    }

    /// The process id that a runtime must say when it is asked there: that of its own pid namespace.
    pub(crate) fn process(&self) -> Option<u64> {
        match self {
            Port::Socket(_) => None,
            Port::Owned(_, owner) => Some(owner.inner.into()),
            Port::Pipe(path) => path.to_str()?.rsplit_once("dotnet-diagnostic-")?.1.parse().ok(),
        }
    }

    /// The port that a path means on this system. On Windows a name without folder is a pipe of that name.
    pub fn from_path(path: &Path) -> Port {
        if cfg!(windows) {
            let is_pipe = path.to_string_lossy().starts_with(r"\\");
            Port::Pipe(if is_pipe { path.to_owned() } else { Path::new(r"\\.\pipe").join(path) })
        } else {
            Port::Socket(path.to_owned())
        }
    }

    /// Connects, within [`PATIENCE`].
    pub fn connect(&self) -> Result<Connection> {
        let port = self.clone();
        let connection = within(PATIENCE, move || connect(&port));
        connection.unwrap_or_else(|| Err(Error::Silent { what: self.to_string(), seconds: PATIENCE.as_secs() }))
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path().display())
    }
}

/// A connection to a runtime.
#[derive(Debug)]
pub struct Connection {
    #[cfg(unix)]
    stream: std::os::unix::net::UnixStream,
    #[cfg(windows)]
    stream: std::fs::File,
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.stream.read(buffer) {
            // Windows: the other end of the pipe is closed.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
            read => read,
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Connection {
    /// Sends a message and gives the payload of the answer, within `limit`. The connection comes back for what follows
    /// the answer (the events of a session).
    pub(crate) fn ask(
        mut self,
        command: &'static str,
        message: Vec<u8>,
        limit: Duration,
    ) -> Result<(Connection, Vec<u8>)> {
        let answer = within(limit, move || {
            self.write_all(&message).map_err(Error::io(format!("sending {command} to the runtime")))?;
            let payload = frame::read_answer(&mut self, command)?;
            Ok((self, payload))
        });
        answer.unwrap_or_else(|| Err(Error::Silent { what: command.into(), seconds: limit.as_secs() }))
    }

    /// The limits of the control groups of the process at the other end; `None` where they cannot be known.
    pub fn cgroup_limits(&self) -> Option<CgroupLimits> {
        #[cfg(target_os = "linux")]
        {
            let process =
                u32::try_from(crate::owner::peer(&self.stream).ok()?.pid).ok().filter(|process| *process != 0)?;
            // The kernel names it by our own namespace, which has to be the one that /proc shows.
            let own = std::fs::read_link("/proc/self").ok()?;
            (own.to_str()?.parse() == Ok(std::process::id())).then(|| cgroup_limits(process))?
        }
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// Closes both directions, so that a thread that reads from it meets the end. (On Windows that thread stays until
    /// the runtime closes its end.)
    pub fn closer(&self) -> impl FnOnce() + Send + 'static {
        #[cfg(unix)]
        {
            let stream = self.stream.try_clone();
            move || drop(stream.and_then(|stream| stream.shutdown(std::net::Shutdown::Both)))
        }
        #[cfg(windows)]
        {
            || ()
        }
    }
}

#[cfg(unix)]
fn connect(port: &Port) -> Result<Connection> {
    use std::os::unix::net::UnixStream;

    let path = port.path();
    if let Port::Owned(..) = port {
        // Another user who can create files in this folder could link to a socket elsewhere.
        let is_link = std::fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_symlink());
        if is_link {
            return Err(Error::Link(path.to_owned()));
        }
    }
    let stream = match UnixStream::connect(path) {
        #[cfg(target_os = "linux")]
        Err(_) if path.as_os_str().len() > MAX_PATH => by_folder(path),
        stream => stream,
    };
    let stream = stream.map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => Error::Denied { what: port.to_string(), owner: owner_of(path) },
        io::ErrorKind::ConnectionRefused => Error::Stale(port.to_string()),
        io::ErrorKind::NotFound => Error::Io { what: format!("{port}: there is no such socket"), source },
        _ if path.as_os_str().len() > MAX_PATH => Error::TooLong { path: path.to_owned(), limit: MAX_PATH },
        _ => Error::Io { what: port.to_string(), source },
    })?;
    #[cfg(target_os = "linux")]
    if let Port::Owned(_, owner) = port {
        owner.check(&stream, path)?;
    }
    Ok(Connection { stream })
}

/// Connects to a socket whose path is too long for an address: its folder is opened and named by its descriptor.
/// (`/proc/PID/root` before the path of a container makes paths long that are short inside.)
#[cfg(target_os = "linux")]
fn by_folder(path: &Path) -> io::Result<std::os::unix::net::UnixStream> {
    use std::os::fd::AsRawFd;

    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = std::fs::File::open(folder)?;
    std::os::unix::net::UnixStream::connect(Path::new(&format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name))
}

#[cfg(unix)]
fn owner_of(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;

    std::fs::symlink_metadata(path).ok().map(|data| crate::sockets::user_name(data.uid()))
}

#[cfg(windows)]
fn connect(port: &Port) -> Result<Connection> {
    /// All instances of the pipe are in use for a moment.
    const PIPE_BUSY: i32 = 231;
    for _ in 0..100 {
        match std::fs::File::options().read(true).write(true).open(port.path()) {
            Ok(stream) => return Ok(Connection { stream }),
            Err(error) if error.raw_os_error() == Some(PIPE_BUSY) => std::thread::sleep(Duration::from_millis(20)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(Error::Denied { what: port.to_string(), owner: None });
            }
            Err(source) => return Err(Error::Io { what: port.to_string(), source }),
        }
    }
    Err(Error::Silent { what: port.to_string(), seconds: 2 })
}

/// The other end of a [`Port`]: who binds it is connected to. `Hub` and the fake runtimes of tests are built on it.
#[derive(Debug)]
pub struct Server {
    port: Port,
    #[cfg(unix)]
    listener: std::os::unix::net::UnixListener,
    #[cfg(windows)]
    instances: crate::pipe::Instances,
}

impl Server {
    /// Begins to listen. A socket that a killed program left there is replaced. The socket file is removed when the
    /// server is dropped.
    pub fn bind(port: Port) -> Result<Server> {
        let denied = |source: io::Error| match source.kind() {
            io::ErrorKind::PermissionDenied => Error::Denied { what: port.to_string(), owner: None },
            io::ErrorKind::AddrInUse => Error::Taken(port.path().to_owned()),
            _ => Error::Io { what: format!("{port}: cannot listen"), source },
        };
        #[cfg(unix)]
        {
            let path = port.path();
            if path.as_os_str().len() > MAX_PATH {
                return Err(Error::TooLong { path: path.to_owned(), limit: MAX_PATH });
            }
            let bind = || std::os::unix::net::UnixListener::bind(path);
            let listener = match bind() {
                // The socket of a program that was killed: no process listens there.
                Err(error)
                    if error.kind() == io::ErrorKind::AddrInUse && matches!(port.connect(), Err(Error::Stale(_))) =>
                {
                    std::fs::remove_file(path).ok();
                    bind()
                }
                bound => bound,
            };
            let listener = listener.map_err(denied)?;
            Ok(Server { listener, port })
        }
        #[cfg(windows)]
        {
            let instances = crate::pipe::Instances::new(port.path()).map_err(denied)?;
            Ok(Server { instances, port })
        }
    }

    /// Where it listens.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// The next connection; waits for one.
    pub fn accept(&self) -> io::Result<Connection> {
        #[cfg(unix)]
        {
            let (stream, _) = self.listener.accept()?;
            Ok(Connection { stream })
        }
        #[cfg(windows)]
        {
            Ok(Connection { stream: self.instances.accept()? })
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Port::Socket(path) | Port::Owned(path, _) = &self.port {
            std::fs::remove_file(path).ok();
        }
    }
}
