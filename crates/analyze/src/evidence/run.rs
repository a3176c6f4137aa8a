//! Runs a query over the tables of a recording.

use std::collections::BTreeSet;

use tracequet_dataset::error::Result;
use tracequet_dataset::read::arrow_array::RecordBatch;
use tracequet_dataset::read::{Column, Recording};
use tracequet_trace::map::Map;
use tracequet_trace::pattern::fits;

use super::parse::{Expr, Operator, Query, Source};
use super::value::Value;
use crate::subjects::sites::Sites;

/// Rows of a table that are looked at, rows that are held, and groups. A page has no time for more.
const MOST_ROWS: u64 = 1 << 19;
const MOST_HELD: usize = 1 << 20;

/// The one view that tables are joined with: the own method of each call site.
const SITE: &str = "site";

/// Names of columns, and rows.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) names: Vec<String>,
    pub(super) rows: Vec<Vec<Value>>,
}

tracequet_dataset::row!(struct Trace of trace { start_ts });

/// A recording that is asked.
pub(super) struct Asked<'r> {
    recording: &'r Recording<'r>,
    /// How far into a second of the clock the recording began.
    offset_ns: i64,
}

impl<'r> Asked<'r> {
    pub(super) fn of(recording: &'r Recording<'r>) -> Result<Asked<'r>> {
        let mut asked = Asked { recording, offset_ns: 0 };
        recording.each_recorded::<Trace<'_>>(|row| asked.offset_ns = row.start_ts.rem_euclid(1_000_000) * 1000)?;
        Ok(asked)
    }

    /// The rows of a query, in their order. `None` where it asks for what is not known here, or for too much.
    pub(super) fn run(&self, query: &Query) -> Result<Option<Rows>> {
        let Some((first, joined)) = query.sources.split_first() else { return Ok(None) };
        // An order by a column of the answer is one by its expression.
        let of_item = |expression: &Expr| match expression {
            Expr::Column(name) => {
                query.items.iter().find(|(_, of)| of == name).map(|(expression, _)| expression.clone())
            }
            _ => None,
        };
        let ordered =
            query.order.iter().map(|(expression, _)| of_item(expression).unwrap_or_else(|| expression.clone()));
        let outputs: Vec<Expr> = query.items.iter().map(|(expression, _)| expression.clone()).chain(ordered).collect();
        let mut asked: BTreeSet<String> = BTreeSet::new();
        let conditions = query.only.iter().chain(joined.iter().filter_map(|source| source.on.as_ref()));
        outputs.iter().chain(conditions).for_each(|expression| columns(expression, &mut asked));
        let of_source = |source: &Source| -> Vec<String> {
            let is_alone = joined.is_empty();
            let column = |name: &String| match name.split_once('.') {
                Some((table, column)) => (table == source.name).then(|| column.to_owned()),
                None => is_alone.then(|| name.clone()),
            };
            asked.iter().filter_map(column).collect()
        };
        let mut places: Vec<String> = Vec::new();
        let mut add =
            |source: &Source, columns: &[String]| {
                places.extend(columns.iter().map(|column| {
                    if joined.is_empty() { column.clone() } else { format!("{}.{column}", source.name) }
                }));
                places.clone()
            };
        let of_first = of_source(first);
        let mut known = add(first, &of_first);
        let mut joins: Vec<Join> = Vec::new();
        for source in joined {
            let columns = of_source(source);
            let Some(pairs) = source.on.as_ref().and_then(|on| pairs(on, &source.name)) else { return Ok(None) };
            let keys: Option<Vec<Expr>> = pairs.iter().map(|(outer, _)| resolved(outer, &known, 0)).collect();
            let own: Option<Vec<usize>> =
                pairs.iter().map(|(_, own)| columns.iter().position(|column| column == own)).collect();
            let (Some(keys), Some(own)) = (keys, own) else { return Ok(None) };
            let mut by_key: Map<Vec<Value>, Vec<Vec<Value>>> = Map::default();
            let mut held = 0;
            let is_whole = self.scan(source, &columns, &mut |row| {
                let key: Vec<Value> = own.iter().filter_map(|place| row.get(*place).cloned()).collect();
                if !key.iter().any(Value::is_null) {
                    by_key.entry(key).or_default().push(row);
                    held += 1;
                }
                held <= MOST_HELD
            })?;
            if !is_whole {
                return Ok(None);
            }
            joins.push(Join { keys, by_key, is_left: source.is_left, width: columns.len() });
            known = add(source, &columns);
        }
        let offset_ns = self.offset_ns;
        let resolved = |expression: &Expr| resolved(expression, &known, offset_ns);
        let only = match query.only.as_ref().map(resolved) {
            Some(None) => return Ok(None),
            only => only.flatten(),
        };
        let Some(outputs) = outputs.iter().map(resolved).collect::<Option<Vec<Expr>>>() else { return Ok(None) };
        let Some(mut answer) = Answer::of(outputs, query.is_grouped) else { return Ok(None) };
        let is_whole = self.scan(first, &of_first, &mut |row| {
            each_joined(&joins, row, &mut |row| {
                only.as_ref().is_some_and(|only| !value(only, row).holds()) || answer.take(row)
            })
        })?;
        if !is_whole {
            return Ok(None);
        }
        let mut rows = answer.finish();
        let width = query.items.len();
        rows.sort_by(|a, b| {
            let keys = query.order.iter().zip(a.iter().skip(width).zip(b.iter().skip(width)));
            let orders = keys.map(|((_, is_largest_first), (a, b))| match (a.is_null(), b.is_null()) {
                (false, false) if *is_largest_first => b.cmp(a),
                _ => a.cmp(b),
            });
            orders.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        });
        rows.truncate(query.limit);
        rows.iter_mut().for_each(|row| row.truncate(width));
        Ok(Some(Rows { names: query.items.iter().map(|(_, name)| name.clone()).collect(), rows }))
    }

    /// Calls `take` with columns of each row of a table, until it does not go on. Returns whether all were taken.
    fn scan(&self, source: &Source, columns: &[String], take: &mut dyn FnMut(Vec<Value>) -> bool) -> Result<bool> {
        let name = source.table.as_str();
        if name == SITE {
            return self.sites(columns, take);
        }
        let Some(table) = self.recording.table(name).ok().filter(|_| self.is_small(name)) else { return Ok(false) };
        // A time is read as it is exact.
        let exact = |column: &String| match column.as_str() {
            time if time == "ts" || time.ends_with("_ts") => format!("{time}_ns"),
            other => other.to_owned(),
        };
        let names: Vec<String> = columns.iter().map(exact).collect();
        for batch in table.scan().columns(names.iter().cloned()).batches()? {
            let batch = batch?;
            let cells = names.iter().map(|name| Cells::of(&batch, name)).collect::<Result<Vec<_>>>()?;
            for row in 0..batch.num_rows() {
                if !take(cells.iter().map(|cells| cells.at(row)).collect()) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn is_small(&self, table: &str) -> bool {
        self.recording.tables().any(|known| known.name == table && known.rows <= MOST_ROWS)
    }

    /// The rows of [`SITE`].
    fn sites(&self, columns: &[String], take: &mut dyn FnMut(Vec<Value>) -> bool) -> Result<bool> {
        let is_known = |column: &String| ["callsite_id", "own_method"].contains(&column.as_str());
        if !self.is_small("callsite") || !columns.iter().all(is_known) {
            return Ok(false);
        }
        let sites = Sites::read(self.recording)?;
        let value = |site: u32, column: &String| match column.as_str() {
            "callsite_id" => Value::Number(f64::from(site)),
            _ => sites.own_method(site).map_or(Value::Null, Value::text),
        };
        Ok(sites.ids().all(|site| take(columns.iter().map(|column| value(site, column)).collect())))
    }
}

/// The rows of a source by the values of what they are asked by.
struct Join {
    keys: Vec<Expr>,
    by_key: Map<Vec<Value>, Vec<Vec<Value>>>,
    is_left: bool,
    width: usize,
}

/// Calls `take` with a row and each of those that belong to it, until it does not go on.
fn each_joined(joins: &[Join], row: Vec<Value>, take: &mut dyn FnMut(&[Value]) -> bool) -> bool {
    let Some((join, rest)) = joins.split_first() else { return take(&row) };
    let key: Vec<Value> = join.keys.iter().map(|key| value(key, &row)).collect();
    let found = join.by_key.get(&key).filter(|_| !key.iter().any(Value::is_null));
    let nothing = vec![vec![Value::Null; join.width]];
    let found = found.or(join.is_left.then_some(&nothing));
    found.into_iter().flatten().all(|more| each_joined(rest, [row.as_slice(), more.as_slice()].concat(), take))
}

/// What a join asks: values of the sources before, and the columns that they equal.
fn pairs<'e>(on: &'e Expr, name: &str) -> Option<Vec<(&'e Expr, &'e str)>> {
    match on {
        Expr::Is(value) if value.holds() => Some(Vec::new()),
        Expr::Two(left, Operator::And, right) => Some([pairs(left, name)?, pairs(right, name)?].concat()),
        Expr::Two(left, Operator::Equal, right) => {
            let own = |side: &'e Expr| match side {
                Expr::Column(column) => {
                    column.split_once('.').filter(|(table, _)| *table == name).map(|(_, column)| column)
                }
                _ => None,
            };
            match (own(left), own(right)) {
                (Some(column), None) => Some(vec![(&**right, column)]),
                (None, Some(column)) => Some(vec![(&**left, column)]),
                _ => None,
            }
        }
        _ => None,
    }
}

