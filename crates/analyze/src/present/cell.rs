//! A cell: a value with its unit, or a text, and how it is written for people.

use std::borrow::Cow;
use std::fmt;

use super::escape::{MAX_SENTENCE, MAX_SHOWN, clean, code_to, shown_to};
use super::units::{count, moment, real, share, size, span};

/// A number as it is in a table or an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A number without a sign.
    Unsigned(u64),
    /// A number with a sign.
    Signed(i64),
    /// A number that need not be whole.
    Real(f64),
}

impl Number {
    /// The number as `f64`.
    pub fn real(self) -> f64 {
        match self {
            Number::Unsigned(value) => value as f64,
            Number::Signed(value) => value as f64,
            Number::Real(value) => value,
        }
    }

    /// The number without its sign, and without what is behind the point.
    fn magnitude(self) -> u64 {
        match self {
            Number::Unsigned(value) => value,
            Number::Signed(value) => value.unsigned_abs(),
            Number::Real(value) => value.abs() as u64,
        }
    }

    /// Nanoseconds.
    fn nanoseconds(self) -> i64 {
        match self {
            Number::Unsigned(value) => i64::try_from(value).unwrap_or(i64::MAX),
            Number::Signed(value) => value,
            Number::Real(value) => value as i64,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Unsigned(value) => value.fmt(f),
            Number::Signed(value) => value.fmt(f),
            Number::Real(value) => value.fmt(f),
        }
    }
}

/// The numbers of Rust as those of tables.
macro_rules! numbers {
    ($($variant:ident of $kind:ty as $wide:ty;)+) => {
        $(impl From<$kind> for Number {
            fn from(value: $kind) -> Number {
                Number::$variant(value as $wide)
            }
        })+
    };
}

numbers! {
    Unsigned of u64 as u64;
    Unsigned of u32 as u64;
    Unsigned of u8 as u64;
    Unsigned of usize as u64;
    Signed of i64 as i64;
    Real of f64 as f64;
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things: `1,234`.
    Count,
    /// Nothing: the number names something, such as a process.
    Id,
    /// Nothing: the number is an address.
    Address,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// Nanoseconds since the start of the recording: shown as seconds.
    Moment,
    /// A part of a whole, which is 1.
    Share,
    /// A probability.
    Chance,
    /// A score from 0 to 100, shown without its fraction: one below a limit does not read as the limit.
    Score,
}

/// A number with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount {
    value: Number,
    unit: Unit,
    /// The divisor, as it stands behind the unit: `/s`.
    per: &'static str,
    /// Whether it is a difference, which has a sign.
    is_change: bool,
}

impl Amount {
    /// A number in a unit.
    pub fn new(value: impl Into<Number>, unit: Unit) -> Amount {
        Amount { value: value.into(), unit, per: "", is_change: false }
    }

    /// A number in a unit of `schemas/metrics.toml`: `ns`, `bytes`, `share`, `count`, or one of these `/s`.
    pub fn in_unit(value: impl Into<Number>, name: &str) -> Amount {
        let (unit, per) = name.strip_suffix("/s").map_or((name, ""), |unit| (unit, "/s"));
        let unit = match unit {
            "ns" => Unit::Nanoseconds,
            "bytes" => Unit::Bytes,
            "share" => Unit::Share,
            _ => Unit::Count,
        };
        Amount::new(value, unit).per(per)
    }

    /// The amount divided: `/s`, `/request`.
    pub fn per(self, per: &'static str) -> Amount {
        Amount { per, ..self }
    }

    /// The amount as a difference, which is shown with its sign.
    pub fn change(self) -> Amount {
        Amount { is_change: true, ..self }
    }

    /// The number.
    pub fn value(&self) -> Number {
        self.value
    }
}

