//! Names of the files and folders of a dataset, relative to its directory, with `/` between their parts.

use std::path::{Component, Path, PathBuf};

use super::Format;

/// The file that says that there is a dataset.
pub const MANIFEST: &str = "manifest.json";
/// The file with the views.
pub const VIEWS: &str = "views.sql";
/// The folder of the entries, one for each of several recordings.
pub const ENTRIES: &str = "manifest";
/// The file that is locked, in that folder.
pub const LOCK: &str = ".lock";
/// End of the names of files in that folder that a run has not finished.
pub const HALF: &str = ".half";
/// The key under which a dataset of several recordings has a file without rows of each table: `<table>/trace=none/`. It
/// is the key of no recording: those end with a hyphen and digits of their hash.
pub const NO_RECORDING: &str = "none";

/// The folder of the entries of packs, in that of the entries.
pub const PACKS: &str = "packed";

/// The first part of the name of a pack, and the number of hexadecimal digits that follow. It is the key of no
/// recording: those have a hyphen.
const PACK: &str = "packed.";
const PACK_DIGITS: usize = 16;

/// The table of the labels of recordings, which entries have, too.
pub const LABELS: &str = "trace_label";

/// End of the name of an entry.
const ENTRY: &str = ".json";
/// The first part of the names of the folders of recordings.
const PARTITION: &str = "trace=";
/// The first part of the name of the file of a recording; a number follows.
const PART: &str = "part-";
/// The folder of the tables of events: `event/<provider>/<event>`.
pub const EVENTS: &str = "event";

/// The entry of a recording, or of a pack.
pub fn entry(key: &str) -> String {
    match is_pack(key) {
        true => format!("{ENTRIES}/{PACKS}/{key}{ENTRY}"),
        false => format!("{ENTRIES}/{key}{ENTRY}"),
    }
}

/// The name of a pack whose content has this hash.
pub fn pack(digits: &str) -> String {
    format!("{PACK}{digits}")
}

/// Whether this is the name of a pack: recordings whose tables lie together in `<table>/trace=<pack>/`.
pub fn is_pack(name: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    name.strip_prefix(PACK).is_some_and(|digits| digits.len() == PACK_DIGITS && digits.bytes().all(is_digit))
}

/// The pack of an entry, by the name of its file in the folder of the entries of packs.
pub fn pack_of_entry(file_name: &str) -> Option<&str> {
    file_name.strip_suffix(ENTRY).filter(|name| is_pack(name))
}

/// A file of a table of a pack.
pub fn packed(table: &str, pack: &str, number: u32) -> String {
    format!("{}/{}", folder(table, pack), part(number, Format::Parquet.name()))
}

/// The hidden directory in which the files of a pack come, and those whose place they take go.
pub fn hidden(pack: &str) -> String {
    format!(".{pack}")
}

/// The pack of a hidden directory.
pub fn pack_of_hidden(file_name: &str) -> Option<&str> {
    file_name.strip_prefix('.').filter(|name| is_pack(name))
}

/// The recording of an entry, by the name of its file in the folder of the entries.
pub fn key_of_entry(file_name: &str) -> Option<&str> {
    file_name.strip_suffix(ENTRY).filter(|key| is_key(key))
}

/// The note that a recording is half there, in the folder of the entries.
pub fn half(key: &str) -> String {
    format!("{}{HALF}", entry(key))
}

/// The recording that is half there, by the name of that file.
pub fn key_of_half(file_name: &str) -> Option<&str> {
    file_name.strip_suffix(HALF).and_then(key_of_entry)
}

/// The folder of a recording in the folder of a table.
pub fn partition(key: &str) -> String {
    format!("{PARTITION}{key}")
}

/// The recording of a folder of this name.
pub fn key_of_partition(folder: &str) -> Option<&str> {
    folder.strip_prefix(PARTITION)
}

/// The file of a table of a dataset of one recording.
pub fn flat(table: &str, format: Format) -> String {
    format!("{table}.{}", format.name())
}

/// The folder of a table of a recording.
pub fn folder(table: &str, key: &str) -> String {
    format!("{table}/{}", partition(key))
}

/// The only file of a table that a recording has, or the first one.
pub fn file(table: &str, key: &str, format: Format) -> String {
    in_partition(table, &partition(key), format)
}

/// The path of a file of a table, by the name of the folder of the recording.
pub fn in_partition(table: &str, partition: &str, format: Format) -> String {
    format!("{table}/{partition}/{}", part(0, format.name()))
}

/// The name of a file of a recording: a recording that is published while it is made has several of a table.
pub fn part(number: u32, extension: &str) -> String {
    format!("{PART}{number}.{extension}")
}

