//! Expands addresses on a command line to recordings.

use tracequet_trace::pattern;
use tracequet_trace::reader::Format;
use tracequet_trace::source::HEAD;
use tracequet_trace::source::store::{Address, Failure, Object, Service, Store, each, open};

use crate::names::{fits, is_named_so, is_pattern};
use crate::prelude::*;

/// Ends of names that no recording has: what our own datasets are made of, which may be many files.
const NO_RECORDINGS: [&str; 5] = [".parquet", ".arrow", ".json", ".sql", ".half"];

/// The recordings of an address.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    /// The recordings, in the order of their keys.
    pub(crate) inputs: Vec<PathBuf>,
    /// Whether it means all recordings below it, even if that is one.
    pub(crate) is_folder: bool,
}

/// The recordings of an address: an object itself; a folder (with a slash at its end, or without an object
/// of its name) for those below it, known by their names or their first bytes; a pattern for those that fit. What
/// begins with a dot, and what is below `output`, is left out. What cannot be listed is kept as it is; [`why_not`] says
/// why.
pub(crate) fn expand(name: &Path, output: &Path) -> Result<Listed> {
    let Some(address) = Address::parse(name) else { return Ok(Listed::default()) };
    let address = address?;
    let store = open(&address)?;
    let output = Address::parse(output).and_then(|output| output.ok()).filter(|output| output.root == address.root);
    let itself = |is_folder| Listed { inputs: vec![name.to_owned()], is_folder };
    match listed(store.as_ref(), &address, output.as_ref()) {
        Ok(None) => Ok(itself(false)),
        Ok(Some(keys)) if keys.is_empty() => {
            let what = if is_pattern(&address.key) {
                "no object has a name like this"
            } else {
                "there is no recording at this address or below"
            };
            Err(Error::Usage(format!("{}: {what}", address.shown().display())))
        }
        Ok(Some(keys)) => {
            let inputs = keys.into_iter().map(|key| address.with_key(key).shown()).collect();
            Ok(Listed { inputs, is_folder: true })
        }
        Err(_) => Ok(itself(true)),
    }
}

/// Why an address is not one object: a folder or a pattern that [`expand`] could not list, or that it
/// was not asked about.
pub(super) fn why_not(address: &Address) -> Result<()> {
    if !is_folder(&address.key) && (!is_pattern(&address.key) || address.service == Service::Http) {
        return Ok(());
    }
    let store = open(address)?;
    let what = match listed(store.as_ref(), address, None) {
        Ok(None) => return Ok(()),
        Ok(Some(_)) => "is a folder or a pattern, expected the address of one recording".to_owned(),
        Err(failure) => format!("the objects below cannot be listed: {}", failure.what),
    };
    Err(Failure::other(what).at(address.shown()).into())
}

fn is_folder(key: &str) -> bool {
    key.is_empty() || key.ends_with('/')
}

/// The keys of the recordings of an address; nothing if it is one object.
fn listed(
    store: &dyn Store,
    address: &Address,
    output: Option<&Address>,
) -> std::result::Result<Option<Vec<String>>, Failure> {
    let key = address.key.as_str();
    if is_pattern(key) && address.service != Service::Http && !store.is_there(key)? {
        let folder = key.split('/').take_while(|part| !is_pattern(part)).collect::<Vec<_>>().join("/");
        let pattern: Vec<&str> = key.split('/').collect();
        let fitting = |object: &Object| {
            let parts: Vec<&str> = object.key.split('/').collect();
            !is_hidden(&object.key, &folder) && path_fits(&parts, &pattern)
        };
        let found = store.list(&folder)?.into_iter().filter(fitting);
        return Ok(Some(found.map(|object| object.key).collect()));
    }
    if !is_folder(key) {
        let is_object = address.service == Service::Http
            || is_named_so(key.rsplit('/').next().unwrap_or(key))
            || store.is_there(key)?;
        if is_object {
            return Ok(None);
        }
    }
    let objects = store.list(address.prefix())?;
    if objects.is_empty() && !is_folder(key) {
        return Ok(None);
    }
    recordings(store, objects, address.prefix(), output).map(Some)
}

