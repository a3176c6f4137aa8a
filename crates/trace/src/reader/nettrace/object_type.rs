//! The beginning of objects of V3 to "V5": three tags, two versions, a name, a tag.

use nom::Parser;

use crate::bytes::{Parsed, i32le, inner, refuse, tag, take, u8le};
use crate::source::Source;

pub const NULL_REFERENCE: u8 = 1;
pub const BEGIN_OBJECT: u8 = 4;
pub const BEGIN_PRIVATE_OBJECT: u8 = 5;
pub const END_OBJECT: u8 = 6;

/// The kinds of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Events,
    Metadata,
    Stacks,
    SequencePoint,
}

/// The longest name of a type that is believed.
const MAX_NAME: i32 = 64;
/// The longest beginning of an object: tags, versions, name.
const MAX_TYPE: usize = 3 + 12 + MAX_NAME as usize + 1;

/// Name and versions of an object's type.
#[derive(Debug)]
pub struct ObjectType<'b> {
    name: &'b [u8],
    version: i32,
    min_reader: i32,
}

impl ObjectType<'_> {
    /// Whether it is one of the blocks that are known.
    pub fn is_block(&self) -> bool {
        self.content().is_some()
    }

    fn content(&self) -> Option<Content> {
        match self.name {
            b"EventBlock" => Some(Content::Events),
            b"MetadataBlock" => Some(Content::Metadata),
            b"StackBlock" => Some(Content::Stacks),
            b"SPBlock" => Some(Content::SequencePoint),
            _ => None,
        }
    }

    /// The name without what a message cannot show.
    fn name(&self) -> String {
        String::from_utf8_lossy(self.name).chars().filter(|c| !c.is_control()).collect()
    }
}

/// The tags and the type that an object begins with.
pub fn object_type(input: &[u8]) -> Parsed<'_, ObjectType<'_>> {
    let expected = "the tags of an object or of the end";
    let begin = |input| match u8le("Tag")(input)? {
        (rest, BEGIN_OBJECT | BEGIN_PRIVATE_OBJECT) => Ok((rest, ())),
        _ => Err(refuse(input, "Tag", expected)),
    };
    let (input, _) = (begin, begin, tag(NULL_REFERENCE, "Tag", expected)).parse(input)?;
    let (input, (version, min_reader)) = (i32le("Version"), i32le("MinimumReaderVersion")).parse(input)?;
    let (after, length) = i32le("NameLength")(input)?;
    if !(0..=MAX_NAME).contains(&length) {
        return Err(refuse(input, "NameLength", "a type name of 0 to 64 bytes"));
    }
    let (input, (name, ())) =
        (take(length as usize, "Name"), tag(END_OBJECT, "EndObject", "the end tag of a type")).parse(after)?;
    Ok((input, ObjectType { name, version, min_reader }))
}

/// The beginning of an object.
pub struct Head {
    /// Name of the type, for messages.
    pub name: String,
    /// The kind of block, when it is one of the known ones.
    pub content: Option<Content>,
    /// Version of the type.
    pub version: i32,
    /// The first version of readers that can read it.
    pub min_reader: i32,
    /// Bytes up to where its payload begins.
    pub len: usize,
}

/// The kind of bytes where an object may begin.
pub enum Next {
    /// An object.
    Object(Head),
    /// The end mark.
    End,
    /// The file is over: how many bytes there were of what should have been an object.
    Cut(usize),
    /// No object: what should have been there.
    Damaged(&'static str),
}

/// Whether an object begins here, and a live stream is silent before as many bytes of it have come as others have: a
/// small block may be the last one for long.
fn is_small_and_last(source: &mut Source<'_>) -> bool {
    while source.is_live() && !source.comes(MAX_TYPE) {
        if object_type(source.looked_at()).is_ok() {
            return true;
        }
        // One more is waited for, however long it takes.
        let have = source.looked_at().len();
        if source.peek(have + 1).len() == have {
            break;
        }
    }
    false
}

/// Looks at the tags and the type of the next object.
pub fn next_object(source: &mut Source<'_>) -> Next {
    let head = if is_small_and_last(source) { source.looked_at() } else { source.peek(MAX_TYPE) };
    if head.first() == Some(&NULL_REFERENCE) {
        return Next::End;
    }
    match object_type(head) {
        Ok((rest, object)) => Next::Object(Head {
            name: object.name(),
            content: object.content(),
            version: object.version,
            min_reader: object.min_reader,
            len: head.len() - rest.len(),
        }),
        Err(e) => {
            let error = inner(e);
            if error.is_short() { Next::Cut(head.len()) } else { Next::Damaged(error.expected()) }
        }
    }
}
