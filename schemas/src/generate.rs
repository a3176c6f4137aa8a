//! Rust from `tables/*.toml`, so that a table is declared in its file alone: the struct of a row, and the builder of
//! its columns.

use std::error::Error;
use std::fmt::Write as _;

use serde::Deserialize;

/// One file. `schemas/README.md` says what the keys mean.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    name: String,
    doc: String,
    order: u32,
    #[serde(default = "yes")]
    is_table: bool,
    #[serde(default, rename = "sorted_by")]
    _sorted_by: Vec<String>,
    #[serde(rename = "column")]
    columns: Vec<Column>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    nullable: bool,
    from: Option<String>,
    holds: Option<String>,
    unit: Option<String>,
    #[serde(rename = "encoding")]
    _encoding: String,
    doc: String,
}

fn yes() -> bool {
    true
}

/// Fails for a shipped file that is wrong, and for a type of column that the generator does not know.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The tables, in the order in which they are shown.
fn tables() -> Result<Vec<Table>> {
    let mut tables = Vec::new();
    for (name, text) in crate::TABLES {
        let table: Table = serde_json::from_str(text).map_err(|e| format!("schemas/tables/{name}.toml: {e}"))?;
        if table.name != *name {
            return Err(format!("schemas/tables/{name}.toml is of {}", table.name).into());
        }
        tables.push(table);
    }
    tables.sort_by(|a, b| (a.order, &a.name).cmp(&(b.order, &b.name)));
    Ok(tables)
}

impl Table {
    /// `gc_pause` is `GcPause` in Rust.
    fn type_name(&self) -> String {
        let words = self.name.split('_').filter_map(|word| word.split_at_checked(1));
        words.map(|(first, rest)| first.to_uppercase() + rest).collect()
    }

    /// The columns that rows carry; the others follow from them.
    fn fields(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.from.is_none())
    }

    /// `<'a>` when rows borrow text.
    fn lifetime(&self) -> Result<&'static str> {
        for column in self.fields() {
            if column.field_type(self)?.contains("'a") {
                return Ok("<'a>");
            }
        }
        Ok("")
    }

    fn column(&self, name: &str) -> Result<&Column> {
        let found = self.fields().find(|column| column.name == name);
        found.ok_or_else(|| format!("table {} has no column {name} to derive one from", self.name).into())
    }
}

impl Column {
    /// Type of the field of a row.
    fn field_type(&self, table: &Table) -> Result<String> {
        let plain = match (self.kind.as_str(), self.holds.as_deref(), self.nullable) {
            ("uint8", None, _) => "u8",
            ("uint16", None, _) => "u16",
            ("uint32", None, _) => "u32",
            ("uint64", None, _) => "u64",
            ("int64", None, _) => "i64",
            ("text", None, _) => "&'a str",
            ("label", None, _) => "&'static str",
            ("float64", None, _) => "f64",
            ("bool", None, _) => "bool",
            ("timestamp", None, _) => "i64",
            ("list<uint64>", None, false) => "&'a [u64]",
            ("label", Some("guid"), true) => return Ok("Guid".into()),
            _ => return Err(self.unknown(table)),
        };
        Ok(if self.nullable { format!("Option<{plain}>") } else { plain.into() })
    }

    /// Type of the builder, in `table/columns.rs` of tracequet-dataset.
    fn builder_type(&self, table: &Table) -> Result<String> {
        let plain = match (self.kind.as_str(), self.holds.as_deref(), self.nullable) {
            ("uint8", None, _) => "U8",
            ("uint16", None, _) => "U16",
            ("uint32", None, _) => "U32",
            ("uint64", None, _) => "U64",
            ("int64", None, _) => "I64",
            ("text", None, _) => "Text",
            ("label", None, _) => "Label",
            ("float64", None, _) => "F64",
            ("bool", None, _) => "Bool",
            ("timestamp", None, _) => "Time",
            ("list<uint64>", None, false) => "U64List",
            ("label", Some("guid"), true) => return Ok("OptGuid".into()),
            _ => return Err(self.unknown(table)),
        };
        Ok(if self.nullable { format!("Opt{plain}") } else { plain.into() })
    }