/// The one way in which numbers are written for people. What is no number is a dash, as what was not recorded.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Amount { value, unit, per, is_change } = *self;
        let real_value = value.real();
        if !real_value.is_finite() {
            return f.write_str("-");
        }
        let sign = match (real_value, is_change) {
            (value, _) if value < 0.0 => "-",
            (value, true) if value > 0.0 => "+",
            _ => "",
        };
        let whole = value.magnitude();
        let text = match unit {
            Unit::Id => whole.to_string(),
            Unit::Address => format!("{whole:#x}"),
            Unit::Bytes => size(whole),
            Unit::Nanoseconds => span(value.nanoseconds().unsigned_abs()),
            Unit::Moment => moment(value.nanoseconds()).trim_start_matches('-').to_owned(),
            Unit::Share => return write!(f, "{}{}{per}", if real_value > 0.0 { sign } else { "" }, share(real_value)),
            Unit::Chance => format!("{real_value:.3}"),
            Unit::Score => format!("{:.0}", real_value.floor()),
            Unit::Count => match value {
                Number::Real(value) => real(value.abs()),
                _ => count(whole),
            },
        };
        write!(f, "{sign}{text}{per}")
    }
}

/// A cell of a table, or a piece of a sentence.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell {
    /// A value that was not recorded, or does not apply.
    #[default]
    Missing,
    /// A name or another text of a recording, with whatever characters. Each form escapes it in its way.
    Text(String),
    /// A sentence or a query with names of a recording in it.
    Sentence(String),
    /// Words of this program.
    Words(Cow<'static, str>),
    /// Yes or no; for people a word in case it is yes.
    Flag(bool, &'static str),
    /// A number.
    Amount(Amount),
    /// One cell for programs, and another for people.
    Of(Box<(Cell, Cell)>),
}

impl Cell {
    /// A text of a recording; an empty one is missing.
    pub fn text(text: &str) -> Cell {
        if text.is_empty() { Cell::Missing } else { Cell::Text(text.to_owned()) }
    }

    /// A text of a recording that may be missing.
    pub fn optional(text: Option<&str>) -> Cell {
        text.map_or(Cell::Missing, Cell::text)
    }

    /// A sentence or a query with names of a recording in it; an empty one is missing.
    pub fn sentence(text: &str) -> Cell {
        if text.is_empty() { Cell::Missing } else { Cell::Sentence(text.to_owned()) }
    }

    /// Words of this program.
    pub fn words(words: impl Into<Cow<'static, str>>) -> Cell {
        Cell::Words(words.into())
    }

    /// A number in a unit that may be missing.
    pub fn number(value: Option<impl Into<Number>>, unit: Unit) -> Cell {
        value.map_or(Cell::Missing, |value| Cell::Amount(Amount::new(value, unit)))
    }

    /// A number of things.
    pub fn count(value: impl Into<Option<u64>>) -> Cell {
        Cell::number(value.into(), Unit::Count)
    }

    /// A number that names something.
    pub fn id(value: impl Into<Option<u64>>) -> Cell {
        Cell::number(value.into(), Unit::Id)
    }

    /// Bytes.
    pub fn size(value: impl Into<Option<u64>>) -> Cell {
        Cell::number(value.into(), Unit::Bytes)
    }

    /// Nanoseconds.
    pub fn span(value: impl Into<Option<u64>>) -> Cell {
        Cell::number(value.into(), Unit::Nanoseconds)
    }

    /// Nanoseconds with a sign.
    pub fn duration(value: impl Into<Option<i64>>) -> Cell {
        Cell::number(value.into(), Unit::Nanoseconds)
    }

    /// Nanoseconds since the start of the recording.
    pub fn moment(value: impl Into<Option<i64>>) -> Cell {
        Cell::number(value.into(), Unit::Moment)
    }

    /// A part of a whole, which is 1.
    pub fn share(value: impl Into<Option<f64>>) -> Cell {
        Cell::number(value.into(), Unit::Share)
    }

    /// A change as a part of what was before.
    pub fn change(value: impl Into<Option<f64>>) -> Cell {
        value.into().map_or(Cell::Missing, |value| Cell::Amount(Amount::new(value, Unit::Share).change()))
    }

    /// A change as a part of what was before; missing where that is 0, or one of both is not known.
    pub fn change_from(before: impl Into<Option<f64>>, now: impl Into<Option<f64>>) -> Cell {
        let both = before.into().zip(now.into()).filter(|(before, _)| *before != 0.0);
        Cell::change(both.map(|(before, now)| (now - before) / before))
    }

    /// A probability.
    pub fn chance(value: impl Into<Option<f64>>) -> Cell {
        Cell::number(value.into(), Unit::Chance)
    }

    /// A number in a unit of `schemas/metrics.toml`.
    pub fn in_unit(value: impl Into<Option<f64>>, unit: &str) -> Cell {
        value.into().map_or(Cell::Missing, |value| Cell::Amount(Amount::in_unit(value, unit)))
    }

    /// This cell for programs, and another one for people.
    pub fn shown_as(self, shown: Cell) -> Cell {
        Cell::Of(Box::new((self, shown)))
    }

    /// The cell that people see.
    pub fn for_people(&self) -> &Cell {
        match self {
            Cell::Of(both) => both.1.for_people(),
            cell => cell,
        }
    }

    /// The cell that programs get.
    pub fn for_programs(&self) -> &Cell {
        match self {
            Cell::Of(both) => both.0.for_programs(),
            cell => cell,
        }
    }

    /// Whether there is nothing: what was not recorded, and what is no number.
    pub fn is_missing(&self) -> bool {
        match self.for_people() {
            Cell::Missing => true,
            Cell::Amount(amount) => !amount.value.real().is_finite(),
            _ => false,
        }
    }

    /// The cell for people, in a form that writes foreign text by `escape` and words by `plain`. What is missing is
    /// empty.
    pub(super) fn written(&self, escape: fn(&str, usize) -> String, plain: fn(&str) -> String) -> String {
        match self.for_people() {
            cell if cell.is_missing() => String::new(),
            Cell::Text(text) => escape(text, MAX_SHOWN),
            Cell::Sentence(text) => escape(text, MAX_SENTENCE),
            Cell::Words(words) => plain(words),
            Cell::Flag(true, word) => plain(word),
            Cell::Amount(amount) => amount.to_string(),
            _ => String::new(),
        }
    }

    /// The cell as text of a terminal.
    pub fn in_text(&self) -> String {
        self.written(shown_to, clean)
    }

    /// The cell as Markdown of GitHub: names of a recording are code, in which nothing becomes a link, a mention or a
    /// command.
    pub(super) fn markdown(&self) -> String {
        self.written(code_to, |words| clean(words).replace('|', "\\|"))
    }
}

impl From<Amount> for Cell {
    fn from(amount: Amount) -> Cell {
        Cell::Amount(amount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_function_writes_a_number_with_its_unit() {
        let shown = |cell: Cell| cell.in_text();
        assert_eq!(shown(Cell::in_unit(0.7178, "share")), "71.8 %");
        assert_eq!(shown(Cell::in_unit(21.84, "count")), "21.8");
        assert_eq!(shown(Cell::in_unit(1e6, "bytes/s")), "1.00 MB/s");
        assert_eq!(shown(Cell::in_unit(0.25, "count/s")), "0.250/s");
        assert_eq!(shown(Cell::change(0.123)), "+12.3 %");
        assert_eq!(shown(Cell::change(-0.5)), "-50.0 %");
        assert_eq!(shown(Amount::new(-1500.0, Unit::Bytes).change().per("/s").into()), "-1.50 kB/s");
        assert_eq!(shown(Amount::new(0u64, Unit::Bytes).change().into()), "0 B");
        assert_eq!(shown(Cell::moment(-1_500)), "-0.000001");
        assert_eq!(shown(Cell::number(Some(74.9), Unit::Score)), "74");
    }

    #[test]
    fn what_is_no_number_is_missing() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for unit in ["ns", "bytes", "share", "count", "count/s"] {
                assert!(Cell::in_unit(value, unit).is_missing(), "{value} {unit}");
            }
        }
        assert_eq!(Amount::new(f64::NAN, Unit::Share).to_string(), "-");
    }
}
