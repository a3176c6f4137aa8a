//! Two recordings of one process, held against each other collection by collection.

use std::collections::BTreeMap;

use tracequet::facts::fact::{Gc, GcId};

use super::callbacks::Facts;

/// All that is compared of a collection: bounds, surviving and moved ranges, each a sorted list.
pub type Story = (Vec<[u64; 5]>, Vec<[u64; 4]>, Vec<[u64; 5]>);

/// What a recording says of each collection.
pub fn stories(facts: &Facts) -> BTreeMap<GcId, Story> {
    let mut all: BTreeMap<GcId, Story> = BTreeMap::new();
    let generation = |g: Option<u8>| g.map_or(u64::MAX, u64::from);
    // Events have the bounds of generations 0 to 4.
    for b in facts.bounds.iter().filter(|b| b.generation <= 4) {
        let at_end = u64::from(b.is_at_end());
        let row = [at_end, u64::from(b.generation), b.range_start, b.range_length, b.range_length_reserved];
        all.entry(b.gc_id).or_default().0.push(row);
    }
    for r in &facts.surviving {
        let row = [r.range_start, r.range_length, generation(r.generation_before), generation(r.generation_after)];
        all.entry(r.gc_id).or_default().1.push(row);
    }
    for r in &facts.moved {
        let generations = [generation(r.generation_before), generation(r.generation_after)];
        let row = [r.old_range_start, r.new_range_start, r.range_length, generations[0], generations[1]];
        all.entry(r.gc_id).or_default().2.push(row);
    }
    for story in all.values_mut() {
        story.0.sort_unstable();
        story.1.sort_unstable();
        story.2.sort_unstable();
    }
    all
}

/// The collections of which both ends are in the recording.
pub fn complete(facts: &Facts) -> Vec<&Gc> {
    facts.collections.iter().filter(|c| c.complete).collect()
}

fn same(what: &str, gc: GcId, ours: &BTreeMap<GcId, Story>, theirs: &BTreeMap<GcId, Story>, their_gc: GcId) {
    let nothing = Story::default();
    let (a, b) = (ours.get(&gc).unwrap_or(&nothing), theirs.get(&their_gc).unwrap_or(&nothing));
    let rows = |s: &Story| [s.0.len(), s.1.len(), s.2.len()];
    assert!(a == b, "{what}: collection {gc}, rows of bounds, surviving, moved: {:?} and {:?}", rows(a), rows(b));
}

/// Holds both recordings of a process that ended by itself against each other. Returns how many collections agree.
pub fn agree(what: &str, callbacks: &Facts, events: &Facts) -> usize {
    let (ours, theirs) = (complete(callbacks), complete(events));
    assert!(ours.len() >= 5, "{what}: only {} collections", ours.len());
    assert_eq!(ours.len(), theirs.len(), "{what}: collections");
    let (our_stories, their_stories) = (stories(callbacks), stories(events));
    for (our, their) in ours.iter().zip(&theirs) {
        assert_eq!(our.generation, their.generation, "{what}: collection {}", our.gc_id);
        assert_eq!(our.kind, their.kind, "{what}: collection {}", our.gc_id);
        same(what, our.gc_id, &our_stories, &their_stories, their.gc_id);
    }
    let (moved, surviving) = (callbacks.moved.len(), callbacks.surviving.len());
    println!(
        "{what}: {} of {} collections agree, {surviving} surviving and {moved} moved ranges",
        ours.len(),
        theirs.len()
    );
    assert!(surviving > 0 && moved > 0, "{what}: no ranges");
    ours.len()
}

/// Holds a recording of a part of a process against one of more of it: the complete collections of `part` are in
/// `whole`, one after the other. Returns how many there are, and the number in `whole` of the first.
pub fn agree_in_part(what: &str, part: &Facts, whole: &Facts) -> (usize, GcId) {
    let (part_stories, whole_stories) = (stories(part), stories(whole));
    let (ours, theirs) = (complete(part), complete(whole));
    let first = ours.first().unwrap_or_else(|| panic!("{what}: no collection"));
    let story = &part_stories[&first.gc_id];
    assert!(!story.0.is_empty() && story.1.len() + story.2.len() > 0, "{what}: nothing to recognise it by");
    let at = theirs.iter().position(|c| whole_stories.get(&c.gc_id) == Some(story));
    let at = at.unwrap_or_else(|| panic!("{what}: collection {} is not in the other recording", first.gc_id));
    assert!(theirs.len() >= at + ours.len(), "{what}: collections");
    for (our, their) in ours.iter().zip(&theirs[at..]) {
        assert_eq!(our.generation, their.generation, "{what}: collection {}", our.gc_id);
        same(what, our.gc_id, &part_stories, &whole_stories, their.gc_id);
    }
    println!("{what}: {} collections agree, {} in the other recording", ours.len(), theirs.len());
    (ours.len(), theirs[at].gc_id)
}
