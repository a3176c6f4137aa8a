//! Selects the tables of a request.

use crate::error::{Error, Named, Result};
use tracequet_trace::error::nearest;

/// A choice of tables; empty means all.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    names: Vec<String>,
    /// Tables that are made as well, for others to be made of them.
    needed: Vec<&'static str>,
}

/// The name of a group of tables, for fleets: what rules, comparisons and lists of findings need, and what makes runs
/// comparable.
pub const FIGURES: &str = "figures";
/// The tables of that group.
pub const TABLES_OF_FIGURES: [&str; 10] = [
    "trace", "trace_label", "diagnostic", "metric", "finding", "process", "gc", "gc_pause", "event_type",
    "session_provider",
];

/// Names of tables, with those of a group in its place. Each stands once.
pub fn without_groups(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        let group = TABLES_OF_FIGURES.map(str::to_owned);
        let of_name = if name == FIGURES { group.to_vec() } else { vec![name] };
        for one in of_name {
            if !all.contains(&one) {
                all.push(one);
            }
        }
    }
    all
}

impl Selection {
    /// Checks the names: tables, `event`, `event/<provider>` or `event/<provider>/<event>`.
    pub fn new(names: &[String]) -> Result<Selection> {
        let known: Vec<&str> = super::schema::all()?.iter().map(|t| t.name.as_str()).collect();
        for name in names {
            let is_event = name == "event" || name.starts_with("event/");
            if !is_event && (!known.contains(&name.as_str()) || name == super::schema::EVENT_HEADER) {
                let tables: Vec<_> = known.iter().filter(|n| **n != super::schema::EVENT_HEADER).copied().collect();
                let list = tables.join(", ");
                let nearest = nearest(name, tables.iter().copied())
                    .map_or(String::new(), |near| format!("did you mean {near}? "));
                let message = format!("no table '{name}'; {nearest}there are {list}, event, event/<provider>");
                return Err(Error::NotFound { what: Named::Table, message });
            }
        }
        Ok(Selection { names: names.to_vec(), needed: Vec::new() })
    }

    /// The tables that are always there, and no others.
    pub fn least() -> Selection {
        Selection { names: vec!["trace".to_owned()], needed: Vec::new() }
    }

    /// The selection with tables that others are made of. They are made, and not [asked for](Selection::asks_for).
    pub fn with_needed(&self, tables: Vec<&'static str>) -> Selection {
        Selection { names: self.names.clone(), needed: tables }
    }

    /// Whether a table has to be made.
    pub fn wants(&self, table: &str) -> bool {
        self.asks_for(table) || self.needed.contains(&table)
    }

    /// Whether a table is wanted. `trace`, `trace_label` and `diagnostic` always are: they say what it is, and what was
    /// lost.
    pub fn asks_for(&self, table: &str) -> bool {
        self.names.is_empty()
            || matches!(table, "trace" | "trace_label" | "diagnostic")
            || self.names.iter().any(|n| n == table)
    }

    /// Whether the payload table of an event is wanted.
    pub fn wants_event(&self, provider: &str, event: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| is_of_event(name, provider, event))
    }

    /// The names of payload tables that were asked for: `event`, `event/<provider>`, `event/<provider>/<event>`.
    pub fn events(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str).filter(|name| *name == "event" || name.starts_with("event/"))
    }

    /// Whether any payload table is wanted.
    pub fn wants_events(&self) -> bool {
        self.names.is_empty() || self.names.iter().any(|n| n == "event" || n.starts_with("event/"))
    }
}

/// Whether a name of payload tables stands for that of an event, in whatever case.
pub fn is_of_event(name: &str, provider: &str, event: &str) -> bool {
    let mut parts = name.splitn(3, '/');
    parts.next() == Some("event")
        && parts.next().is_none_or(|asked| asked.eq_ignore_ascii_case(provider))
        && parts.next().is_none_or(|asked| asked.eq_ignore_ascii_case(event))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_stands_for_its_tables() {
        let names = without_groups(["gc", FIGURES, "allocation"].map(str::to_owned));
        assert_eq!(names.len(), TABLES_OF_FIGURES.len() + 1, "gc stands once");
        let selection = Selection::new(&names).unwrap();
        assert!(TABLES_OF_FIGURES.iter().all(|table| selection.asks_for(table)) && selection.asks_for("allocation"));
        assert!(!selection.asks_for("method") && !selection.wants_events());
    }

    #[test]
    fn names_select_tables_providers_and_events() {
        let selection = |names: &[&str]| Selection::new(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        assert!(selection(&["nonsense"]).is_err());
        assert!(selection(&["event_header"]).is_err());
        let all = selection(&[]).unwrap();
        assert!(all.wants("gc") && all.wants_event("P", "E"));
        let some = selection(&["gc", "event_type", "event/P"]).unwrap();
        assert!(some.wants("gc") && some.wants("diagnostic") && !some.wants("gc_root"));
        assert!(some.wants_event("P", "E") && !some.wants_event("Q", "E"));
        let needed = some.with_needed(vec!["wait"]);
        assert!(needed.wants("wait") && !needed.asks_for("wait") && needed.asks_for("gc") && !some.wants("wait"));
        let one = selection(&["event/P/E"]).unwrap();
        assert!(one.wants_event("P", "E") && !one.wants_event("P", "F"));
        assert!(selection(&["event/p/e"]).unwrap().wants_event("P", "E"));
        let near = selection(&["gc_puase"]).unwrap_err().to_string();
        assert!(near.contains("did you mean gc_pause?"), "{near}");
        assert!(!selection(&["event_type"]).unwrap().wants_events());
    }
}
