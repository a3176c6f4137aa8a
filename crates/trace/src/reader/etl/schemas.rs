//! A recording's descriptions of its own events: provider names, manifests and embedded schemas. They often come after
//! the events that they describe; the prescan finds them.

use nom::combinator::verify;

use super::header::Head;
use super::manifest::EventManifest;
use super::subject::EVENT_INFO;
use super::tdh_types::Description;
use super::{event_info, items};
use crate::bytes::{Parsed, u8le, u16le};
use crate::error::Report;
use crate::prelude::*;
use crate::reader::EtwForm;

/// The event of an EventSource that carries a piece of its manifest. Source: `EventSource.cs`, ManifestEnvelope.
const MANIFEST_EVENT: u32 = 0xFFFE;
/// The text of a piece is XML.
const ENVELOPE_FORMAT: u8 = 1;
const ENVELOPE_MAGIC: u8 = 0x5B;

/// Bounds on what a file can make the reader remember.
const MAX_CHUNKS: usize = 256;
const MAX_MANIFEST: usize = 16 << 20;
const MAX_ALL: usize = 64 << 20;
const MAX_NAMES: usize = 1 << 16;
/// Processes that send manifests.
const MAX_SENDERS: usize = 1 << 18;

/// The descriptions of events in a recording.
#[derive(Default)]
pub struct Schemas {
    names: Map<Guid, String>,
    infos: Map<(Guid, u32, u16, EtwForm), Vec<u8>>,
    manifests: Map<Guid, Vec<EventManifest>>,
    /// Which manifest of its provider a process sent last.
    by_process: Map<(Guid, u32), u32>,
}

/// Provider, process, major and minor version of a manifest.
type Sender = (Guid, u32, u8, u8);

/// EventManifests on their way in: pieces of several processes come interleaved.
#[derive(Default)]
pub struct Pieces {
    open: Map<Sender, Vec<Option<Vec<u8>>>>,
    known: Map<(Guid, Vec<u8>), u32>,
    bytes: usize,
    full: bool,
}

/// The header of a piece of a manifest.
struct Envelope {
    major: u8,
    minor: u8,
    total: u16,
    number: u16,
}

fn envelope(payload: &[u8]) -> Parsed<'_, Envelope> {
    let fields = (
        verify(u8le("Format"), |format| *format == ENVELOPE_FORMAT),
        u8le("MajorVersion"),
        u8le("MinorVersion"),
        verify(u8le("Magic"), |magic| *magic == ENVELOPE_MAGIC),
        u16le("TotalChunks"),
        u16le("ChunkNumber"),
    );
    fields.map(|(_, major, minor, _, total, number)| Envelope { major, minor, total, number }).parse(payload)
}

