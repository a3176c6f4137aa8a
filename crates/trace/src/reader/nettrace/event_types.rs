//! Kinds of events: by metadata id, by content, and by what labels override in them.
//!
//! A file can make up ids at the cost of a few bytes each, so everything is bounded; what does not fit is replaced by
//! one stand-in that says so.

use super::report::Reporter;
use crate::prelude::*;
use crate::reader::text::{TextBudget, text_of};
use crate::reader::{EventType, Field, Layout, TypeId};

/// Kinds of events in one recording; the last place is for all that do not fit.
const MAX_TYPES: usize = 1 << 17;
/// Metadata ids in use at a time.
const MAX_IDS: usize = 1 << 20;

/// The parts of an event's type that labels override (V6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Overrides {
    pub opcode: Option<u8>,
    pub keywords: Option<u64>,
    pub level: Option<u8>,
    pub version: Option<u8>,
}

/// The kinds of events of one recording.
#[derive(Default)]
pub struct EventTypes {
    by_metadata_id: Map<u32, TypeId>,
    types: Vec<EventType>,
    wanted: Vec<bool>,
    by_content: Map<EventType, TypeId>,
    overridden: Map<(TypeId, Overrides), TypeId>,
}

impl EventTypes {
    /// Whether the visitor wants events of this kind.
    #[inline]
    pub fn is_wanted(&self, id: TypeId) -> bool {
        self.wanted.get(id.0 as usize).copied().unwrap_or(true)
    }

    /// The number of a kind of event; a new one is reported to the visitor.
    fn intern(&mut self, event_type: EventType, text: &mut TextBudget, out: &mut Reporter<'_>, offset: u64) -> TypeId {
        if let Some(id) = self.by_content.get(&event_type) {
            return *id;
        }
        if self.types.len() >= MAX_TYPES {
            return TypeId(MAX_TYPES as u32 - 1);
        }
        if self.types.len() == MAX_TYPES - 1 {
            let message =
                format!("more than {MAX_TYPES} kinds of events; those of the others are kept raw as one kind");
            out.problem(Problem::loss("too_many_event_types", offset, message));
            return self.add(unknown_type("other_events".to_owned()), out);
        }
        if !text.take(text_of(&event_type, size_of::<Field>())) {
            return self.nameless(bare(&event_type), text, out, offset);
        }
        self.add(event_type, out)
    }

    /// The number of a kind of event whose text does not fit.
    fn nameless(&mut self, bare: EventType, text: &TextBudget, out: &mut Reporter<'_>, offset: u64) -> TypeId {
        out.problem(text.exceeded("kinds of events; the others are kept raw without their names", offset));
        self.by_content.get(&bare).copied().unwrap_or_else(|| self.add(bare, out))
    }

    fn add(&mut self, event_type: EventType, out: &mut Reporter<'_>) -> TypeId {
        let id = TypeId(self.types.len() as u32);
        self.wanted.push(out.visitor.event_type(id, &event_type));
        self.types.push(event_type.clone());
        self.by_content.insert(event_type, id);
        id
    }

    /// Binds a metadata id to a kind of event. A second, different binding is reported; the last one counts.
    pub fn define(
        &mut self,
        id: u32,
        event_type: EventType,
        text: &mut TextBudget,
        out: &mut Reporter<'_>,
        offset: u64,
    ) {
        let type_id = self.intern(event_type, text, out, offset);
        if self.by_metadata_id.len() >= MAX_IDS && !self.by_metadata_id.contains_key(&id) {
            let message = format!("more than {MAX_IDS} metadata ids; events of the others are kept raw");
            out.problem(Problem::loss("too_many_metadata_ids", offset, message));
            return;
        }
        if let Some(before) = self.by_metadata_id.insert(id, type_id)
            && before != type_id
            && self.types.get(before.0 as usize).is_none_or(|t| t.layout != Layout::NoMetadata)
        {
            let message = format!("metadata id {id} is defined twice, differently; the later definition counts");
            out.problem(Problem::info("duplicate_metadata_id", offset, message));
        }
    }

    /// Forgets all metadata ids (V6 sequence point with flag 2).
    pub fn forget_ids(&mut self) {
        self.by_metadata_id.clear();
    }

    /// Whether the recording describes a kind of event under this id.
    pub fn is_defined(&self, id: u32) -> bool {
        self.by_metadata_id.contains_key(&id)
    }

    /// The kind of event of a metadata id.
    pub fn by_id(&mut self, id: u32, text: &mut TextBudget, out: &mut Reporter<'_>, offset: u64) -> TypeId {
        if let Some(id) = self.by_metadata_id.get(&id) {
            return *id;
        }
        let message = format!("metadata id {id} is not defined; the events are kept raw");
        out.problem(Problem::error("unknown_metadata", offset, message));
        let type_id = self.intern(unknown_type(format!("metadata_{id}")), text, out, offset);
        if self.by_metadata_id.len() < MAX_IDS {
            self.by_metadata_id.insert(id, type_id);
        }
        type_id
    }

    /// The kind of event that `base` becomes by the overrides of a label list.
    pub fn overridden(
        &mut self,
        base: TypeId,
        overrides: Overrides,
        text: &mut TextBudget,
        out: &mut Reporter<'_>,
        offset: u64,
    ) -> TypeId {
        if let Some(id) = self.overridden.get(&(base, overrides)) {
            return *id;
        }
        let Some(known) = self.types.get(base.0 as usize) else { return base };
        let is_full = self.types.len() >= MAX_TYPES - 1;
        let mut event_type = if text.is_spent() || is_full { bare(known) } else { known.clone() };
        event_type.opcode = overrides.opcode.or(event_type.opcode);
        event_type.keywords = overrides.keywords.unwrap_or(event_type.keywords);
        event_type.level = overrides.level.map_or(event_type.level, u32::from);
        event_type.version = overrides.version.map_or(event_type.version, u32::from);
        let id = self.intern(event_type, text, out, offset);
        if self.overridden.len() < MAX_TYPES {
            self.overridden.insert((base, overrides), id);
        }
        id
    }
}

/// Stands for a kind of event that nothing is known of.
fn unknown_type(name: String) -> EventType {
    EventType { name, level: 0, ..EventType::new("", 0, 0, Layout::NoMetadata) }
}

/// A kind of event without its texts and its fields.
fn bare(of: &EventType) -> EventType {
    let EventType { event_id, version, opcode, level, keywords, provider_guid, .. } = *of;
    let bare = EventType::new("", event_id, version, Layout::NoMetadata);
    EventType { opcode, level, keywords, provider_guid, ..bare }
}
