//! From call sites to places: names of methods and types, read for those that are needed.

use super::place::{By, Others, Place};
use super::sums::{Kind, Raw, Sum};
use crate::heap::Texts;
use crate::metrics::TypeNames;
use crate::prelude::*;
use crate::subjects::unnamed::Unnamed;

/// Memory of a call site or a frame with what finds it.
const ROW_STORED: u64 = 64;

/// Sums of places.
pub(super) type Places = Map<Place, Sum>;

/// The sums of call sites as sums of places, and what else these places may be.
pub(super) fn placed(
    recording: &Recording<'_>,
    all: Vec<Raw>,
    by: By,
    texts: &mut Texts,
) -> Result<Vec<(Places, Others)>> {
    let names = Names::read(recording, all.iter().flat_map(|sums| sums.keys().map(|key| key.callsite)))?;
    let mut found = Vec::with_capacity(all.len());
    for sums in all {
        let (mut places, mut unsure) = (Places::default(), Map::<Place, (u64, &String)>::default());
        for (key, sum) in sums {
            let type_name = match &key.kind {
                Kind::None => None,
                Kind::Text(name) => Some(name.clone()),
                Kind::Id(id) => Some(match names.types.name(key.process, *id) {
                    Some(name) => texts.keep(name)?,
                    None => texts.keep(&format!("type {id:x}"))?,
                }),
            };
            let site = names.sites.get(&key.callsite);
            let named = |name: Option<&String>, texts: &mut Texts| name.map(|name| texts.keep(name)).transpose();
            let own_method = named(site.and_then(|site| names.written(site.own)), texts)?;
            let method = match by {
                By::Method => named(site.and_then(|site| names.name(site.frame)), texts)?,
                By::Own | By::Type => None,
            };
            let is_unnamed = own_method.is_none() && names.unnamed.has(key.callsite);
            let place = Place { own_method, has_stack: site.is_some(), is_unnamed, method, type_name };
            if let Some(others) = site.and_then(|site| names.others.get(&site.own)) {
                let (count, most) = unsure.entry(place.clone()).or_insert((0, others));
                *count = count.saturating_add(sum.count);
                *most = others.max(most);
            }
            places.entry(place).or_default().join(sum);
        }
        let mut others = Others::default();
        for (place, (count, most)) in unsure {
            if places.get(&place).is_some_and(|sum| count > sum.count / 2) {
                others.insert(place, texts.keep(most)?);
            }
        }
        found.push((places, others));
    }
    Ok(found)
}

/// Frames of a call site: its own, and that of the nearest own method outwards.
struct Site {
    frame: u32,
    own: u32,
}

row!(struct Callsite of callsite { callsite_id, frame_id, own_callsite_id });

row!(struct Frame of frame { frame_id, name, written_name, may_belong_to });

/// The names of some call sites.
struct Names {
    sites: Map<u32, Site>,
    /// Name, and name as it was written.
    frames: Map<u32, [String; 2]>,
    /// Of frames that may belong to other methods these.
    others: Map<u32, String>,
    types: TypeNames,
    unnamed: Unnamed,
}

impl Names {
    fn read(recording: &Recording<'_>, wanted: impl Iterator<Item = u32>) -> Result<Names> {
        let wanted: Set<u32> = wanted.filter(|site| *site > 0).collect();
        let mut all: Map<u32, (u32, u32)> = Map::default();
        each_row::<Callsite<'_>>(recording, ROW_STORED, |row| {
            all.insert(row.callsite_id, (row.frame_id, row.own_callsite_id));
            Ok(())
        })?;
        let mut sites: Map<u32, Site> = Map::default();
        for site in wanted {
            let Some((frame, own)) = all.get(&site) else { continue };
            let own = all.get(own).map_or(0, |(frame, _)| *frame);
            sites.insert(site, Site { frame: *frame, own });
        }
        drop(all);
        let needed: Set<u32> = sites.values().flat_map(|site| [site.frame, site.own]).collect();
        let (mut frames, mut others) = (Map::<_, _>::default(), Map::default());
        let mut texts = HeldTexts::of(recording, "frame");
        each_row::<Frame<'_>>(recording, ROW_STORED, |row| {
            if needed.contains(&row.frame_id) {
                frames.insert(row.frame_id, [texts.copy(row.name)?, texts.copy(row.written_name)?]);
                if let Some(may_be) = row.may_belong_to {
                    others.insert(row.frame_id, texts.copy(may_be)?);
                }
            }
            Ok(())
        })?;
        let (types, unnamed) = (TypeNames::read(recording)?, Unnamed::read(recording)?);
        Ok(Names { sites, frames, others, types, unnamed })
    }

    fn name(&self, frame: u32) -> Option<&String> {
        self.frames.get(&frame).map(|[name, _]| name)
    }

    fn written(&self, frame: u32) -> Option<&String> {
        self.frames.get(&frame).map(|[_, written]| written).filter(|written| !written.is_empty())
    }
}
