//! Names of types and methods, by the ids that the tables of the heap have.

use std::collections::HashMap;
use std::sync::Arc;

use super::read::number;
use crate::dataset::{Column, Recording};
use crate::error::Result;

/// Types that are told apart by their names, and the ids of each.
#[derive(Default)]
pub(super) struct TypeIds {
    places: HashMap<u64, u32>,
}

impl TypeIds {
    /// The place of a type, in the order in which they are met.
    pub fn place(&mut self, type_id: u64) -> u32 {
        let next = self.places.len() as u32;
        *self.places.entry(type_id).or_insert(next)
    }

    /// The names of the types of a process, without repetition, and for each place the place of its name.
    pub fn names(self, recording: &Recording<'_>, process_id: u64) -> Result<(Vec<Arc<str>>, Vec<u32>)> {
        const NAMES: [&str; 3] = ["process_id", "type_id", "name"];
        let mut found: Vec<Option<Arc<str>>> = vec![None; self.places.len()];
        for batch in recording.table("type")?.scan().columns(NAMES).batches()? {
            let batch = batch?;
            let [process, id, name] = NAMES.map(|name| Column::of(&batch, name));
            let (process, id, name) = (process?, id?, name?);
            for row in 0..batch.num_rows() {
                let place = self.places.get(&number(&id, row)).and_then(|place| found.get_mut(*place as usize));
                let (Some(place), Some(name)) = (place, name.text(row).filter(|name| !name.is_empty())) else {
                    continue;
                };
                if place.is_none() || number(&process, row) == process_id {
                    *place = Some(name.into());
                }
            }
        }
        let mut ids: Vec<(u64, u32)> = self.places.into_iter().collect();
        ids.sort_unstable_by_key(|(_, place)| *place);
        let (mut names, mut places, mut known) = (Vec::new(), Vec::new(), HashMap::<Arc<str>, u32>::new());
        for ((id, _), name) in ids.into_iter().zip(found) {
            let name = name.unwrap_or_else(|| format!("type {id:x}").into());
            places.push(*known.entry(name.clone()).or_insert_with(|| {
                names.push(name);
                names.len() as u32 - 1
            }));
        }
        Ok((names, places))
    }
}

/// The names of methods, for those that have a place in `wanted`.
pub(super) fn methods(recording: &Recording<'_>, wanted: &mut HashMap<u64, Option<Arc<str>>>) -> Result<()> {
    const NAMES: [&str; 3] = ["method_id", "namespace", "name"];
    if wanted.is_empty() {
        return Ok(());
    }
    for batch in recording.table("method")?.scan().columns(NAMES).batches()? {
        let batch = batch?;
        let [id, namespace, name] = NAMES.map(|name| Column::of(&batch, name));
        let (id, namespace, name) = (id?, namespace?, name?);
        for row in 0..batch.num_rows() {
            let Some(place) = wanted.get_mut(&number(&id, row)) else { continue };
            let parts = [namespace.text(row), name.text(row)];
            let parts: Vec<&str> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
            if !parts.is_empty() {
                *place = Some(parts.join(".").into());
            }
        }
    }
    Ok(())
}
