//! Reads a query. A recording's dataset has its text, so that it may be anything.

use super::value::Value;

/// Bytes of a query, and how deep its parts may lie in each other.
const MAX_BYTES: usize = 8 << 10;
const MAX_DEPTH: usize = 40;

/// What is asked for.
#[derive(Debug)]
pub(super) struct Query {
    /// Expressions and their names.
    pub(super) items: Vec<(Expr, String)>,
    pub(super) sources: Vec<Source>,
    pub(super) only: Option<Expr>,
    pub(super) is_grouped: bool,
    /// Expressions, and whether the largest comes first.
    pub(super) order: Vec<(Expr, bool)>,
    pub(super) limit: usize,
}

/// A table with its name in the query.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) table: String,
    pub(super) name: String,
    /// Whether rows without one of these stay.
    pub(super) is_left: bool,
    /// The condition under which a row belongs to one of the sources before.
    pub(super) on: Option<Expr>,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Column(String),
    /// The value at a place of a row.
    At(usize),
    Is(Value),
    Not(Box<Expr>),
    Two(Box<Expr>, Operator, Box<Expr>),
    /// A function or a sum.
    Call(String, Vec<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
    Like,
    /// Unequal, where nothing is a value, too.
    Differs,
    Plus,
    Minus,
    Times,
    By,
}

/// The operators that compare, and those of numbers.
const COMPARING: [(&str, Operator); 8] = [
    ("=", Operator::Equal),
    ("<>", Operator::Unequal),
    ("!=", Operator::Unequal),
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("<", Operator::Less),
    (">", Operator::More),
    ("LIKE", Operator::Like),
];
const SUMS: [(&str, Operator); 2] = [("+", Operator::Plus), ("-", Operator::Minus)];
const PRODUCTS: [(&str, Operator); 2] = [("*", Operator::Times), ("/", Operator::By)];

#[derive(Debug, PartialEq)]
enum Token {
    /// A name, a word of SQL, or a sign.
    Word(String),
    Text(String),
    Number(f64),
}

fn tokens(sql: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = sql.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let length = |fits: &dyn Fn(char) -> bool| rest.find(|c| !fits(c)).unwrap_or(rest.len());
        let end = match first {
            '\'' => {
                let mut end = 1;
                loop {
                    end += rest.get(end..)?.find('\'')? + 1;
                    if rest.get(end..)?.starts_with('\'') { end += 1 } else { break }
                }
                tokens.push(Token::Text(rest.get(1..end - 1)?.replace("''", "'")));
                end
            }
            '0'..='9' => {
                let end = length(&is_name);
                tokens.push(Token::Number(rest.get(..end)?.parse().ok()?));
                end
            }
            first => {
                let two = rest.get(..2).filter(|two| ["<=", ">=", "<>", "!="].contains(two));
                let end = if is_name(first) { length(&is_name) } else { two.map_or(first.len_utf8(), str::len) };
                tokens.push(Token::Word(rest.get(..end)?.to_owned()));
                end
            }
        };
        rest = rest.get(end..)?.trim_start();
    }
    Some(tokens)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

/// Words that end a list of tables or of expressions.
const ENDS: [&str; 8] = ["JOIN", "LEFT", "ON", "WHERE", "GROUP", "ORDER", "LIMIT", "AS"];

/// Reads a query. `None` where it is of another form.
pub(super) fn query(sql: &str) -> Option<Query> {
    let tokens = tokens(sql).filter(|_| sql.len() <= MAX_BYTES)?;
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    let query = parser.query()?;
    (parser.at == parser.tokens.len()).then_some(query)
}

impl Parser {
    /// Goes behind these words, if they come next.
    fn takes(&mut self, words: &str) -> bool {
        let count = words.split(' ').count();
        let next = self.tokens.get(self.at..self.at + count).unwrap_or_default();
        let fits = next.len() == count
            && next.iter().zip(words.split(' ')).all(|(token, word)| matches!(token, Token::Word(is) if is == word));
        self.at += if fits { count } else { 0 };
        fits
    }

