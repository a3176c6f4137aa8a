//! XML of foreign origin as a tree of elements with their attributes, when it is small enough to be one.
//!
//! `quick-xml` reads the text element by element, so that the bounds hold before memory is taken. Text between elements
//! is left out: manifests have none that matters. A DTD is refused, and with it entities of its own.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Error, Reader, XmlVersion};

/// Bounds; the largest manifests of Windows have a tenth of that.
const MAX_TEXT: usize = 16 << 20;
const MAX_ELEMENTS: usize = 1 << 18;
const MAX_ATTRIBUTES: usize = 1 << 19;
const MAX_ATTRIBUTES_OF_ONE: usize = 64;
const MAX_DEPTH: usize = 64;

/// Something wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line, from 1.
    pub line: u32,
    /// Character in the line, from 1.
    pub column: u32,
    /// The fault, as a sentence.
    pub what: String,
    /// The text that was expected there; empty when `what` has it.
    pub expected: &'static str,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.what)?;
        if self.expected.is_empty() { Ok(()) } else { write!(f, ", expected {}", self.expected) }
    }
}

impl Fault {
    /// A fault at a byte of the text.
    pub fn at(text: &str, at: usize, what: impl Into<String>, expected: &'static str) -> Fault {
        let (line, column) = position(text, at);
        Fault { line, column, what: what.into(), expected }
    }
}

/// Line and column of a byte.
pub fn position(text: &str, at: usize) -> (u32, u32) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    (line as u32, column as u32)
}

/// The elements of a text.
#[derive(Debug)]
pub struct Document {
    /// In the order of the text: an element comes before those inside of it.
    elements: Vec<Element>,
}

#[derive(Debug)]
struct Element {
    /// Without the prefix of its namespace.
    name: String,
    attributes: Vec<(String, String)>,
    /// Where it begins in the text, and where it ends.
    bytes: std::ops::Range<usize>,
    /// Index of the element that it is inside of.
    parent: Option<usize>,
    /// Index behind the last element inside of it.
    end: usize,
}

/// An element of a document.
#[derive(Clone, Copy, Debug)]
pub struct Node<'d> {
    document: &'d Document,
    index: usize,
    element: &'d Element,
}

/// Reads XML.
pub fn parse(text: &str) -> Result<Document, Fault> {
    if text.len() > MAX_TEXT {
        return Err(Fault::at(text, MAX_TEXT, "more than 16 MB", TOO_MUCH));
    }
    Builder { text, elements: Vec::new(), open: Vec::new(), attributes: 0 }.build()
}

const TOO_MUCH: &str = "the XML of a manifest";

struct Builder<'t> {
    text: &'t str,
    elements: Vec<Element>,
    /// Indices of the elements that are not closed yet.
    open: Vec<usize>,
    attributes: usize,
}

impl Builder<'_> {
    fn build(mut self) -> Result<Document, Fault> {
        let text = self.text;
        let mut reader = Reader::from_str(text);
        loop {
            let at = reader.buffer_position() as usize;
            let event = reader.read_event().map_err(|error| {
                let at = reader.error_position() as usize;
                Fault::at(text, at, message(&error), "")
            })?;
            let end = reader.buffer_position() as usize;
            match event {
                Event::Start(start) => {
                    self.add(at, &start)?;
                    self.open.push(self.elements.len() - 1);
                    if self.open.len() > MAX_DEPTH {
                        let what = "more than 64 elements inside of each other";
                        return Err(Fault::at(text, at, what, TOO_MUCH));
                    }
                }
                Event::Empty(start) => {
                    self.add(at, &start)?;
                    self.close(self.elements.len() - 1, end);
                }
                Event::End(_) => {
                    if let Some(index) = self.open.pop() {
                        self.close(index, end);
                    }
                }
                Event::DocType(_) => return Err(Fault::at(text, at, "a DTD", TOO_MUCH)),
                Event::Eof => break,
                _ => {}
            }
        }
        let unclosed = self.open.last().and_then(|index| self.elements.get(*index));
        if let Some(element) = unclosed {
            let what = format!("the element '{}' has no end", element.name);
            return Err(Fault::at(text, element.bytes.start, what, "its closing tag"));
        }
        if self.elements.is_empty() {
            return Err(Fault::at(text, 0, "no element", TOO_MUCH));
        }
        Ok(Document { elements: self.elements })
    }

    fn add(&mut self, at: usize, start: &BytesStart<'_>) -> Result<(), Fault> {
        let refuse = |what: String, expected| Err(Fault::at(self.text, at, what, expected));
        if self.open.is_empty() && !self.elements.is_empty() {
            return refuse("a second element at the top".into(), "one");
        }
        if self.elements.len() >= MAX_ELEMENTS {
            return refuse("more than 262144 elements".into(), TOO_MUCH);
        }
        let mut attributes = Vec::new();
        for attribute in start.attributes() {
            if attributes.len() >= MAX_ATTRIBUTES_OF_ONE {
                return refuse("an element of more than 64 attributes".into(), TOO_MUCH);
            }
            let read = attribute.map_err(Error::from).and_then(|attribute| {
                let value = attribute.normalized_value(XmlVersion::Implicit1_0)?.into_owned();
                Ok((attribute.key.local_name().as_ref().to_owned(), value))
            });
            match read {
                Ok(attribute) => attributes.push(attribute),
                Err(error) => return refuse(message(&error), ""),
            }
        }
        self.attributes += attributes.len();
        if self.attributes > MAX_ATTRIBUTES {
            return refuse("more than 524288 attributes".into(), TOO_MUCH);
        }
        let (index, parent) = (self.elements.len(), self.open.last().copied());
        let name = start.local_name().as_ref().to_owned();
        self.elements.push(Element { name, attributes, bytes: at..at, parent, end: index + 1 });
        Ok(())
    }

    fn close(&mut self, index: usize, at: usize) {
        let end = self.elements.len();
        if let Some(element) = self.elements.get_mut(index) {
            (element.bytes.end, element.end) = (at, end);
        }
    }
}

