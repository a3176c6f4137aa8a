//! Manifests in files (`.man`), and formats of messages (`.tmf`), that a user gives for events that a recording does
//! not describe.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;

use super::manifest::{self, EventManifest};
use super::shipped;
use super::tdh_types::Description;
use super::tmf;
use super::xml;
use crate::prelude::*;
use crate::reader::{EtwForm, EtwLayout, EventType, Layout};
use crate::utf16;

/// A file of more bytes is refused; the largest manifests of Windows have 4 MB.
const MAX_FILE: u64 = 32 << 20;

/// The manifests that a user gives, by provider.
#[derive(Debug, Default)]
pub struct EventManifests {
    providers: HashMap<Guid, Vec<EventManifest>>,
    /// Classes of messages.
    messages: HashMap<Guid, EventManifest>,
    /// Faults of single events and templates: a message for each file, and how many there are.
    odd: Vec<(String, u64)>,
}

impl EventManifests {
    /// Reads files, and the files of directories; an error says file, line, column and what was expected.
    pub fn open(paths: &[PathBuf]) -> Result<EventManifests> {
        let mut manifests = EventManifests::default();
        for path in paths {
            if path.is_dir() { manifests.add_directory(path)? } else { manifests.add_file(path)? }
        }
        Ok(manifests)
    }

    /// Takes the manifests of a directory in, in the order of their names. A file that cannot be read costs itself.
    fn add_directory(&mut self, directory: &Path) -> Result<()> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(Error::io(directory))? {
            let path = entry.map_err(Error::io(directory))?.path();
            let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
            if ["man", "xml", "tmf"].iter().any(|known| extension == *known) && path.is_file() {
                files.push(path);
            }
        }
        if files.is_empty() {
            let message =
                format!("{}: has no .man, .xml or .tmf, expected a directory of manifests", directory.display());
            return Err(Error::Usage(message));
        }
        files.sort();
        for path in files {
            if let Err(error) = self.add_file(&path) {
                self.odd.push((format!("{error}; the file is left out"), 1));
            }
        }
        Ok(())
    }

    fn add_file(&mut self, path: &Path) -> Result<()> {
        let text = if has_formats(path) { read_formats(path)? } else { read(path)? };
        self.add(path, &text)
    }

    /// Takes formats of messages in.
    fn add_formats(&mut self, path: &Path, text: &str) -> Result<()> {
        let classes = tmf::parse(text).map_err(|why| Error::Usage(format!("{}: {why}", path.display())))?;
        for class in classes {
            self.messages.insert(class.guid.unwrap_or_default(), class);
        }
        Ok(())
    }

    /// The message and the texts of an event, as far as they are known.
    fn message<'t>(&self, event_type: &'t EventType, etw: &EtwLayout) -> Cow<'t, EventType> {
        let class = event_type.provider_guid.and_then(|guid| self.messages.get(&guid));
        let said = class.and_then(|class| class.describe(event_type.event_id, 0, etw.pointer_size));
        let Some(mut said) = said else { return Cow::Borrowed(event_type) };
        let layout = said.layout(etw.pointer_size, etw.form);
        let (provider, name, message) = (said.provider, said.name, said.message);
        Cow::Owned(EventType { provider, name, message, layout, ..event_type.clone() })
    }

    /// Takes the text of a manifest in, or of formats of messages when `path` ends in `.tmf`; it is the name in
    /// messages. What is wrong with single events or templates is kept for [`EventManifests::problems`].
    pub fn add(&mut self, path: &Path, text: &str) -> Result<()> {
        if has_formats(path) {
            return self.add_formats(path, text);
        }
        let refuse = |fault| Error::Usage(format!("{}:{fault}", path.display()));
        let (providers, fault) = manifest::parse(text).map_err(refuse)?;
        if let Some(fault) = fault {
            return Err(refuse(fault));
        }
        let odd = || providers.iter().map(|provider| &provider.odd);
        let count = odd().map(|(_, count)| *count).sum();
        if let Some(first) = odd().find_map(|(faults, _)| faults.first()) {
            let others = if count > 1 { format!(", and {} more of the kind", count - 1) } else { String::new() };
            let message = format!("{}:{first}{others}; events that need it stay raw", path.display());
            self.odd.push((message, count));
        }
        for provider in providers {
            self.providers.entry(provider.guid.unwrap_or_default()).or_default().push(provider);
        }
        Ok(())
    }

    /// Faults of the manifests; the rest of them is used all the same.
    pub fn problems(&self) -> impl Iterator<Item = Problem> {
        let problem =
            |(message, count): &(String, u64)| Problem::info("odd_manifest", 0, message.clone()).count(*count);
        self.odd.iter().map(problem)
    }

    /// A kind of event with what the manifests say of it. They go before what the recording says, since they were asked
    /// for; of several for one provider the first that has the event is taken.
    fn complete<'t>(&self, event_type: &'t EventType, etw: &EtwLayout) -> Cow<'t, EventType> {
        let list = event_type.provider_guid.and_then(|guid| self.providers.get(&guid));
        let Some(list) = list else { return Cow::Borrowed(event_type) };
        let mut out = event_type.clone();
        if let Some(first) = list.first().filter(|_| out.provider.is_empty()) {
            out.provider.clone_from(&first.provider);
        }
        let version = u16::try_from(event_type.version).unwrap_or(u16::MAX);
        let said = list.iter().find_map(|m| m.describe(event_type.event_id, version, etw.pointer_size));
        let is_better = |said: &Description| !matches!(said.fields, Some(Err(_))) || etw.fields.is_none();
        if let Some(mut said) = said.filter(is_better) {
            out.layout = said.layout(etw.pointer_size, etw.form);
            out.provider = said.provider;
            out.name = said.name;
            out.message = said.message;
        }
        Cow::Owned(out)
    }
}

