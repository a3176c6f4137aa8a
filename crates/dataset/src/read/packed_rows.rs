//! Where the rows of recordings lie in the files of a pack.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::format::{OfPack, Pack, PackedFile};

/// Of a pack, what is needed to find rows.
#[derive(Clone, Debug)]
pub(super) struct PackedRows {
    name: String,
    tables: HashMap<String, Rows>,
    /// Of each recording, the tables that it has.
    sets: Vec<Arc<[u32]>>,
}

#[derive(Clone, Debug)]
struct Rows {
    place: u32,
    files: Vec<PackedFile>,
    /// The recordings with rows, by their places in the pack, and where the rows of each end.
    members: Vec<u32>,
    ends: Vec<u64>,
}

impl PackedRows {
    pub(super) fn of<R: OfPack>(pack: &Pack<R>) -> PackedRows {
        let mut tables: Vec<Rows> = Vec::with_capacity(pack.tables.len());
        for (place, table) in (0u32..).zip(&pack.tables) {
            tables.push(Rows { place, files: table.files.clone(), members: Vec::new(), ends: Vec::new() });
        }
        for (number, member) in (0u32..).zip(&pack.members) {
            for (place, rows) in &member.rows {
                let table = usize::try_from(*place).ok().and_then(|place| tables.get_mut(place));
                if let Some(table) = table {
                    let end = table.ends.last().copied().unwrap_or_default().saturating_add(*rows);
                    table.members.push(number);
                    table.ends.push(end);
                }
            }
        }
        let names = pack.tables.iter().map(|table| table.name.clone());
        PackedRows {
            name: pack.name.clone(),
            tables: names.zip(tables).collect(),
            sets: pack.members.iter().map(|member| member.tables.clone()).collect(),
        }
    }

    /// The name of the pack.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The files of a table.
    pub(super) fn files(&self, table: &str) -> &[PackedFile] {
        self.tables.get(table).map_or(&[], |table| &table.files)
    }

    /// The rows of the recording at a place in the pack, among all of a table: none if it has none. Nothing if it does
    /// not have the table.
    pub(super) fn rows(&self, member: u32, table: &str) -> Option<Range<u64>> {
        let table = self.tables.get(table)?;
        let set = self.sets.get(usize::try_from(member).ok()?)?;
        set.binary_search(&table.place).ok()?;
        let Ok(found) = table.members.binary_search(&member) else { return Some(0..0) };
        let begin = found.checked_sub(1).and_then(|before| table.ends.get(before)).copied().unwrap_or_default();
        Some(begin..*table.ends.get(found)?)
    }
}
