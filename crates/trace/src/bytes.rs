//! Named little-endian readers: every byte of a recording passes through here.
//!
//! The parsers are nom's and combine with its tuples and combinators. A short read names its field and its place; the
//! error is one boxed word, so that the good path stays in registers.

use nom::combinator::{ParserIterator, cut, iterator};

use crate::prelude::*;
use crate::utf16;

/// A failure of parsing: the field, where it begins, how many bytes were left there, and what was expected.
#[derive(Debug)]
pub struct ParseError(Box<Failure>);

#[derive(Debug)]
struct Failure {
    field: &'static str,
    left: usize,
    /// Address of the first byte of the field, which gives its place in any frame around it; 0 when it is not known.
    address: usize,
    expected: &'static str,
    /// Whether the input ended in the field.
    short: bool,
}

impl ParseError {
    /// Name of the field that could not be read.
    pub fn field(&self) -> &'static str {
        self.0.field
    }

    /// Bytes that were left in the frame where the field begins.
    pub fn left(&self) -> usize {
        self.0.left
    }

    /// The value or the bytes that were expected there.
    pub fn expected(&self) -> &'static str {
        self.0.expected
    }

    /// Whether the input ended before the field did: with more bytes it might have been read.
    pub fn is_short(&self) -> bool {
        self.0.short
    }

    /// Offset of the failure in `frame`, which begins at `frame_start`; also when the field was in a part of the frame
    /// with a length of its own.
    pub fn offset_in(&self, frame_start: u64, frame: &[u8]) -> u64 {
        match self.0.address.checked_sub(frame.as_ptr().addr()) {
            Some(at) if at <= frame.len() => frame_start.saturating_add(at as u64),
            _ => self.offset(frame_start, frame.len()),
        }
    }

    /// Offset of the failure in a frame of `frame_len` bytes that begins at `frame_start`, for parsers that cut no
    /// parts out of their frame.
    pub fn offset(&self, frame_start: u64, frame_len: usize) -> u64 {
        frame_start.saturating_add(frame_len.saturating_sub(self.0.left) as u64)
    }
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: expected {}, {} bytes left", self.0.field, self.0.expected, self.0.left)
    }
}

impl<'a> nom::error::ParseError<&'a [u8]> for ParseError {
    fn from_error_kind(input: &'a [u8], _kind: nom::error::ErrorKind) -> Self {
        ParseError(Box::new(Failure {
            field: "input",
            left: input.len(),
            address: input.as_ptr().addr(),
            expected: "another form",
            short: input.is_empty(),
        }))
    }

    fn append(_input: &'a [u8], _kind: nom::error::ErrorKind, other: Self) -> Self {
        other
    }
}

/// The result of every parser: the rest of the input and the value, or a [`ParseError`].
pub type Parsed<'a, T> = nom::IResult<&'a [u8], T, ParseError>;

/// Builds the error of a parser that stopped with `left` bytes before `field`.
#[cold]
#[inline(never)]
pub fn fail(left: usize, field: &'static str, expected: &'static str) -> nom::Err<ParseError> {
    nom::Err::Error(ParseError(Box::new(Failure { field, left, address: 0, expected, short: false })))
}

/// Builds the error of a parser that could not read `field`, which begins `input`.
#[cold]
#[inline(never)]
pub fn refuse(input: &[u8], field: &'static str, expected: &'static str) -> nom::Err<ParseError> {
    failure(input, field, expected, false)
}

/// The error of a field in which the input ends.
#[cold]
#[inline(never)]
fn too_short(input: &[u8], field: &'static str, expected: &'static str) -> nom::Err<ParseError> {
    failure(input, field, expected, true)
}

fn failure(input: &[u8], field: &'static str, expected: &'static str, short: bool) -> nom::Err<ParseError> {
    let address = input.as_ptr().addr();
    nom::Err::Error(ParseError(Box::new(Failure { field, left: input.len(), address, expected, short })))
}

/// Takes the inner error out of nom's wrapper. `Incomplete` never occurs: frames are whole before they are parsed.
pub fn inner(error: nom::Err<ParseError>) -> ParseError {
    match error {
        nom::Err::Error(e) | nom::Err::Failure(e) => e,
        nom::Err::Incomplete(_) => {
            ParseError(Box::new(Failure { field: "input", left: 0, address: 0, expected: "more bytes", short: true }))
        }
    }
}

macro_rules! le {
    ($name:ident, $type:ty, $expected:literal) => {
        #[doc = concat!("A little-endian `", stringify!($type), "` named `field`.")]
        #[inline]
        pub fn $name<'a>(field: &'static str) -> impl Fn(&'a [u8]) -> Parsed<'a, $type> {
            move |input: &'a [u8]| match input.split_first_chunk() {
                Some((head, rest)) => Ok((rest, <$type>::from_le_bytes(*head))),
                None => Err(too_short(input, field, $expected)),
            }
        }
    };
}