/// The recordings among objects below a folder.
fn recordings(
    store: &dyn Store,
    mut objects: Vec<Object>,
    folder: &str,
    output: Option<&Address>,
) -> std::result::Result<Vec<String>, Failure> {
    let in_output = |key: &str| {
        output.is_some_and(|output| match output.prefix() {
            "" => true,
            prefix => key.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/')),
        })
    };
    objects.retain(|object| !object.key.ends_with('/') && !is_hidden(&object.key, folder) && !in_output(&object.key));
    let is_recording = each(&objects, |object| {
        let name = object.key.rsplit('/').next().unwrap_or(&object.key);
        if is_named_so(name) {
            return Ok(true);
        }
        if object.size == 0 || NO_RECORDINGS.iter().any(|end| name.ends_with(end)) {
            return Ok(false);
        }
        // An object that cannot be read, and is not named like a recording, is not a recording.
        Ok(store.head(&object.key, HEAD as u64).is_ok_and(|head| Format::detect(&head).is_some()))
    })?;
    let keys = objects.into_iter().zip(is_recording).filter(|(_, is)| *is);
    Ok(keys.map(|(object, _)| object.key).collect())
}

/// Whether a part of a key behind the folder begins with a dot.
fn is_hidden(key: &str, folder: &str) -> bool {
    let rest = key.strip_prefix(folder).unwrap_or(key);
    rest.split('/').any(|part| part.starts_with('.'))
}

/// Whether the parts of a key fit those of a pattern; `**` stands for any number of parts. Takes time in proportion to
/// both.
fn path_fits(parts: &[&str], pattern: &[&str]) -> bool {
    let chars = |text: &str| text.chars().collect::<Vec<char>>();
    let one = |pattern: &[&str], part: &str| fits(&chars(part), &chars(pattern.first()?)).then_some(1);
    pattern::fits(parts, pattern, "**", one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::memory::Memory;

    const NETTRACE: &[u8] = b"Nettrace\x14\0\0\0!FastSerialization.1";

    fn store() -> Memory {
        let store = Memory::default();
        for (key, bytes) in [
            ("t/b/2.nettrace", &b"broken"[..]),
            ("t/b/1.etl.gz", b"broken"),
            ("t/a", NETTRACE),
            ("t/notes.txt", b"text"),
            ("t/.hidden.nettrace", b""),
            ("t/lake/c.nettrace", b""),
            ("t/x.parquet", NETTRACE),
            ("tt/d.nettrace", b""),
        ] {
            store.set(key, bytes);
        }
        store
    }

    fn found(key: &str) -> Option<Vec<String>> {
        let address = |key: &str| Address::parse(Path::new(&format!("s3://bucket/{key}"))).unwrap().unwrap();
        listed(&store(), &address(key), Some(&address("t/lake"))).unwrap()
    }

    fn keys(keys: &[&str]) -> Option<Vec<String>> {
        Some(keys.iter().map(|key| (*key).to_owned()).collect())
    }

    #[test]
    fn a_folder_stands_for_the_recordings_below() {
        let all = keys(&["t/a", "t/b/1.etl.gz", "t/b/2.nettrace"]);
        assert_eq!(found("t/"), all);
        assert_eq!(found("t"), all, "without an object of this name");
        assert_eq!(found("none/"), keys(&[]));
    }

    #[test]
    fn an_object_stands_for_itself() {
        for key in ["t/a", "t/b/2.nettrace", "t/gone.nettrace", "none"] {
            assert_eq!(found(key), None, "{key}");
        }
    }

    #[test]
    fn a_pattern_stands_for_what_fits() {
        assert_eq!(found("t/b/*.nettrace"), keys(&["t/b/2.nettrace"]));
        assert_eq!(found("**/[0-9].*"), keys(&["t/b/1.etl.gz", "t/b/2.nettrace"]));
        assert_eq!(
            found("t/**"),
            keys(&["t/a", "t/b/1.etl.gz", "t/b/2.nettrace", "t/lake/c.nettrace", "t/notes.txt", "t/x.parquet"])
        );
        assert_eq!(found("t/*/*/*"), keys(&[]));
        assert!(!path_fits(&["a"; 300], &[["**", "a"]; 60].concat().into_iter().chain(["b"]).collect::<Vec<_>>()));
    }
}
