//! Instrumentation manifests: the XML that an EventSource sends along with its events, and that the author of any other
//! provider has in a file (`.man`).
//!
//! ```text
//!  <provider name guid> <events> <event value version template task opcode symbol message/> </events>
//!  <templates> <template tid> <data name inType outType count length/> <struct name count> <data/> </struct> </template>
//!  <localization> <resources> <stringTable> <string id value/>
//! ```
//! Source: the event manifest schema (`eventman.xsd`) of the SDK; checked on manifests of real files. Maps (names of
//! values) are not read: tables have the values.

use std::collections::HashMap;
use std::sync::Arc;

use super::tdh_types::{Description, InType, OutType, field, shown, unit, value};
use super::xml::{self, Fault, Node};
use crate::guid::Guid;
use crate::reader::{Field, FieldType};

/// The events of one provider.
#[derive(Debug, Default)]
pub struct EventManifest {
    /// Provider name.
    pub provider: String,
    /// The provider's GUID; `None` when it has none that can be read.
    pub guid: Option<Guid>,
    /// Bytes of memory that it takes, roughly.
    pub cost: usize,
    events: HashMap<(u32, u16), Event>,
    /// Fields by the name of the template, or why they cannot be known.
    templates: HashMap<String, Result<Vec<Data>, &'static str>>,
    /// The first things that are wrong with single events and templates, and how many there are. The others are of use.
    pub odd: (Vec<Fault>, u64),
}

/// Odd things that are reported one by one.
const MAX_ODD: usize = 16;

#[derive(Debug)]
struct Event {
    name: String,
    /// Events may have one message in common.
    message: Option<Arc<str>>,
    template: Option<String>,
}

/// A field as the manifest has it; numbers stay text, they may be names of other fields.
#[derive(Debug)]
pub struct Data {
    /// The place in the text.
    at: usize,
    name: String,
    in_type: String,
    out_type: String,
    count: Option<String>,
    length: Option<String>,
    members: Option<Vec<Data>>,
}

impl Data {
    /// A single field, not of a text.
    pub fn new(name: &str, in_type: String, out_type: String, count: Option<String>, length: Option<String>) -> Data {
        Data { at: 0, name: name.to_owned(), in_type, out_type, count, length, members: None }
    }
}

/// Why a field cannot be used, and its place in the text.
type Unfit = (usize, &'static str);

/// Structures inside of structures at most, and fields of one template.
const MAX_DEPTH: usize = 8;
const MAX_FIELDS: usize = 4096;
/// The memory of an element of the text as a part of a manifest, in bytes.
const COST: usize = 256;

/// Reads all providers of a manifest. Returned with them is the first thing that is wrong; the rest is read all the
/// same. An error when the text is no XML.
pub fn parse(text: &str) -> Result<(Vec<EventManifest>, Option<Fault>), Fault> {
    let document = xml::parse(text)?;
    let mut reader = Reader { text, fault: None, odd: (Vec::new(), 0), unfit: None, strings: HashMap::new() };
    let elements = |name: &'static str| document.elements().filter(move |n| n.is(name));
    // Of several languages English, or else the first.
    let english = |n: &Node<'_>| text_of(*n, "culture").to_ascii_lowercase().starts_with("en");
    let resources = elements("resources").find(english).or_else(|| elements("resources").next());
    for string in resources.iter().flat_map(|r| r.descendants()).filter(|n| n.is("string")) {
        reader.strings.insert(text_of(string, "id"), text_of(string, "value").into());
    }
    let mut providers = Vec::new();
    // Performance counters have providers, too.
    let other = |n: Node<'_>| n.is("provider") || n.is("counters");
    for node in elements("provider").filter(|n| !n.ancestors().any(other)) {
        providers.push(reader.provider(node));
    }
    if providers.is_empty() {
        let root = document.elements().next().map_or(0, |root| root.bytes().start);
        reader.complain(root, "no provider", "<provider name=... guid=...>");
    }
    Ok((providers, reader.fault))
}

impl EventManifest {
    /// Reads the manifest of a single provider; an error says what is wrong with it.
    pub fn parse(text: &str) -> Result<EventManifest, String> {
        let (providers, fault) = parse(text).map_err(|fault| fault.to_string())?;
        providers.into_iter().next().ok_or_else(|| fault.map_or_else(String::new, |fault| fault.to_string()))
    }

    /// A manifest without events.
    pub fn of_provider(provider: String, guid: Option<Guid>) -> EventManifest {
        EventManifest { provider, guid, ..EventManifest::default() }
    }

    /// Takes an event in; of its fields may be said why they cannot be known.
    pub fn add(
        &mut self,
        id: u32,
        version: u16,
        name: String,
        message: Option<Arc<str>>,
        fields: Result<Vec<Data>, &'static str>,
    ) {
        let template = format!("{id}.{version}");
        self.templates.insert(template.clone(), fields);
        self.events.insert((id, version), Event { name, message, template: Some(template) });
    }

    /// The manifest's description of an event.
    pub fn describe(&self, id: u32, version: u16, pointer_size: u8) -> Option<Description> {
        let event = self.events.get(&(id, version))?;
        let template = event.template.as_ref().map(|t| self.templates.get(t).ok_or(NO_TEMPLATE));
        let fields = match template {
            None => Ok(Vec::new()),
            Some(Ok(Ok(data))) => fields(data, pointer_size).map_err(|(_, why)| why),
            Some(Ok(Err(why))) => Err(*why),
            Some(Err(why)) => Err(why),
        };
        let (provider, name, message) = (self.provider.clone(), event.name.clone(), event.message.clone());
        Some(Description { provider, name, message, fields: Some(fields) })
    }
}

const NO_TEMPLATE: &str = "a template that is not there";

/// Reads the elements of one text.
struct Reader<'t> {
    text: &'t str,
    fault: Option<Fault>,
    /// Faults of single events and templates of the provider at hand.
    odd: (Vec<Fault>, u64),
    /// Why the template at hand cannot be used.
    unfit: Option<&'static str>,
    strings: HashMap<String, Arc<str>>,
}