    /// Type of the reader, in `read/cells.rs` of tracequet-dataset.
    fn cells_type(&self, table: &Table) -> Result<String> {
        let plain = match self.kind.as_str() {
            "uint8" => "super::Numbers<'b, super::UInt8Type>",
            "uint16" => "super::Numbers<'b, super::UInt16Type>",
            "uint32" => "super::Numbers<'b, super::UInt32Type>",
            "uint64" => "super::U64s<'b>",
            "int64" => "super::Numbers<'b, super::Int64Type>",
            "float64" => "super::Numbers<'b, super::Float64Type>",
            "timestamp" => "super::Numbers<'b, super::TimestampMicrosecondType>",
            "bool" => "super::Bools<'b>",
            "text" | "label" => "super::Texts<'b>",
            "list<uint64>" => "super::U64Lists<'b>",
            _ => return Err(self.unknown(table)),
        };
        Ok(if self.nullable { format!("super::Nullable<'b, {plain}>") } else { plain.into() })
    }

    /// The value of the column, by the row `row`.
    fn value(&self, table: &Table) -> Result<String> {
        let Some(from) = &self.from else { return Ok(format!("row.{}", self.name)) };
        let value = match (from.split_once(" - "), self.kind.as_str()) {
            (None, "timestamp") => {
                let from = table.column(from)?;
                match (self.nullable, from.nullable) {
                    (false, false) => format!("utc_ns(clock, row.{})", from.name),
                    (true, true) => format!("row.{}.map(|ns| utc_ns(clock, ns))", from.name),
                    _ => return Err(self.unknown(table)),
                }
            }
            (Some((to, start)), "int64") => {
                let (to, start) = (table.column(to)?, table.column(start)?);
                match (to.nullable, start.nullable) {
                    _ if self.nullable != (to.nullable || start.nullable) => return Err(self.unknown(table)),
                    (false, false) => format!("row.{}.saturating_sub(row.{})", to.name, start.name),
                    (true, false) => format!("row.{}.map(|to| to.saturating_sub(row.{}))", to.name, start.name),
                    (false, true) => format!("row.{}.map(|from| row.{}.saturating_sub(from))", start.name, to.name),
                    (true, true) => return Err(self.unknown(table)),
                }
            }
            _ => return Err(self.unknown(table)),
        };
        Ok(value)
    }

    fn unknown(&self, table: &Table) -> Box<dyn Error> {
        let Column { name, kind, nullable, from, holds, .. } = self;
        format!("table {}, column {name}: generate.rs makes no {kind} with {nullable:?} {from:?} {holds:?}", table.name)
            .into()
    }
}

/// `type` is a word of Rust.
fn identifier(name: &str) -> String {
    if matches!(name, "type" | "match" | "ref" | "move") { format!("r#{name}") } else { name.to_owned() }
}

fn doc(out: &mut String, indent: &str, text: &str) -> Result<()> {
    // Text in brackets is no link to an item of Rust, and `<` begins no tag of HTML.
    let text = text.replace('[', "\\[").replace(" <", " \\<");
    Ok(writeln!(out, "{indent}/// {text}")?)
}