fn columns(expression: &Expr, found: &mut BTreeSet<String>) {
    match expression {
        Expr::Column(name) => {
            found.insert(name.clone());
        }
        Expr::At(_) | Expr::Is(_) => {}
        Expr::Not(of) => columns(of, found),
        Expr::Two(left, _, right) => [left, right].into_iter().for_each(|side| columns(side, found)),
        Expr::Call(_, of) => of.iter().for_each(|part| columns(part, found)),
    }
}

const SUMS: [&str; 5] = ["sum", "count", "count distinct", "max", "min"];

/// The expression over places of a row. `None` where it has a column or a function that is not known.
fn resolved(expression: &Expr, known: &[String], offset_ns: i64) -> Option<Expr> {
    let of = |expression: &Expr| resolved(expression, known, offset_ns);
    Some(match expression {
        Expr::Column(name) => Expr::At(known.iter().position(|known| known == name)?),
        Expr::At(_) | Expr::Is(_) => expression.clone(),
        Expr::Not(inner) => Expr::Not(Box::new(of(inner)?)),
        Expr::Two(left, operator, right) => Expr::Two(Box::new(of(left)?), *operator, Box::new(of(right)?)),
        Expr::Call(name, parts) => {
            let mut parts: Vec<Expr> = parts.iter().map(of).collect::<Option<_>>()?;
            if name == "date_trunc" && parts.first() == Some(&Expr::Is(Value::text("second"))) {
                parts.push(Expr::Is(Value::Number(offset_ns as f64)));
            } else if !SUMS.contains(&name.as_str()) {
                return None;
            }
            Expr::Call(name.clone(), parts)
        }
    })
}

