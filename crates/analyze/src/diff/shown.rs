//! A difference in tables and words. The command line and the page show the same ones, and programs get all rows of them.

use super::findings::{FindingChange, SideFinding};
use super::heap::TypeChange;
use super::measure::Measured;
use super::metrics::MetricRow;
use super::sections::{Per, Row, Section, Side, Value};
use super::sums::{Absent, Subject};
use crate::metrics::{Names, definition_of};
use crate::present::Unit::{Bytes, Count, Score};
use crate::present::{Amount, Cell, Color, Column, Table, numbers, table, words};
use crate::profile::Unit;
use crate::subjects::sites::unsure;

const CHANCE: Column =
    numbers("chance", "Probability of such a change by chance, with four recordings or more on each side")
        .key("chance");
const PERCENT: Column = numbers("%", "The change as a share of the value before");

/// An amount in its unit, divided by what the difference divides by.
pub fn amount(unit: Unit, per: Per, value: f64) -> Amount {
    Amount::in_unit(value, unit.word()).per(per.suffix())
}

impl Per {
    /// The words behind a unit: `/s`.
    pub fn suffix(self) -> &'static str {
        match self {
            Per::Request => "/request",
            Per::Second => "/s",
            Per::Recording => "",
        }
    }
}

impl Subject {
    /// The heading of its section.
    pub fn title(self) -> &'static str {
        match self {
            Subject::Cpu => "CPU",
            Subject::Allocation => "Allocations",
            Subject::Exception => "Exceptions",
            Subject::Contention => "Locks",
            Subject::Wait => "Waits",
        }
    }
}

impl Absent {
    /// The reason as the end of a sentence.
    pub fn why(self) -> String {
        match self {
            Absent::Events(missing) => missing.why().to_owned(),
            Absent::Table(table) => format!("its dataset was made without the table {table}"),
        }
    }
}

impl Row {
    /// The own method, or the reason why it is not known.
    fn shown(&self) -> Cell {
        let Row { place, may_belong_to, .. } = self;
        match (&place.own_method, may_belong_to) {
            (Some(method), Some(others)) => Cell::text(&unsure(method, others)),
            (Some(method), None) => Cell::text(method),
            (None, _) if !place.has_stack => Cell::words("(no call stack)"),
            (None, _) if place.is_unnamed => Cell::words("(names were not recorded)"),
            (None, _) => Cell::words("(no code of your own)"),
        }
    }
}

impl Section {
    /// All there is of the subject on both sides: `1.25 s/s before; 1.50 s/s now`.
    pub fn totals(&self, base: &[Measured], new: &[Measured], per: Per) -> String {
        let side = |side: &Side, of: &[Measured], when: &str| match (&side.total, side.absent) {
            (_, Some(absent)) => format!("nothing is known {when}: {}", absent.why()),
            (Some(total), None) => {
                let shown =
                    total.per(per).map_or_else(|| "-".to_owned(), |value| amount(self.unit, per, value).to_string());
                let missing = of.len() - side.recordings;
                let missing = if missing > 0 { format!(" (not recorded in {missing})") } else { String::new() };
                format!("{shown} {when}{missing}")
            }
            (None, None) => format!("- {when}"),
        };
        format!("{}; {}", side(&self.base, base, "before"), side(&self.new, new, "now"))
    }

