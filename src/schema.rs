//! `tracequet schema`: the tables, the meaning of each column, and the layouts of event payloads.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Serialize;
use tracequet::dataset::table::schema::{self, ColumnSchema, TableSchema};
use tracequet::trace::event::catalog::{self, EventLayout, Provider, ValueMap};
use tracequet::trace::event::layout::map_of;

use super::args::{SchemaArgs, SchemaFormat};
use super::output::{Outcome, print_result};
use super::text::{Columns, counted};

/// Prints tables or events.
pub fn run(args: &SchemaArgs) -> anyhow::Result<Outcome> {
    let text = match &args.events {
        Some(provider) if provider.is_empty() => providers(args.format)?,
        Some(provider) => events(find_provider(provider)?, args.format)?,
        None => of_tables(chosen(schema::all()?, args.table.as_deref())?, args.format)?,
    };
    Outcome::Whole.printed(print_result(&text))
}

/// The table of a name, or all.
fn chosen<'t>(tables: &'t [TableSchema], name: Option<&str>) -> anyhow::Result<&'t [TableSchema]> {
    let Some(name) = name else { return Ok(tables) };
    let names: Vec<&str> = tables.iter().map(|t| t.name.as_str()).collect();
    let found = tables.iter().find(|t| t.name == name);
    found.map(std::slice::from_ref).with_context(|| format!("no table '{name}', expected one of: {}", names.join(", ")))
}

fn pretty(value: &impl Serialize) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(text)
}

fn of_tables(tables: &[TableSchema], format: SchemaFormat) -> anyhow::Result<String> {
    let mut out = String::new();
    match format {
        SchemaFormat::Json => return pretty(&tables),
        SchemaFormat::Text => tables.iter().for_each(|table| table_text(&mut out, table)),
        SchemaFormat::Markdown => tables.iter().for_each(|table| table_markdown(&mut out, table)),
    }
    Ok(out)
}

fn table_text(out: &mut String, table: &TableSchema) {
    separate(out);
    out.push_str(&format!("{}: {}\n", table.name, table.doc));
    if !table.sorted_by.is_empty() {
        out.push_str(&format!("  sorted by {}\n", table.sorted_by.join(", ")));
    }
    let mut columns = Columns::new(&["column", "type", "unit", "meaning"]);
    for c in &table.columns {
        columns.row([c.name.clone(), type_text(c), c.unit.clone().unwrap_or_default(), c.doc.clone()]);
    }
    columns.print(out);
}

fn table_markdown(out: &mut String, table: &TableSchema) {
    separate(out);
    out.push_str(&format!("## {}\n\n{}\n", table.name, table.doc));
    if !table.sorted_by.is_empty() {
        out.push_str(&format!("\nSorted by `{}`.\n", table.sorted_by.join("`, `")));
    }
    out.push_str("\n| column | type | unit | meaning |\n|---|---|---|---|\n");
    for c in &table.columns {
        let unit = c.unit.as_deref().unwrap_or_default();
        out.push_str(&format!("| `{}` | {} | {unit} | {} |\n", c.name, type_text(c), cell(&c.doc)));
    }
}

fn type_text(column: &ColumnSchema) -> String {
    format!("{}{}", column.kind, if column.nullable { ", may be null" } else { "" })
}

/// Text that stays inside a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// Sections are separated by a line.
fn separate(out: &mut String) {
    if !out.is_empty() {
        out.push('\n');
    }
}

fn all_providers() -> anyhow::Result<Vec<&'static Provider>> {
    let load = |name| match catalog::provider(name) {
        Some(Ok(provider)) => Ok(provider),
        Some(Err(why)) => Err(anyhow::anyhow!("internal: {why}")),
        None => Err(anyhow::anyhow!("internal: no catalogue of {name}")),
    };
    catalog::provider_names().map(load).collect()
}

fn find_provider(name: &str) -> anyhow::Result<&'static Provider> {
    let found = all_providers()?.into_iter().find(|p| p.provider.eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let names: Vec<&str> = catalog::provider_names().collect();
        anyhow::anyhow!("no provider '{name}' in the catalogue, expected one of: {}", names.join(", "))
    })
}

