//! The small language in which `schemas/events/*.toml` writes payload layouts.
//!
//! ```text
//! field  = name ":" type ["(" map ")"]
//! type   = word | ["natural"] "{" field { "," field } "}"      then any number of "[" count "]"
//! word   = u8 u16 u16be u32 u64 i8 i32 i64 f32 f64 bool32 pointer guid utf16z ansiz filetime tokensid utf16tail bytes
//! count  = the name of an earlier field | a number | "u16" (a count before the elements) | "rest" (all that is left)
//! ```
//! `natural` lays the struct out as a C compiler would; everything else is packed.

use super::plan::{Count, Node, Plan, PlanField};

/// Compiles the fields of one event for processes with pointers of `pointer_size` bytes.
pub fn compile(fields: &[String], pointer_size: u8) -> Result<Plan, String> {
    let mut compiler = Compiler { pointer_size, slots: 0, scopes: vec![Vec::new()] };
    for text in fields {
        let mut parser = Parser { rest: text, whole: text };
        compiler.field(&mut parser)?;
        if !parser.rest.trim().is_empty() {
            return Err(parser.error("the end"));
        }
    }
    let fields = compiler.scopes.pop().unwrap_or_default();
    Ok(Plan { fields, slots: usize::from(compiler.slots), narrow_booleans: None })
}

/// The name of the value map behind a field, if it has one.
pub fn map_of(field: &str) -> Option<&str> {
    let (_, map) = field.rsplit_once('(')?;
    map.trim_end().strip_suffix(')')
}

struct Compiler {
    pointer_size: u8,
    slots: u8,
    /// The fields before the one being compiled: of the payload, of the struct in it, and so on inwards.
    scopes: Vec<Vec<PlanField>>,
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

    fn word(&mut self) -> &'t str {
        let text = self.rest.trim_start();
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        word
    }
}

impl Compiler {
    fn field(&mut self, parser: &mut Parser<'_>) -> Result<(), String> {
        let name = parser.word().to_owned();
        if !parser.eat(":") {
            return Err(parser.error("':'"));
        }
        let node = self.node(parser)?;
        if parser.eat("(") {
            parser.word();
            if !parser.eat(")") {
                return Err(parser.error("')'"));
            }
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(PlanField { name, node, slot: None });
        }
        Ok(())
    }

    fn node(&mut self, parser: &mut Parser<'_>) -> Result<Node, String> {
        let natural = parser.eat("natural");
        let mut node = if parser.eat("{") {
            self.scopes.push(Vec::new());
            while !parser.eat("}") {
                self.field(parser)?;
                parser.eat(",");
                if parser.rest.is_empty() {
                    return Err(parser.error("'}'"));
                }
            }
            let fields = self.scopes.pop().unwrap_or_default();
            Node::Struct(if natural { pad(fields) } else { fields })
        } else {
            let word = parser.word();
            if word == "bytes" {
                let count = self.count(parser)?;
                return Ok(Node::Bytes(count));
            }
            self.simple(word).ok_or_else(|| parser.error("a type"))?
        };
        while parser.rest.trim_start().starts_with('[') {
            node = Node::List(self.count(parser)?, Box::new(node));
        }
        Ok(node)
    }

    fn count(&mut self, parser: &mut Parser<'_>) -> Result<Count, String> {
        if !parser.eat("[") {
            return Err(parser.error("'['"));
        }
        let word = parser.word();
        let count = if word == "u16" {
            Count::U16
        } else if word == "rest" {
            Count::Rest
        } else if let Ok(number) = word.parse() {
            Count::Fixed(number)
        } else {
            Count::Slot(self.slot_of(word).ok_or_else(|| parser.error("the name of an earlier number"))?)
        };
        if parser.eat("]") { Ok(count) } else { Err(parser.error("']'")) }
    }

