//! EventManifests in files (`.man`) that a user gives for events that a recording does not describe.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::manifest::{self, EventManifest};
use super::tdh_types::Description;
use super::xml;
use crate::error::{Error, Problem, Result, Severity};
use crate::guid::Guid;
use crate::reader::{EtwForm, EtwLayout, EventType, Layout};
use crate::utf16;

/// A file of more bytes is refused; the largest manifests of Windows have 4 MB.
const MAX_FILE: u64 = 32 << 20;

/// The manifests that a user gives, by provider.
#[derive(Debug, Default)]
pub struct EventManifests {
    providers: HashMap<Guid, Vec<EventManifest>>,
    /// What is wrong with single events and templates: a message for each file, and how many there are.
    odd: Vec<(String, u64)>,
}

impl EventManifests {
    /// Reads files; an error says file, line, column and what was expected.
    pub fn open(paths: &[PathBuf]) -> Result<EventManifests> {
        let mut manifests = EventManifests::default();
        for path in paths {
            manifests.add(path, &read(path)?)?;
        }
        Ok(manifests)
    }

    /// Takes the text of a manifest in; `path` is its name in messages. What is wrong with single events or templates is kept
    /// for [`EventManifests::problems`].
    pub fn add(&mut self, path: &Path, text: &str) -> Result<()> {
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

    /// What is wrong with the manifests; the rest of them is used all the same.
    pub fn problems(&self) -> impl Iterator<Item = Problem> {
        let problem = |(message, count): &(String, u64)| {
            Problem::new(Severity::Info, "odd_manifest", 0, message.clone()).count(*count)
        };
        self.odd.iter().map(problem)
    }

    /// A kind of event with what the manifests say of it. They go before what the recording says, since they were asked
    /// for; of several for one provider the first that has the event is taken.
    pub fn complete<'t>(&self, event_type: &'t EventType) -> Cow<'t, EventType> {
        let Layout::Etw(etw) = &event_type.layout else { return Cow::Borrowed(event_type) };
        let list = event_type.provider_guid.and_then(|guid| self.providers.get(&guid));
        let Some(list) = list.filter(|_| etw.form == EtwForm::Manifest) else { return Cow::Borrowed(event_type) };
        let mut out = event_type.clone();
        if let Some(first) = list.first().filter(|_| out.provider.is_empty()) {
            out.provider.clone_from(&first.provider);
        }
        let version = u16::try_from(event_type.version).unwrap_or(u16::MAX);
        let said = list.iter().find_map(|m| m.describe(event_type.event_id, version, etw.pointer_size));
        let is_better = |said: &Description| said.unreadable.is_none() || etw.fields.is_none();
        if let Some(said) = said.filter(is_better) {
            out.provider = said.provider;
            out.name = said.name;
            out.message = said.message;
            out.layout = match said.unreadable {
                Some(why) => Layout::Unreadable(why),
                None => Layout::Etw(EtwLayout { fields: said.fields, ..*etw }),
            };
        }
        Cow::Owned(out)
    }
}

/// The text of a file. EventManifests are UTF-8 or, as the SDK's tools write them, UTF-16 with a mark in front.
fn read(path: &Path) -> Result<String> {
    let file = std::fs::File::open(path).map_err(Error::io(path))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(Error::io(path))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(Error::Usage(format!("{}: more than 32 MB, expected a manifest", path.display())));
    }
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
