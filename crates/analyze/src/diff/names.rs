//! From call sites to places: names of methods and types, read for those that are needed.

use super::place::{By, Others, Place};
use super::sums::{Kind, Raw, Sum};
use crate::heap::Texts;
use crate::metrics::TypeNames;
use crate::prelude::*;
use crate::subjects::named::NamedSites;

/// Sums of places.
pub(super) type Places = Map<Place, Sum>;

/// The sums of call sites as sums of places, and what else these places may be.
pub(super) fn placed(
    recording: &Recording<'_>,
    all: Vec<Raw>,
    by: By,
    texts: &mut Texts,
) -> Result<Vec<(Places, Others)>> {
    let wanted: Set<u32> = all.iter().flat_map(|sums| sums.keys().map(|key| key.callsite)).collect();
    let names = NamedSites::read(recording, |site| wanted.contains(&site))?;
    let types = TypeNames::read(recording)?;
    let mut found = Vec::with_capacity(all.len());
    for sums in all {
        let (mut places, mut unsure) = (Places::default(), Map::<Place, (u64, &String)>::default());
        for (key, sum) in sums {
            let type_name = match &key.kind {
                Kind::None => None,
                Kind::Text(name) => Some(name.clone()),
                Kind::Id(id) => Some(match types.name(key.process, *id) {
                    Some(name) => texts.keep(name)?,
                    None => texts.keep(&format!("type {id:x}"))?,
                }),
            };
            let site = key.callsite;
            let own = names.own(site);
            let mut named = |name: Option<&str>| name.map(|name| texts.keep(name)).transpose();
            let own_method = named(own.map(|own| &*own.written).filter(|written| !written.is_empty()))?;
            let method = match by {
                By::Method => named(names.frame(site).map(|frame| &*frame.name))?,
                By::Own | By::Type => None,
            };
            let is_unnamed = own_method.is_none() && names.is_unnamed(site);
            let place = Place { own_method, has_stack: names.has(site), is_unnamed, method, type_name };
            if let Some(others) = own.and_then(|own| own.others.as_ref()) {
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