    /// The slot in which the nearest earlier field of this name leaves its value.
    fn slot_of(&mut self, name: &str) -> Option<u8> {
        let field = self.scopes.iter_mut().rev().find_map(|scope| scope.iter_mut().rev().find(|f| f.name == name))?;
        if !matches!(field.node, Node::U8 | Node::U16 | Node::U32 | Node::U64 | Node::Pointer32) {
            return None;
        }
        if field.slot.is_none() && usize::from(self.slots) < super::decode::MAX_SLOTS {
            field.slot = Some(self.slots);
            self.slots += 1;
        }
        field.slot
    }

    fn simple(&self, word: &str) -> Option<Node> {
        Some(match word {
            "u8" => Node::U8,
            "u16" => Node::U16,
            "u16be" => Node::U16Be,
            "u32" => Node::U32,
            "u64" => Node::U64,
            "i8" => Node::I8,
            "i32" => Node::I32,
            "i64" => Node::I64,
            "f32" => Node::F32,
            "f64" => Node::F64,
            "bool32" => Node::Bool32,
            "pointer" if self.pointer_size == 4 => Node::Pointer32,
            "pointer" => Node::U64,
            "guid" => Node::Guid,
            "filetime" => Node::FileTime,
            "tokensid" => Node::TokenSid(self.pointer_size),
            "utf16z" => Node::Utf16Z,
            "utf16tail" => Node::Utf16Tail,
            "ansiz" => Node::AnsiZ,
            _ => return None,
        })
    }
}

/// Puts padding between fields as a C compiler does, and behind the last one.
fn pad(fields: Vec<PlanField>) -> Vec<PlanField> {
    let padding = |bytes: usize| PlanField { name: String::new(), node: Node::Padding(bytes as u8), slot: None };
    let mut out = Vec::new();
    let (mut at, mut widest) = (0usize, 1usize);
    for field in fields {
        let size = field.node.fixed_size().unwrap_or(1).max(1);
        widest = widest.max(size);
        let over = at % size;
        if over != 0 {
            out.push(padding(size - over));
            at += size - over;
        }
        at += size;
        out.push(field);
    }
    if at % widest != 0 {
        out.push(padding(widest - at % widest));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(fields: &[&str], pointer_size: u8) -> Plan {
        compile(&fields.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>(), pointer_size).unwrap()
    }

    #[test]
    fn natural_structs_are_padded_by_pointer_size() {
        let rows = ["Count: u16", "Values: natural { Index: u16, Count: u32, Size: pointer }[Count]"];
        let size = |plan: Plan| match &plan.fields[1].node {
            Node::List(Count::Slot(0), element) => element.fixed_size(),
            other => panic!("{other:?}"),
        };
        assert_eq!(size(plan(&rows, 8)), Some(16));
        assert_eq!(size(plan(&rows, 4)), Some(12));
        let plan = plan(&rows, 8);
        assert_eq!(plan.fields[0].slot, Some(0));
        assert_eq!(plan.slots, 1, "neither the Count in a row nor the padding is a count of the list");
    }

    #[test]
    fn a_count_is_the_nearest_earlier_field_of_its_name() {
        let plan = plan(&["Count: u32", "Rows: { N: u16, Inner: u8[N], Count: u8, Same: u8[Count] }[Count]"], 8);
        assert_eq!((plan.slots, plan.fields[0].slot), (3, Some(2)));
        let Node::List(Count::Slot(2), row) = &plan.fields[1].node else { panic!("{plan:?}") };
        let Node::Struct(row) = row.as_ref() else { panic!("{row:?}") };
        assert_eq!(row.iter().map(|f| f.slot).collect::<Vec<_>>(), [Some(0), None, Some(1), None]);
    }

    #[test]
    fn counts_must_name_an_earlier_field() {
        let fields = vec!["Values: u32[Missing]".to_owned()];
        assert!(compile(&fields, 8).is_err());
        assert!(compile(&["X: nothing".to_owned()], 8).is_err());
        assert!(compile(&["X: u32 u32".to_owned()], 8).is_err());
        assert_eq!(map_of("Reason: u32 (GCReasonMap)"), Some("GCReasonMap"));
    }
}
