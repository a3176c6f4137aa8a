//! One event with its meaning: who described it, and how its payload is decoded.
//!
//! A CLR payload arrives in several containers; it is decoded once, here, whatever carried it.

#[doc(hidden)]
pub mod decode;
#[doc(hidden)]
pub mod fixed_field;
#[doc(hidden)]
pub mod layout;
#[doc(hidden)]
pub mod plan;
#[doc(hidden)]
pub mod rows;
mod shown;
#[doc(hidden)]
pub mod value;
mod visit;

use std::sync::Arc;

#[doc(hidden)]
pub use crate::catalog;
use crate::reader::etl::Describes;
use crate::reader::{EtwForm, EtwLayout, EventType, Layout, RawEvent, Thread};
use catalog::{EventLayout, Provider};
pub use decode::Fit;
use decode::{Column, decode};
use plan::Plan;
pub use value::Value;
pub use visit::{EventVisitor, Resolved, Resolver, read};

/// A kind of event in one recording.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EventInfo {
    /// The recording's own description of the kind.
    pub event_type: EventType,
    /// Provider name, also where the recording gives only its GUID.
    pub provider: String,
    /// Event name: the recording's, else the catalogue's, else `event_<id>`.
    pub name: String,
    /// Opcode: the recording's, else the catalogue's.
    pub opcode: Option<u8>,
    #[doc(hidden)]
    /// The catalogue of the provider, when its events are in one.
    pub catalogue: Option<&'static Provider>,
    /// The way in which payloads are decoded.
    pub decoding: Decoding,
    /// The source of the description, when [`EventInfo::decoding`] is by a description.
    pub described_by: Describes,
}

/// A way in which payloads of one kind of event are decoded.
#[derive(Clone, Debug)]
pub enum Decoding {
    /// By the recording's own description.
    Described(Arc<Plan>),
    /// By the catalogue.
    Catalogue {
        /// The layout for the version.
        plan: Arc<Plan>,
        /// The version that the layout was made for; lower than the event's when that one is not known.
        version: u32,
        /// Layouts for certain payload sizes, which come first.
        sized: Vec<(usize, Arc<Plan>)>,
    },
    /// Not at all; why. Payloads are kept raw.
    Raw(&'static str),
}

impl Decoding {
    /// The plan, if there is one; of several the one that does not depend on the size of the payload.
    pub fn plan(&self) -> Option<&Arc<Plan>> {
        match self {
            Decoding::Described(plan) | Decoding::Catalogue { plan, .. } => Some(plan),
            Decoding::Raw(_) => None,
        }
    }

    fn described(plan: Plan) -> Decoding {
        Decoding::Described(Arc::new(plan))
    }
}

impl EventInfo {
    /// Finds out how events of a kind are decoded in a process with pointers of `pointer_size` bytes.
    pub fn resolve(event_type: &EventType, pointer_size: u8) -> EventInfo {
        if let Layout::Etw(etw) = &event_type.layout {
            return EventInfo::resolve_etw(event_type, etw);
        }
        let by_guid = event_type.provider_guid.filter(|_| event_type.provider.is_empty());
        let provider = match by_guid {
            Some(guid) => catalog::name_by_guid(guid).map_or_else(|| guid.to_string(), str::to_owned),
            None => event_type.provider.clone(),
        };
        let catalogue = catalog::provider(&provider).and_then(|p| p.as_ref().ok());
        let layout = catalogue.and_then(|c| c.layout(event_type.event_id, event_type.version));
        let decoding = match &event_type.layout {
            Layout::Unreadable(why) => Decoding::Raw(why),
            Layout::NoMetadata | Layout::Etw(_) => Decoding::Raw("the recording has no metadata for this event"),
            Layout::Fields(fields) if !fields.is_empty() => Decoding::described(Plan::described(fields, &provider)),
            Layout::Fields(_) => match catalogue {
                Some(catalogue) => by_catalogue(layout, catalogue, event_type, pointer_size),
                None => Decoding::described(Plan::default()),
            },
        };
        let name = if !event_type.name.is_empty() {
            event_type.name.clone()
        } else {
            let sized = catalogue.and_then(|c| c.sized_layouts(event_type.event_id, event_type.version).next());
            layout.or(sized).map_or_else(|| format!("event_{}", event_type.event_id), |l| l.name.clone())
        };
        let opcode = event_type.opcode.or(layout.map(|l| l.opcode));
        EventInfo {
            event_type: event_type.clone(),
            provider,
            name,
            opcode,
            catalogue,
            decoding,
            described_by: Describes::Recording,
        }
    }