    /// A row for each method. `beside` is the head of what rows are distinguished by beside their own method.
    pub fn table(&self, per: Per, beside: Option<&'static str>, with_noise: bool) -> Table {
        let people = [
            numbers("change", "The amount now less that before").key("change"),
            PERCENT,
            numbers("before", "The median of the base"),
            numbers("now", "The median of the new side"),
            numbers("share", "Of all there is now, or was before"),
            CHANCE,
            words("own method", "The nearest one on the stack that is not the framework's").key("own_method"),
        ];
        let raw = [
            "has_stack", "is_unnamed", "may_belong_to", "method", "type", "is_noise", "base.count", "base.amount",
            "base.share", "base.per_second", "base.per_request", "new.count", "new.amount", "new.share",
            "new.per_second", "new.per_request",
        ];
        let beside_column = beside.map(|head| words(head, "What rows of one own method differ by"));
        let columns = people.into_iter().chain(raw.map(Column::raw)).chain(beside_column);
        let mut table = Table::new(format!("{}-table", self.subject.word()), &columns.collect::<Vec<_>>());
        for row in self.rows.iter().filter(|row| with_noise || !row.is_noise) {
            let Row { place, base, new, .. } = row;
            let [before, now] = [base, new].map(|side| side.and_then(|value| value.per(per)));
            let in_unit = |value: Option<f64>| value.map(|value| amount(self.unit, per, value));
            let cell = |amount: Option<Amount>| amount.map_or(Cell::Missing, Cell::from);
            let mut cells = vec![
                cell(in_unit(row.change).map(Amount::change)),
                Cell::change_from(before, now),
                cell(in_unit(before)),
                cell(in_unit(now)),
                Cell::share(new.or(*base).and_then(|value| value.share)),
                Cell::chance(row.chance),
                Cell::optional(place.own_method.as_deref()).shown_as(row.shown()),
                Cell::Flag(place.has_stack, ""),
                Cell::Flag(place.is_unnamed, ""),
                Cell::optional(row.may_belong_to.as_deref()),
                Cell::optional(place.method.as_deref()),
                Cell::optional(place.type_name.as_deref()),
                Cell::Flag(row.is_noise, ""),
            ];
            cells.extend([base, new].into_iter().flat_map(|side| raw_cells(*side)));
            cells.extend(beside.map(|_| Cell::optional(place.method.as_deref().or(place.type_name.as_deref()))));
            table.row(cells);
        }
        table
    }
}

/// A value as programs get it.
fn raw_cells(value: Option<Value>) -> [Cell; 5] {
    let of = |get: fn(Value) -> Option<f64>| Cell::number(value.and_then(get), Count);
    [of(|v| Some(v.count)), of(|v| Some(v.amount)), of(|v| v.share), of(|v| v.per_second), of(|v| v.per_request)]
}

/// The way a change goes. Where nothing says that chance did not make it, it has a question mark.
fn way(what: &'static str, toward: &'static str) -> String {
    match (what, toward) {
        ("unclear", "better" | "worse") => format!("{toward}?"),
        ("unclear", "other") => toward.to_owned(),
        _ => what.replace('_', " "),
    }
}

/// The colour of a change, by its word: red for `worse` and `came`, green for `better` and `went`.
pub fn color_of(what: &str) -> Option<Color> {
    match what {
        "worse" | "came" => Some(Color::Red),
        "better" | "went" => Some(Color::Green),
        _ => None,
    }
}

/// A row for each finding.
pub fn findings_table(all: &[FindingChange], with_noise: bool) -> Table {
    table!("findings-table", all.iter().filter(|change| with_noise || !change.is_noise), |change| color color_of(what), {
        let FindingChange { what, toward, base, new, finding, .. } = change;
        let score = |side: &SideFinding| {
            let score = Cell::number(side.score, Score);
            let shown = format!("{} {}", side.verdict.word().replace('_', " "), score.in_text());
            score.shown_as(Cell::words(shown.trim_end().to_owned()))
        };
    } {
        words("change", "came and went: the other side was judged; only: it could not be; ?: chance may have made it").key("what") =>
            Cell::words(*what).shown_as(Cell::words(way(what, toward))),
        numbers("before", "The verdict, with its score from 0 to 100").key("base.score") => score(base),
        numbers("now", "The verdict, with its score from 0 to 100").key("new.score") => score(new),
        CHANCE => Cell::chance(change.chance),
        words("rule", "docs/FINDINGS.md has them").key("rule") => Cell::text(&change.rule),
        words("own method", "Where it comes from").key("own_method") => Cell::optional(finding.own_method.as_deref()),
        words("sentence", "Of the side that has it").key("sentence") => Cell::sentence(&finding.sentence),
        words("next step", "A command that shows more").key("next_step") => Cell::sentence(&finding.next_step),
        Column::raw("toward") => Cell::words(*toward),
        Column::raw("base.verdict") => Cell::words(base.verdict.word()),
        Column::raw("base.recordings") => Cell::count(base.recordings as u64),
        Column::raw("new.verdict") => Cell::words(new.verdict.word()),
        Column::raw("new.recordings") => Cell::count(new.recordings as u64),
        Column::raw("is_noise") => Cell::Flag(change.is_noise, ""),
        Column::raw("subject") => Cell::optional(finding.subject.as_deref()),
        Column::raw("doc") => Cell::text(&finding.doc),
    }).with_sentences(3)
}

