//! Instrumentation manifests: the XML that an EventSource sends along with its events.
//!
//! ```text
//!  <provider name guid> <events> <event value version template task opcode symbol message/> </events>
//!  <templates> <template tid> <data name inType outType count length/> <struct name count> <data/> </struct> </template>
//! ```
//! Source: the event manifest schema (`eventman.xsd`) of the SDK; checked on manifests of real files.

use std::collections::HashMap;

use roxmltree::{Document, Node};

use super::described::{Description, field, pointer, value};
use crate::reader::{Field, FieldType};

/// The events of one manifest.
#[derive(Debug, Default)]
pub struct Manifest {
    /// Provider name.
    pub provider: String,
    events: HashMap<(u32, u16), Event>,
    templates: HashMap<String, Vec<Data>>,
}

#[derive(Debug)]
struct Event {
    name: String,
    template: Option<String>,
}

/// A field as the manifest has it; numbers stay text, they may be names of other fields.
#[derive(Debug)]
struct Data {
    name: String,
    in_type: String,
    out_type: String,
    count: Option<String>,
    length: Option<String>,
    members: Vec<Data>,
}

/// Structures inside of structures at most.
const MAX_DEPTH: usize = 8;

impl Manifest {
    /// Reads a manifest; an error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Manifest, String> {
        // Entities of a DTD are refused by default.
        let document = Document::parse(text).map_err(|e| e.to_string())?;
        let elements = |name: &'static str| document.descendants().filter(move |n| n.has_tag_name_any(name));
        let provider = elements("provider").next().ok_or("no provider")?;
        let mut manifest = Manifest { provider: text_of(provider, "name"), ..Manifest::default() };
        for template in elements("template") {
            let fields = template.children().filter_map(|n| data(n, 0)).collect();
            manifest.templates.insert(text_of(template, "tid"), fields);
        }
        for event in elements("event") {
            let Some(id) = event.attribute("value").and_then(number) else { continue };
            let version = event.attribute("version").and_then(number).unwrap_or(0);
            let name = event.attribute("symbol").or(event.attribute("task")).unwrap_or_default().to_owned();
            let template = event.attribute("template").map(str::to_owned);
            manifest.events.insert((id, version as u16), Event { name, template });
        }
        Ok(manifest)
    }

    /// What the manifest says of an event.
    pub fn describe(&self, id: u32, version: u16, pointer_size: u8) -> Option<Description> {
        let event = self.events.get(&(id, version))?;
        let template = event.template.as_ref().map(|t| self.templates.get(t).ok_or("a template that is not there"));
        let fields = match template {
            None => Ok(Vec::new()),
            Some(data) => data.and_then(|data| fields(data, pointer_size)),
        };
        let (fields, unreadable) = match fields {
            Ok(fields) => (Some(fields), None),
            Err(why) => (None, Some(why)),
        };
        let (provider, name) = (self.provider.clone(), event.name.clone());
        Some(Description { provider, name, message: None, fields, unreadable })
    }
}

trait HasTag {
    fn has_tag_name_any(&self, name: &str) -> bool;
}

impl HasTag for Node<'_, '_> {
    /// The name without its namespace.
    fn has_tag_name_any(&self, name: &str) -> bool {
        self.is_element() && self.tag_name().name() == name
    }
}

fn text_of(node: Node<'_, '_>, attribute: &str) -> String {
    node.attribute(attribute).unwrap_or_default().to_owned()
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn data(node: Node<'_, '_>, depth: usize) -> Option<Data> {
    let is_struct = node.has_tag_name_any("struct");
    if !(is_struct || node.has_tag_name_any("data")) || depth > MAX_DEPTH {
        return None;
    }
    Some(Data {
        name: text_of(node, "name"),
        in_type: if is_struct { String::new() } else { text_of(node, "inType") },
        out_type: text_of(node, "outType"),
        count: node.attribute("count").map(str::to_owned),
        length: node.attribute("length").map(str::to_owned),
        members: if is_struct { node.children().filter_map(|n| data(n, depth + 1)).collect() } else { Vec::new() },
    })
}

fn fields(data: &[Data], pointer_size: u8) -> Result<Vec<Field>, &'static str> {
    let mut out = Vec::new();
    for (index, one) in data.iter().enumerate() {
        let before = data.get(..index).unwrap_or_default();
        let mut kind = kind(one, before, pointer_size)?;
        if let Some(count) = &one.count {
            kind = repeated(kind, count, before)?;
        }
        out.push(field(one.name.clone(), kind));
    }
    Ok(out)
}

