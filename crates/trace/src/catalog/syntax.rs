//! The small language in which `schemas/events/*.toml` writes payload layouts.
//!
//! ```text
//! field  = name ":" type ["(" map ")"]
//! type   = word | ["natural"] "{" field { "," field } "}"      then any number of "[" count "]"
//! word   = u8 u16 u16be u32 u64 i8 i32 i64 f32 f64 bool32 pointer guid utf16z ansiz filetime tokensid utf16tail bytes
//! count  = the name of an earlier field | a number | "u16" (a count before the elements) | "rest" (all that is left)
//! ```
//! `natural` lays the struct out as a C compiler would; everything else is packed.

/// A field of a layout.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutField<'t> {
    /// Name in the manifest.
    pub name: &'t str,
    /// The layout of its bytes.
    pub layout: FieldLayout<'t>,
    /// The map with the names of its values.
    pub map: Option<&'t str>,
}

/// The layout of the bytes of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldLayout<'t> {
    /// A single value.
    Simple(SimpleType),
    /// Bytes.
    Bytes(CountOf<'t>),
    /// Fields one behind the other.
    Struct {
        /// With the padding of a C compiler.
        natural: bool,
        /// The fields.
        fields: Vec<LayoutField<'t>>,
    },
    /// Elements one behind the other.
    List(CountOf<'t>, Box<FieldLayout<'t>>),
}

/// Where the number of elements comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountOf<'t> {
    /// An earlier field.
    Field(&'t str),
    /// The layout.
    Fixed(u32),
    /// A u16 before the elements.
    U16,
    /// As many whole elements as the payload has left.
    Rest,
}

/// The type of a single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum SimpleType {
    U8,
    U16,
    /// In network order.
    U16Be,
    U32,
    U64,
    I8,
    I32,
    I64,
    F32,
    F64,
    Bool32,
    /// 4 or 8 bytes, as the process that wrote the event.
    Pointer,
    Guid,
    FileTime,
    /// A security identifier behind a TOKEN_USER of two pointers; four zero bytes when there is none.
    TokenSid,
    Utf16Z,
    /// A UTF-16 text as the last field of all, where writers may leave out the terminator or the whole text.
    Utf16Tail,
    /// 8-bit text up to a zero byte.
    AnsiZ,
}

impl SimpleType {
    fn of_word(word: &str) -> Option<SimpleType> {
        Some(match word {
            "u8" => SimpleType::U8,
            "u16" => SimpleType::U16,
            "u16be" => SimpleType::U16Be,
            "u32" => SimpleType::U32,
            "u64" => SimpleType::U64,
            "i8" => SimpleType::I8,
            "i32" => SimpleType::I32,
            "i64" => SimpleType::I64,
            "f32" => SimpleType::F32,
            "f64" => SimpleType::F64,
            "bool32" => SimpleType::Bool32,
            "pointer" => SimpleType::Pointer,
            "guid" => SimpleType::Guid,
            "filetime" => SimpleType::FileTime,
            "tokensid" => SimpleType::TokenSid,
            "utf16z" => SimpleType::Utf16Z,
            "utf16tail" => SimpleType::Utf16Tail,
            "ansiz" => SimpleType::AnsiZ,
            _ => return None,
        })
    }

    /// Bytes of a value in a process with pointers of `pointer_size` bytes; `None` when each value has its own size.
    pub fn size(self, pointer_size: u8) -> Option<usize> {
        Some(match self {
            SimpleType::U8 | SimpleType::I8 => 1,
            SimpleType::U16 | SimpleType::U16Be => 2,
            SimpleType::U32 | SimpleType::I32 | SimpleType::F32 | SimpleType::Bool32 => 4,
            SimpleType::U64 | SimpleType::I64 | SimpleType::F64 | SimpleType::FileTime => 8,
            SimpleType::Pointer => usize::from(pointer_size),
            SimpleType::Guid => 16,
            SimpleType::TokenSid | SimpleType::Utf16Z | SimpleType::Utf16Tail | SimpleType::AnsiZ => return None,
        })
    }
}

