//! The two versions of a callback in several records, and what callbacks cannot both say.

use tracequet::trace::reader::callback::encode;
use tracequet::trace::reader::callback::format::{FLAG_CONTINUES, FLAG_FAILED, kind};

use crate::support::callbacks::{Making, facts, header};

fn part(m: &mut Making, kind: u8, flags: u8, rows: &[[u64; 2]]) {
    m.record(0, kind, flags, |out| encode::surviving(out, rows.iter().copied()));
}

#[test]
fn versions_in_several_records_are_paired() {
    let mut m = Making::new();
    m.started(0, &[]);
    for kind in [kind::SURVIVING2, kind::SURVIVING] {
        part(&mut m, kind, FLAG_CONTINUES, &[[0x1000, 0x20], [0x1100, 0x20]]);
        part(&mut m, kind, FLAG_CONTINUES, &[[0x1200, 0x20]]);
        part(&mut m, kind, 0, &[[0x1300, 0x20]]);
    }
    let facts = m.finished(&[]).facts();
    let expected = [0x1000, 0x1100, 0x1200, 0x1300].map(|start| (start, 0x20, "paired"));
    assert_eq!(facts.survived(), expected);
    assert_eq!(facts.codes(), ["paired_callbacks"]);
}

#[test]
fn a_second_version_that_is_not_whole_contradicts_the_first() {
    let mut m = Making::new();
    m.started(0, &[]);
    part(&mut m, kind::SURVIVING2, FLAG_CONTINUES, &[[0x1000, 0x20]]);
    part(&mut m, kind::SURVIVING, FLAG_CONTINUES, &[[0x1000, 0x20]]);
    part(&mut m, kind::SURVIVING, 0, &[[0x1100, 0x20]]);
    let facts = m.finished(&[]).facts();
    assert_eq!(facts.survived(), [(0x1000, 0x20, "exact")]);
    assert_eq!(facts.codes(), ["v1_contradicts_v2"]);
}

#[test]
fn a_failed_second_version_beside_the_first_counts_once() {
    let mut m = Making::new();
    m.started(0, &[]);
    part(&mut m, kind::SURVIVING2, FLAG_FAILED, &[[0x1000, 0x20]]);
    part(&mut m, kind::SURVIVING, 0, &[[0x1000, 0x20]]);
    // As the runtime does it: no first version.
    part(&mut m, kind::SURVIVING2, FLAG_FAILED, &[[0x1100, 0x20]]);
    let facts = m.finished(&[]).facts();
    assert_eq!(facts.survived(), [(0x1000, 0x20, "paired"), (0x1100, 0x20, "exact")]);
    assert_eq!(facts.codes(), ["paired_callbacks", "v1_after_failed_v2"]);
    assert_eq!(facts.collections[0].surviving_range_count, 2);
}

#[test]
fn what_cannot_both_be_is_told() {
    let inside = |fill: &dyn Fn(&mut Making)| {
        let mut m = Making::new();
        m.started(0, &[]);
        fill(&mut m);
        m.finished(&[]).facts().codes()
    };
    let both = inside(&|m| {
        m.surviving(0, 2, &[[0x1000, 0x100]]).moved(1, 2, &[[0x1080, 0x9000, 0x20]]);
    });
    assert_eq!(both, ["survived_and_moved"]);
    let target = inside(&|m| {
        m.moved(0, 2, &[[0x1000, 0x9000, 0x20], [0x2000, 0x9010, 0x20]]);
    });
    assert_eq!(target, ["one_target"]);
    let wraps = inside(&|m| {
        m.surviving(0, 2, &[[u64::MAX - 0xF, 0x20]]);
    });
    assert_eq!(wraps, ["range_wraps"]);
    let sound = inside(&|m| {
        m.surviving(0, 2, &[[0x1000, 0x80]]).moved(1, 2, &[[0x1080, 0x1080, 0x20], [0x2000, 0x10A0, 0x20]]);
    });
    assert!(sound.is_empty(), "{sound:?}");
}

#[test]
fn addresses_and_generations_that_do_not_exist_are_told() {
    let narrow = tracequet::trace::reader::callback::format::Header { pointer_size: 4, ..header() };
    let mut m = Making::with(&narrow);
    m.started(0, &[]).surviving(0, 2, &[[0xFFFF_F000, 0x1000], [0xFFFF_FFF0, 0x20]]);
    let bytes = m.finished(&[]).bytes();
    assert_eq!(facts(&bytes).unwrap().codes(), ["overlapping_ranges", "range_beyond_pointer"]);
    let facts = Making::new().started(0, &[[300, 0x1000, 0x100], [0, 0x2000, 0x100]]).finished(&[]).facts();
    assert_eq!(facts.codes(), ["bad_generation"]);
    assert_eq!(facts.bounds.iter().map(|b| b.generation).collect::<Vec<_>>(), [0]);
}

#[test]
fn ranges_outside_any_collection_are_told() {
    let mut m = Making::new();
    m.started(0, &[]).finished(&[]).surviving(0, 2, &[[0x1000, 0x20]]);
    let facts = m.started(0, &[]).finished(&[]).facts();
    assert_eq!(facts.codes(), ["outside_collection"]);
    assert_eq!(facts.collections.iter().map(|c| c.complete).collect::<Vec<_>>(), [true, false, true]);
}
