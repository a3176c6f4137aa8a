//! Lifetimes by type, and by the method that allocates.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use tracequet_dataset::read::{Column, Recording};
use tracequet_trace::error::Result;

use super::found::lifetimes;
use super::sums::Sums;
use crate::{HeldTexts, held};

/// The tables that methods and types are named by.
pub const NAMES: [&str; 3] = ["callsite", "frame", "type"];

/// What became of the allocations of a type, or of a method and a type.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GroupRow {
    /// The method that allocates: the innermost frame of the stack. Empty without a stack, and by type.
    pub method: String,
    /// Its assembly or file.
    pub assembly: String,
    /// The type.
    pub type_name: String,
    /// The sums.
    pub sums: Sums,
}

/// Lifetimes by type, those with the most bytes first. Takes the types that `takes` says.
pub fn by_type(recording: &Recording<'_>, takes: impl Fn(&str) -> bool) -> Result<Vec<GroupRow>> {
    grouped(recording, takes, false)
}

/// Lifetimes by method and type, those with the most bytes first. Takes the types that `takes` says.
pub fn by_site(recording: &Recording<'_>, takes: impl Fn(&str) -> bool) -> Result<Vec<GroupRow>> {
    grouped(recording, takes, true)
}

/// Method, assembly and type.
type Group = (Rc<str>, Rc<str>, Rc<str>);

/// Memory of a group.
const GROUP_BYTES: u64 = 512;

fn grouped(recording: &Recording<'_>, takes: impl Fn(&str) -> bool, by_method: bool) -> Result<Vec<GroupRow>> {
    let names = Names::read(recording)?;
    let mut groups: HashMap<Group, Sums> = HashMap::new();
    let mut rows = 0;
    lifetimes(recording, |lifetime| {
        rows += 1;
        held(recording, "allocation_lifetime", rows, 16)?;
        let sample = lifetime.sample;
        let type_name = names.type_name(sample.process_id, sample.type_id);
        if !takes(&type_name) {
            return Ok(());
        }
        let (method, assembly) =
            if by_method { names.method(sample.callsite_id) } else { (names.none.clone(), names.none.clone()) };
        groups.entry((method, assembly, type_name)).or_default().add(lifetime);
        held(recording, "allocation_lifetime", groups.len() as u64, GROUP_BYTES)
    })?;
    let row = |((method, assembly, type_name), sums): (Group, Sums)| GroupRow {
        method: method.to_string(),
        assembly: assembly.to_string(),
        type_name: type_name.to_string(),
        sums,
    };
    let mut rows: Vec<GroupRow> = groups.into_iter().map(row).collect();
    rows.sort_by(|a, b| {
        let names = |row: &GroupRow| (row.method.clone(), row.assembly.clone(), row.type_name.clone());
        b.sums.allocated.cmp(&a.sums.allocated).then_with(|| names(a).cmp(&names(b)))
    });
    Ok(rows)
}

/// The names of types, and of the methods at call sites.
struct Names {
    types: HashMap<(u64, u64), Rc<str>>,
    /// Of each call site its frame.
    callsites: HashMap<u32, u32>,
    /// Name and assembly.
    frames: BTreeMap<u32, (Rc<str>, Rc<str>)>,
    none: Rc<str>,
}

impl Names {
    fn read(recording: &Recording<'_>) -> Result<Names> {
        let none: Rc<str> = Rc::from("");
        let mut names = Names { types: HashMap::new(), callsites: HashMap::new(), frames: BTreeMap::new(), none };
        let mut texts = HeldTexts::of(recording, "type");
        each(recording, "type", ["process_id", "type_id", "name"], |[process, id, name], row| {
            let key = (number(process, row), number(id, row));
            let name = name.text(row).unwrap_or_default();
            // Of several names the last by the alphabet, as in the views.
            let known = names.types.get(&key);
            if known.is_none_or(|known| &**known < name) {
                names.types.insert(key, texts.copy(name)?.into());
            }
            Ok(())
        })?;
        let mut texts = HeldTexts::of(recording, "frame");
        each(recording, "frame", ["frame_id", "name", "assembly"], |[id, name, assembly], row| {
            let text =
                |texts: &mut HeldTexts<'_>, column: &Column<'_>| texts.copy(column.text(row).unwrap_or_default());
            let named = (text(&mut texts, name)?.into(), text(&mut texts, assembly)?.into());
            names.frames.insert(number(id, row) as u32, named);
            Ok(())
        })?;
        each(recording, "callsite", ["callsite_id", "frame_id"], |[id, frame], row| {
            names.callsites.insert(number(id, row) as u32, number(frame, row) as u32);
            Ok(())
        })?;
        Ok(names)
    }

    fn type_name(&self, process_id: u64, type_id: u64) -> Rc<str> {
        match self.types.get(&(process_id, type_id)).filter(|name| !name.is_empty()) {
            Some(name) => name.clone(),
            None => format!("type {type_id:x}").into(),
        }
    }

    fn method(&self, callsite_id: u32) -> (Rc<str>, Rc<str>) {
        let frame = self.callsites.get(&callsite_id).and_then(|frame| self.frames.get(frame));
        frame.cloned().unwrap_or_else(|| (self.none.clone(), self.none.clone()))
    }
}

fn number(column: &Column<'_>, row: usize) -> u64 {
    column.number(row).unwrap_or_default()
}

/// Calls `take` with the columns of a table and each of its rows.
fn each<const N: usize>(
    recording: &Recording<'_>,
    table: &str,
    names: [&str; N],
    mut take: impl FnMut(&[Column<'_>; N], usize) -> Result<()>,
) -> Result<()> {
    let mut rows = 0;
    for batch in recording.table(table)?.scan().columns(names).batches()? {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        held(recording, table, rows, 64)?;
        let mut columns = Vec::with_capacity(N);
        for name in names {
            columns.push(Column::of(&batch, name)?);
        }
        let Ok(columns) = <[Column<'_>; N]>::try_from(columns) else { continue };
        for row in 0..batch.num_rows() {
            take(&columns, row)?;
        }
    }
    Ok(())
}