/// A struct per table, and the enum `Fact`: Rust for `tracequet-facts`.
pub fn rows() -> Result<String> {
    let tables = tables()?;
    let mut out = String::new();
    for table in &tables {
        let what = if table.is_table { format!("A row of `{}`. ", table.name) } else { String::new() };
        doc(&mut out, "", &format!("{what}{}", table.doc))?;
        writeln!(out, "#[derive(Clone, Copy, Debug, Default, PartialEq)]")?;
        writeln!(out, "pub struct {}{} {{", table.type_name(), table.lifetime()?)?;
        for column in table.fields() {
            doc(&mut out, "    ", &column.doc)?;
            if let Some(unit) = &column.unit {
                doc(&mut out, "    ", &format!("In {unit}."))?;
            }
            match (column.kind.as_str(), column.holds.as_deref()) {
                ("timestamp", _) => doc(&mut out, "    ", "Nanoseconds since 1970, UTC.")?,
                (_, Some("guid")) => doc(&mut out, "    ", "All zero stands for null.")?,
                _ => {}
            }
            writeln!(out, "    pub {}: {},", identifier(&column.name), column.field_type(table)?)?;
        }
        writeln!(out, "}}\n")?;
    }

    for table in &tables {
        // Columns that say of a row what its event says of itself.
        let time = if table.column("ts_ns").is_ok() { "ts_ns" } else { "start_ts_ns" };
        let of_event = [(time, "i64"), ("process_id", "u64"), ("thread_id", "u64"), ("callsite_id", "u32")];
        let mut fields = String::new();
        for (name, kind) in of_event {
            if let Ok(column) = table.column(name)
                && column.field_type(table)? == kind
            {
                write!(fields, "{name}: place.{}, ", name.trim_start_matches("start_"))?;
            }
        }
        if !fields.is_empty() {
            let (name, lifetime) = (table.type_name(), table.lifetime()?.replace("'a", "'_"));
            writeln!(
                out,
                "impl OfEvent for {name}{lifetime} {{\n    #[inline]\n    fn of_event(place: Place) -> Self {{"
            )?;
            writeln!(out, "        {name} {{ {fields}..{name}::default() }}\n    }}\n}}\n")?;
        }
    }

    writeln!(out, "/// What a tracker found: rows of one table. They are borrowed for the call.")?;
    writeln!(out, "#[derive(Clone, Copy, Debug)]\npub enum Fact<'a> {{")?;
    for table in tables.iter().filter(|table| table.is_table) {
        doc(&mut out, "    ", &format!("Rows of `{}`.", table.name))?;
        writeln!(out, "    {0}(&'a [{0}{1}]),", table.type_name(), table.lifetime()?)?;
    }
    writeln!(out, "}}\n\nimpl Fact<'_> {{")?;
    writeln!(out, "    /// How many rows there are.\n    pub fn rows(&self) -> usize {{\n        match self {{")?;
    for table in tables.iter().filter(|table| table.is_table) {
        writeln!(out, "            Fact::{}(rows) => rows.len(),", table.type_name())?;
    }
    writeln!(out, "        }}\n    }}\n}}\n")?;
    for table in tables.iter().filter(|table| table.is_table) {
        let (name, lifetime) = (table.type_name(), table.lifetime()?);
        writeln!(
            out,
            "impl<'a> From<&'a {name}{lifetime}> for Fact<'a> {{
    #[inline]
    fn from(row: &'a {name}{lifetime}) -> Fact<'a> {{
        Fact::{name}(std::slice::from_ref(row))
    }}
}}

impl<'a> From<&'a [{name}{lifetime}]> for Fact<'a> {{
    #[inline]
    fn from(rows: &'a [{name}{lifetime}]) -> Fact<'a> {{
        Fact::{name}(rows)
    }}
}}
"
        )?;
    }
    Ok(out)
}

/// A module per table with a type per column, by which rows are read: Rust for `tracequet-dataset`.
pub fn columns() -> Result<String> {
    let mut out = String::new();
    for table in tables()? {
        doc(&mut out, "", &format!("Columns of `{}`. {}", table.name, table.doc))?;
        writeln!(out, "#[allow(non_camel_case_types, reason = \"a type stands for a column and has its name\")]")?;
        writeln!(out, "pub mod {} {{", identifier(&table.name))?;
        writeln!(out, "    /// Name of the table.\n    pub const TABLE: &str = {:?};\n", table.name)?;
        for column in &table.columns {
            doc(&mut out, "    ", &column.doc)?;
            if let Some(unit) = &column.unit {
                doc(&mut out, "    ", &format!("In {unit}."))?;
            }
            let name = identifier(&column.name);
            writeln!(out, "    #[derive(Clone, Copy, Debug)]\n    pub struct {name};\n")?;
            writeln!(out, "    impl super::TypedColumn for {name} {{")?;
            writeln!(out, "        const NAME: &'static str = {:?};", column.name)?;
            writeln!(out, "        type Cells<'b> = {};\n    }}\n", column.cells_type(&table)?)?;
        }
        writeln!(out, "}}\n")?;
    }
    Ok(out)
}

