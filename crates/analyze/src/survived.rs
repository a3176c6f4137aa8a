//! The fate of an object: whether it survived a collection, and its new address. Read from the tables of a dataset.
//!
//! An object at `o` survived when `start <= o < start + length` for any surviving range, or any moved range by its old
//! start. One that is in none is dead only if its generation was collected, and if the recording has all of that.

use tracequet_dataset::error::Named;
use tracequet_facts::fact::NON_GC_HEAP;

use crate::collection::{Bound, Collection, Doubt, Effect, SpilledCollections};
use crate::prelude::*;

/// The tables that the answer is found in.
pub use crate::collection::TABLES;

/// The fate of an object in a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Survived where it was.
    Alive,
    /// Survived and is elsewhere.
    Moved,
    /// Died: the generation was collected, and the object is in no range.
    Dead,
    /// Was not collected, because its generation was not: it stays where it is, alive or not.
    NotCollected,
    /// Lies in the non-GC (frozen) heap of .NET 8 and later, which is never collected and never moves.
    NeverCollected,
    /// The recording does not say; why.
    Unknown(Doubt),
}

impl Fate {
    /// The word that `survived(gc, address)` has for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Fate::Alive => "alive",
            Fate::Moved => "moved",
            Fate::Dead => "dead",
            Fate::NotCollected => "not_collected",
            Fate::NeverCollected => "never_collected",
            Fate::Unknown(_) => "unknown",
        }
    }
}

/// The fate of the object in one collection.
#[derive(Clone, Debug)]
pub struct Step {
    /// The collection.
    pub gc_id: u32,
    /// Highest generation that it collected.
    pub generation: Option<u8>,
    /// `blocking`, `background` or `foreground`.
    pub kind: Option<String>,
    /// When it began, nanoseconds since the recording began.
    pub start_ns: i64,
    /// Where the object was.
    pub address: u64,
    /// The fate.
    pub fate: Fate,
    /// Where it is now; `None` when it is dead or that is not known, as where it moved behind the last address.
    pub address_after: Option<u64>,
    /// Generation by the bounds at the start of the collection.
    pub generation_before: Option<u8>,
    /// Generation by the bounds at its end.
    pub generation_after: Option<u8>,
}

/// The part of a collection that is known before its ranges are read.
struct Gc {
    /// Process, and which of its runtimes.
    runtime: (u64, u64),
    kind: Option<String>,
}

/// An object on its way from collection to collection.
struct Followed {
    /// The first collection.
    gc: u32,
    runtime: (u64, u64),
    /// Where it is, as long as that is known.
    address: Option<u64>,
    steps: Vec<Step>,
}

/// The fate of the object at `address` in collection `gc`; with `follow` also in all later ones, as long as it is known
/// where the object is. Reads the tables [`TABLES`] of the recording.
pub fn survived(recording: &Recording<'_>, gc: u32, address: u64, follow: bool) -> Result<Vec<Step>> {
    let found = fates(recording, &[(gc, address)], if follow { u32::MAX } else { gc })?;
    Ok(found.into_iter().flatten().collect())
}

/// The fates of several objects, each of which lies at an address before a collection, in that collection and in all
/// later ones. The tables are read once for all of them.
pub fn all_followed(recording: &Recording<'_>, objects: &[(u32, u64)]) -> Result<Vec<Vec<Step>>> {
    fates(recording, objects, u32::MAX)
}

/// The fates of objects in the collections up to `last`.
fn fates(recording: &Recording<'_>, objects: &[(u32, u64)], last: u32) -> Result<Vec<Vec<Step>>> {
    let known = collections(recording)?;
    let follow = |(gc, address): &(u32, u64)| match known.get(gc) {
        Some(Gc { runtime, .. }) => {
            Ok(Followed { gc: *gc, runtime: *runtime, address: Some(*address), steps: Vec::new() })
        }
        None => Err(no_collection(recording, *gc, &known)),
    };
    let mut objects: Vec<Followed> = objects.iter().map(follow).collect::<Result<_>>()?;
    let first = objects.iter().map(|object| object.gc).min().unwrap_or_default();
    let runtimes: Set<(u64, u64)> = objects.iter().map(|object| object.runtime).collect();
    let mut collections = SpilledCollections::among(recording, first..=last, |gc| runtimes.contains(&gc.runtime))?;
    collections.each(|gc| {
        let of_it = |object: &&mut Followed| object.gc <= gc.gc_id && object.runtime == gc.runtime;
        for object in objects.iter_mut().filter(of_it) {
            let Some(address) = object.address else { continue };
            let kind = known.get(&gc.gc_id).and_then(|known| known.kind.clone());
            let step = step(gc, kind, address);
            object.address = step.address_after;
            object.steps.push(step);
        }
        Ok(true)
    })?;
    collections.whole(recording)?;
    Ok(objects.into_iter().map(|object| object.steps).collect())
}

