//! Figures with a value for each type, method, counter and so on.

use crate::prelude::*;
use std::collections::HashMap;

use tracequet_dataset::read::Column;

use super::definition::{Definition, Metric, OfFrame, Owner, UNKNOWN};
use super::leaves::Leaves;
use super::roots::SPANS;
use super::seen::Seen;
use super::types::TypeNames;

/// Texts that have figures, and the bytes of all of them, for each reading of a table. Rows of others are left out.
const MOST_TEXTS: usize = 1 << 16;
const MOST_BYTES: usize = 8 << 20;
/// Call sites that are distinguished. Samples at others are left out.
const MOST_SITES: usize = 1 << 20;

/// Values that were seen, for all rows or for each value of something.
#[derive(Debug)]
pub(super) enum Groups {
    One(Seen),
    Texts(Texts),
    Sites(Sites),
}

/// Values that were seen of each text.
#[derive(Debug, Default)]
pub(super) struct Texts {
    joined: bool,
    places: Map<Arc<str>, usize>,
    all: Vec<(Arc<str>, Seen)>,
    bytes: usize,
    last: usize,
    text: String,
    /// Of rows that say the id of a type alone, by process and type.
    by_type: Map<(u64, u64), Seen>,
    is_named_by_type: bool,
}

/// Rows and sum of each call site.
#[derive(Debug, Default)]
pub(super) struct Sites {
    all: Map<u32, (u64, f64)>,
    owner: Owner,
}

impl Texts {
    /// By the values of these columns, or of a name that the type of a row has elsewhere.
    pub(super) fn of(by: &[String], is_named_by_type: bool) -> Texts {
        Texts { joined: by.len() > 1, is_named_by_type, ..Texts::default() }
    }

    /// The values of the text of a row, or of its type; `None` when there are too many.
    pub(super) fn of_row(&mut self, by: &[Column<'_>], ids: Option<[Column<'_>; 2]>, row: usize) -> Option<&mut Seen> {
        if self.joined {
            let mut text = std::mem::take(&mut self.text);
            text.clear();
            for (n, part) in by.iter().filter_map(|column| column.text(row)).enumerate() {
                text.push_str(if n > 0 { "/" } else { "" });
                text.push_str(part);
            }
            let place = self.place(&text);
            self.text = text;
            return self.all.get_mut(place?).map(|(_, seen)| seen);
        }
        let text = by.first().and_then(|column| column.text(row)).unwrap_or_default();
        if let (Some([process, id]), true) = (ids, text.is_empty()) {
            let key = (process.number(row).unwrap_or_default(), id.number(row).unwrap_or_default());
            let is_full = self.by_type.len() >= MOST_TEXTS && !self.by_type.contains_key(&key);
            return (!is_full).then(|| self.by_type.entry(key).or_default());
        }
        let place = self.place(text);
        self.all.get_mut(place?).map(|(_, seen)| seen)
    }

    /// The first of the sources of a definition that has rows.
    fn first_of(&self, definition: &Definition) -> Option<(&str, &Seen)> {
        let of = |source: &String| self.all.get(*self.places.get(source.as_str())?);
        definition.first_of.iter().find_map(of).map(|(source, seen)| (&**source, seen))
    }

    /// Puts what is seen of types that are known by their ids to what is seen of their names.
    fn name(&mut self, types: &TypeNames) {
        for ((process_id, type_id), seen) in std::mem::take(&mut self.by_type) {
            let place = self.place(types.name(process_id, type_id).unwrap_or_default());
            if let Some((_, all)) = place.and_then(|place| self.all.get_mut(place)) {
                all.join(seen);
            }
        }
    }

    fn place(&mut self, text: &str) -> Option<usize> {
        let text = if text.is_empty() { UNKNOWN } else { text };
        // One text is often in one row after the other.
        if self.all.get(self.last).is_some_and(|(known, _)| **known == *text) {
            return Some(self.last);
        }
        if let Some(place) = self.places.get(text) {
            self.last = *place;
            return Some(*place);
        }
        if self.all.len() >= MOST_TEXTS || self.bytes + text.len() > MOST_BYTES {
            return None;
        }
        self.bytes += text.len();
        let text: Arc<str> = text.into();
        self.last = self.all.len();
        self.places.insert(text.clone(), self.last);
        self.all.push((text, Seen::default()));
        Some(self.last)
    }
}