    /// An event of an .etl. The catalogue goes before what the recording says: the manifest that .NET sends of its own
    /// runtime events is not complete.
    fn resolve_etw(event_type: &EventType, etw: &EtwLayout) -> EventInfo {
        let known = event_type.provider_guid.and_then(catalog::name_by_guid);
        let provider = match (known, event_type.provider_guid) {
            (Some(name), _) => name.to_owned(),
            (None, Some(guid)) if event_type.provider.is_empty() => guid.to_string(),
            _ => event_type.provider.clone(),
        };
        let by_id = !matches!(etw.form, EtwForm::SelfDescribed | EtwForm::Message);
        let catalogue = catalog::provider(&provider).and_then(|p| p.as_ref().ok()).filter(|_| by_id);
        let (id, version) = (event_type.event_id, event_type.version);
        let layout = catalogue.and_then(|c| c.layout(id, version));
        let sized = catalogue.and_then(|c| c.sized_layouts(id, version).next());
        let decoding = match (catalogue, layout.or(sized), &etw.fields) {
            (Some(catalogue), Some(_), _) => by_catalogue(layout, catalogue, event_type, etw.pointer_size),
            (_, None, Some(fields)) if by_id => Decoding::described(Plan::described(fields, &provider).with_open_end()),
            (_, None, Some(fields)) => Decoding::described(Plan::described(fields, &provider)),
            _ => Decoding::Raw("not in the catalogue and not described in the recording"),
        };
        let name = match layout.or(sized) {
            Some(layout) => layout.name.clone(),
            None if !event_type.name.is_empty() => event_type.name.clone(),
            None => match etw.form {
                EtwForm::Classic => format!("opcode_{id}"),
                EtwForm::Message => format!("message_{id}"),
                EtwForm::Manifest | EtwForm::SelfDescribed => format!("event_{id}"),
            },
        };
        let event_type = event_type.clone();
        let opcode = event_type.opcode;
        EventInfo { event_type, provider, name, opcode, catalogue, decoding, described_by: Describes::Recording }
    }

    /// The table that the rows of a bulk event go to.
    pub fn rows_in(&self) -> Option<&'static str> {
        self.catalogue?.rows_in(self.event_type.event_id).map(|(table, _)| table)
    }

    /// Whether the rows of a bulk event are only in that table, and not in the event's own.
    pub fn rows_only_there(&self) -> bool {
        self.catalogue.and_then(|c| c.rows_in(self.event_type.event_id)).is_some_and(|(_, kept)| !kept)
    }

    /// The plan for a payload, or why there is none.
    #[inline]
    pub fn plan(&self, payload: &[u8]) -> Result<&Plan, &'static str> {
        match &self.decoding {
            Decoding::Described(plan) if plan.fields.is_empty() && !payload.is_empty() => {
                Err("the recording does not describe the fields of this event")
            }
            Decoding::Described(plan) => Ok(plan),
            Decoding::Catalogue { plan, sized, .. } => match sized.iter().find(|(size, _)| *size == payload.len()) {
                Some((_, exact)) => Ok(exact),
                None if plan.fields.is_empty() && !sized.is_empty() => {
                    Err("the catalogue has no layout for a payload of this size")
                }
                None => Ok(plan),
            },
            Decoding::Raw(why) => Err(why),
        }
    }
}

