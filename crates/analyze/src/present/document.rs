//! A document: headings, sentences, facts and tables, and an answer, which has one for people and rows for programs.

use serde_json::Value;

use super::escape::clean;
use super::sentence::Sentence;
use super::table::Table;
use super::text::{Terminal, folded};

#[derive(Clone, Debug)]
enum Block {
    /// A part with a name; links can lead to it.
    Part(Sentence),
    /// A title of the blocks that follow.
    Heading(Sentence),
    /// A sentence; of a lower level where it is indented.
    Line(&'static str, Sentence),
    Table(Table),
    /// An empty line.
    Gap,
}

/// Blocks that people read, from top to bottom.
#[derive(Clone, Debug, Default)]
pub struct Document(Vec<Block>);

impl Document {
    /// Adds a heading, with an empty line before it where something stands there.
    pub fn heading(&mut self, heading: impl Into<Sentence>) {
        self.0.push(Block::Heading(heading.into()));
    }

    /// Adds a part with a name, to which links can lead, with an empty line before it.
    pub fn part(&mut self, name: impl Into<Sentence>) {
        self.0.push(Block::Part(name.into()));
    }

    /// Adds a sentence.
    pub fn line(&mut self, sentence: impl Into<Sentence>) {
        self.0.push(Block::Line("", sentence.into()));
    }

    /// Adds a sentence below a heading.
    pub fn note(&mut self, sentence: impl Into<Sentence>) {
        self.0.push(Block::Line("  ", sentence.into()));
    }

    /// Adds a fact with its name: `  where:  `.
    pub fn fact(&mut self, name: &'static str, fact: impl Into<Sentence>) {
        self.0.push(Block::Line(name, fact.into()));
    }

    /// Adds a table.
    pub fn table(&mut self, table: Table) {
        self.0.push(Block::Table(table));
    }

    /// Adds an empty line.
    pub fn gap(&mut self) {
        self.0.push(Block::Gap);
    }

    /// Adds what another document has.
    pub fn add(&mut self, other: Document) {
        self.0.extend(other.0);
    }

    /// Text for a terminal.
    pub fn text(&self, terminal: Terminal) -> String {
        let most = terminal.line;
        let mut out = String::new();
        for block in &self.0 {
            match block {
                Block::Part(heading) | Block::Heading(heading) => {
                    if !out.is_empty() {
                        out.push('\n');
                    }
                    out += &folded("", &heading.in_text(), most);
                }
                Block::Line(head, sentence) => out += &folded(head, &sentence.in_text(), most),
                Block::Table(table) => out += &table.text(terminal),
                Block::Gap => out.push('\n'),
            }
        }
        out
    }

    /// Markdown: headings are bold, facts are a list.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        for block in &self.0 {
            let is_of_list = matches!(block, Block::Line(head, _) if !head.is_empty());
            if !is_of_list && !out.is_empty() && !out.ends_with("\n\n") {
                out.push('\n');
            }
            match block {
                Block::Part(name) => out += &format!("## {}\n\n", name.markdown()),
                Block::Heading(heading) => out += &format!("**{}**\n\n", heading.markdown()),
                Block::Line("", sentence) => out += &format!("{}\n", sentence.markdown()),
                Block::Line(head, sentence) => {
                    let head = clean(head.trim());
                    let between = if head.is_empty() { "" } else { " " };
                    out += &format!("- {head}{between}{}\n", sentence.markdown());
                }
                Block::Table(table) => out += &table.markdown(),
                Block::Gap => {}
            }
        }
        out.truncate(out.trim_end().len());
        out + "\n"
    }
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For a terminal.
    #[default]
    Text,
    /// For programs: all rows, with values as they are.
    Json,
    /// For documents, pull requests and job summaries.
    Markdown,
    /// For programs: the rows, as comma-separated values.
    Csv,
}

/// The answer of a command.
pub trait Answer {
    /// The document for people.
    fn document(&self) -> Document;

    /// The rows for programs.
    fn rows(&self) -> Table;

    /// The rows as JSON, or more than them.
    fn json(&self) -> Value {
        self.rows().json()
    }

    /// The answer in a form.
    fn written(&self, format: Format, terminal: Terminal) -> String {
        match format {
            Format::Text => self.document().text(terminal),
            Format::Markdown => self.document().markdown(),
            Format::Csv => self.rows().csv(),
            Format::Json => format!("{:#}\n", self.json()),
        }
    }
}

/// A table is an answer by itself.
impl Answer for Table {
    fn document(&self) -> Document {
        Document(vec![Block::Table(self.clone())])
    }

    fn rows(&self) -> Table {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_the_same_in_each_form() {
        let mut document = Document::default();
        document.heading(Sentence::from("WARNING 98  ").text("n_plus\u{1b}[31m_one"));
        document.fact("  where:  ", Sentence::default().text("A.B`1").words(", ").text("SELECT 1"));
        document.note("one | two");
        document.heading("Next");
        document.line("A sentence that is longer than a line of thirty.");
        let text = "WARNING 98  n_plus\\u{1b}[31m_one\n  where:  A.B`1, SELECT 1\n  one | two\n\nNext\n\
            A sentence that is longer than a\nline of thirty.\n";
        assert_eq!(document.text(36.into()), text);
        let markdown = "**WARNING 98  `n_plus\\u{1b}[31m_one`**\n\n- where: ``A.B`1``, `SELECT 1`\n- one \\| two\n\n**Next**\n\n\
            A sentence that is longer than a line of thirty.\n";
        assert_eq!(document.markdown(), markdown);
    }
}