impl Reader<'_> {
    /// Something is wrong; the first of its kind is kept.
    fn complain(&mut self, at: usize, what: impl Into<String>, expected: &'static str) {
        if self.fault.is_none() {
            self.fault = Some(Fault::at(self.text, at, what, expected));
        }
    }

    /// Something is wrong with an event or a template, which costs only what uses it.
    fn note(&mut self, at: usize, what: impl Into<String>, expected: &'static str) {
        if self.odd.0.len() < MAX_ODD {
            self.odd.0.push(Fault::at(self.text, at, what, expected));
        }
        self.odd.1 += 1;
    }

    /// Notes that a field of the template at hand is missing.
    fn unfit(&mut self, at: usize, why: &'static str) {
        if self.unfit.is_none() {
            self.unfit = Some(why);
            self.note(at, why, "fewer");
        }
    }

    fn provider(&mut self, node: Node<'_>) -> EventManifest {
        let guid = Guid::parse(node.attribute("guid").unwrap_or_default());
        if guid.is_none() {
            let what = format!("provider '{}' with the guid '{}'", text_of(node, "name"), text_of(node, "guid"));
            self.complain(node.bytes().start, what, "32 hexadecimal digits in braces");
        }
        let mut manifest = EventManifest { provider: text_of(node, "name"), guid, ..EventManifest::default() };
        for template in inside(node, "templates", "template") {
            let mut left = MAX_FIELDS;
            let data: Vec<Data> = template.children().filter_map(|n| self.data(n, 0, &mut left)).collect();
            let data = if let Some(why) = self.unfit.take() { Err(why) } else { Ok(data) };
            if let Ok(Err((at, why))) = data.as_ref().map(|data| fields(data, 8)) {
                self.note(at, why, "what the schema of manifests (eventman.xsd) allows");
            }
            manifest.templates.entry(text_of(template, "tid")).or_insert(data);
        }
        for event in inside(node, "events", "event") {
            self.event(event, &mut manifest);
        }
        manifest.odd = std::mem::take(&mut self.odd);
        let strings: usize = self.strings.values().map(|text| text.len()).sum();
        manifest.cost = strings + node.bytes().len() + COST * (1 + node.descendants().count());
        manifest
    }

    fn event(&mut self, node: Node<'_>, manifest: &mut EventManifest) {
        let at = node.bytes().start;
        // Numbers beyond 16 bits are of older logs; no event of an .etl has them.
        let Some(id) = node.attribute("value").and_then(number) else {
            let what = format!("an event with the value '{}'", text_of(node, "value"));
            return self.note(at, what, "a number");
        };
        let Some(version) = number(node.attribute("version").unwrap_or("0")).filter(|v| *v <= 0xFF) else {
            let what = format!("event {id} with the version '{}'", text_of(node, "version"));
            return self.note(at, what, "a number up to 255");
        };
        let template = node.attribute("template").map(str::to_owned);
        if let Some(name) = template.as_ref().filter(|name| !manifest.templates.contains_key(*name)) {
            self.note(at, format!("event {id} with the template '{name}'"), "the tid of a template of its provider");
        }
        let message = node.attribute("message").map(|message| {
            let id = message.strip_prefix("$(string.").and_then(|rest| rest.strip_suffix(')'));
            id.and_then(|id| self.strings.get(id)).map_or_else(|| message.into(), Arc::clone)
        });
        manifest.events.entry((id, version as u16)).or_insert(Event { name: name(node), message, template });
    }

    fn data(&mut self, node: Node<'_>, depth: usize, left: &mut usize) -> Option<Data> {
        let is_struct = node.is("struct");
        if !(is_struct || node.is("data")) {
            return None;
        }
        let at = node.bytes().start;
        if depth > MAX_DEPTH {
            self.unfit(at, "a structure in more than 8 others");
            return None;
        }
        let Some(fewer) = left.checked_sub(1) else {
            self.unfit(at, "a template of more than 4096 fields");
            return None;
        };
        *left = fewer;
        let members = || node.children().filter_map(|n| self.data(n, depth + 1, left)).collect();
        Some(Data {
            at,
            name: text_of(node, "name"),
            members: is_struct.then(members),
            in_type: text_of(node, "inType"),
            out_type: text_of(node, "outType"),
            count: node.attribute("count").map(str::to_owned),
            length: node.attribute("length").map(str::to_owned),
        })
    }
}

