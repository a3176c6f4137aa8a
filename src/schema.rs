//! `tracequet schema`: the tables, the meaning of each column, and the layouts of event payloads.

use std::collections::BTreeMap;

use anyhow::Context;
use serde_json::{Value, json};
use tracequet::analyze::present::units::counted;
use tracequet::dataset::table::schema::{self, ColumnSchema, TableSchema};
use tracequet::dataset::table::views::{self, View};
use tracequet::trace::event::catalog::{self, EventLayout, Provider, ValueMap};
use tracequet::trace::event::layout::map_of;

use super::args::SchemaArgs;
use super::prelude::*;

/// Prints tables or events.
pub fn run(args: &SchemaArgs) -> anyhow::Result<Outcome> {
    match &args.events {
        Some(provider) if provider.is_empty() => args.format.print(&providers()?, Outcome::Whole),
        Some(provider) => args.format.print(&Events(find_provider(provider)?), Outcome::Whole),
        None => match args.table.as_deref().and_then(views::view) {
            Some(view) => args.format.print(&Asked(view), Outcome::Whole),
            None => args.format.print(&Tables(chosen(schema::all()?, args.table.as_deref())?), Outcome::Whole),
        },
    }
}

/// The table of a name, or all.
fn chosen<'t>(tables: &'t [TableSchema], name: Option<&str>) -> anyhow::Result<&'t [TableSchema]> {
    let Some(name) = name else { return Ok(tables) };
    let names: Vec<&str> = tables.iter().map(|t| t.name.as_str()).collect();
    let found = tables.iter().find(|t| t.name == name);
    found.map(std::slice::from_ref).with_context(|| format!("no table '{name}', expected one of: {}", names.join(", ")))
}

/// Tables with their columns.
struct Tables<'t>(&'t [TableSchema]);

impl Answer for Tables<'_> {
    fn document(&self) -> Document {
        let mut out = Document::default();
        for table in self.0 {
            out.part(table.name.as_str());
            out.line(table.doc.replace('\n', " "));
            if let Some((first, more)) = table.sorted_by.split_first() {
                let sorted = Sentence::from("Sorted by ").text(first);
                let sorted = more.iter().fold(sorted, |sorted, column| sorted.words(", ").text(column));
                out.line(sorted.words("."));
            }
            out.table(columns(std::slice::from_ref(table)));
        }
        out
    }

    fn rows(&self) -> Table {
        columns(self.0)
    }

    /// An array of tables.
    fn json(&self) -> Value {
        serde_json::to_value(self.0).unwrap_or_default()
    }
}

/// A view or macro of `views.sql`.
struct Asked(View);

impl Answer for Asked {
    fn document(&self) -> Document {
        let View { name, doc, needs, sql } = &self.0;
        let mut out = Document::default();
        out.part(*name);
        out.line(doc.clone());
        out.line(format!("Made of {}.", needs.join(", ")));
        out.gap();
        sql.lines().for_each(|line| out.line(line));
        out
    }

    fn rows(&self) -> Table {
        let View { name, doc, needs, sql } = &self.0;
        let heads = ["name", "doc", "needs", "sql"].map(|key| words(key, "").key(key));
        let mut table = Table::new("views", &heads);
        table.row([Cell::text(name), Cell::words(doc.clone()), Cell::words(needs.join(", ")), Cell::text(sql)]);
        table
    }

    fn json(&self) -> Value {
        serde_json::to_value(&self.0).unwrap_or_default()
    }
}

/// The columns of tables.
fn columns(tables: &[TableSchema]) -> Table {
    let columns = tables.iter().flat_map(|table| table.columns.iter().map(move |column| (table, column)));
    table!("columns", columns, |(table, c)| {
        Column::raw("table") => Cell::text(&table.name),
        words("column", "").key("column") => Cell::text(&c.name),
        words("type", "").key("type") => Cell::words(type_text(c)),
        words("unit", "").key("unit") => c.unit.clone().map_or(Cell::Missing, Cell::words),
        words("meaning", "").key("doc") => Cell::words(c.doc.replace('\n', " ")),
    })
}