#[derive(Serialize)]
struct ProviderView<'a> {
    provider: &'a str,
    guid: &'a str,
    layouts: usize,
}

fn providers(format: SchemaFormat) -> anyhow::Result<String> {
    let all = all_providers()?;
    let view =
        |p: &&'static Provider| ProviderView { provider: &p.provider, guid: &p.guid, layouts: p.layouts().len() };
    let views: Vec<ProviderView> = all.iter().map(view).collect();
    let mut out = String::new();
    match format {
        SchemaFormat::Json => return pretty(&views),
        SchemaFormat::Text => {
            let mut columns = Columns::new(&["provider", "guid", ">layouts"]);
            for v in &views {
                columns.row([v.provider.to_owned(), v.guid.to_owned(), v.layouts.to_string()]);
            }
            columns.print(&mut out);
        }
        SchemaFormat::Markdown => {
            out.push_str("| provider | guid | layouts |\n|---|---|---:|\n");
            for v in &views {
                out.push_str(&format!("| {} | `{}` | {} |\n", v.provider, v.guid, v.layouts));
            }
        }
    }
    Ok(out)
}

#[derive(Serialize)]
struct EventsView<'a> {
    provider: &'a str,
    guid: &'a str,
    /// Bits as text: JSON numbers of most readers have 53 bits.
    keywords: BTreeMap<&'a str, String>,
    /// Names of the values of fields, by the name that fields have behind them.
    maps: BTreeMap<&'a str, MapView<'a>>,
    events: Vec<EventView<'a>>,
}

#[derive(Serialize)]
struct MapView<'a> {
    kind: &'a str,
    values: Vec<ValueView<'a>>,
}

#[derive(Serialize)]
struct ValueView<'a> {
    value: u64,
    text: &'a str,
}

fn maps(provider: &Provider) -> BTreeMap<&str, MapView<'_>> {
    provider.maps.iter().map(|(name, map)| (name.as_str(), map_view(map))).collect()
}

fn map_view(map: &ValueMap) -> MapView<'_> {
    let values = map.entries().map(|(value, text)| ValueView { value, text }).collect();
    MapView { kind: &map.kind, values }
}

#[derive(Serialize)]
struct EventView<'a> {
    id: u32,
    version: u32,
    name: &'a str,
    opcode: u8,
    level: u32,
    keywords: String,
    note: Option<&'a str>,
    fields: Vec<FieldView<'a>>,
}

#[derive(Serialize)]
struct FieldView<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    type_name: &'a str,
    map: Option<&'a str>,
}

fn field(text: &str) -> FieldView<'_> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let map = map_of(text);
    let type_name = match map {
        Some(_) => rest.rsplit_once('(').map_or(rest, |(before, _)| before),
        None => rest,
    };
    FieldView { name: name.trim(), type_name: type_name.trim(), map }
}

fn event(layout: &EventLayout) -> EventView<'_> {
    EventView {
        id: layout.id,
        version: layout.version,
        name: &layout.name,
        opcode: layout.opcode,
        level: layout.level,
        keywords: format!("{:#x}", layout.keywords),
        note: layout.note.as_deref(),
        fields: layout.fields.iter().map(|f| field(f)).collect(),
    }
}

fn events(provider: &Provider, format: SchemaFormat) -> anyhow::Result<String> {
    let views = provider.layouts().iter().map(event);
    let mut out = format!(
        "{} {{{}}}: {}\n",
        provider.provider,
        provider.guid,
        counted(provider.layouts().len() as u64, "layout", "layouts")
    );
    match format {
        SchemaFormat::Json => {
            let keywords = provider.keywords.iter().map(|(name, bits)| (name.as_str(), format!("{bits:#x}")));
            return pretty(&EventsView {
                provider: &provider.provider,
                guid: &provider.guid,
                keywords: keywords.collect(),
                maps: maps(provider),
                events: views.collect(),
            });
        }
        SchemaFormat::Text => {
            views.for_each(|view| event_text(&mut out, &view));
            maps(provider).iter().for_each(|(name, map)| map_text(&mut out, name, map));
        }
        SchemaFormat::Markdown => {
            out.insert_str(0, "# ");
            views.for_each(|view| event_markdown(&mut out, &view));
            maps(provider).iter().for_each(|(name, map)| map_markdown(&mut out, name, map));
        }
    }
    Ok(out)
}

