//! Groups of lifetimes: types, and the methods that allocate.

use std::collections::HashMap;

use super::life::Lifetime;
use super::sample::Sample;
use crate::prelude::*;
use crate::subjects::named::NamedSites;

/// The tables that methods and types are named by.
pub const NAMES: [&str; 3] = ["callsite", "frame", "type"];

/// The kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The nearest method outwards that is the user's own, and a type.
    Own,
    /// The method that allocates, which is the innermost frame of the stack, and a type.
    Site,
    /// A type.
    Type,
}

/// The names of a row. A name that is not of its kind is empty, and so is one that is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// The method that allocates. Of [`By::Site`].
    pub method: String,
    /// The assembly or file; of [`By::Own`] that of the own method.
    pub assembly: String,
    /// The nearest method outwards that is the user's own, as it was written. Of [`By::Own`] and [`By::Site`].
    pub own_method: String,
    /// Whether there is no own method because the names of most frames were not recorded.
    pub is_unnamed: bool,
    /// The type.
    pub type_name: String,
}

/// Memory of a type, a frame or a call site with its names.
const ROW_STORED: u64 = 64;

/// Memory of a group with its names.
const GROUP_BYTES: u64 = 512;

/// Names that a group is made of; the same text is the same everywhere. And whether names were not recorded.
type Key = ([Arc<str>; 4], bool);

row!(struct TypeRow of r#type { process_id, type_id, name });

/// The names of types, and of the methods at call sites.
pub(super) struct Names {
    by: By,
    types: HashMap<(u64, u64), Arc<str>>,
    sites: NamedSites,
}

impl Names {
    pub fn read(recording: &Recording<'_>, by: By) -> Result<Names> {
        let mut names = Names { by, types: HashMap::new(), sites: NamedSites::default() };
        let mut texts = HeldTexts::of(recording, "type");
        each_row::<TypeRow<'_>>(recording, ROW_STORED, |row| {
            let key = (row.process_id, row.type_id);
            // Of several names the last by the alphabet, as in the views.
            let known = names.types.get(&key);
            if known.is_none_or(|known| &**known < row.name) {
                names.types.insert(key, texts.copy(row.name)?.into());
            }
            Ok(())
        })?;
        if by != By::Type {
            names.sites = NamedSites::read(recording, |_| true)?;
        }
        Ok(names)
    }

    pub fn type_name(&self, sample: &Sample) -> Arc<str> {
        match self.types.get(&(sample.process_id, sample.type_id)).filter(|name| !name.is_empty()) {
            Some(name) => name.clone(),
            None => format!("type {:x}", sample.type_id).into(),
        }
    }

    fn key(&self, sample: &Sample, type_name: Arc<str>) -> Key {
        let site = sample.callsite_id;
        let (frame, own) = (self.sites.frame(site), self.sites.own(site));
        let [method, assembly, own_method] = match self.by {
            By::Type => [None; 3],
            By::Own => [None, own, own],
            By::Site => [frame, frame, frame.and(own)],
        };
        let method = method.map_or_else(Arc::default, |frame| frame.name.clone());
        let assembly = assembly.map_or_else(Arc::default, |frame| frame.assembly.clone());
        let own_method = own_method.map_or_else(Arc::default, |own| own.written.clone());
        let is_unnamed = self.by != By::Type && self.sites.is_unnamed(site);
        ([method, assembly, own_method, type_name], is_unnamed)
    }
}

/// Sums of type `S` over lifetimes, by their names.
pub(super) struct Groups<'r, S> {
    recording: &'r Recording<'r>,
    names: Names,
    sums: HashMap<Key, S>,
}

impl<'r, S: Default> Groups<'r, S> {
    pub fn new(recording: &'r Recording<'r>, by: By) -> Result<Groups<'r, S>> {
        Ok(Groups { recording, names: Names::read(recording, by)?, sums: HashMap::new() })
    }

    /// The sums that a lifetime belongs to; `None` when its type is not one that is taken.
    pub fn of(&mut self, lifetime: &Lifetime<'_>, takes: impl Fn(&str) -> bool) -> Result<Option<&mut S>> {
        let type_name = self.names.type_name(lifetime.sample);
        if !takes(&type_name) {
            return Ok(None);
        }
        let key = self.names.key(lifetime.sample, type_name);
        held(self.recording, "allocation_lifetime", self.sums.len() as u64 + 1, GROUP_BYTES)?;
        Ok(Some(self.sums.entry(key).or_default()))
    }

    /// All groups, those whose order is highest first.
    pub fn finish<O: Ord>(self, order: impl Fn(&S) -> O) -> Vec<(Group, S)> {
        let row = |(([method, assembly, own_method, type_name], is_unnamed), sums): (Key, S)| {
            let [method, assembly, own_method, type_name] =
                [method, assembly, own_method, type_name].map(|text| text.to_string());
            (Group { method, assembly, own_method, is_unnamed, type_name }, sums)
        };
        let mut rows: Vec<(Group, S)> = self.sums.into_iter().map(row).collect();
        rows.sort_by(|(a, of_a), (b, of_b)| order(of_b).cmp(&order(of_a)).then_with(|| a.cmp(b)));
        rows
    }
}
