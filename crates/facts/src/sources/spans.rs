//! Ids of spans, as W3C Trace Context and `System.Diagnostics.Activity` write them: 32 hexadecimal digits of a trace, 16 of a span.

/// The ids that an event has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    trace: Option<[u8; 32]>,
    span: Option<[u8; 16]>,
    parent: Option<[u8; 16]>,
}

/// Digits in small letters; `None` for other text, and for zeros, which stand for no id.
fn digits<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits: [u8; N] = text.as_bytes().try_into().ok()?;
    let is_id = digits.iter().all(u8::is_ascii_hexdigit) && digits.iter().any(|digit| *digit != b'0');
    is_id.then(|| digits.map(|digit| digit.to_ascii_lowercase()))
}

fn text<const N: usize>(digits: &Option<[u8; N]>) -> Option<&str> {
    digits.as_ref().and_then(|digits| std::str::from_utf8(digits).ok())
}

/// Trace and span of `00-<trace>-<span>-01`.
fn joined(id: &str) -> Option<([u8; 32], [u8; 16])> {
    let mut parts = id.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_id = (version.len(), flags.len()) == (2, 2);
    digits(trace).zip(digits(span)).filter(|_| is_id)
}

impl Span {
    /// Takes a field whose name says that it is such an id; others are left alone.
    pub fn add(&mut self, name: &str, value: &str) {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        if is("TraceId") || is("ActivityTraceId") {
            self.trace = digits(value).or(self.trace);
        } else if is("SpanId") || is("ActivitySpanId") {
            self.span = digits(value).or(self.span);
        } else if is("ParentSpanId") || is("ActivityParentSpanId") {
            self.parent = digits(value).or(self.parent);
        } else if is("Id") || is("ActivityId") {
            if let Some((trace, span)) = joined(value) {
                (self.trace, self.span) = (self.trace.or(Some(trace)), self.span.or(Some(span)));
            }
        } else if (is("ParentId") || is("ActivityParentId"))
            && let Some((_, parent)) = joined(value)
        {
            self.parent = self.parent.or(Some(parent));
        }
    }

    /// The trace.
    pub fn trace(&self) -> Option<&str> {
        text(&self.trace)
    }

    /// The span.
    pub fn span(&self) -> Option<&str> {
        text(&self.span)
    }

    /// The span that it is within.
    pub fn parent(&self) -> Option<&str> {
        text(&self.parent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "004e45f9f49f36588287490ed6631ee7";

    fn span(fields: &[(&str, &str)]) -> [Option<String>; 3] {
        let mut span = Span::default();
        fields.iter().for_each(|(name, value)| span.add(name, value));
        [span.trace(), span.span(), span.parent()].map(|id| id.map(str::to_owned))
    }

    #[test]
    fn ids_are_hexadecimal_digits_and_no_zeros() {
        let own = |id: &str| Some(id.to_owned());
        let fields = [("TraceId", TRACE), ("SpanId", "0A2CA19F28085C25"), ("ParentSpanId", "0000000000000000")];
        assert_eq!(span(&fields), [own(TRACE), own("0a2ca19f28085c25"), None]);
        let id = format!("00-{TRACE}-0a2ca19f28085c25-01");
        let parent = format!("00-{TRACE}-057744202126a2ef-00");
        assert_eq!(
            span(&[("Id", &id), ("ParentId", &parent)]),
            [own(TRACE), own("0a2ca19f28085c25"), own("057744202126a2ef")]
        );
        for other in
            ["", "|7a2b.1.", "00-x-y-01", "0HMA:00000001", "00-004e45f9f49f36588287490ed6631ee7-057744202126a2ef", "é"]
        {
            assert_eq!(
                span(&[("Id", other), ("TraceId", other), ("SpanId", other), ("ParentId", other)]),
                [None, None, None]
            );
        }
    }
}