fn message(error: &Error) -> String {
    match error {
        Error::IllFormed(quick_xml::errors::IllFormedError::MismatchedEndTag { expected, found }) => {
            format!("expected '{expected}' tag, not '{found}'")
        }
        error => error.to_string(),
    }
}

impl Document {
    /// All elements, in the order of the text.
    pub fn elements(&self) -> impl Iterator<Item = Node<'_>> {
        self.range(0..self.elements.len())
    }

    fn range(&self, indices: std::ops::Range<usize>) -> impl Iterator<Item = Node<'_>> {
        indices.map_while(|index| self.node(index))
    }

    fn node(&self, index: usize) -> Option<Node<'_>> {
        Some(Node { document: self, index, element: self.elements.get(index)? })
    }
}

impl<'d> Node<'d> {
    /// Whether the element has this name, whatever its namespace.
    pub fn is(&self, name: &str) -> bool {
        self.element.name == name
    }

    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&'d str> {
        self.element.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The place in the text.
    pub fn bytes(&self) -> std::ops::Range<usize> {
        self.element.bytes.clone()
    }

    /// The elements that it is inside of, innermost first.
    pub fn ancestors(&self) -> impl Iterator<Item = Node<'d>> {
        let document = self.document;
        let parent = |node: &Node<'d>| node.element.parent.and_then(|index| document.node(index));
        std::iter::successors(parent(self), move |node| document.node(node.element.parent?))
    }

    /// All elements inside of it.
    pub fn descendants(&self) -> impl Iterator<Item = Node<'d>> + use<'d> {
        self.document.range(self.index + 1..self.element.end)
    }

    /// The elements directly inside of it.
    pub fn children(&self) -> impl Iterator<Item = Node<'d>> + use<'d> {
        let (document, end) = (self.document, self.element.end);
        let node = move |index: usize| if index < end { document.node(index) } else { None };
        std::iter::successors(node(self.index + 1), move |child| node(child.element.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse(text).err().map(|fault| fault.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_a_manifest_may_be_is_read() {
        let text = "<?xml version='1.0'?>\n<!-- <a 'b' > -->\n<p:a xmlns:p='x' \
            b=\"/&gt;\"><![CDATA[<<<]]><b/><c>'\"<d/></c></p:a>";
        let document = parse(text).unwrap();
        let names: Vec<_> = document.elements().map(|node| node.element.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
        let root = document.elements().next().unwrap();
        assert_eq!((root.attribute("b"), root.attribute("c")), (Some("/>"), None));
        assert_eq!(root.bytes(), text.find("<p:a").unwrap()..text.len());
        assert!(root.children().map(|node| node.index).eq([1, 2]) && root.descendants().count() == 3);
        let inner = document.elements().last().unwrap();
        assert!(inner.ancestors().map(|node| node.index).eq([2, 0]) && inner.children().next().is_none());
        let many = format!("<a>{}</a>", "<b c='1' d='2'/>".repeat(10_000));
        assert!(parse(&many).is_ok());
    }

    #[test]
    fn the_place_of_a_fault_is_said() {
        assert_eq!(refused("<a>\n  <b></c>\n</a>"), "2:6: expected 'b' tag, not 'c'");
        assert_eq!(refused("<a>\n <b>\n"), "2:2: the element 'b' has no end, expected its closing tag");
        assert_eq!(position("é\nüx", 5), (2, 2));
        assert!(refused("").starts_with("1:1: ") && refused("text").starts_with("1:1: "));
        assert!(refused("<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>").contains("DTD"));
        for wrong in ["<a/>\n<b/>", "<a>\n<b c/></a>", "<a>\n<b c='&x;'/></a>", "<a>\n<b c='1' c='2'/></a>", "<a>\n</a"]
        {
            assert!(refused(wrong).starts_with("2:1: "), "{wrong}: {}", refused(wrong));
        }
    }

    #[test]
    fn what_would_cost_too_much_is_refused() {
        let deep = "<a>".repeat(100_000);
        assert!(refused(&deep).contains("inside of each other"));
        let names = |count: usize| (0..count).map(|n| format!("b{n}='' ")).collect::<String>();
        assert!(refused(&format!("<a {}/>", names(100_000))).contains("64 attributes"));
        assert!(refused(&format!("<r>{}</r>", "<a/>".repeat(300_000))).contains("elements"));
        assert!(refused(&format!("<r>{}</r>", "<a b='' c='' d='' e=''/>".repeat(140_000))).contains("attributes"));
        assert!(refused(&" ".repeat(MAX_TEXT + 1)).contains("16 MB"));
    }
}