/// The value of an expression without sums.
fn value(expression: &Expr, row: &[Value]) -> Value {
    match expression {
        Expr::At(place) => row.get(*place).cloned().unwrap_or(Value::Null),
        Expr::Is(value) => value.clone(),
        Expr::Column(_) => Value::Null,
        Expr::Not(of) => match value(of, row) {
            Value::Null => Value::Null,
            of => Value::flag(!of.holds()),
        },
        Expr::Two(left, operator, right) => of_two(&value(left, row), *operator, || value(right, row)),
        // A second of the clock: the other functions are sums.
        Expr::Call(_, of) => match (of.get(1).map(|at| value(at, row)), of.get(2).map(|offset| value(offset, row))) {
            (Some(Value::Number(at)), Some(Value::Number(offset))) => {
                Value::Number(((at + offset) / 1e9).floor() * 1e9 - offset)
            }
            _ => Value::Null,
        },
    }
}

fn of_two(left: &Value, operator: Operator, right: impl FnOnce() -> Value) -> Value {
    let decides = match operator {
        Operator::And => !left.is_null() && !left.holds(),
        Operator::Or => left.holds(),
        _ => false,
    };
    if decides {
        return left.clone();
    }
    let right = right();
    match operator {
        Operator::And if !right.is_null() && !right.holds() => return right,
        Operator::Or if right.holds() => return right,
        Operator::Differs => return Value::flag(*left != right),
        _ if left.is_null() || right.is_null() => return Value::Null,
        _ => {}
    }
    let numbers = left.number().zip(right.number());
    let number = |of: fn(f64, f64) -> f64| {
        numbers
            .map(|(left, right)| of(left, right))
            .filter(|number| number.is_finite())
            .map_or(Value::Null, Value::Number)
    };
    match operator {
        Operator::Plus => number(|left, right| left + right),
        Operator::Minus => number(|left, right| left - right),
        Operator::Times => number(|left, right| left * right),
        Operator::By => number(|left, right| left / right),
        Operator::And | Operator::Or => right,
        Operator::Like => {
            Value::flag(left.as_text().zip(right.as_text()).is_some_and(|(text, like)| is_like(text, like)))
        }
        Operator::Equal => Value::flag(*left == right),
        Operator::Unequal | Operator::Differs => Value::flag(*left != right),
        Operator::Less => Value::flag(*left < right),
        Operator::AtMost => Value::flag(*left <= right),
        Operator::More => Value::flag(*left > right),
        Operator::AtLeast => Value::flag(*left >= right),
    }
}