/// So many values, by a number or by the name of an earlier field.
fn repeated(kind: FieldType, count: &str, before: &[Data]) -> Result<FieldType, &'static str> {
    if let Some(number) = number(count) {
        let count = u16::try_from(number).map_err(|_| "a count that is too large")?;
        return Ok(FieldType::FixedArray(Box::new(kind), count));
    }
    let place = before.iter().rposition(|d| d.name == count).ok_or("a count that is no earlier field")?;
    Ok(FieldType::Counted(Box::new(kind), place))
}

fn kind(data: &Data, before: &[Data], pointer_size: u8) -> Result<FieldType, &'static str> {
    if data.in_type.is_empty() {
        return fields(&data.members, pointer_size).map(FieldType::Object);
    }
    let out_type = match data.out_type.as_str() {
        "xs:boolean" => 3,
        "xs:string" => 2,
        "win:Port" => 7,
        _ => 0,
    };
    let in_type: u16 = match data.in_type.as_str() {
        "win:UnicodeString" => 1,
        "win:AnsiString" => 2,
        "win:Int8" => 3,
        "win:UInt8" => 4,
        "win:Int16" => 5,
        "win:UInt16" => 6,
        "win:Int32" => 7,
        "win:UInt32" => 8,
        "win:Int64" => 9,
        "win:UInt64" => 10,
        "win:Float" => 11,
        "win:Double" => 12,
        "win:Boolean" => 13,
        "win:Binary" => 14,
        "win:GUID" => 15,
        "win:Pointer" | "win:SizeT" => return Ok(pointer(pointer_size)),
        "win:FILETIME" => 17,
        "win:SYSTEMTIME" => 18,
        "win:SID" => 19,
        "win:HexInt32" => 20,
        "win:HexInt64" => 21,
        "win:CountedUnicodeString" => return Ok(FieldType::Utf16Bytes),
        "win:CountedAnsiString" => return Ok(FieldType::Array(Box::new(FieldType::Utf8Unit))),
        "win:CountedBinary" => return Ok(FieldType::Array(Box::new(FieldType::U8))),
        _ => return Err("a type that is not known in the manifest of this event"),
    };
    let unit = match (in_type, &data.length) {
        (1, Some(_)) => FieldType::Utf16Unit,
        (2, Some(_)) => FieldType::Utf8Unit,
        (14, _) => FieldType::U8,
        _ => return value(in_type, out_type, pointer_size).ok_or("a type that is not known in the manifest"),
    };
    let length = data.length.as_ref().ok_or("bytes without a length in the manifest of this event")?;
    repeated(unit, length, before)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
      <instrumentation><events><provider name="P" guid="{1}" symbol="P">
      <events><event value="7" version="1" symbol="Seven" template="T" level="win:Informational"/>
      <event value="8" symbol="Eight"/><event value="9" template="gone"/></events>
      <templates><template tid="T"><data name="N" inType="win:UInt16"/>
      <struct name="S" count="N"><data name="A" inType="win:Pointer"/><data name="B" inType="win:UnicodeString"/></struct>
      <data name="L" inType="win:UInt32"/><data name="D" inType="win:Binary" length="L"/></template></templates>
      </provider></events></instrumentation></instrumentationManifest>"#;

    #[test]
    fn events_and_their_fields_are_found() {
        let manifest = Manifest::parse(TEXT).unwrap();
        let seven = manifest.describe(7, 1, 4).unwrap();
        assert_eq!((seven.provider.as_str(), seven.name.as_str()), ("P", "Seven"));
        let members = vec![field("A", FieldType::Pointer32), field("B", FieldType::Utf16Z)];
        let expected = vec![
            field("N", FieldType::U16),
            field("S", FieldType::Counted(Box::new(FieldType::Object(members)), 0)),
            field("L", FieldType::U32),
            field("D", FieldType::Counted(Box::new(FieldType::U8), 2)),
        ];
        assert_eq!(seven.fields, Some(expected));
        assert_eq!(manifest.describe(8, 0, 8).unwrap().fields, Some(Vec::new()));
        assert_eq!(manifest.describe(9, 0, 8).unwrap().unreadable, Some("a template that is not there"));
        assert_eq!(manifest.describe(7, 0, 8), None);
    }

    #[test]
    fn hostile_manifests_are_refused() {
        assert!(Manifest::parse("").is_err());
        assert!(Manifest::parse("<a>").is_err());
        assert!(Manifest::parse("<a/>").is_err(), "no provider");
        let bomb = "<!DOCTYPE a [<!ENTITY x \"yyyy\">]><provider name=\"&x;&x;\"/>";
        assert!(Manifest::parse(bomb).is_err(), "entities of its own");
        let deep = format!("<provider>{}{}</provider>", "<struct>".repeat(50_000), "</struct>".repeat(50_000));
        assert!(Manifest::parse(&deep).is_ok_and(|m| m.events.is_empty()) || Manifest::parse(&deep).is_err());
    }
}
