//! Lists of strings against a search unit by unit, and arrays without a count.

use super::super::value::{Value, ValueColumn};
use super::*;
use crate::reader::{Field, FieldType};

/// A number of strings for each element, with the number of elements in the first two bytes.
fn plan(strings: usize) -> Plan {
    let field = |node| PlanField { name: String::new(), node, slot: None };
    let element = Node::Struct(std::iter::repeat_with(|| field(Node::Utf16Z)).take(strings).collect());
    Plan { fields: vec![field(Node::List(Count::U16, Box::new(element)))], slots: 0, otherwise: Vec::new() }
}

/// The whole elements, and whether all are.
fn by_units(strings: usize, payload: &[u8]) -> (Vec<Vec<String>>, bool) {
    let Some((count, mut rest)) = payload.split_first_chunk() else { return (Vec::new(), false) };
    let mut elements = Vec::new();
    for _ in 0..u16::from_le_bytes(*count) {
        let mut element = Vec::new();
        for _ in 0..strings {
            let Some(end) = rest.chunks_exact(2).position(|unit| unit == [0, 0]) else { return (elements, false) };
            element.push(utf16::string(&rest[..2 * end]));
            rest = &rest[2 * end + 2..];
        }
        elements.push(element);
    }
    (elements, true)
}

fn decoded(strings: usize, payload: &[u8]) -> (Vec<Vec<String>>, bool) {
    let plan = plan(strings);
    let mut columns = ValueColumn::for_fields(&plan.fields);
    let fit = decode(&plan, payload, &mut columns);
    let text = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    let element = |value: &Value| match value {
        Value::Struct(fields) => fields.iter().map(text).collect(),
        other => panic!("{other:?}"),
    };
    match columns[0].value() {
        Value::List(elements) => (elements.iter().map(element).collect(), fit.short.is_none()),
        Value::Null => (Vec::new(), fit.short.is_none()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn lists_of_strings_keep_their_whole_elements_wherever_they_are_cut() {
    const LENGTHS: [usize; 8] = [3, 0, 1, 40, 0, 0, 2, 700];
    for strings in 1..4 {
        for announced in [0, 2, 3, 9] {
            let mut payload = u16::to_le_bytes(announced).to_vec();
            for length in LENGTHS {
                payload.extend([b'a', 0].repeat(length));
                payload.extend([0, 0]);
            }
            // The part behind the list does not end with a zero unit.
            payload.extend(b"tail");
            for cut in (0..payload.len()).filter(|cut| *cut < 120 || *cut > payload.len() - 20 || cut % 97 < 2) {
                let cut = &payload[..cut];
                assert_eq!(decoded(strings, cut), by_units(strings, cut), "{strings} {announced} {}", cut.len());
            }
        }
    }
}

/// An array is read by the count of its own, by that of the field before it where only that takes the whole payload, and else as described.
#[test]
fn an_array_without_a_count_has_that_of_the_field_before() {
    let array = FieldType::Array(Box::new(FieldType::U32));
    let fields = [Field::new("Count", FieldType::U32), Field::new("Values", array)];
    let plan = Plan::described(&fields, "Test");
    let decoded = |payload: &[u8]| {
        let mut columns = ValueColumn::for_fields(&plan.fields);
        let fit = decode(&plan, payload, &mut columns);
        let values: Vec<u64> = columns[1].value().as_list().iter().filter_map(Value::as_u64).collect();
        (values, fit.is_exact())
    };
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let own = [&words(&[9])[..], &[2, 0], &words(&[7, 8])].concat();
    assert_eq!(decoded(&own), (vec![7, 8], true));
    assert_eq!(decoded(&words(&[3, 0x10002, 5, 6])), (vec![0x10002, 5, 6], true));
    // Neither takes all.
    assert!(!decoded(&words(&[4, 0x10002, 5, 6])).1);
    assert_eq!(decoded(&words(&[0])), (vec![], true));
}