/// Whether a text has a form, in which `%` is any text and `_` any character.
fn is_like(text: &str, form: &str) -> bool {
    let (text, form): (Vec<char>, Vec<char>) = (text.chars().collect(), form.chars().collect());
    fits(&text, &form, '%', |form, letter| form.first().filter(|own| **own == '_' || **own == letter).map(|_| 1))
}

/// A sum in the making.
#[derive(Clone, Debug, Default)]
struct Sum {
    count: u64,
    sum: f64,
    best: Option<Value>,
    seen: BTreeSet<Value>,
}

impl Sum {
    fn add(&mut self, name: &str, value: Value) {
        if value.is_null() {
            return;
        }
        self.count += 1;
        let is_better = |best: &Value| match name {
            "max" => value > *best,
            "min" => value < *best,
            _ => false,
        };
        match name {
            "sum" => self.sum += value.number().unwrap_or_default(),
            "count" => {}
            "count distinct" => {
                self.seen.insert(value);
            }
            _ if self.best.as_ref().is_none_or(is_better) => self.best = Some(value),
            _ => {}
        }
    }

    fn finish(&self, name: &str) -> Value {
        match name {
            "count" => Value::Number(self.count as f64),
            "count distinct" => Value::Number(self.seen.len() as f64),
            "sum" if self.count > 0 => Value::Number(self.sum),
            _ => self.best.clone().unwrap_or(Value::Null),
        }
    }
}

/// The rows of the answer in the making.
struct Answer {
    /// Of each column an expression over the keys, and behind them the sums.
    outputs: Vec<Expr>,
    keys: Vec<Expr>,
    sums: Vec<(String, Option<Expr>)>,
    is_grouped: bool,
    groups: Map<Vec<Value>, Vec<Sum>>,
    rows: Vec<Vec<Value>>,
}

impl Answer {
    /// `None` where there are sums of no groups.
    fn of(outputs: Vec<Expr>, is_grouped: bool) -> Option<Answer> {
        let mut answer = Answer {
            outputs: Vec::new(),
            keys: Vec::new(),
            sums: Vec::new(),
            is_grouped,
            groups: Map::default(),
            rows: Vec::new(),
        };
        let keys = outputs.iter().filter(|output| !has_sum(output)).count();
        if !is_grouped {
            return (keys == outputs.len()).then_some(Answer { outputs, ..answer });
        }
        for output in outputs {
            let of_groups = if has_sum(&output) {
                answer.of_sums(output, keys)
            } else {
                answer.keys.push(output);
                Expr::At(answer.keys.len() - 1)
            };
            answer.outputs.push(of_groups);
        }
        Some(answer)
    }

    /// The expression with places of sums for what they are made of.
    fn of_sums(&mut self, expression: Expr, keys: usize) -> Expr {
        match expression {
            Expr::Call(name, of) if SUMS.contains(&name.as_str()) => {
                self.sums.push((name, of.into_iter().next()));
                Expr::At(keys + self.sums.len() - 1)
            }
            Expr::Two(left, operator, right) => {
                Expr::Two(Box::new(self.of_sums(*left, keys)), operator, Box::new(self.of_sums(*right, keys)))
            }
            other => other,
        }
    }

