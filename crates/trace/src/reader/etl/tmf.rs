//! Trace message formats (`.tmf`): what the messages of a component say that was built with the trace preprocessor
//! (WPP). A log has only the class and the number of a message, and its values.
//!
//! ```text
//!  // PDB:  driver.pdb
//!  c9dd33b2-6e1c-4a1c-a5b0-3f3d3b3f3a31 driver // SRC=queue.c MJ= MN=
//!  #typev  queue_c258 10 "%0Request %10!d! of %11!s!" //   LEVEL=TRACE_LEVEL_INFORMATION FLAGS=QUEUE FUNC=QueueStart
//!  {
//!  number, ItemLong -- 10
//!  name, ItemString -- 11
//!  }
//! ```
//! The number behind the name of the type is that of the message. Source: "Trace Message Format File" of the driver
//! kit's documentation, and readers of such files in public repositories.

use super::manifest::{Data, EventManifest};
use crate::guid::Guid;

const UNKNOWN: &str = "an item of a type that is not known in the format of this message";

/// Reads the classes of a file; what cannot be read is left out, and an error says that there is nothing.
pub fn parse(text: &str) -> Result<Vec<EventManifest>, &'static str> {
    let mut classes: Vec<EventManifest> = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if let Some(head) = line.strip_prefix("#type") {
            // `#typev` in files of today.
            let (Some(message), Some(class)) = (message(head.trim_start_matches('v')), classes.last_mut()) else {
                continue;
            };
            let mut fields = Ok(Vec::new());
            for item in lines.by_ref().skip_while(|line| *line == "{").take_while(|line| *line != "}") {
                let read = item_of(item).ok_or(UNKNOWN);
                fields = fields.and_then(|mut fields: Vec<Data>| {
                    fields.push(read?);
                    Ok(fields)
                });
            }
            class.add(message.number, 0, message.name, Some(message.format.into()), fields);
        } else if let Some((guid, rest)) = line.split_once(char::is_whitespace)
            && let Some(guid) = Guid::parse(guid)
        {
            let name = rest.split_once("//").map_or(rest, |(name, _)| name).trim();
            classes.push(EventManifest::of_provider(name.to_owned(), Some(guid)));
        }
    }
    if classes.is_empty() { Err("no class of messages, expected its GUID and its name") } else { Ok(classes) }
}

struct Message {
    name: String,
    number: u32,
    format: String,
}

/// ` NAME NUMBER "FORMAT" // ...`
fn message(head: &str) -> Option<Message> {
    let (before, rest) = head.split_once('"')?;
    let (format, _) = rest.rsplit_once('"')?;
    let mut words = before.split_whitespace();
    let (name, number) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
    Some(Message { name, number, format: format.to_owned() })
}

