//! The ports of the processes that run.

#[cfg(not(target_os = "linux"))]
use crate::error::Error;
use crate::error::Result;
use crate::port::Port;

/// A process with a .NET runtime.
#[derive(Debug)]
pub struct Candidate {
    /// Process id, as this system calls it.
    pub process: u32,
    /// File name of the program; empty when it is not known.
    pub name: String,
    /// User; empty when it is not known.
    pub user: String,
    /// Command line; empty when it is not known.
    pub command_line: String,
    /// Its port, or why it cannot be reached.
    pub port: Result<Port>,
}

/// The port of a process.
pub fn find(process: u32) -> Result<Port> {
    #[cfg(target_os = "linux")]
    {
        crate::linux::find(process)
    }
    #[cfg(all(unix, not(target_os = "linux")))]
    {
        let folder = own_folder();
        let entries = socket_names(&folder).map_err(Error::io(folder.display().to_string()))?;
        let newest = newest(&folder, &entries, process, None);
        newest.map(Port::Socket).ok_or(Error::NoPort { process, folder, turned_off: false })
    }
    #[cfg(windows)]
    {
        let port = Port::Pipe(format!(r"\\.\pipe\dotnet-diagnostic-{process}").into());
        match port.connect() {
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Err(Error::NoPort { process, folder: r"\\.\pipe".into(), turned_off: false })
            }
            Err(error) => Err(error),
            // The runtime closes a connection without a command by itself.
            Ok(_) => Ok(port),
        }
    }
}

/// All processes with a .NET runtime that can be seen from here, by process id.
pub fn candidates() -> Result<Vec<Candidate>> {
    #[cfg(target_os = "linux")]
    {
        crate::linux::candidates()
    }
    #[cfg(all(unix, not(target_os = "linux")))]
    {
        use std::os::unix::fs::MetadataExt;

        let folder = own_folder();
        let entries = socket_names(&folder).map_err(Error::io(folder.display().to_string()))?;
        let mut processes: Vec<u32> = entries.iter().filter_map(|name| process_of(name)).collect();
        processes.sort_unstable();
        processes.dedup();
        let candidate = |process: u32| {
            let path = newest(&folder, &entries, process, None)?;
            let user = std::fs::symlink_metadata(&path).map(|data| user_name(data.uid())).unwrap_or_default();
            let port = Port::Socket(path);
            // A process that was killed leaves its socket behind.
            let port = match port.connect() {
                Err(Error::Stale(_)) => return None,
                Err(error) => Err(error),
                Ok(_) => Ok(port),
            };
            Some(Candidate { process, name: String::new(), user, command_line: String::new(), port })
        };
        Ok(processes.into_iter().filter_map(candidate).collect())
    }
    #[cfg(windows)]
    {
        let pipes = std::fs::read_dir(r"\\.\pipe\").map_err(Error::io(r"\\.\pipe"))?;
        let names = pipes.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut processes: Vec<u32> =
            names.filter_map(|name| name.strip_prefix("dotnet-diagnostic-")?.parse().ok()).collect();
        processes.sort_unstable();
        let candidate = |process: u32| Candidate {
            process,
            name: String::new(),
            user: String::new(),
            command_line: String::new(),
            port: find(process),
        };
        Ok(processes.into_iter().map(candidate).collect())
    }
}

/// The folder in which runtimes of this environment make their sockets.
#[cfg(unix)]
pub(crate) fn own_folder() -> std::path::PathBuf {
    std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty()).map_or_else(|| "/tmp".into(), Into::into)
}

/// Names of the sockets in a folder: `dotnet-diagnostic-{pid}-{start}-socket`.
#[cfg(unix)]
pub(crate) fn socket_names(folder: &std::path::Path) -> std::io::Result<Vec<String>> {
    let names = std::fs::read_dir(folder)?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter(|name| process_of(name).is_some()).collect())
}

/// The process id in the name of a socket.
#[cfg(unix)]
pub(crate) fn process_of(name: &str) -> Option<u32> {
    let rest = name.strip_prefix("dotnet-diagnostic-")?.strip_suffix("-socket")?;
    rest.split_once('-')?.0.parse().ok()
}

/// The socket of a process: the one with the start time of the process in its name, else the newest. Processes that were
/// killed leave their sockets behind, and ids are reused.
#[cfg(unix)]
pub(crate) fn newest(
    folder: &std::path::Path,
    names: &[String],
    process: u32,
    start: Option<&str>,
) -> Option<std::path::PathBuf> {
    let of_process = || names.iter().filter(|name| process_of(name) == Some(process));
    let exact = start.map(|start| format!("dotnet-diagnostic-{process}-{start}-socket"));
    if let Some(name) = exact.and_then(|exact| of_process().find(|name| **name == exact)) {
        return Some(folder.join(name));
    }
    let changed = |name: &&String| std::fs::symlink_metadata(folder.join(name)).and_then(|data| data.modified()).ok();
    of_process().max_by_key(changed).map(|name| folder.join(name))
}

/// The name of a user, or the number when it has none here.
#[cfg(unix)]
pub(crate) fn user_name(id: u32) -> String {
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = known.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, number) = (fields.next()?, fields.next()?, fields.next()?);
        (number.parse() == Ok(id)).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| format!("user {id}"))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn names_of_sockets_tell_the_process() {
        assert_eq!(process_of("dotnet-diagnostic-1234-56789-socket"), Some(1234));
        for other in ["dotnet-diagnostic-1234-socket", "clr-debug-pipe-1-2-in", "dotnet-diagnostic-x-1-socket", ""] {
            assert_eq!(process_of(other), None, "{other}");
        }
    }

    #[test]
    fn the_newest_socket_is_taken_but_for_the_one_of_the_start_time() {
        let folder = std::env::temp_dir().join(format!("diagnostics-port-newest-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, age) in [("dotnet-diagnostic-7-900-socket", 100), ("dotnet-diagnostic-7-100-socket", 10)] {
            let file = std::fs::File::create(folder.join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(age)).unwrap();
        }
        std::fs::write(folder.join("dotnet-diagnostic-77-1-socket"), "").unwrap();
        let names = socket_names(&folder).unwrap();
        let of = |process, start| {
            newest(&folder, &names, process, start).map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        };
        assert_eq!(of(7, None).as_deref(), Some("dotnet-diagnostic-7-100-socket"));
        assert_eq!(of(7, Some("900")).as_deref(), Some("dotnet-diagnostic-7-900-socket"));
        assert_eq!(of(7, Some("5")).as_deref(), Some("dotnet-diagnostic-7-100-socket"));
        assert_eq!(of(8, None), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