/// The name that the author uses, or else what the event is filed under.
fn name(node: Node<'_>) -> String {
    let plain = |attribute| node.attribute(attribute).unwrap_or_default().trim_start_matches("win:");
    match (node.attribute("symbol"), plain("task"), plain("opcode")) {
        (Some(symbol), ..) => symbol.to_owned(),
        (None, "", opcode) => opcode.to_owned(),
        (None, task, "" | "Info") => task.to_owned(),
        (None, task, opcode) => format!("{task}/{opcode}"),
    }
}

/// The elements of one name in the lists of another.
fn inside<'d>(node: Node<'d>, list: &'static str, name: &'static str) -> impl Iterator<Item = Node<'d>> {
    node.children().filter(move |n| n.is(list)).flat_map(move |n| n.children().filter(move |n| n.is(name)))
}

fn text_of(node: Node<'_>, attribute: &str) -> String {
    node.attribute(attribute).unwrap_or_default().to_owned()
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The places of the fields before the one at hand, by name; of several the last.
type Before<'d> = HashMap<&'d str, usize>;

fn fields(data: &[Data], pointer_size: u8) -> Result<Vec<Field>, Unfit> {
    let (mut out, mut before) = (Vec::new(), Before::new());
    for (index, one) in data.iter().enumerate() {
        let kind = kind(one, &before, pointer_size).and_then(|kind| match &one.count {
            Some(count) => repeated(kind, count, &before).map_err(|why| (one.at, why)),
            None => Ok(kind),
        });
        out.push(field(one.name.clone(), kind?));
        before.insert(&one.name, index);
    }
    Ok(out)
}

/// A number of values, given directly or by the name of an earlier field.
fn repeated(kind: FieldType, count: &str, before: &Before<'_>) -> Result<FieldType, &'static str> {
    if let Some(number) = number(count) {
        let count = u16::try_from(number).map_err(|_| "a count that is too large")?;
        return Ok(FieldType::FixedArray(Box::new(kind), count));
    }
    let place = before.get(count).ok_or("a count that is no earlier field")?;
    Ok(FieldType::Counted(Box::new(kind), *place))
}

fn kind(data: &Data, before: &Before<'_>, pointer_size: u8) -> Result<FieldType, Unfit> {
    if let Some(members) = &data.members {
        return fields(members, pointer_size).map(FieldType::Object);
    }
    single(data, before, pointer_size).map_err(|why| (data.at, why))
}

fn single(data: &Data, before: &Before<'_>, pointer_size: u8) -> Result<FieldType, &'static str> {
    let in_type = InType::of_manifest(&data.in_type).ok_or("a type that is not known in the manifest of this event")?;
    let out_type = OutType::of_manifest(&data.out_type);
    if let (Some(unit), Some(length)) = (unit(in_type), &data.length) {
        return Ok(shown(in_type, out_type, repeated(unit, length, before)?));
    }
    let kind = value(in_type, out_type, pointer_size);
    kind.ok_or("bytes without a length in the manifest of this event")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
      <instrumentation><events><provider name="P" guid="{09090909-0909-0909-0909-090909090909}" symbol="P">
      <events><event value="7" version="1" symbol="Seven" template="T" level="win:Informational"/>
      <event value="8" symbol="Eight"/><event value="9" template="gone"/></events>
      <templates><template tid="T"><data name="N" inType="win:UInt16"/>
      <struct name="S" count="N"><data name="A" inType="win:Pointer"/><data name="B" inType="win:UnicodeString"/></struct>
      <data name="L" inType="win:UInt32"/><data name="D" inType="win:Binary" length="L"/></template></templates>
      </provider></events><counters><provider providerGuid="{2}"/></counters></instrumentation></instrumentationManifest>"#;

    #[test]
    fn events_and_their_fields_are_found() {
        let (providers, fault) = parse(TEXT).unwrap();
        assert_eq!(fault.map(|fault| fault.to_string()), None);
        let [manifest] = providers.as_slice() else { panic!("{providers:?}") };
        let [odd] = manifest.odd.0.as_slice() else { panic!("{:?}", manifest.odd) };
        assert!(odd.to_string().contains("event 9 with the template 'gone'"), "{odd}");
        let seven = manifest.describe(7, 1, 4).unwrap();
        assert_eq!((seven.provider.as_str(), seven.name.as_str()), ("P", "Seven"));
        let members = vec![field("A", FieldType::Pointer32), field("B", FieldType::Utf16Z)];
        let expected = vec![
            field("N", FieldType::U16),
            field("S", FieldType::Counted(Box::new(FieldType::Object(members)), 0)),
            field("L", FieldType::U32),
            field("D", FieldType::Counted(Box::new(FieldType::U8), 2)),
        ];
        assert_eq!(seven.fields, Some(Ok(expected)));
        assert_eq!(manifest.describe(8, 0, 8).unwrap().fields, Some(Ok(Vec::new())));
        assert_eq!(manifest.describe(9, 0, 8).unwrap().fields, Some(Err("a template that is not there")));
        assert_eq!(manifest.describe(7, 0, 8), None);
    }

    #[test]
    fn hostile_manifests_are_refused() {
        assert!(EventManifest::parse("").is_err());
        assert!(EventManifest::parse("<a>").is_err());
        assert!(EventManifest::parse("<a/>").is_err(), "no provider");
        let bomb = "<!DOCTYPE a [<!ENTITY x \"yyyy\">]><provider name=\"&x;&x;\"/>";
        assert!(EventManifest::parse(bomb).is_err(), "entities of its own");
        let deep = format!("<provider>{}{}</provider>", "<struct>".repeat(50_000), "</struct>".repeat(50_000));
        assert!(EventManifest::parse(&deep).is_err_and(|why| why.contains("inside of each other")));
        let eight = format!("{}{}", "<struct name='s'>".repeat(10), "</struct>".repeat(10));
        let text = format!("<provider><templates><template tid='t'>{eight}</template></templates></provider>");
        let (providers, fault) =
            parse(&text.replace("<provider>", "<provider guid='{09090909-0909-0909-0909-090909090909}'>")).unwrap();
        assert!(fault.is_none() && providers[0].odd.0[0].what.contains("in more than 8 others"));
        assert_eq!(providers[0].templates["t"].as_ref().err(), Some(&"a structure in more than 8 others"));
    }
}