le!(u8le, u8, "1 byte");
le!(u16le, u16, "2 bytes");
le!(u32le, u32, "4 bytes");
le!(u64le, u64, "8 bytes");
le!(i32le, i32, "4 bytes");
le!(i64le, i64, "8 bytes");

/// Exactly `count` bytes.
#[inline]
pub fn take<'a>(count: usize, field: &'static str) -> impl Fn(&'a [u8]) -> Parsed<'a, &'a [u8]> {
    move |input: &'a [u8]| match input.split_at_checked(count) {
        Some((head, rest)) => Ok((rest, head)),
        None => Err(too_short(input, field, "as many bytes as its length says")),
    }
}

/// One byte with a fixed value.
pub fn tag<'a>(value: u8, field: &'static str, expected: &'static str) -> impl Fn(&'a [u8]) -> Parsed<'a, ()> {
    move |input: &'a [u8]| match input.split_first() {
        Some((first, rest)) if *first == value => Ok((rest, ())),
        Some(_) => Err(refuse(input, field, expected)),
        None => Err(too_short(input, field, expected)),
    }
}

/// The items of a frame one after the other, until nothing is left: `for item in &mut items(frame, parser)`. The first
/// that cannot be read ends them, and `finish` gives its error.
pub fn items<'a, T>(
    frame: &'a [u8],
    item: impl Parser<&'a [u8], Output = T, Error = ParseError>,
) -> ParserIterator<&'a [u8], ParseError, impl Parser<&'a [u8], Output = T, Error = ParseError>> {
    let mut item = cut(item);
    iterator(
        frame,
        move |input: &'a [u8]| {
            if input.is_empty() { Err(refuse(input, "item", "another item")) } else { item.parse(input) }
        },
    )
}

/// As many items as a count says. The count is checked against the bytes left, of which each item takes at least
/// `smallest`, before anything is allocated.
pub fn counted<'a, T>(
    count: impl TryInto<usize>,
    smallest: usize,
    field: &'static str,
    item: impl Parser<&'a [u8], Output = T, Error = ParseError>,
) -> impl Parser<&'a [u8], Output = Vec<T>, Error = ParseError> {
    let count = count.try_into().ok();
    let mut item = item;
    move |input: &'a [u8]| match count.filter(|count| *count <= input.len() / smallest.max(1)) {
        Some(count) => nom::multi::count(|rest| item.parse(rest), count).parse(input),
        None => Err(refuse(input, field, "a count that fits into the bytes left")),
    }
}

/// An unsigned LEB128 number of at most 32 bits (at most five bytes; zero padding is legal, surplus bits are not).
#[inline]
pub fn varuint32<'a>(field: &'static str) -> impl Fn(&'a [u8]) -> Parsed<'a, u32> {
    move |input: &'a [u8]| {
        if let Some((&first, rest)) = input.split_first()
            && first < 0x80
        {
            return Ok((rest, u32::from(first)));
        }
        let (rest, value) = varuint(input, field, 5)?;
        match u32::try_from(value) {
            Ok(value) => Ok((rest, value)),
            Err(_) => Err(refuse(input, field, "a varuint of at most 32 bits")),
        }
    }
}

/// An unsigned LEB128 number of at most 64 bits (at most ten bytes).
#[inline]
pub fn varuint64<'a>(field: &'static str) -> impl Fn(&'a [u8]) -> Parsed<'a, u64> {
    move |input: &'a [u8]| {
        if let Some((&first, rest)) = input.split_first()
            && first < 0x80
        {
            return Ok((rest, u64::from(first)));
        }
        varuint(input, field, 10)
    }
}

#[inline]
fn varuint<'a>(input: &'a [u8], field: &'static str, longest: usize) -> Parsed<'a, u64> {
    let mut value = 0u64;
    for (index, &byte) in input.iter().take(longest).enumerate() {
        let bits = u64::from(byte & 0x7F);
        // The tenth byte holds one bit of a 64-bit number.
        if index == 9 && bits > 1 {
            return Err(refuse(input, field, "a varuint of at most 64 bits"));
        }
        value |= bits << (7 * index);
        if byte < 0x80 {
            return Ok((input.get(index + 1..).unwrap_or_default(), value));
        }
    }
    Err(refuse(input, field, "the end of a varuint"))
}

/// Undoes the zig-zag form of a signed varint.
#[inline]
pub fn zigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

/// A NUL-terminated UTF-16 string; the value is its bytes without the terminator.
#[inline]
pub fn utf16z<'a>(field: &'static str) -> impl Fn(&'a [u8]) -> Parsed<'a, &'a [u8]> {
    move |input: &'a [u8]| match utf16::end(input) {
        Some(end) => Ok((input.get(end + 2..).unwrap_or_default(), input.get(..end).unwrap_or_default())),
        None => Err(refuse(input, field, "a UTF-16 string with its terminator")),
    }
}

