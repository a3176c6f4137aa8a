//! Events of Microsoft-Diagnostics-DiagnosticSource, read as far as activities need them: two names and pairs of text.
//! They have dozens of pairs that are not needed, so that they are not decoded completely.

use std::borrow::Cow;

use tracequet_trace::utf16;

use super::work_event::Step;

/// Pairs of one event that are looked at, at most.
const MAX_PAIRS: usize = 256;

/// Bytes of a value that are kept, at most.
const MAX_VALUE: usize = 2048;

/// The head of an event, and where its pairs begin. Texts are UTF-16.
pub struct Head<'p> {
    /// The name of the source.
    pub source: &'p [u8],
    /// The name of the event.
    pub name: &'p [u8],
    rest: &'p [u8],
}

fn utf16z<'p>(bytes: &mut &'p [u8]) -> Option<&'p [u8]> {
    let end = utf16::end(bytes)?;
    let (text, rest) = bytes.split_at_checked(end)?;
    *bytes = rest.get(2..)?;
    Some(text)
}

/// The names at the beginning of a payload.
pub fn head(mut payload: &[u8]) -> Option<Head<'_>> {
    let (source, name) = (utf16z(&mut payload)?, utf16z(&mut payload)?);
    Some(Head { source, name, rest: payload })
}

impl<'p> Head<'p> {
    /// The name of the work and the step that the name ends in; without reading the rest.
    pub fn work(&self) -> Option<(&'p [u8], Step)> {
        [("Start", Step::Start), ("Stop", Step::Stop)].into_iter().find_map(|(end, step)| {
            let (mut work, tail) = self.name.split_at_checked(self.name.len().checked_sub(2 * end.len())?)?;
            if !utf16::is(tail, end) {
                return None;
            }
            while let Some((rest, [b'.' | b'/', 0])) = work.split_last_chunk() {
                work = rest;
            }
            Some((work, step))
        })
    }

    /// The name of the work of an event that was declared to be a start or a stop, as far as those of both have it in
    /// common: `WriteCommand` of `WriteCommandBefore`, `WriteCommandAfter` and `WriteCommandError`.
    pub fn command(&self) -> &'p [u8] {
        if let Some((work, _)) = self.work() {
            return work;
        }
        let ends = ["Before", "After", "Error", "Executing", "Executed", "Failed", "Opening", "Opened"];
        let without = |end: &&str| {
            let (work, tail) = self.name.split_at_checked(self.name.len().checked_sub(2 * end.len())?)?;
            (utf16::is(tail, end) && !work.is_empty()).then_some(work)
        };
        ends.iter().find_map(without).unwrap_or(self.name)
    }

    /// The pairs whose key is wanted, under the name that `wanted` gives, with long values cut. A response of
    /// HttpClient is a text of many lines, which begins with its status: that is a pair of its own, `StatusCode`.
    pub fn pairs(&self, wanted: impl Fn(PairKey<'_>) -> Option<PairName>) -> Vec<(PairName, &'p [u8])> {
        let Some((count, mut rest)) = self.rest.split_first_chunk() else { return Vec::new() };
        let mut pairs = Vec::with_capacity(4);
        for _ in 0..usize::from(u16::from_le_bytes(*count)).min(MAX_PAIRS) {
            let (Some(key), Some(value)) = (utf16z(&mut rest), utf16z(&mut rest)) else { break };
            let key = PairKey(key.get(..MAX_VALUE).unwrap_or(key));
            if utf16::is(key.0, "Response") {
                pairs.extend(status(value).map(|status| ("StatusCode".into(), status)));
            }
            if let Some(name) = wanted(key) {
                pairs.push((name, value.get(..MAX_VALUE).unwrap_or(value)));
            }
        }
        pairs
    }
}

/// Tags as DiagnosticSource writes a list of them: `[name, value],[name, value]`. `None` when the text is something
/// else.
pub fn tags(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut rest = text.strip_prefix('[')?.strip_suffix(']')?;
    let mut tags = Vec::new();
    while tags.len() < MAX_PAIRS {
        let (name, behind) = rest.split_once(", ")?;
        // A value may have a comma or a bracket: the next tag begins where a bracket, a name and a comma follow.
        let mut end = behind.len();
        for (at, _) in behind.match_indices("],[") {
            if behind.get(at + 3..).is_some_and(|next| next.contains(", ")) {
                end = at;
                break;
            }
        }
        tags.push((name, behind.get(..end)?));
        if let Some(next) = behind.get(end + 3..) { rest = next } else { break }
    }
    Some(tags)
}

/// The number in `StatusCode: 200, ReasonPhrase: ...`, which HttpResponseMessage.ToString gives.
fn status(value: &[u8]) -> Option<&[u8]> {
    const BEFORE: &str = "StatusCode: ";
    let (before, rest) = value.split_at_checked(2 * BEFORE.len())?;
    let (digits, rest) = rest.split_at_checked(2 * 3)?;
    let are_digits = digits.as_chunks().0.iter().all(|unit| matches!(unit, [b'0'..=b'9', 0]));
    let is_over = rest.is_empty() || rest.starts_with(&[b',', 0]);
    (utf16::is(before, BEFORE) && are_digits && is_over).then_some(digits)
}

/// The key of a pair as text, which is mostly one of a few.
pub type PairName = Cow<'static, str>;

/// The key of a pair. Most are not wanted, and are recognized without making a string of them.
#[derive(Clone, Copy)]
pub struct PairKey<'p>(&'p [u8]);

