//! Finds the ports of running processes.

use crate::candidate::Candidate;
#[cfg(not(target_os = "linux"))]
use crate::error::Error;
use crate::error::Result;
#[cfg(all(unix, not(target_os = "linux")))]
use crate::owner::Owner;
use crate::port::Port;
#[cfg(all(unix, not(target_os = "linux")))]
use crate::sockets::{newest, own_folder, process_of, socket_names, user_name};

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
        let newest = newest(&folder, &entries, process, None, &[]);
        let port = newest.map(|path| Port::Owned(path, Owner::named(process)));
        port.ok_or(Error::NoPort { process, folder, turned_off: false })
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
            let path = newest(&folder, &entries, process, None, &[])?;
            let user = std::fs::symlink_metadata(&path).map(|data| user_name(data.uid())).unwrap_or_default();
            let port = Port::Owned(path, Owner::named(process));
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