impl Schemas {
    /// Takes note of an event, in the order of time; returns its payload. `body` is what follows its header.
    pub fn event<'b>(
        &mut self,
        head: &Head,
        body: &'b [u8],
        at: u64,
        pieces: &mut Pieces,
        report: &mut Report<'_>,
    ) -> &'b [u8] {
        let Some(guid) = head.guid else { return body };
        if head.form == EtwForm::Classic {
            if guid == EVENT_INFO
                && head.id == 32
                && let Some(subject) = event_info::subject(body)
                && pieces.fits(body.len())
            {
                let name = event_info::provider(body);
                if !name.is_empty() && subject.3 == EtwForm::Manifest && self.names.len() < MAX_NAMES {
                    self.names.entry(subject.0).or_insert(name);
                }
                self.infos.insert(subject, body.to_vec());
            }
            return body;
        }
        let payload = if head.has_items {
            let (items, payload) = items::parse(body);
            if let Some(name) = items.provider_name()
                && self.names.len() < MAX_NAMES
                && !self.names.contains_key(&guid)
                && pieces.fits(name.len())
            {
                self.names.insert(guid, name.to_owned());
            }
            payload
        } else {
            body
        };
        if head.form == EtwForm::Manifest && head.id == MANIFEST_EVENT {
            let Some((key, text)) = pieces.add(guid, head.process_id, payload) else { return payload };
            let index = match pieces.known.get(&(guid, text.clone())) {
                Some(index) => Some(*index),
                None => match EventManifest::parse(&String::from_utf8_lossy(&text)) {
                    // The text itself is kept, too, so that it is known when it comes again.
                    Ok(manifest) if pieces.fits(manifest.cost + text.len()) => {
                        let list = self.manifests.entry(guid).or_default();
                        if !manifest.provider.is_empty() && self.names.len() < MAX_NAMES {
                            self.names.entry(guid).or_insert_with(|| manifest.provider.clone());
                        }
                        list.push(manifest);
                        let index = list.len() as u32 - 1;
                        pieces.known.insert((guid, text), index);
                        Some(index)
                    }
                    Ok(_) => None,
                    Err(why) => {
                        let message = format!("the manifest of provider {guid} cannot be read: {why}");
                        report(Problem::loss("damaged_manifest", at, message));
                        None
                    }
                },
            };
            if let Some(index) = index
                && (self.by_process.len() < MAX_SENDERS || self.by_process.contains_key(&(guid, key)))
            {
                self.by_process.insert((guid, key), index);
            }
        }
        payload
    }

    /// The provider's name.
    pub fn provider_name(&self, guid: &Guid) -> Option<&str> {
        self.names.get(guid).map(String::as_str)
    }

    /// Which of the provider's manifests holds for a process: its own, else the first.
    pub fn manifest_of(&self, guid: Guid, process_id: u32) -> u32 {
        match self.manifests.get(&guid) {
            Some(list) if list.len() > 1 => self.by_process.get(&(guid, process_id)).copied().unwrap_or(0),
            _ => 0,
        }
    }

    /// The description of a kind of event.
    pub fn describe(
        &self,
        guid: &Guid,
        id: u32,
        version: u16,
        form: EtwForm,
        manifest: u32,
        pointer_size: u8,
    ) -> Option<Description> {
        if form == EtwForm::Manifest
            && let Some(manifest) = self.manifests.get(guid).and_then(|list| list.get(manifest as usize))
            && let Some(description) = manifest.describe(id, version, pointer_size)
        {
            return Some(description);
        }
        let blob = self.infos.get(&(*guid, id, version, form))?;
        Some(event_info::parse(blob, pointer_size))
    }
}

impl Pieces {
    /// Reports what is missing at the end of the walk.
    pub fn finish(&self, end: u64, report: &mut Report<'_>) {
        if self.full {
            report(Problem::loss("too_many_schemas", 0, "too many manifests and schemas; some events are kept raw"));
        }
        let open = self.open.len() as u64;
        if open > 0 {
            let message = "incomplete manifests; their events are kept raw";
            report(Problem::loss("incomplete_manifest", end, message).count(open));
        }
    }

    fn fits(&mut self, bytes: usize) -> bool {
        let fits = self.bytes + bytes <= MAX_ALL;
        self.full |= !fits;
        self.bytes += if fits { bytes } else { 0 };
        fits
    }

    /// Takes a piece; returns the process and the whole text once all pieces are there.
    fn add(&mut self, guid: Guid, process_id: u32, payload: &[u8]) -> Option<(u32, Vec<u8>)> {
        let (text, Envelope { major, minor, total, number }) = envelope(payload).ok()?;
        let (total, number) = (usize::from(total), usize::from(number));
        if total == 0 || total > MAX_CHUNKS || number >= total {
            return None;
        }
        if total == 1 {
            return Some((process_id, text.to_vec()));
        }
        let key = (guid, process_id, major, minor);
        let table = if self.open.contains_key(&key) { 0 } else { total * size_of::<Option<Vec<u8>>>() };
        if !self.fits(text.len() + table) {
            return None;
        }
        let pieces = self.open.entry(key).or_default();
        if pieces.len() != total {
            *pieces = vec![None; total];
        }
        if let Some(place) = pieces.get_mut(number) {
            *place = Some(text.to_vec());
        }
        let whole: usize = pieces.iter().flatten().map(Vec::len).sum();
        if whole > MAX_MANIFEST || pieces.iter().any(Option::is_none) {
            return None;
        }
        let text = self.open.remove(&key)?.into_iter().flatten().flatten().collect();
        self.bytes = self.bytes.saturating_sub(whole);
        Some((process_id, text))
    }
}
