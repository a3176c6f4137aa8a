//! Selects the rows of a batch for a definition.

use arrow_array::{Array, RecordBatch};
use tracequet_dataset::error::Result;
use tracequet_dataset::read::Column;

use super::definition::{Definition, Values};

/// The rows of a batch that fit all conditions.
pub(super) struct Rows<'b> {
    count: usize,
    conditions: Vec<Condition<'b>>,
}

struct Condition<'b> {
    column: Column<'b>,
    test: Test<'b>,
    /// Of a column of words: which of them fit. Asked once a batch instead of once a row.
    words: Option<Vec<bool>>,
}

enum Test<'b> {
    In(&'b [String]),
    NotIn(&'b [String]),
    Contains(&'b str),
}

impl Test<'_> {
    /// Whether a value fits. Null is in no list and contains nothing.
    fn fits(&self, text: Option<&str>, number: Option<u64>) -> bool {
        let is_one = |values: &[String]| match (text, number) {
            (Some(text), _) => values.iter().any(|value| value == text),
            (None, Some(number)) => values.iter().any(|value| value.parse() == Ok(number)),
            (None, None) => false,
        };
        match self {
            Test::In(values) => is_one(values),
            Test::NotIn(values) => !is_one(values),
            Test::Contains(part) => text.is_some_and(|text| {
                text.as_bytes().windows(part.len().max(1)).any(|bytes| bytes.eq_ignore_ascii_case(part.as_bytes()))
            }),
        }
    }
}

impl<'b> Rows<'b> {
    pub(super) fn of(batch: &'b RecordBatch, definition: &'b Definition) -> Result<Rows<'b>> {
        let lists = |list: &'b std::collections::BTreeMap<String, Values>, test: fn(&'b [String]) -> Test<'b>| {
            list.iter().map(move |(column, values)| (column, test(values.all())))
        };
        let contains = definition.contains.iter().map(|(column, part)| (column, Test::Contains(part)));
        let all = lists(&definition.only, Test::In).chain(lists(&definition.except, Test::NotIn)).chain(contains);
        let condition = |(column, test): (&String, Test<'b>)| {
            let column = Column::of(batch, column)?;
            let words = column.words().map(|(_, words)| words.iter().map(|word| test.fits(word, None)).collect());
            Ok(Condition { column, test, words })
        };
        Ok(Rows { count: batch.num_rows(), conditions: all.map(condition).collect::<Result<_>>()? })
    }

    /// The rows, in their order.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.count).filter(|row| self.conditions.iter().all(|condition| condition.fits(*row)))
    }
}

impl Condition<'_> {
    fn fits(&self, row: usize) -> bool {
        if let (Some(fitting), Some((keys, _))) = (&self.words, self.column.words())
            && row < keys.len()
            && keys.is_valid(row)
        {
            return usize::try_from(keys.value(row)).is_ok_and(|key| fitting.get(key) == Some(&true));
        }
        self.test.fits(self.column.text(row), self.column.number(row))
    }
}