    fn must(&mut self, words: &str) -> Option<()> {
        self.takes(words).then_some(())
    }

    /// A name that is no word of the form.
    fn name(&mut self) -> Option<String> {
        let Some(Token::Word(word)) = self.tokens.get(self.at) else { return None };
        let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic()) && !ENDS.contains(&word.as_str());
        let name = is_name.then(|| word.clone())?;
        self.at += 1;
        Some(name)
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Parser) -> Option<T>) -> Option<Vec<T>> {
        let mut all = vec![one(self)?];
        while self.takes(",") {
            all.push(one(self)?);
        }
        Some(all)
    }

    fn query(&mut self) -> Option<Query> {
        self.must("SELECT")?;
        let items = self.list(Parser::item)?;
        self.must("FROM")?;
        let mut sources = vec![self.source(false)?];
        loop {
            let is_left = self.takes("LEFT JOIN");
            if !is_left && !self.takes("JOIN") {
                break;
            }
            sources.push(self.source(is_left)?);
            self.must("ON")?;
            let on = self.expression()?;
            sources.last_mut()?.on = Some(on);
        }
        let only = if self.takes("WHERE") { Some(self.expression()?) } else { None };
        let is_grouped = self.takes("GROUP BY ALL");
        let order = if self.takes("ORDER BY") { self.list(Parser::order)? } else { Vec::new() };
        let limit = match self.takes("LIMIT").then(|| self.tokens.get(self.at)) {
            None => usize::MAX,
            Some(Some(Token::Number(limit))) => {
                self.at += 1;
                *limit as usize
            }
            Some(_) => return None,
        };
        Some(Query { items, sources, only, is_grouped, order, limit })
    }

    fn item(&mut self) -> Option<(Expr, String)> {
        let expression = self.expression()?;
        if self.takes("AS") {
            return Some((expression, self.name()?));
        }
        match &expression {
            Expr::Column(column) => {
                let name = column.rsplit('.').next().unwrap_or(column).to_owned();
                Some((expression, name))
            }
            _ => None,
        }
    }

    fn source(&mut self, is_left: bool) -> Option<Source> {
        let table = self.name()?;
        let name = self.name().unwrap_or_else(|| table.clone());
        Some(Source { table, name, is_left, on: None })
    }

    fn order(&mut self) -> Option<(Expr, bool)> {
        let expression = self.expression()?;
        let is_largest_first = self.takes("DESC");
        // Null comes last anyway.
        self.takes("NULLS LAST");
        Some((expression, is_largest_first))
    }

    fn expression(&mut self) -> Option<Expr> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let mut expression = self.and()?;
        while self.takes("OR") {
            expression = two(expression, Operator::Or, self.and()?);
        }
        self.depth -= 1;
        Some(expression)
    }

    fn and(&mut self) -> Option<Expr> {
        let mut expression = self.not()?;
        while self.takes("AND") {
            expression = two(expression, Operator::And, self.not()?);
        }
        Some(expression)
    }

    fn not(&mut self) -> Option<Expr> {
        let is_not = self.takes("NOT");
        let expression = self.comparison()?;
        Some(if is_not { Expr::Not(Box::new(expression)) } else { expression })
    }

    fn comparison(&mut self) -> Option<Expr> {
        let left = self.sum()?;
        let found = if self.takes("IS") {
            let is_not = self.takes("NOT");
            self.must("NULL")?;
            let is_known = two(left, Operator::Differs, Expr::Is(Value::Null));
            return Some(if is_not { is_known } else { Expr::Not(Box::new(is_known)) });
        } else {
            let is_not = self.takes("NOT");
            (is_not, COMPARING.iter().find(|(word, _)| self.takes(word)).map(|(_, operator)| *operator))
        };
        let expression = match found {
            (_, Some(operator)) => {
                let right = self.sum()?;
                // A query is asked of one recording.
                let is_key =
                    |side: &Expr| matches!(side, Expr::Column(name) if name.rsplit('.').next() == Some("trace_id"));
                if is_key(&left) || is_key(&right) { Expr::Is(Value::flag(true)) } else { two(left, operator, right) }
            }
            _ if self.takes("IN (") => {
                let values = self.list(Parser::sum)?;
                self.must(")")?;
                let equal = values.into_iter().map(|value| two(left.clone(), Operator::Equal, value));
                equal.reduce(|all, one| two(all, Operator::Or, one))?
            }
            (false, _) => return Some(left),
            (true, _) => return None,
        };
        Some(if found.0 { Expr::Not(Box::new(expression)) } else { expression })
    }

    fn sum(&mut self) -> Option<Expr> {
        let mut expression = self.product()?;
        while let Some((_, operator)) = SUMS.iter().find(|(sign, _)| self.takes(sign)) {
            expression = two(expression, *operator, self.product()?);
        }
        Some(expression)
    }

    fn product(&mut self) -> Option<Expr> {
        let mut expression = self.one()?;
        while let Some((_, operator)) = PRODUCTS.iter().find(|(sign, _)| self.takes(sign)) {
            expression = two(expression, *operator, self.one()?);
        }
        Some(expression)
    }

    fn one(&mut self) -> Option<Expr> {
        if self.takes("(") {
            let expression = self.expression()?;
            self.must(")")?;
            return Some(expression);
        }
        let value = match self.tokens.get(self.at)? {
            Token::Text(text) => Value::text(text),
            Token::Number(number) => Value::Number(*number),
            Token::Word(_) => return self.named(),
        };
        self.at += 1;
        Some(Expr::Is(value))
    }

    /// A column or a call.
    fn named(&mut self) -> Option<Expr> {
        let name = self.name()?;
        if !self.takes("(") {
            return Some(Expr::Column(name));
        }
        let name = if self.takes("DISTINCT") { name + " distinct" } else { name };
        let of = match self.takes("*") || self.tokens.get(self.at) == Some(&Token::Word(")".to_owned())) {
            true => Vec::new(),
            false => self.list(Parser::expression)?,
        };
        self.must(")")?;
        Some(Expr::Call(name, of))
    }
}