/// A builder per table, and the set of all: Rust for `tracequet-dataset`.
pub fn builders() -> Result<String> {
    let tables = tables()?;
    let mut out = String::new();
    for table in &tables {
        let (name, row) = (table.type_name(), if table.lifetime()?.is_empty() { "" } else { "<'a>" });
        writeln!(out, "/// Collects rows of `{}`.", table.name)?;
        writeln!(out, "#[derive(Debug, Default)]\npub struct {name}Builder {{\n    rows: usize,")?;
        for column in &table.columns {
            writeln!(out, "    {}: {},", identifier(&column.name), column.builder_type(table)?)?;
        }
        writeln!(out, "}}\n\nimpl TableBuilder for {name}Builder {{")?;
        writeln!(out, "    const NAME: &'static str = {:?};\n    type Row<'a> = {name}{row};\n", table.name)?;
        writeln!(out, "    fn rows(&self) -> usize {{\n        self.rows\n    }}\n")?;
        let held = table.columns.iter().filter(|column| matches!(column.kind.as_str(), "text" | "label"));
        let held: Vec<String> = held.map(|c| format!("self.{}.text_bytes()", identifier(&c.name))).collect();
        let held = if held.is_empty() { "0".to_owned() } else { held.join(" + ") };
        writeln!(out, "    #[inline]\n    fn text_bytes(&self) -> usize {{\n        {held}\n    }}\n")?;
        let clock = if table.columns.iter().any(|c| c.kind == "timestamp" && c.from.is_some()) { "" } else { "_" };
        writeln!(out, "    #[inline]\n    fn extend(&mut self, rows: &[Self::Row<'_>], {clock}clock: &Clock) {{")?;
        writeln!(out, "        self.rows += rows.len();")?;
        for column in &table.columns {
            let (field, value) = (identifier(&column.name), column.value(table)?);
            writeln!(out, "        self.{field}.extend(rows.iter().map(|row| {value}));")?;
        }
        writeln!(out, "    }}\n\n    fn finish(&mut self) -> Vec<ArrayRef> {{\n        self.rows = 0;\n        vec![")?;
        for column in &table.columns {
            writeln!(out, "            self.{}.finish(),", identifier(&column.name))?;
        }
        writeln!(out, "        ]\n    }}\n}}\n")?;
    }

    writeln!(out, "/// The builders of all tables that facts go into.\npub(super) struct FactTables {{")?;
    let list =
        || tables.iter().filter(|table| table.is_table).map(|table| (identifier(&table.name), table.type_name()));
    for (field, name) in list() {
        writeln!(out, "    {field}: Slot<{name}Builder>,")?;
    }
    writeln!(out, "}}\n\nimpl FactTables {{")?;
    writeln!(out, "    /// Declares the tables that are wanted.")?;
    writeln!(out, "    pub(super) fn new(batches: &mut Batches, selection: &Selection) -> Result<FactTables> {{")?;
    writeln!(out, "        Ok(FactTables {{")?;
    for (field, _) in list() {
        writeln!(out, "            {field}: Slot::new(batches, selection)?,")?;
    }
    writeln!(out, "        }})\n    }}\n\n    /// Adds the rows of a fact to their table.\n    #[inline]")?;
    writeln!(out, "    pub(super) fn add(&mut self, fact: Fact<'_>, clock: &Clock, batches: &mut Batches) {{")?;
    writeln!(out, "        match fact {{")?;
    for (field, name) in list() {
        writeln!(out, "            Fact::{name}(rows) => self.{field}.add(rows, clock, batches),")?;
    }
    writeln!(out, "        }}\n        if let Some(least) = batches.long_text() {{")?;
    writeln!(out, "            self.flush_long(least, batches);\n        }}")?;
    writeln!(out, "    }}\n\n    /// Hands on what is left.")?;
    writeln!(out, "    pub(super) fn flush(&mut self, batches: &mut Batches) {{")?;
    for (field, _) in list() {
        writeln!(out, "        self.{field}.flush(batches);")?;
    }
    writeln!(out, "    }}\n\n    /// Hands on the tables that hold at least this many bytes of text.\n    #[cold]")?;
    writeln!(out, "    pub(super) fn flush_long(&mut self, least: usize, batches: &mut Batches) {{")?;
    for (field, _) in list() {
        writeln!(out, "        self.{field}.flush_long(least, batches);")?;
    }
    writeln!(out, "    }}\n}}")?;
    Ok(out)
}