fn by_catalogue(
    layout: Option<&'static EventLayout>,
    catalogue: &'static Provider,
    event_type: &EventType,
    pointer_size: u8,
) -> Decoding {
    let width = usize::from(pointer_size != 4);
    let same_version = catalogue.sized_layouts(event_type.event_id, event_type.version);
    let sized: Vec<_> =
        same_version.filter_map(|l| Some((*l.payload_sizes.get(width)?, l.plan(pointer_size).ok()?))).collect();
    match layout.map(|l| (l.version, l.plan(pointer_size))) {
        Some((version, Ok(plan))) => Decoding::Catalogue { plan, version, sized },
        Some((_, Err(_))) => Decoding::Raw("the catalogue's layout is damaged"),
        None if sized.is_empty() => Decoding::Raw("not in the catalogue and not described in the recording"),
        None => Decoding::Catalogue { plan: Arc::default(), version: event_type.version, sized },
    }
}

/// The fields of one event with their names, in the order of the payload.
pub type NamedValues<'a> = Vec<(&'a str, Value)>;

/// One event with its kind and its time, borrowed from its block.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Event<'a> {
    /// Header and payload.
    pub raw: &'a RawEvent<'a>,
    /// The kind of the event.
    pub info: &'a EventInfo,
    /// The thread it is about.
    pub thread: &'a Thread,
    /// Nanoseconds since the recording began; clamped to 64 bits.
    pub ts_ns: i64,
}

impl<'a> Event<'a> {
    /// An event of a kind, about a thread, with its time in nanoseconds since the recording began.
    pub fn new(raw: &'a RawEvent<'a>, info: &'a EventInfo, thread: &'a Thread, ts_ns: i64) -> Event<'a> {
        Event { raw, info, thread, ts_ns }
    }
}

impl Event<'_> {
    /// Decodes the payload into one column per field of the plan, for the tables; an error says why it stays raw.
    #[doc(hidden)]
    #[inline]
    pub fn decode<C: Column>(&self, columns: &mut [C]) -> Result<Fit, &'static str> {
        Ok(decode(self.info.plan(self.raw.payload)?, self.raw.payload, columns))
    }

    /// The decoded fields with their names, for looking at single events.
    pub fn fields(&self) -> Result<(NamedValues<'_>, Fit), &'static str> {
        let plan = self.info.plan(self.raw.payload)?;
        let mut columns = value::ValueColumn::for_fields(&plan.fields);
        let fit = decode(plan, self.raw.payload, &mut columns);
        let named = plan.fields.iter().filter(|f| !matches!(f.node, plan::Node::Padding(_)));
        Ok((named.zip(columns).map(|(f, c)| (f.name.as_str(), c.value().clone())).collect(), fit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_size_choose_among_layouts() {
        let resolve = |version| {
            let event_type = EventType {
                provider: "Microsoft-Windows-DotNETRuntimePrivate".into(),
                provider_guid: None,
                event_id: 4,
                version,
                name: String::new(),
                opcode: None,
                level: 4,
                keywords: 1,
                layout: Layout::Fields(Vec::new()),
                message: None,
            };
            EventInfo::resolve(&event_type, 8)
        };
        let second = |version, size: usize| {
            let info = resolve(version);
            assert_eq!(info.name, "GCPerHeapHistory");
            let plan = info.plan(&vec![0; size]).ok()?;
            let plan::Node::List(_, row) = &plan.fields.first()?.node else { return None };
            let plan::Node::Struct(row) = row.as_ref() else { return None };
            row.get(1).map(|f| f.name.clone())
        };
        assert_eq!(second(2, 425).as_deref(), Some("FreeListSpaceBefore"));
        assert_eq!(second(0, 425).as_deref(), Some("SizeAfter"));
        assert_eq!(second(0, 426), None);
        assert!(resolve(1).plan(&[0, 0]).is_ok_and(|plan| plan.fields.len() == 1));
    }
}