/// A row for each metric.
pub fn metrics_table(all: &[MetricRow], with_noise: bool) -> Table {
    let names = Names::of(all.iter().map(|row| row.change.metric.as_str()));
    table!("metrics-table", all.iter().filter(|row| with_noise || !row.is_noise), |MetricRow { change, is_noise, .. }| color color_of(change.what), {
        let unit = definition_of(&change.metric).ok().flatten().map_or("", |definition| definition.unit.as_str());
    } {
        words("change", "better or worse; other where neither way is good; ?: chance may have made it").key("what") =>
            Cell::words(change.what).shown_as(Cell::words(way(change.what, change.toward))),
        words("metric", "docs/METRICS.md has the definition of each").key("metric") =>
            Cell::text(&change.metric).shown_as(Cell::text(&names.shown(&change.metric))),
        numbers("before", "The median of the base").key("base") => Cell::in_unit(change.base, unit),
        numbers("now", "The median of the new side").key("new") => Cell::in_unit(change.new, unit),
        PERCENT => Cell::change_from(change.base, change.new),
        CHANCE => Cell::chance(change.chance),
        Column::raw("toward") => Cell::words(change.toward),
        Column::raw("is_noise") => Cell::Flag(*is_noise, ""),
    })
}

/// A row for each type on the heap.
pub fn types_table(all: &[TypeChange], with_noise: bool) -> Table {
    table!("heap-table", all.iter().filter(|change| with_noise || !change.is_noise()), |change| {
        let TypeChange { base, new, .. } = change;
        let with_sign = |value: f64, unit| Cell::from(Amount::new(value, unit).change());
        let number = |value: f64, unit| Cell::number(Some(value), unit);
    } {
        numbers("bytes", "Now less before") => with_sign(change.size_bytes(), Bytes),
        numbers("%", "The change as a share of the bytes before") => Cell::change_from(base.size_bytes, new.size_bytes),
        numbers("objects", "Now less before") => with_sign(change.objects(), Count),
        numbers("retained", "Bytes that would be freed with them, now less before") =>
            with_sign(change.retained_bytes(), Bytes),
        numbers("before", "Bytes").key("base.size_bytes") => number(base.size_bytes, Bytes),
        numbers("now", "Bytes").key("new.size_bytes") => number(new.size_bytes, Bytes),
        numbers("chance", "Probability of such a change by chance, with four heap dumps or more on each side").key("chance") =>
            Cell::chance(change.chance),
        words("type", "Of the objects in the last heap dump of each recording").key("type") => Cell::text(&change.name),
        Column::raw("base.objects") => number(base.objects, Count),
        Column::raw("new.objects") => number(new.objects, Count),
        Column::raw("base.retained_bytes") => number(base.retained_bytes, Bytes),
        Column::raw("new.retained_bytes") => number(new.retained_bytes, Bytes),
        Column::raw("is_noise") => Cell::Flag(change.is_noise(), ""),
    })
}