/// The source that describes the fields of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Describes {
    /// The recording, or the catalogue.
    #[default]
    Recording,
    /// A manifest that the user gave.
    Manifest,
    /// The manifests of Windows that come with the program.
    Shipped,
}

/// A kind of event with what manifests say of it: those that the user gave go before the recording, those that ship
/// behind it.
pub fn complete<'t>(given: Option<&EventManifests>, event_type: &'t EventType) -> (Cow<'t, EventType>, Describes) {
    let Layout::Etw(etw) = &event_type.layout else { return (Cow::Borrowed(event_type), Describes::Recording) };
    if let (EtwForm::Message, Some(given)) = (etw.form, given) {
        let out = given.message(event_type, etw);
        let described_by = if matches!(out, Cow::Owned(_)) { Describes::Manifest } else { Describes::Recording };
        return (out, described_by);
    }
    if etw.form != EtwForm::Manifest {
        return (with_provider(Cow::Borrowed(event_type)), Describes::Recording);
    }
    let out = given.map_or(Cow::Borrowed(event_type), |given| given.complete(event_type, etw));
    if out.layout != event_type.layout {
        return (out, Describes::Manifest);
    }
    shipped(with_provider(out), etw)
}

/// With the name of its provider, where the recording has only the GUID of one of Windows.
fn with_provider(mut event_type: Cow<'_, EventType>) -> Cow<'_, EventType> {
    let unnamed = event_type.provider_guid.filter(|_| event_type.provider.is_empty());
    if let Some(name) = unnamed.and_then(shipped::provider_name) {
        event_type.to_mut().provider = name.to_owned();
    }
    event_type
}

/// With its name and its fields, of an event that ships. Several events may have one name in a recording, so that the
/// one that ships is taken; fields are taken where the recording has none.
fn shipped<'t>(mut event_type: Cow<'t, EventType>, etw: &EtwLayout) -> (Cow<'t, EventType>, Describes) {
    let manifest = event_type.provider_guid.and_then(shipped::manifest).and_then(|read| read.as_ref().ok());
    let version = u16::try_from(event_type.version).unwrap_or(u16::MAX);
    let said = manifest.and_then(|m| m.describe(event_type.event_id, version, etw.pointer_size));
    let Some(mut said) = said else { return (event_type, Describes::Recording) };
    let layout = said.layout(etw.pointer_size, etw.form);
    let out = event_type.to_mut();
    if !said.name.is_empty() {
        out.name = said.name;
    }
    if etw.fields.is_some() {
        return (event_type, Describes::Recording);
    }
    out.layout = layout;
    (event_type, Describes::Shipped)
}

/// The text of a file. EventManifests are UTF-8 or, as the SDK's tools write them, UTF-16 with a mark in front.
fn read(path: &Path) -> Result<String> {
    let bytes = bytes_of(path)?;
    if let Some(wide) = bytes.strip_prefix(b"\xFF\xFE") {
        return Ok(utf16::string(wide));
    }
    if let Some(wide) = bytes.strip_prefix(b"\xFE\xFF") {
        let (pairs, _) = wide.as_chunks::<2>();
        return Ok(utf16::string(&pairs.iter().flat_map(|[high, low]| [*low, *high]).collect::<Vec<u8>>()));
    }
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
    match std::str::from_utf8(text) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => {
            let sound = String::from_utf8_lossy(text.get(..error.valid_up_to()).unwrap_or_default());
            let (line, column) = xml::position(&sound, sound.len());
            let message = format!("{}:{line}:{column}: no UTF-8, expected a manifest", path.display());
            Err(Error::Usage(message))
        }
    }
}

fn bytes_of(path: &Path) -> Result<Vec<u8>> {
    let file = std::fs::File::open(path).map_err(Error::io(path))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(Error::io(path))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(Error::Usage(format!("{}: more than 32 MB, expected a manifest", path.display())));
    }
    Ok(bytes)
}

/// Whether a file has formats of messages.
fn has_formats(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("tmf"))
}

/// The text of a file of formats. It is of the code page of the machine that it was made on; what is no UTF-8 of it is
/// replaced.
fn read_formats(path: &Path) -> Result<String> {
    let bytes = bytes_of(path)?;
    Ok(match bytes.strip_prefix(b"\xFF\xFE") {
        Some(wide) => utf16::string(wide),
        None => String::from_utf8_lossy(&bytes).into_owned(),
    })
}