    /// Takes a row. Returns whether there is room for more.
    fn take(&mut self, row: &[Value]) -> bool {
        if !self.is_grouped {
            self.rows.push(self.outputs.iter().map(|output| value(output, row)).collect());
            return self.rows.len() < MOST_HELD;
        }
        let key: Vec<Value> = self.keys.iter().map(|key| value(key, row)).collect();
        let sums = self.groups.entry(key).or_insert_with(|| vec![Sum::default(); self.sums.len()]);
        for (sum, (name, of)) in sums.iter_mut().zip(&self.sums) {
            sum.add(name, of.as_ref().map_or(Value::flag(true), |of| value(of, row)));
        }
        self.groups.len() < MOST_HELD
    }

    fn finish(self) -> Vec<Vec<Value>> {
        let Answer { outputs, sums, is_grouped, groups, rows, .. } = self;
        if !is_grouped {
            return rows;
        }
        let row = |(key, of_key): (Vec<Value>, Vec<Sum>)| {
            let sums = of_key.iter().zip(&sums).map(|(sum, (name, _))| sum.finish(name));
            let all: Vec<Value> = key.into_iter().chain(sums).collect();
            outputs.iter().map(|output| value(output, &all)).collect()
        };
        let mut rows: Vec<Vec<Value>> = groups.into_iter().map(row).collect();
        // Of those that are equal in the order the same one comes first each time.
        rows.sort_unstable();
        rows
    }
}

fn has_sum(expression: &Expr) -> bool {
    match expression {
        Expr::Call(name, _) => SUMS.contains(&name.as_str()),
        Expr::Two(left, _, right) => has_sum(left) || has_sum(right),
        Expr::Not(of) => has_sum(of),
        _ => false,
    }
}

/// A column of a batch, with its words where it has a dictionary.
struct Cells<'b> {
    column: Column<'b>,
    words: Vec<Value>,
}

impl<'b> Cells<'b> {
    fn of(batch: &'b RecordBatch, name: &str) -> Result<Cells<'b>> {
        let column = Column::of(batch, name)?;
        let words = column
            .words()
            .into_iter()
            .flat_map(|(_, words)| words.iter().map(|word| word.map_or(Value::Null, Value::text)));
        Ok(Cells { column, words: words.collect() })
    }

    fn at(&self, row: usize) -> Value {
        let text = self.column.text(row);
        // The text of a dictionary is not copied for each row.
        let key =
            self.column.words().filter(|_| text.is_some()).and_then(|(keys, _)| usize::try_from(keys.value(row)).ok());
        let word = key.and_then(|key| self.words.get(key).cloned());
        word.or_else(|| text.map(Value::text))
            .or_else(|| self.column.real(row).map(Value::Number))
            .unwrap_or(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_texts_are_those_of_sql() {
        let holds =
            [("Induced", "Induced%"), ("abc", "a_c"), ("xaab", "%ab"), ("", "%"), ("a.b", "%.%"), ("aXbXc", "a%X%c")];
        holds.iter().for_each(|(text, form)| assert!(is_like(text, form), "{text} {form}"));
        for (text, form) in [("Induced", "induced%"), ("ab", "a_c"), ("xabz", "%ab"), ("a", "")] {
            assert!(!is_like(text, form), "{text} {form}");
        }
    }

    #[test]
    fn what_is_not_known_neither_holds_nor_fails() {
        let of = |left: Value, operator, right: Value| of_two(&left, operator, || right);
        let (yes, no) = (Value::flag(true), Value::flag(false));
        assert_eq!(of(Value::Null, Operator::And, no.clone()), no);
        assert!(of(Value::Null, Operator::And, yes.clone()).is_null());
        assert_eq!(of(Value::Null, Operator::Or, yes.clone()), yes);
        assert!(of(Value::Null, Operator::Equal, Value::Null).is_null());
        assert_eq!(of(Value::Null, Operator::Differs, Value::Null), no);
        assert!(of(Value::Number(1.0), Operator::By, Value::Number(0.0)).is_null());
    }
}