/// `EXPRESSION, ItemType(NAMES) -- PLACE`; an expression may have commas.
fn item_of(line: &str) -> Option<Data> {
    let (rest, _place) = line.rsplit_once("--")?;
    let (rest, item) = rest.rsplit_once(", Item")?;
    let item = item.split_once('(').map_or(item, |(item, _)| item).trim();
    let (in_type, out_type, length) = match item {
        "String" | "RString" => ("AnsiString", "", None),
        "WString" | "RWString" => ("UnicodeString", "", None),
        "PString" => ("CountedAnsiString", "", None),
        "PWString" => ("CountedUnicodeString", "", None),
        "Char" | "CharSign" => ("Int8", "", None),
        "UChar" | "CharShort" | "ListByte" | "SetByte" => ("UInt8", "", None),
        "WChar" => ("UInt16", "xs:string", None),
        "Short" => ("Int16", "", None),
        "UShort" | "ListShort" | "SetShort" => ("UInt16", "", None),
        "Long" => ("Int32", "", None),
        "ULong" | "ListLong" | "SetLong" | "Enum" | "FlagsEnum" | "WINERROR" => ("UInt32", "", None),
        "ULongX" => ("HexInt32", "", None),
        "NTSTATUS" | "NTerror" => ("UInt32", "win:NTSTATUS", None),
        "HRESULT" => ("UInt32", "win:HResult", None),
        "LongLong" => ("Int64", "", None),
        "ULongLong" => ("UInt64", "", None),
        "LongLongX" | "LongLongXX" | "ULongLongX" | "ULongLongXX" => ("HexInt64", "", None),
        "Float" => ("Float", "", None),
        "Double" => ("Double", "", None),
        "Ptr" => ("Pointer", "", None),
        "Guid" | "CLSID" | "IID" | "LIBID" => ("GUID", "", None),
        "Sid" => ("SID", "", None),
        "IPAddr" => ("UInt32", "win:IPv4", None),
        "IPV6Addr" => ("Binary", "win:IPv6", None),
        "Port" => ("UInt16", "win:Port", None),
        "MACAddr" => ("Binary", "", Some("6".to_owned())),
        "Timestamp" => ("FILETIME", "", None),
        "HEXDump" => ("CountedBinary", "", None),
        _ => return None,
    };
    Some(Data::new(rest.trim(), format!("win:{in_type}"), out_type.to_owned(), None, length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::FieldType;

    const TEXT: &str = r#"// PDB:  driver.pdb
// PDB:  Last Updated :2024-1-2
09090909-0909-0909-0909-090909090909 driver // SRC=queue.c MJ= MN=
#typev  queue_c258 10 "%0Request %10!d! of \"%11!s!\"" //   LEVEL=TRACE_LEVEL_INFORMATION FLAGS=QUEUE FUNC=QueueStart
{
Max(number, 2), ItemLong -- 10
name, ItemString -- 11
}
#typev  queue_c300 11 "%0Done" //   FUNC=QueueStop
{
}
#typev  queue_c301 12 "%0Odd %10!x!" //
{
what, ItemOfTomorrow -- 10
}
#typev  queue_c400 13 "%0State %10!s!, %11!s!" //
{
state, ItemListLong(Open,Closed) -- 10
Irp->Status, ItemNTSTATUS -- 11
}
"#;

    #[test]
    fn messages_have_their_names_formats_and_fields() {
        let classes = parse(TEXT).unwrap();
        let [class] = classes.as_slice() else { panic!("{classes:?}") };
        assert_eq!((class.provider.as_str(), class.guid), ("driver", Some(Guid([9; 16]))));
        let said = class.describe(10, 0, 8).unwrap();
        assert_eq!(
            (said.name.as_str(), said.message.as_deref()),
            ("queue_c258", Some("%0Request %10!d! of \\\"%11!s!\\\""))
        );
        let kinds = |number| -> Vec<(String, FieldType)> {
            class
                .describe(number, 0, 8)
                .unwrap()
                .fields
                .unwrap()
                .unwrap()
                .into_iter()
                .map(|f| (f.name, f.kind))
                .collect()
        };
        assert_eq!(kinds(10), [("Max(number, 2)".into(), FieldType::I32), ("name".into(), FieldType::AnsiZ)]);
        assert_eq!(kinds(11), []);
        assert_eq!(class.describe(12, 0, 8).unwrap().fields, Some(Err(UNKNOWN)), "where its values end is not known");
        assert_eq!(kinds(13)[0].1, FieldType::U32);
        assert!(matches!(&kinds(13)[1].1, FieldType::Shown(..)), "a code that is shown in hexadecimal");
    }

    #[test]
    fn what_is_no_format_is_left_out_or_refused() {
        assert!(parse("").is_err() && parse("#typev a 1 \"x\"\n{\n}").is_err(), "a message without a class");
        for end in 0..TEXT.len() {
            let cut = TEXT.get(..end).unwrap_or_default();
            assert!(parse(cut).is_ok_and(|classes| classes.len() == 1) || parse(cut).is_err());
        }
        let odd = "09090909-0909-0909-0909-090909090909 d\n#typev a x \"y\"\n#typev b 3 y\n#typev c 4 \"z\"\n{\n}";
        assert!(parse(odd).unwrap()[0].describe(4, 0, 8).is_some());
    }
}