impl Sites {
    pub(super) fn add(&mut self, site: u32, value: f64, process: u64) {
        self.owner.see(process);
        if let Some((rows, sum)) = self.all.get_mut(&site) {
            (*rows, *sum) = (*rows + 1, *sum + value);
        } else if self.all.len() < MOST_SITES {
            self.all.insert(site, (1, value));
        }
    }
}

impl Groups {
    /// Gives types that are known by their ids their names, when all tables were seen.
    pub(super) fn name(&mut self, types: &TypeNames) {
        if let Groups::Texts(texts) = self
            && texts.is_named_by_type
        {
            texts.name(types);
        }
    }

    /// The values of all rows, where they are not distinguished.
    pub(super) fn one(&self) -> Option<&Seen> {
        if let Groups::One(seen) = self { Some(seen) } else { None }
    }

    /// Whether there was any row that a definition is about.
    pub(super) fn has_rows(&self, definition: &Definition) -> bool {
        match self {
            Groups::Texts(texts) if !definition.first_of.is_empty() => texts.first_of(definition).is_some(),
            Groups::One(seen) => seen.rows() > 0,
            Groups::Texts(texts) => !texts.all.is_empty(),
            Groups::Sites(sites) => !sites.all.is_empty(),
        }
    }

    /// The figures of a definition.
    pub(super) fn figures(&self, definition: &Definition, duration_ns: f64) -> Vec<Metric> {
        let figure = |key: Option<&str>, seen: &Seen| {
            let value = seen.figure(definition.take, definition.weight.is_some(), duration_ns)?;
            let worst = definition.worst.as_deref().zip(seen.place());
            let worst = worst.map(|(column, number)| format!("{column} = {number}"));
            Some(Metric { worst, owner: seen.owner, ..Metric::new(definition, key, value, seen.observations) })
        };
        match self {
            Groups::One(seen) => figure(None, seen).into_iter().collect(),
            Groups::Texts(texts) if !definition.first_of.is_empty() => match texts.first_of(definition) {
                Some((source, seen)) => {
                    let source = Some(source.to_string());
                    figure(None, seen).map(|found| Metric { source, ..found }).into_iter().collect()
                }
                None => figure(None, &Seen::default()).into_iter().collect(),
            },
            Groups::Texts(texts) => {
                // Spans that are requests are activities of their own name already.
                let own = texts.all.iter().filter(|(text, _)| **text != *SPANS);
                let all = own.filter_map(|(text, seen)| figure(Some(text), seen)).collect();
                largest(definition, all)
            }
            Groups::Sites(_) => Vec::new(),
        }
    }

    /// The figures of a definition by frames: sums.
    pub(super) fn of_frames(&self, definition: &Definition, leaves: &Leaves, of: OfFrame) -> Vec<Metric> {
        let Groups::Sites(sites) = self else { return Vec::new() };
        let mut by_text: HashMap<&str, (u64, f64)> = HashMap::new();
        // In the order of sites, so that sums of fractions come out the same each time.
        let mut sums: Vec<_> = sites.all.iter().collect();
        sums.sort_unstable_by_key(|(site, _)| **site);
        for (site, (rows, sum)) in sums {
            if let Some(text) = leaves.text(*site, of) {
                let (all_rows, all) = by_text.entry(text).or_default();
                (*all_rows, *all) = (*all_rows + rows, *all + sum);
            }
        }
        let of_all = |metric: Metric| Metric { owner: sites.owner, ..metric };
        let all = by_text.into_iter().map(|(text, (rows, sum))| of_all(Metric::new(definition, Some(text), sum, rows)));
        largest(definition, all.collect())
    }
}

fn largest(definition: &Definition, mut all: Vec<Metric>) -> Vec<Metric> {
    let value = |metric: &Metric| metric.value.unwrap_or_default();
    all.sort_by(|a, b| value(b).total_cmp(&value(a)).then_with(|| a.name.cmp(&b.name)));
    all.truncate(definition.most);
    all
}