impl PairKey<'_> {
    /// The key as text.
    pub fn text(self) -> String {
        utf16::string(self.0)
    }

    /// Which of these ASCII names it is, if it is one.
    pub fn one_of(self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| utf16::is(self.0, name))
    }

    /// Whether it ends in one of these ASCII letters.
    pub fn ends_in(self, letters: &[u8]) -> bool {
        self.0.last_chunk().is_some_and(|[low, high]| *high == 0 && letters.contains(low))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(out: &mut Vec<u8>, text: &str) {
        text.encode_utf16().chain([0]).for_each(|unit| out.extend(unit.to_le_bytes()));
    }

    fn texts(pairs: Vec<(PairName, &[u8])>) -> Vec<(String, String)> {
        pairs.into_iter().map(|(key, value)| (key.into_owned(), utf16::string(value))).collect()
    }

    #[test]
    fn the_status_of_a_response_is_a_pair() {
        let of = |response: &str| {
            let mut payload = Vec::new();
            for name in ["HttpHandlerDiagnosticListener", "System.Net.Http.HttpRequestOut.Stop"] {
                text(&mut payload, name);
            }
            payload.extend(2u16.to_le_bytes());
            for pair in ["Response", response, "RequestTaskStatus", "RanToCompletion"] {
                text(&mut payload, pair);
            }
            texts(head(&payload).unwrap().pairs(|_| None))
        };
        let response = "StatusCode: 404, ReasonPhrase: 'Not Found', Version: 1.1, Content: <null>, Headers:\r\n{\r\n}";
        assert_eq!(of(response), [("StatusCode".to_owned(), "404".to_owned())]);
        for other in [
            "Microsoft.AspNetCore.Http.DefaultHttpResponse",
            "StatusCode: 4x4, ",
            "StatusCode: 4040",
            "StatusCode: ",
            "",
        ] {
            assert_eq!(of(other), []);
        }
    }

    #[test]
    fn tags_are_a_list_of_names_and_values() {
        let tags = |text| tags(text).unwrap_or_default();
        assert_eq!(tags("[db.system, mssql]"), [("db.system", "mssql")]);
        assert_eq!(tags("[a, 1],[b, SELECT [x], y],[c, ]"), [("a", "1"), ("b", "SELECT [x], y"), ("c", "")]);
        for other in ["", "[]", "x", "System.Collections.Generic.KeyValuePair`2[System.String,System.String][]"] {
            assert_eq!(tags(other), []);
        }
    }

    #[test]
    fn commands_have_the_name_that_their_events_share() {
        for (name, expected) in [
            ("System.Data.SqlClient.WriteCommandBefore", "System.Data.SqlClient.WriteCommand"),
            ("System.Data.SqlClient.WriteCommandAfter", "System.Data.SqlClient.WriteCommand"),
            ("System.Data.SqlClient.WriteCommandError", "System.Data.SqlClient.WriteCommand"),
            ("Database.Command.CommandExecuting", "Database.Command.Command"),
            ("Database.Command.CommandExecuted", "Database.Command.Command"),
            ("Work.Start", "Work"),
            ("Before", "Before"),
            ("", ""),
        ] {
            let mut payload = Vec::new();
            ["Source", name].iter().for_each(|name| text(&mut payload, name));
            assert_eq!(utf16::string(head(&payload).unwrap().command()), expected, "{name}");
        }
    }

    #[test]
    fn a_payload_that_is_cut_gives_what_is_there() {
        let mut payload = Vec::new();
        for name in ["Source", "Work.Start"] {
            text(&mut payload, name);
        }
        payload.extend(3u16.to_le_bytes());
        for pair in ["Id", "7", "Other", "x", "Path", "/"] {
            text(&mut payload, pair);
        }
        let wanted = |key: PairKey<'_>| key.one_of(&["Id", "Path"]).map(Cow::Borrowed);
        let pairs = |bytes: &[u8]| head(bytes).map(|head| texts(head.pairs(wanted)));
        let own = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(pairs(&payload), Some(vec![own("Id", "7"), own("Path", "/")]));
        assert_eq!(pairs(&payload[..payload.len() - 1]), Some(vec![own("Id", "7")]));
        assert!(pairs(&payload[..20]).is_none());
        let head = head(&payload).unwrap();
        assert!(utf16::is(head.source, "Source") && utf16::is(head.name, "Work.Start"));
        for cut in 0..payload.len() {
            let _ = pairs(&payload[..cut]);
        }
    }

    #[test]
    fn a_name_says_what_the_work_is_and_where_it_is() {
        for (name, expected) in [
            ("Work.Start", Some(("Work", Step::Start))),
            ("WorkStop", Some(("Work", Step::Stop))),
            ("a/b./Stop", Some(("a/b", Step::Stop))),
            ("Start", Some(("", Step::Start))),
            ("./Start", Some(("", Step::Start))),
            ("start", None),
            ("Starts", None),
            ("", None),
        ] {
            let mut payload = Vec::new();
            ["Source", name].iter().for_each(|name| text(&mut payload, name));
            let work = head(&payload).unwrap().work().map(|(work, step)| (utf16::string(work), step));
            assert_eq!(work, expected.map(|(work, step)| (work.to_owned(), step)), "{name}");
        }
    }

    #[test]
    fn pairs_and_their_values_have_a_bound() {
        let mut payload = Vec::new();
        ["Source", "Work.Start"].iter().for_each(|name| text(&mut payload, name));
        payload.extend(300u16.to_le_bytes());
        for nth in 0..300 {
            text(&mut payload, &format!("{nth}{}", "k".repeat(2000)));
            text(&mut payload, &"v".repeat(2000));
        }
        let pairs = texts(head(&payload).unwrap().pairs(|key| Some(key.text().into())));
        assert_eq!(pairs.len(), 256);
        // 2,048 bytes of UTF-16.
        assert!(pairs.iter().all(|(key, value)| (key.len(), value.len()) == (1024, 1024)), "{:?}", pairs.first());
    }
}
