//! The folders of a recording in those of the tables of a dataset. Nothing is written, moved or removed behind a link:
//! what a link leads to is not a part of the dataset.

use std::fs;
use std::io::ErrorKind;

use crate::format::paths;
use crate::prelude::*;

/// Refuses a link.
pub fn refuse_link(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Err(link(path)),
        Ok(_) => Ok(()),
        Err(e) if is_nothing(&e) => Ok(()),
        Err(source) => Err(Error::Io { path: path.to_owned(), source }),
    }
}

/// The place of a name in a dataset, no part of which is a link.
pub fn place(root: &Path, name: &Path) -> Result<PathBuf> {
    let mut place = root.to_owned();
    for part in name.components() {
        place.push(part);
        refuse_link(&place)?;
    }
    Ok(place)
}

/// The folders that a recording has, in whatever tables. They are looked for where tables can be, because what an entry
/// says of them may be damaged.
pub fn of_recording(root: &Path, key: &str) -> Result<Vec<PathBuf>> {
    let partition = paths::partition(key);
    let mut found = Vec::new();
    for table in of_tables(root)? {
        let folder = table.join(&partition);
        match fs::symlink_metadata(&folder) {
            Ok(kind) => {
                refuse_link(&table)?;
                if kind.is_symlink() {
                    return Err(link(&folder));
                }
                found.push(folder);
            }
            Err(e) if is_nothing(&e) => {}
            Err(source) => return Err(Error::Io { path: folder, source }),
        }
    }
    Ok(found)
}

/// The folders that can be those of tables: `NAME` and `event/PROVIDER/EVENT`.
pub fn of_tables(root: &Path) -> Result<Vec<PathBuf>> {
    let mut tables = Vec::new();
    let mut payloads = Vec::new();
    for path in below(root, false)? {
        if path.ends_with(paths::EVENTS) {
            payloads.push(path.clone());
        }
        if !path.ends_with(paths::ENTRIES) {
            tables.push(path);
        }
    }
    for events in payloads {
        refuse_link(&events)?;
        for provider in below(&events, false)? {
            if fs::metadata(&provider).is_ok_and(|found| found.is_dir()) {
                refuse_link(&provider)?;
                tables.extend(below(&provider, true)?);
            }
        }
    }
    Ok(tables)
}

/// The folders in a folder. Hidden names are those of directories in which a run works, and at the end of names of
/// tables those of events.
fn below(folder: &Path, with_hidden: bool) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if is_nothing(&e) => return Ok(Vec::new()),
        Err(source) => return Err(Error::Io { path: folder.to_owned(), source }),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::io(folder))?;
        if with_hidden || !entry.file_name().to_string_lossy().starts_with('.') {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Removes a folder with all that is in it, or what lies in its place. No link in it is followed.
pub fn remove_all(path: &Path) -> Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(e) => Err(e),
    };
    match removed {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::Io { path: path.to_owned(), source: e }),
        _ => Ok(()),
    }
}

/// Whether nothing is there, or a file where a folder was looked for.
fn is_nothing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn link(path: &Path) -> Error {
    Error::Dataset {
        path: path.to_owned(),
        what: "is a link".into(),
        expected: "a folder of the dataset: nothing is written or removed behind a link".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(root: &Path, key: &str) -> Vec<String> {
        let folders = of_recording(root, key).unwrap();
        let mut names: Vec<String> =
            folders.iter().map(|path| path.strip_prefix(root).unwrap().display().to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_recording_is_found_in_whatever_tables_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in
            ["gc/trace=a", "gc/trace=ab", "event/P/E/trace=a", "event/P/.E/trace=a", "event/trace=a", "heap/trace=b"]
        {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in ["manifest/trace=a", ".recording/gc/trace=a", "gc/more/trace=a", "event/P/E/F/trace=a"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("views.sql"), "").unwrap();
        fs::write(root.join("event/notes"), "").unwrap();
        assert_eq!(
            names(root, "a").iter().map(|name| name.replace('\\', "/")).collect::<Vec<_>>(),
            ["event/P/.E/trace=a", "event/P/E/trace=a", "event/trace=a", "gc/trace=a"]
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_link_on_the_way_to_a_recording_is_refused() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().unwrap();
        let (root, elsewhere) = (folder.path().join("lake"), folder.path().join("elsewhere"));
        fs::create_dir_all(elsewhere.join("trace=a")).unwrap();
        fs::create_dir_all(elsewhere.join("P/E/trace=a")).unwrap();
        for (name, to) in [
            ("gc", elsewhere.clone()),
            ("gc/trace=a", elsewhere.clone()),
            ("event", elsewhere.clone()),
            ("event/P", elsewhere.join("P")),
            ("event/P/E", elsewhere.join("P/E")),
            ("event/P/E/trace=a", elsewhere.clone()),
        ] {
            let link = root.join(name);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(&to, &link).unwrap();
            let refused = of_recording(&root, "a").unwrap_err().to_string();
            assert!(refused.contains(&format!("{}: is a link", link.display())), "{name}: {refused}");
            assert!(place(&root, &Path::new(name).join("more")).is_err(), "{name}");
            fs::remove_dir_all(&root).unwrap();
        }
        assert!(elsewhere.join("trace=a").exists());
        // One that leads to nothing of this recording is of no matter.
        fs::create_dir(&root).unwrap();
        symlink(&elsewhere, root.join("notes")).unwrap();
        assert_eq!(names(&root, "b"), Vec::<String>::new());
    }
}