/// A value, or the bit of a flag.
fn value_text(map: &MapView<'_>, value: u64) -> String {
    if map.kind == "bits" { format!("{value:#x}") } else { value.to_string() }
}

fn map_text(out: &mut String, name: &str, map: &MapView<'_>) {
    out.push_str(&format!("\n{name}: {}\n", map.kind));
    let width = map.values.iter().map(|v| value_text(map, v.value).len()).max().unwrap_or(0);
    for v in &map.values {
        out.push_str(&format!("  {:<width$}  {}\n", value_text(map, v.value), v.text));
    }
}

fn map_markdown(out: &mut String, name: &str, map: &MapView<'_>) {
    let of = if map.kind == "bits" { "bit" } else { "value" };
    out.push_str(&format!("\n## {name}\n\n| {of} | name |\n|---:|---|\n"));
    for v in &map.values {
        out.push_str(&format!("| {} | {} |\n", value_text(map, v.value), cell(v.text)));
    }
}

fn event_text(out: &mut String, view: &EventView<'_>) {
    let EventView { id, version, name, level, keywords, .. } = view;
    out.push_str(&format!("\n{id} {name} version {version}, level {level}, keywords {keywords}\n"));
    if let Some(note) = view.note {
        out.push_str(&format!("  {note}\n"));
    }
    let width = view.fields.iter().map(|f| f.name.len()).max().unwrap_or(0);
    for f in &view.fields {
        let map = f.map.map_or_else(String::new, |m| format!(" ({m})"));
        out.push_str(&format!("  {:<width$}  {}{map}\n", f.name, f.type_name));
    }
}

fn event_markdown(out: &mut String, view: &EventView<'_>) {
    out.push_str(&format!("\n## {} {} version {}\n\n", view.id, view.name, view.version));
    if let Some(note) = view.note {
        out.push_str(&format!("{note}\n\n"));
    }
    if view.fields.is_empty() {
        return out.push_str("No fields.\n");
    }
    out.push_str("| field | type | values |\n|---|---|---|\n");
    for f in &view.fields {
        out.push_str(&format!("| `{}` | `{}` | {} |\n", f.name, f.type_name, f.map.unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracequet::dataset::table_spec::Encoding;

    #[test]
    fn tables_print_in_every_format() {
        let column = |name: &str, unit: Option<&str>| ColumnSchema {
            name: name.into(),
            kind: "uint64".into(),
            unit: unit.map(str::to_owned),
            nullable: unit.is_some(),
            doc: "a | b".into(),
            encoding: Encoding::Plain,
        };
        let columns = vec![column("gc_id", None), column("duration_ns", Some("ns"))];
        let table = TableSchema {
            name: "gc".into(),
            doc: "One collection.".into(),
            order: 0,
            columns,
            sorted_by: vec!["gc_id".into()],
        };
        let text = of_tables(std::slice::from_ref(&table), SchemaFormat::Text).unwrap();
        assert!(text.contains("  duration_ns  uint64, may be null  ns    a | b\n"), "{text}");
        let markdown = of_tables(std::slice::from_ref(&table), SchemaFormat::Markdown).unwrap();
        assert!(markdown.contains("| `gc_id` | uint64 |  | a \\| b |\n"), "{markdown}");
        let json = of_tables(&[table], SchemaFormat::Json).unwrap();
        assert!(serde_json::from_str::<serde_json::Value>(&json).unwrap()[0]["columns"][1]["nullable"] == true);
        assert!(chosen(&[], Some("nothing")).is_err());
    }

    #[test]
    fn fields_fall_into_name_type_and_map() {
        let f = field("Reason: u32 (GCReasonMap)");
        assert_eq!((f.name, f.type_name, f.map), ("Reason", "u32", Some("GCReasonMap")));
        let f = field("Values: { A: u64, B: u16 }[Count]");
        assert_eq!((f.name, f.type_name, f.map), ("Values", "{ A: u64, B: u16 }[Count]", None));
    }
}
