//! Reads /proc about a process: its user, its pid inside of its container, its TMPDIR, and whether .NET is in it.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::candidate::Candidate;
use crate::error::{Error, Result};
use crate::owner::Owner;
use crate::port::Port;
use crate::sockets::{newest, own_folder, process_of, socket_names, user_name};

/// The library of the runtime, as it is mapped. (A single-file program has it inside: only its socket shows it.)
const RUNTIME: &[u8] = b"/libcoreclr.so";

/// A process as /proc shows it.
struct Seen {
    process: u32,
    /// The id in the process's own pid namespace: the one in the name of its socket.
    inner: u32,
    user: u32,
    /// The users: real, effective, saved.
    users: Vec<u32>,
    /// When it began, in ticks since the machine did: the number in the name of its socket.
    start: String,
    /// The environment; `None` when we may not read it.
    environment: Option<Vec<u8>>,
    /// The files that are mapped into the process; `None` when we may not read them.
    maps: Option<Vec<u8>>,
    /// Whether it sees other files than we by the same paths: a container, or a service with a /tmp of its own.
    contained: bool,
}

impl Seen {
    fn of(process: u32) -> Result<Seen> {
        let folder = PathBuf::from(format!("/proc/{process}"));
        let gone = |source: std::io::Error| match source.kind() {
            ErrorKind::NotFound => Error::NoProcess(process),
            // ESRCH: it ended between two steps.
            _ if source.raw_os_error() == Some(3) => Error::NoProcess(process),
            _ => Error::Io { what: folder.display().to_string(), source },
        };
        let status = fs::read_to_string(folder.join("status")).map_err(gone)?;
        let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        let inner = line("NSpid:").split_whitespace().next_back().and_then(|id| id.parse().ok()).unwrap_or(process);
        let users: Vec<u32> = line("Uid:").split_whitespace().take(3).filter_map(|id| id.parse().ok()).collect();
        let user = users.get(1).copied().unwrap_or_default();
        let stat = fs::read_to_string(folder.join("stat")).map_err(gone)?;
        // Field 22; the second is the name in parentheses, with whatever in it.
        let behind_name = stat.rsplit(')').next().unwrap_or_default();
        let start = behind_name.split_whitespace().nth(19).unwrap_or_default().to_owned();
        // One root may be in several namespaces with other mounts on it (PrivateTmp of systemd), and one namespace have
        // several roots.
        let root = |folder: &Path| Some(fs::metadata(folder.join("root/.")).ok()?).map(|data| (data.dev(), data.ino()));
        let mounts = |folder: &Path| fs::read_link(folder.join("ns/mnt")).ok();
        let ours = Path::new("/proc/self");
        let contained = differ(root(&folder), root(ours)) || differ(mounts(&folder), mounts(ours));
        let environment = fs::read(folder.join("environ")).ok();
        let maps = fs::read(folder.join("maps")).ok();
        Ok(Seen { process, inner, user, users, start, environment, maps, contained })
    }

    fn variable(&self, name: &str) -> Option<&[u8]> {
        let mut variables = self.environment.as_deref()?.split(|byte| *byte == 0);
        variables.find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    }

    /// Where its socket is, as we see it.
    fn folder(&self) -> PathBuf {
        let inside = match self.variable("TMPDIR").filter(|folder| !folder.is_empty()) {
            Some(folder) => PathBuf::from(std::ffi::OsString::from_vec(folder.to_vec())),
            None if self.environment.is_some() => "/tmp".into(),
            None => own_folder(),
        };
        if self.contained {
            let inside = inside.strip_prefix("/").map(Path::to_owned).unwrap_or(inside);
            return PathBuf::from(format!("/proc/{}/root", self.process)).join(inside);
        }
        inside
    }

    fn has_runtime(&self) -> Option<bool> {
        self.maps.as_ref().map(|maps| maps.windows(RUNTIME.len()).any(|window| window == RUNTIME))
    }

    /// Whether its environment turns the port off.
    fn is_turned_off(&self) -> bool {
        ["DOTNET_EnableDiagnostics", "COMPlus_EnableDiagnostics", "DOTNET_EnableDiagnostics_IPC"]
            .iter()
            .any(|name| self.variable(name) == Some(b"0"))
    }

    /// The port among the sockets of its folder.
    fn port(&self, names: &std::io::Result<Vec<String>>) -> Result<Port> {
        let folder = self.folder();
        let names = match names {
            Ok(names) => names.as_slice(),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(self.denied()),
            Err(_) => &[],
        };
        if let Some(path) = newest(&folder, names, self.inner, Some(&self.start), &self.users) {
            return Ok(Port::Owned(path, self.owner()));
        }
        match self.has_runtime() {
            Some(false) => Err(Error::NotDotnet(self.process)),
            Some(true) => Err(Error::NoPort { process: self.process, folder, turned_off: self.is_turned_off() }),
            None => Err(self.denied()),
        }
    }

    /// The owner that must listen at the socket.
    fn owner(&self) -> Owner {
        // A /proc of another pid namespace counts otherwise than the kernel does when it is asked who listens.
        let is_ours = fs::read_link("/proc/self").is_ok_and(|id| id.as_os_str() == &*std::process::id().to_string());
        let visible = is_ours.then_some(self.process);
        Owner { process: self.process, inner: self.inner, visible, users: self.users.clone() }
    }

