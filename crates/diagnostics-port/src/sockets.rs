//! The sockets of runtimes in a folder of temporary files.

use std::os::unix::fs::MetadataExt;

/// The folder in which runtimes of this environment make their sockets.
pub(crate) fn own_folder() -> std::path::PathBuf {
    std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty()).map_or_else(|| "/tmp".into(), Into::into)
}

/// Names of the sockets in a folder: `dotnet-diagnostic-{pid}-{start}-socket`.
pub(crate) fn socket_names(folder: &std::path::Path) -> std::io::Result<Vec<String>> {
    let names = std::fs::read_dir(folder)?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter(|name| process_of(name).is_some()).collect())
}

/// The process id in the name of a socket.
pub(crate) fn process_of(name: &str) -> Option<u32> {
    let rest = name.strip_prefix("dotnet-diagnostic-")?.strip_suffix("-socket")?;
    rest.split_once('-')?.0.parse().ok()
}

/// The socket of a process: the one with the start time of the process in its name, else the newest of those that
/// belong to one of its users. Processes that were killed leave their sockets behind, and ids are reused.
pub(crate) fn newest(
    folder: &std::path::Path,
    names: &[String],
    process: u32,
    start: Option<&str>,
    users: &[u32],
) -> Option<std::path::PathBuf> {
    let of_process = || names.iter().filter(|name| process_of(name) == Some(process));
    let exact = start.map(|start| format!("dotnet-diagnostic-{process}-{start}-socket"));
    if let Some(name) = exact.and_then(|exact| of_process().find(|name| **name == exact)) {
        return Some(folder.join(name));
    }
    let rank = |name: &&String| {
        let data = std::fs::symlink_metadata(folder.join(name)).ok();
        let is_theirs = data.as_ref().is_some_and(|data| users.contains(&data.uid()));
        (is_theirs, data.and_then(|data| data.modified().ok()))
    };
    of_process().max_by_key(rank).map(|name| folder.join(name))
}

/// The name of a user, or the number when it has none here.
pub(crate) fn user_name(id: u32) -> String {
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = known.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, number) = (fields.next()?, fields.next()?, fields.next()?);
        (number.parse() == Ok(id)).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| format!("user {id}"))
}

#[cfg(test)]
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
            newest(&folder, &names, process, start, &[])
                .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        };
        assert_eq!(of(7, None).as_deref(), Some("dotnet-diagnostic-7-100-socket"));
        assert_eq!(of(7, Some("900")).as_deref(), Some("dotnet-diagnostic-7-900-socket"));
        assert_eq!(of(7, Some("5")).as_deref(), Some("dotnet-diagnostic-7-100-socket"));
        assert_eq!(of(8, None), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