/// A UTF-8 string behind its length as varuint32 (V6); the value is its bytes.
#[inline]
pub fn utf8_counted<'a>(field: &'static str) -> impl Fn(&'a [u8]) -> Parsed<'a, &'a [u8]> {
    move |input: &'a [u8]| {
        let (rest, length) = varuint32(field)(input)?;
        take(length as usize, field)(rest)
    }
}

/// Sixteen bytes of a GUID in Windows order.
#[inline]
pub fn guid<'a>(field: &'static str) -> impl Fn(&'a [u8]) -> Parsed<'a, Guid> {
    move |input: &'a [u8]| match input.split_first_chunk() {
        Some((head, rest)) => Ok((rest, Guid(*head))),
        None => Err(refuse(input, field, "16 bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn varuints_are_read_back(value in proptest::prelude::any::<u64>(), shift in 0..64u32) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            corprof::encode::varint(&mut bytes, value);
            bytes.push(0xAA);
            let (rest, read) = varuint64("value")(&bytes).expect("a number");
            proptest::prop_assert_eq!((read, rest), (value, &[0xAA][..]));
            proptest::prop_assert_eq!(varuint32("value")(&bytes).ok().map(|(_, read)| u64::from(read)), u32::try_from(value).ok().map(u64::from));
            let signed = value as i64;
            proptest::prop_assert_eq!(zigzag(((signed << 1) ^ (signed >> 63)) as u64), signed);
        }
    }

    #[test]
    fn integers_name_the_field_that_is_short() {
        let input = [1, 0, 0, 0, 2, 0];
        let (rest, value) = u32le("Count")(&input).unwrap();
        assert_eq!((value, rest.len()), (1, 2));
        let error = inner(u32le("Depth")(rest).unwrap_err());
        assert_eq!((error.field(), error.left(), error.offset(100, input.len())), ("Depth", 2, 104));
    }

    #[test]
    fn a_field_in_a_part_of_a_frame_has_its_place_in_the_frame() {
        let frame = [9, 9, 2, 0xAA, 0xBB, 7, 7];
        let mut part = u8le("Length").flat_map(|n| take(n.into(), "Part")).and_then((u8le("First"), u16le("Second")));
        let error = inner(part.parse(&frame[2..]).unwrap_err());
        assert_eq!((error.field(), error.left(), error.offset_in(1000, &frame)), ("Second", 1, 1004));
        assert_eq!(error.offset_in(1000, &[0; 3]), 1002, "another frame: by what was left");
    }

    #[test]
    fn items_end_with_the_frame_or_with_an_error() {
        let frame = [1, 0, 2, 0, 3];
        let mut found = Vec::new();
        let mut whole = items(&frame[..4], u16le("Item"));
        found.extend(&mut whole);
        assert_eq!((found.as_slice(), whole.finish().is_ok()), (&[1, 2][..], true));
        let mut cut = items(&frame, u16le("Item"));
        assert_eq!(cut.by_ref().count(), 2);
        assert_eq!(inner(cut.finish().unwrap_err()).offset_in(0, &frame), 4);
    }

    #[test]
    fn counts_are_checked_before_they_are_believed() {
        let frame = [1, 2, 3, 4];
        assert_eq!(counted(2, 2, "Count", u16le("Item")).parse(&frame).unwrap().1, [0x0201, 0x0403]);
        assert!(counted(3, 2, "Count", u16le("Item")).parse(&frame).is_err());
        assert_eq!(inner(counted(-1i32, 1, "Count", u8le("Item")).parse(&frame).unwrap_err()).field(), "Count");
    }

    #[test]
    fn varuints_accept_padding_and_refuse_surplus() {
        assert_eq!(varuint32("v")(&[0xFF, 0xFF, 0xFF, 0xFF, 0x0F]).unwrap().1, u32::MAX);
        assert_eq!(varuint32("v")(&[0x81, 0x80, 0x00]).unwrap().1, 1);
        assert!(varuint32("v")(&[0xFF, 0xFF, 0xFF, 0xFF, 0x1F]).is_err());
        assert!(varuint32("v")(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x00]).is_err());
        let max = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01];
        assert_eq!(varuint64("v")(&max).unwrap().1, u64::MAX);
        let over = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02];
        assert!(varuint64("v")(&over).is_err());
        assert!(varuint64("v")(&[0x80]).is_err());
        assert_eq!((zigzag(0), zigzag(1), zigzag(2), zigzag(u64::MAX)), (0, -1, 1, i64::MIN));
    }

    #[test]
    fn strings_end_at_the_zero_unit_not_at_a_zero_byte() {
        let text: Vec<u8> = "aĀbcdefgh\0x".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let (rest, bytes) = utf16z("s")(&text).unwrap();
        assert_eq!((utf16::string(bytes).as_str(), rest), ("aĀbcdefgh", &[b'x', 0][..]));
        assert!(utf16z("s")(&[b'a', 0, 0]).is_err());
    }
}