    /// Whether a socket is one of an earlier process with the same id: no process listens there, and this process has
    /// no runtime.
    fn is_left_behind<T>(&self, port: &Result<T>) -> bool {
        matches!(port, Err(Error::Stale(_))) && self.has_runtime() == Some(false)
    }

    /// Whether all that speaks for a runtime is a socket of another process.
    fn is_strangers<T>(&self, port: &Result<T>) -> bool {
        matches!(port, Err(Error::Stranger { .. } | Error::Link(_))) && self.has_runtime() != Some(true)
    }

    fn denied(&self) -> Error {
        Error::Denied { what: format!("process {}", self.process), owner: Some(user_name(self.user)) }
    }
}

/// Whether both are known and not the same.
fn differ<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
    matches!((one, other), (Some(one), Some(other)) if one != other)
}

/// The port of a process.
pub fn find(process: u32) -> Result<Port> {
    let seen = Seen::of(process)?;
    let port = seen.port(&socket_names(&seen.folder()))?;
    // Only a process without a runtime is asked: a connection is work for a runtime.
    if seen.has_runtime() == Some(false) {
        match port.connect().map(drop) {
            asked if seen.is_left_behind(&asked) => return Err(Error::NotDotnet(process)),
            Err(error @ (Error::Stranger { .. } | Error::Link(_))) => return Err(error),
            _ => {}
        }
    }
    Ok(port)
}

/// All processes with a .NET runtime, by process id.
pub fn candidates() -> Result<Vec<Candidate>> {
    let mut folders: HashMap<PathBuf, std::io::Result<Vec<String>>> = HashMap::new();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").map_err(Error::io("/proc"))?.flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(seen) = Seen::of(process) else { continue };
        let names = folders.entry(seen.folder()).or_insert_with_key(|folder| socket_names(folder));
        let has_socket = names.as_ref().is_ok_and(|names| names.iter().any(|n| process_of(n) == Some(seen.inner)));
        // For a process that we may not inspect, only a socket shows that .NET is in it.
        if !has_socket && seen.has_runtime() != Some(true) {
            continue;
        }
        let port = seen.port(names).and_then(|port| reachable(port, &seen));
        if seen.is_left_behind(&port) || seen.is_strangers(&port) {
            continue;
        }
        let folder = entry.path();
        let name = fs::read_to_string(folder.join("comm")).unwrap_or_default().trim_end().to_owned();
        let words = fs::read(folder.join("cmdline")).unwrap_or_default();
        let words: Vec<_> = words.split(|b| *b == 0).filter(|w| !w.is_empty()).map(String::from_utf8_lossy).collect();
        found.push(Candidate { process, name, user: user_name(seen.user), command_line: words.join(" "), port });
    }
    found.sort_by_key(|candidate| candidate.process);
    Ok(found)
}

/// Whether a process listens there and accepts us.
fn reachable(port: Port, seen: &Seen) -> Result<Port> {
    match port.connect() {
        Ok(_) => Ok(port),
        Err(Error::Denied { .. }) => Err(seen.denied()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(environment: &str, contained: bool) -> Seen {
        Seen {
            process: 42,
            inner: 7,
            user: 0,
            users: vec![0; 3],
            start: "1".into(),
            environment: Some(environment.replace(' ', "\0").into_bytes()),
            maps: Some(b"7f00-7f01 r-xp 0 08:01 1 /usr/share/dotnet/libcoreclr.so\n".to_vec()),
            contained,
        }
    }

    #[test]
    fn sockets_are_where_the_process_has_its_temporary_files() {
        assert_eq!(seen("A=1 TMPDIR=/var/run/app B=2", false).folder(), Path::new("/var/run/app"));
        assert_eq!(seen("A=1", false).folder(), Path::new("/tmp"));
        assert_eq!(seen("A=1 TMPDIR=/x", true).folder(), Path::new("/proc/42/root/x"));
        assert_eq!(seen("XTMPDIR=/x TMPDIR=", true).folder(), Path::new("/proc/42/root/tmp"));
    }

    #[test]
    fn why_there_is_no_port_is_said() {
        let of = |seen: Seen| seen.port(&Ok(vec![])).unwrap_err().to_string();
        assert!(of(seen("DOTNET_EnableDiagnostics=0", false)).contains("turned off"));
        assert!(of(seen("", false)).contains("no diagnostics port in /tmp"));
        assert!(of(Seen { maps: Some(vec![]), ..seen("", false) }).contains("has no .NET runtime"));
        assert!(of(Seen { maps: None, ..seen("", false) }).contains("run this as root"));
        let port = seen("", false).port(&Ok(vec!["dotnet-diagnostic-7-1-socket".into()])).unwrap();
        assert_eq!(port.path(), Path::new("/tmp/dotnet-diagnostic-7-1-socket"));
        assert!(matches!(port, Port::Owned(_, Owner { process: 42, inner: 7, visible: Some(42), .. })));
    }

    #[test]
    fn this_process_is_seen_and_has_no_runtime() {
        let error = find(std::process::id()).unwrap_err();
        assert!(matches!(error, Error::NotDotnet(_)), "{error}");
        // No system has as many.
        assert!(matches!(find(u32::MAX).unwrap_err(), Error::NoProcess(_)));
    }
}