/// The first file beside a file of this name, if it is a part.
pub fn first_part(file_name: &str) -> Option<String> {
    let (digits, extension) = file_name.strip_prefix(PART)?.split_once('.')?;
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then(|| part(0, extension))
}

/// The recording that a file of a dataset belongs to.
pub fn key_of(name: &str) -> Option<&str> {
    name.split('/').find_map(key_of_partition)
}

/// The table that a file of a dataset holds.
pub fn table_of(name: &str) -> Option<&str> {
    let (path, extension) = name.rsplit_once('.')?;
    if !Format::ALL.iter().any(|format| format.name() == extension) {
        return None;
    }
    Some(path.split_once(&format!("/{PARTITION}")).map_or(path, |(table, _)| table))
}

/// Whether a name can be that of a table: one part, or `event/<provider>/<event>`. Files are written, read and removed
/// by it.
pub fn is_table(name: &str) -> bool {
    let mut parts = name.split('/');
    let has_good_parts = name.split('/').all(is_part) && !name.split('/').any(|part| part.starts_with(PARTITION));
    let is_payload = parts.next() == Some(EVENTS) && parts.clone().count() == 2;
    has_good_parts && (is_payload || !name.contains('/')) && name != ENTRIES
}

/// Whether a name can be the key of a recording.
pub fn is_key(key: &str) -> bool {
    is_part(key)
}

/// The path of a name inside of a dataset; nothing if it could lead out of it.
pub fn relative(name: &str) -> Option<PathBuf> {
    name.split('/').all(is_part).then(|| name.split('/').collect())
}

/// Whether a text is one part of a path on every system.
fn is_part(part: &str) -> bool {
    let mut components = Path::new(part).components();
    matches!((components.next(), components.next()), (Some(Component::Normal(_)), None))
        && !part.contains(['/', '\\', ':'])
        && !part.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables_and_keys_stay_in_the_dataset() {
        for name in ["gc", "heap_object", "event/Microsoft-Windows-DotNETRuntime/GCStart.v2", "event/P/.hidden"] {
            assert!(is_table(name), "{name}");
        }
        let wrong = [
            "", ".", "..", "../gc", "/gc", "gc/", "a/b", "event/P", "event/P/E/F", "event/../E", "event//E", "gc\\x",
            "c:gc", "trace=a", "event/P/trace=a", "manifest", "g\nc",
        ];
        assert!(wrong.iter().all(|name| !is_table(name)), "{:?}", wrong.iter().find(|name| is_table(name)));
        assert!(is_key("app-0123456789abcdef") && !is_key("..") && !is_key("a/b") && !is_key("") && !is_key("a\\b"));
        assert_eq!(relative("event/P/E"), Some(["event", "P", "E"].iter().collect()));
        assert_eq!(relative("event/../E"), None);
    }

    #[test]
    fn a_name_that_is_written_is_read() {
        for format in Format::ALL {
            let name = file("event/P/E", "a-1", format);
            assert_eq!((table_of(&name), key_of(&name)), (Some("event/P/E"), Some("a-1")), "{name}");
            let name = flat("gc", format);
            assert_eq!((table_of(&name), key_of(&name)), (Some("gc"), None), "{name}");
        }
        let name = |path: String| path.rsplit('/').next().unwrap_or_default().to_owned();
        assert_eq!(key_of_entry(&name(entry("a-1"))), Some("a-1"));
        assert_eq!(key_of_half(&name(half("a-1"))), Some("a-1"));
        let of_pack = pack("0123456789abcdef");
        assert_eq!(pack_of_entry(&name(entry(&of_pack))), Some(of_pack.as_str()));
        assert_eq!(pack_of_hidden(&hidden(&of_pack)), Some(of_pack.as_str()));
        assert_ne!(entry(&of_pack).rsplit_once('/').unwrap().0, entry("a-1").rsplit_once('/').unwrap().0);
        for other in ["packed.0123456789abcdeF", "packed.0123456789abcde", "packed-0123456789abcdef", NO_RECORDING] {
            assert!(!is_pack(other), "{other}");
        }
        assert_eq!((key_of_entry(&name(half("a-1"))), key_of_half("...json.half")), (None, None));
        assert_eq!(key_of_partition(&partition("a-1")), Some("a-1"));
        assert_eq!(first_part(&part(7, "arrow")), Some(part(0, "arrow")));
        assert_eq!((first_part("part-x.arrow"), first_part("part-.arrow"), first_part("7.arrow")), (None, None, None));
    }
}