fn no_collection(recording: &Recording<'_>, gc: u32, collections: &BTreeMap<u32, Gc>) -> Error {
    let ids = collections.keys().next().zip(collections.keys().next_back());
    let there = ids.map_or("it has none".into(), |(first, last)| format!("it has {first} to {last}"));
    let message = format!("the recording {} has no collection {gc}, {there}", recording.info().trace_id);
    Error::NotFound { what: Named::Collection, message }
}

/// The generation at an address; `None` when no bounds, or several that disagree, hold it.
fn generation(bounds: &[Bound], address: u64) -> Option<u8> {
    let at_it = bounds.iter().filter(|bound| holds(bound.start, bound.length, address));
    let mut found = at_it.map(|bound| bound.generation);
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

fn holds(start: u64, length: u64, address: u64) -> bool {
    address.checked_sub(start).is_some_and(|offset| offset < length)
}

fn step(gc: &Collection, kind: Option<String>, address: u64) -> Step {
    let before = generation(&gc.before, address);
    // Ranges that survived in place come before those that moved. The macros of `views.sql` look in the same order.
    let holder = gc.ranges.iter().find(|range| holds(range.start, range.length, address));
    let (fate, address_after) = match holder {
        Some(range) => {
            // No address is behind the last one: where ranges say so, it is not known where the object is.
            let after = range.new_start.checked_add(address - range.start);
            (if after == Some(address) { Fate::Alive } else { Fate::Moved }, after)
        }
        None => match absent(gc, before, address) {
            fate @ (Fate::NotCollected | Fate::NeverCollected) => (fate, Some(address)),
            fate => (fate, None),
        },
    };
    Step {
        gc_id: gc.gc_id,
        generation: gc.generation,
        kind,
        start_ns: gc.start_ns,
        address,
        fate,
        address_after,
        generation_before: before,
        generation_after: address_after.and_then(|after| generation(&gc.after, after)),
    }
}

/// The fate of an address that no range holds. `views.sql` has the same rules.
fn absent(gc: &Collection, before: Option<u8>, address: u64) -> Fate {
    if before == Some(NON_GC_HEAP) {
        return Fate::NeverCollected;
    }
    match gc.effect_in(before) {
        Effect::Collects => {}
        Effect::Leaves => return Fate::NotCollected,
        Effect::Unknown(doubt) => return Fate::Unknown(doubt),
    }
    // A range lies within one part of the heap, and ends before the next range begins. Of those with the same start a
    // clamped one counts.
    let below = gc.ranges.iter().filter(|range| range.start <= address);
    let nearest = below.max_by_key(|range| (range.start, range.clamped));
    let part_from =
        |start: u64| gc.before.iter().any(|part| holds(part.start, part.length, address) && part.start <= start);
    if nearest.is_some_and(|range| range.clamped && part_from(range.start)) {
        return Fate::Unknown(Doubt::Clamped);
    }
    Fate::Dead
}

row!(struct GcRow of gc { gc_id, kind, process_id, clr_instance_id });

fn collections(recording: &Recording<'_>) -> Result<BTreeMap<u32, Gc>> {
    let (mut found, mut texts) = (BTreeMap::new(), HeldTexts::of(recording, "gc"));
    each_row::<GcRow<'_>>(recording, 2 * size_of::<Gc>() as u64, |row| {
        let runtime = (row.process_id, u64::from(row.clr_instance_id));
        let kind = row.kind.map(|kind| texts.copy(kind)).transpose()?;
        found.insert(row.gc_id, Gc { runtime, kind });
        Ok(())
    })?;
    Ok(found)
}
