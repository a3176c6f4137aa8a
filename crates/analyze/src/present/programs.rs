//! JSON and CSV: all rows, with the values as they are.

use serde_json::{Map, Value};

use super::cell::{Cell, Number};
use super::escape::csv;
use super::table::Table;

impl Cell {
    /// The value for programs.
    pub fn json(&self) -> Value {
        match self.for_programs() {
            Cell::Text(text) | Cell::Sentence(text) => text.as_str().into(),
            Cell::Words(words) => words.as_ref().into(),
            Cell::Flag(is_set, _) => (*is_set).into(),
            Cell::Amount(amount) => match amount.value() {
                Number::Unsigned(value) => value.into(),
                Number::Signed(value) => value.into(),
                // NaN and infinity are null: JSON has neither.
                Number::Real(value) => value.into(),
            },
            Cell::Missing | Cell::Of(_) => Value::Null,
        }
    }
}

impl Table {
    /// The columns that programs get, with their places.
    fn keys(&self) -> impl Iterator<Item = (usize, &'static str)> {
        self.columns.iter().enumerate().filter_map(|(place, column)| Some((place, column.key?)))
    }

    /// An array with an object for each row. A key `base.bytes` is the member `bytes` of an object `base`, which is null where all
    /// of its members are.
    pub fn json(&self) -> Value {
        let row = |cells: &[Cell]| {
            let mut object = Map::new();
            for (place, key) in self.keys() {
                let value = cells.get(place).map_or(Value::Null, Cell::json);
                match key.split_once('.') {
                    None => object.insert(key.to_owned(), value),
                    Some((outer, inner)) => {
                        let outer = object.entry(outer).or_insert_with(|| Map::new().into());
                        outer.as_object_mut().and_then(|outer| outer.insert(inner.to_owned(), value))
                    }
                };
            }
            let is_missing = |value: &Value| value.as_object().is_some_and(|inner| inner.values().all(Value::is_null));
            object.values_mut().filter(|value| is_missing(value)).for_each(|value| *value = Value::Null);
            Value::Object(object)
        };
        self.rows.iter().filter(|of| of.group.is_none()).map(|of| row(&of.cells)).collect()
    }

    /// CSV by RFC 4180 with a line of heads; what is missing is empty.
    pub fn csv(&self) -> String {
        let mut out = self.keys().map(|(_, key)| key).collect::<Vec<_>>().join(",") + "\n";
        for row in self.rows.iter().filter(|row| row.group.is_none()) {
            let field = |(place, _)| match row.cells.get(place).map_or(Value::Null, Cell::json) {
                Value::Null => String::new(),
                Value::String(text) => csv(&text),
                other => other.to_string(),
            };
            out += &self.keys().map(field).collect::<Vec<_>>().join(",");
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{Column, numbers, words};
    use super::*;

    #[test]
    fn programs_get_all_rows_with_values_as_they_are() {
        let columns = [
            numbers("n", "").key("bytes"),
            words("name", "").key("name"),
            words("only seen", ""),
            Column::raw("of.share"),
        ];
        let mut table = Table::new("", &columns).first(1);
        let method = Cell::Missing.shown_as(Cell::words("(no call stack)"));
        table.row([Cell::size(1500), method, Cell::words("x"), Cell::share(0.25)]);
        table.row([Cell::size(u64::MAX), Cell::text("a,\"b\"\u{1b}"), Cell::Missing, Cell::share(f64::NAN)]);
        let expected = serde_json::json!([
            {"bytes": 1500, "name": null, "of": {"share": 0.25}}, {"bytes": u64::MAX, "name": "a,\"b\"\u{1b}", "of": null}
        ]);
        assert_eq!(table.json(), expected);
        let csv = format!("bytes,name,of.share\n1500,,0.25\n{},\"a,\"\"b\"\"{}\",\n", u64::MAX, '\u{1b}');
        assert_eq!(table.csv(), csv);
        assert!(table.text(80).contains("  1.50 kB  (no call stack)  x\n") && table.text(80).lines().count() == 2);
    }
}