/// Reads one field; an error quotes it and says what was expected.
pub fn parse_field(text: &str) -> Result<LayoutField<'_>, String> {
    let mut parser = Parser { rest: text, whole: text };
    let field = parser.field()?;
    if parser.rest.trim().is_empty() { Ok(field) } else { Err(parser.error("the end")) }
}

struct Parser<'t> {
    rest: &'t str,
    whole: &'t str,
}

impl<'t> Parser<'t> {
    fn error(&self, expected: &str) -> String {
        format!("'{}': expected {expected} at '{}'", self.whole, self.rest)
    }

    fn eat(&mut self, token: &str) -> bool {
        match self.rest.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str, message: &str) -> Result<(), String> {
        if self.eat(token) { Ok(()) } else { Err(self.error(message)) }
    }

    fn word(&mut self) -> &'t str {
        let text = self.rest.trim_start();
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        word
    }

    fn field(&mut self) -> Result<LayoutField<'t>, String> {
        let name = self.word();
        self.expect(":", "':'")?;
        let layout = self.layout()?;
        let mut map = None;
        if self.eat("(") {
            map = Some(self.word());
            self.expect(")", "')'")?;
        }
        Ok(LayoutField { name, layout, map })
    }

    fn layout(&mut self) -> Result<FieldLayout<'t>, String> {
        let natural = self.eat("natural");
        let mut layout = if self.eat("{") {
            let mut fields = Vec::new();
            while !self.eat("}") {
                fields.push(self.field()?);
                self.eat(",");
                if self.rest.is_empty() {
                    return Err(self.error("'}'"));
                }
            }
            FieldLayout::Struct { natural, fields }
        } else {
            match self.word() {
                "bytes" => return Ok(FieldLayout::Bytes(self.count()?)),
                word => FieldLayout::Simple(SimpleType::of_word(word).ok_or_else(|| self.error("a type"))?),
            }
        };
        while self.rest.trim_start().starts_with('[') {
            layout = FieldLayout::List(self.count()?, Box::new(layout));
        }
        Ok(layout)
    }

    fn count(&mut self) -> Result<CountOf<'t>, String> {
        self.expect("[", "'['")?;
        let word = self.word();
        let count = match (word, word.parse()) {
            ("u16", _) => CountOf::U16,
            ("rest", _) => CountOf::Rest,
            (_, Ok(number)) => CountOf::Fixed(number),
            _ => CountOf::Field(word),
        };
        self.expect("]", "']'")?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_with_types_counts_and_maps() {
        let field = parse_field("Reason: u32 (GCReasonMap)").unwrap();
        assert_eq!((field.name, field.map), ("Reason", Some("GCReasonMap")));
        assert_eq!(field.layout, FieldLayout::Simple(SimpleType::U32));
        let field = parse_field("Rows: natural { N: u16, Text: bytes[N] }[Count][3]").unwrap();
        let FieldLayout::List(CountOf::Fixed(3), rows) = field.layout else { panic!("{field:?}") };
        let FieldLayout::List(CountOf::Field("Count"), row) = *rows else { panic!("{rows:?}") };
        let FieldLayout::Struct { natural: true, fields } = *row else { panic!("{row:?}") };
        assert_eq!(fields[1].layout, FieldLayout::Bytes(CountOf::Field("N")));
        assert_eq!(parse_field("A: pointer[rest]").unwrap().layout, {
            FieldLayout::List(CountOf::Rest, Box::new(FieldLayout::Simple(SimpleType::Pointer)))
        });
    }

    #[test]
    fn what_is_no_field_is_refused() {
        for text in ["X", "X: nothing", "X: u32 u32", "X: { A: u8", "X: u8[3", "X: u8 (map", "X: bytes"] {
            assert!(parse_field(text).is_err_and(|why| why.contains(text)), "{text}");
        }
    }
}
