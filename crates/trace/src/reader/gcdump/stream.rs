//! The stream of FastSerialization: numbers, text and objects, with a tag before each object.

use crate::source::Source;

/// Longer text is damage. Names of generic types are long; the log of a dump has some kilobytes.
const MAX_TEXT: u64 = 16 << 20;

/// The memory of a dump that comes from a pipe or is packed, in bytes: its size is not known.
const MAX_STREAMED: u64 = 1 << 30;

/// Bytes that are taken at a time.
const CHUNK: usize = 1 << 20;

const NULL: u8 = 1;
const REFERENCE: u8 = 2;
const BEGIN: u8 = 4;
const END: u8 = 6;
const BYTE: u8 = 8;

/// Why the bytes cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Where.
    pub offset: u64,
    /// The field that is read.
    pub field: &'static str,
    /// The value that was found.
    pub what: String,
    /// The value that should be there.
    pub expected: &'static str,
}

pub(super) type Read<T> = Result<T, Wrong>;

/// Name and versions of an object's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub version: u32,
    /// The version that a reader has to know.
    pub least: u32,
    pub name: String,
}

/// The bytes of a dump, from the first to the last.
pub(super) struct Stream<'s, 'i> {
    source: &'s mut Source<'i>,
    /// Bytes that may still be held.
    room: u64,
}

impl<'s, 'i> Stream<'s, 'i> {
    pub fn new(source: &'s mut Source<'i>) -> Stream<'s, 'i> {
        let room = if source.len().is_some() { u64::MAX } else { MAX_STREAMED };
        Stream { source, room }
    }

    pub fn position(&self) -> u64 {
        self.source.position()
    }

    /// An error at this place.
    pub fn wrong<T>(&self, field: &'static str, what: impl Into<String>, expected: &'static str) -> Read<T> {
        Err(Wrong { offset: self.source.position(), field, what: what.into(), expected })
    }

    pub fn bytes<const N: usize>(&mut self, field: &'static str) -> Read<[u8; N]> {
        let Some(bytes) = self.source.peek(N).first_chunk().copied() else {
            return self.wrong(field, "the end of the file", "more bytes");
        };
        self.source.skip(N);
        Ok(bytes)
    }

    pub fn u8(&mut self, field: &'static str) -> Read<u8> {
        self.bytes(field).map(|[byte]| byte)
    }

    pub fn u32(&mut self, field: &'static str) -> Read<u32> {
        self.bytes(field).map(u32::from_le_bytes)
    }

    pub fn u64(&mut self, field: &'static str) -> Read<u64> {
        self.bytes(field).map(u64::from_le_bytes)
    }

    /// A count of what follows, each of which takes `width` bytes at least.
    pub fn count(&mut self, field: &'static str, width: u64) -> Read<u32> {
        let count = self.u32(field)?;
        let left = self.source.len().map(|len| len.saturating_sub(self.source.position()));
        if count > i32::MAX as u32 || left.is_some_and(|left| u64::from(count) * width > left) {
            return self.wrong(field, format!("{count} of them"), "no more than there are bytes for");
        }
        Ok(count)
    }

    /// Makes sure that `count` items of `bytes` each may be held.
    pub fn hold(&mut self, field: &'static str, count: u32, bytes: usize) -> Read<()> {
        match self.room.checked_sub(u64::from(count).saturating_mul(bytes as u64)) {
            Some(room) => self.room = room,
            None => {
                return self.wrong(field, "more than 1 GiB in a pipe or a packed file", "a file that is not packed");
            }
        }
        Ok(())
    }

    /// Calls `each` with chunks that together have `bytes` bytes, each a multiple of 8 but the last.
    pub fn chunks(&mut self, field: &'static str, bytes: u64, mut each: impl FnMut(&[u8])) -> Read<()> {
        let mut left = bytes;
        while left > 0 {
            let wanted = left.min(CHUNK as u64) as usize;
            let chunk = self.source.take(wanted);
            if chunk.len() < wanted {
                return self.wrong(field, "the end of the file", "more bytes");
            }
            each(&chunk);
            left -= wanted as u64;
            self.source.recycle(chunk);
        }
        Ok(())
    }

    /// Text; `None` for null.
    pub fn text(&mut self, field: &'static str) -> Read<Option<String>> {
        let length = self.u32(field)?;
        if length == u32::MAX {
            return Ok(None);
        }
        if u64::from(length) > MAX_TEXT {
            return self.wrong(field, format!("a text of {length} bytes"), "at most 16 MB");
        }
        self.hold(field, length, 1)?;
        let mut text = Vec::new();
        self.chunks(field, length.into(), |bytes| text.extend_from_slice(bytes))?;
        Ok(Some(String::from_utf8_lossy(&text).into_owned()))
    }

    /// The beginning of an object; `None` for null.
    pub fn object(&mut self, field: &'static str) -> Read<Option<Type>> {
        match self.u8(field)? {
            NULL => return Ok(None),
            BEGIN => {}
            tag => return self.wrong(field, format!("tag {tag}"), "an object"),
        }
        if self.bytes(field)? != [BEGIN, NULL] {
            return self.wrong(field, "another tag", "the type of the object");
        }
        let (version, least) = (self.u32(field)?, self.u32(field)?);
        let name = self.text(field)?.unwrap_or_default();
        self.end(field)?;
        Ok(Some(Type { version, least, name }))
    }

    /// The beginning of one of several objects of a type. `None`: the type is known from before.
    pub fn segment(&mut self, field: &'static str) -> Read<Option<Type>> {
        match self.source.peek(2) {
            [BEGIN, REFERENCE] => self.bytes::<6>(field).map(|_| None),
            _ => self.object(field),
        }
    }

    /// The end of an object.
    pub fn end(&mut self, field: &'static str) -> Read<()> {
        match self.u8(field)? {
            END => Ok(()),
            tag => self.wrong(field, format!("tag {tag}"), "the end of the object"),
        }
    }

    /// Fields that were added later, each with a tag: only bytes are known. Then the end of the object.
    pub fn tagged_bytes(&mut self, field: &'static str) -> Read<Option<u8>> {
        match self.u8(field)? {
            END => Ok(None),
            BYTE => {
                let byte = self.u8(field)?;
                self.end(field)?;
                Ok(Some(byte))
            }
            tag => self.wrong(field, format!("tag {tag}"), "the end of the object"),
        }
    }
}
