//! Heap dumps take the memory that is stated.

use tracequet::analyze::heap::HeldWalks;
use tracequet::facts::fact::{Fact, GcRoot, HeapObject, HeapReference};

use crate::hostile::limits::{is_alone, peak_mb};

/// What `convert --dominators` may take for an object or root, and for a reference (docs/HEAP.md).
const OBJECT: u64 = 48;
const REFERENCE: u64 = 12;

/// What a test program takes itself.
const OWN_MB: u64 = 24;

/// A walk of `count` objects, each of which refers to the next one and to one far behind it.
fn walk(count: u64, memory: u64) -> Option<(u64, u64)> {
    let mut walks = HeldWalks::new(memory);
    let address = |number: u64| 0x1000 + (number % count) * 24;
    let mut number = 0;
    while number < count {
        let some = number..count.min(number + 1000);
        let objects: Vec<HeapObject> = some
            .clone()
            .map(|n| HeapObject {
                gc_id: 1,
                object_id: address(n),
                type_id: n % 100,
                size_bytes: 24,
                reference_count: 2,
            })
            .collect();
        walks.fact(&Fact::HeapObject(&objects));
        let references: Vec<HeapReference> = some
            .flat_map(|n| [n + 1, n * 7 + 3].map(|target| (n, target)))
            .map(|(n, target)| HeapReference {
                gc_id: 1,
                object_id: address(n),
                target_object_id: address(target),
                ..HeapReference::default()
            })
            .collect();
        walks.fact(&Fact::HeapReference(&references));
        number += 1000;
    }
    let root = GcRoot { gc_id: 1, object_id: address(0), root_kind: "handle", ..GcRoot::default() };
    walks.fact(&Fact::GcRoot(&[root]));
    if walks.refused().is_some() {
        return None;
    }
    let (mut rows, mut most) = (0, 0);
    walks
        .finish(|row| {
            (rows, most) = (rows + 1, most.max(row.retained_bytes));
            Ok(())
        })
        .unwrap();
    Some((rows, most))
}

#[test]
fn what_objects_retain_is_found_in_the_memory_that_is_stated() {
    const COUNT: u64 = 1_000_000;
    if !is_alone("hostile::heap_memory::what_objects_retain_is_found_in_the_memory_that_is_stated") {
        return;
    }
    let stated = COUNT * (OBJECT + 2 * REFERENCE) + 10_000;
    // Four bytes a reference less are too little.
    assert_eq!(walk(COUNT, COUNT * (48 + 2 * 8)), None);
    // The root retains all of it.
    assert_eq!(walk(COUNT, stated), Some((COUNT, COUNT * 24)));
    // What the first walk took until it was refused is taken again.
    let (peak, stated) = (peak_mb(), stated.div_ceil(1 << 20));
    println!("{peak:?} MB are taken, {stated} MB are stated");
    assert!(peak.is_none_or(|peak| peak < stated + OWN_MB), "{peak:?} MB are taken, {stated} MB are stated");
}