fn two(left: Expr, operator: Operator, right: Expr) -> Expr {
    Expr::Two(Box::new(left), operator, Box::new(right))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_its_parts() {
        let asked = query(
            "SELECT p.gc_id, sum(a + b) / 1e6 AS ms, count(*) AS n FROM gc_pause p LEFT JOIN gc g ON g.trace_id = p.trace_id AND \
             g.gc_id = p.gc_id WHERE p.trace_id = 'it''s' AND p.kind IN ('x', 'y') AND NOT (p.a IS NULL OR p.b NOT LIKE '%z') \
             GROUP BY ALL ORDER BY ms DESC NULLS LAST, n LIMIT 20",
        );
        let asked = asked.unwrap();
        assert_eq!(asked.items.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ["gc_id", "ms", "n"]);
        assert_eq!(
            asked.sources.iter().map(|of| (of.table.as_str(), of.is_left)).collect::<Vec<_>>(),
            [("gc_pause", false), ("gc", true)]
        );
        assert!(asked.is_grouped && asked.limit == 20);
        assert_eq!(asked.order, [(Expr::Column("ms".into()), true), (Expr::Column("n".into()), false)]);
    }

    #[test]
    fn what_is_no_such_query_is_none() {
        let deep = format!("SELECT a FROM gc WHERE {}a{}", "(".repeat(3000), ")".repeat(3000));
        for sql in [
            "",
            "DROP TABLE gc",
            "SELECT a FROM gc;",
            "SELECT a FROM gc LIMIT x",
            "SELECT 'a FROM gc",
            "SELECT a + FROM gc",
            "SELECT 1x FROM gc",
            &deep,
        ] {
            assert!(query(sql).is_none(), "{sql}");
        }
    }
}