fn type_text(column: &ColumnSchema) -> String {
    format!("{}{}", column.kind, if column.nullable { ", may be null" } else { "" })
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

fn providers() -> anyhow::Result<Table> {
    let table = table!("providers", all_providers()?, |p| {
        words("provider", "").key("provider") => Cell::words(p.provider.as_str()),
        words("guid", "").key("guid") => Cell::text(&p.guid),
        numbers("layouts", "").key("layouts") => Cell::count(p.events.len() as u64),
    });
    Ok(table)
}

/// The events of a provider, and the names of the values of their fields.
struct Events(&'static Provider);

impl Answer for Events {
    fn document(&self) -> Document {
        let Events(provider) = self;
        let layouts = counted(provider.events.len() as u64, "layout", "layouts");
        let mut out = Document::default();
        out.heading(format!("{} {{{}}}: {layouts}", provider.provider, provider.guid));
        for EventLayout { id, version, name, level, keywords, note, fields, .. } in &provider.events {
            out.part(format!("{id} {name} version {version}"));
            out.line(format!("Level {level}, keywords {keywords:#x}."));
            note.iter().for_each(|note| out.line(note.as_str()));
            if fields.is_empty() { out.line("No fields.") } else { out.table(fields_of(fields)) }
        }
        for (name, map) in maps(provider) {
            out.part(name);
            let (head, unit) = if map.kind == "bits" { ("bit", Unit::Address) } else { ("value", Unit::Id) };
            let mut table = Table::new("values", &[numbers(head, ""), words("name", "")]);
            map.entries().for_each(|(value, text)| table.row([Cell::number(Some(value), unit), Cell::words(text)]));
            out.table(table);
        }
        out
    }

    fn rows(&self) -> Table {
        let id = |number: u32| Cell::number(Some(number), Unit::Id);
        table!("events", &self.0.events, |layout| {
            Column::raw("id") => id(layout.id),
            Column::raw("version") => id(layout.version),
            Column::raw("name") => Cell::text(&layout.name),
            Column::raw("opcode") => id(layout.opcode.into()),
            Column::raw("level") => id(layout.level),
            // As text: JSON numbers of most readers have 53 bits.
            Column::raw("keywords") => Cell::words(format!("{:#x}", layout.keywords)),
            Column::raw("note") => Cell::optional(layout.note.as_deref()),
            Column::raw("fields") => Cell::text(&layout.fields.join("; ")),
        })
    }

    fn json(&self) -> Value {
        let Events(provider) = self;
        let mut events = self.rows().json();
        for (event, layout) in events.as_array_mut().into_iter().flatten().zip(&provider.events) {
            if let Some(event) = event.as_object_mut() {
                event.insert("fields".into(), fields_of(&layout.fields).json());
            }
        }
        let keywords: BTreeMap<&str, String> =
            provider.keywords.iter().map(|(name, bits)| (name.as_str(), format!("{bits:#x}"))).collect();
        let map = |(name, map): (&'static str, &'static ValueMap)| {
            let values: Vec<Value> =
                map.entries().map(|(value, text)| json!({ "value": value, "text": text })).collect();
            (name, json!({ "kind": map.kind, "values": values }))
        };
        let maps: BTreeMap<&str, Value> = maps(provider).into_iter().map(map).collect();
        json!({
            "provider": provider.provider, "guid": provider.guid, "keywords": keywords, "maps": maps, "events": events,
        })
    }
}

/// Names of the values of fields, by the name that fields have behind them.
fn maps(provider: &'static Provider) -> BTreeMap<&'static str, &'static ValueMap> {
    provider.maps.iter().map(|(name, map)| (name.as_str(), map)).collect()
}

/// Name, type and map of fields.
fn fields_of(fields: &[String]) -> Table {
    table!("fields", fields, |text| {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let map = map_of(text);
        let type_name = map.and_then(|_| rest.rsplit_once('(')).map_or(rest, |(before, _)| before);
        let map = map.map_or(Cell::Missing, |map| Cell::words(map.to_owned()));
    } {
        words("field", "").key("name") => Cell::text(name.trim()),
        words("type", "").key("type") => Cell::text(type_name.trim()),
        words("values", "").key("map") => map,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_fall_into_name_type_and_map() {
        let fields = ["Reason: u32 (GCReasonMap)", "Values: { A: u64, B: u16 }[Count]"].map(str::to_owned);
        let expected = json!([
            {"name": "Reason", "type": "u32", "map": "GCReasonMap"},
            {"name": "Values", "type": "{ A: u64, B: u16 }[Count]", "map": null},
        ]);
        assert_eq!(fields_of(&fields).json(), expected);
        assert!(chosen(&[], Some("nothing")).is_err());
    }
}
