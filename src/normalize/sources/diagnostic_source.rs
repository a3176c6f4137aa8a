//! Events of Microsoft-Diagnostics-DiagnosticSource, read as far as activities need them: two names and pairs of text. They
//! have dozens of pairs that nobody asks for, so that they are not decoded as a whole.

use crate::bytes::{push_utf16, utf16_end, utf16_string};

/// Pairs of one event that are looked at, at most.
const MAX_PAIRS: usize = 256;

/// Bytes of a value that are kept, at most.
const MAX_VALUE: usize = 2048;

/// The head of an event, and where its pairs begin.
pub struct Head<'p> {
    source: &'p [u8],
    name: &'p [u8],
    rest: &'p [u8],
}

fn utf16z<'p>(bytes: &mut &'p [u8]) -> Option<&'p [u8]> {
    let end = utf16_end(bytes)?;
    let (text, rest) = bytes.split_at_checked(end)?;
    *bytes = rest.get(2..)?;
    Some(text)
}

/// The names at the beginning of a payload.
pub fn head(mut payload: &[u8]) -> Option<Head<'_>> {
    let (source, name) = (utf16z(&mut payload)?, utf16z(&mut payload)?);
    Some(Head { source, name, rest: payload })
}

impl Head<'_> {
    /// Who wrote it.
    pub fn source(&self) -> String {
        utf16_string(self.source)
    }

    /// What it is called.
    pub fn name(&self) -> String {
        utf16_string(self.name)
    }

    /// Whether the name ends in an ASCII text; without reading the rest.
    pub fn name_ends(&self, end: &str) -> bool {
        let start = self.name.len().checked_sub(2 * end.len());
        let tail = start.and_then(|start| self.name.get(start..)).unwrap_or_default();
        !tail.is_empty() && tail.chunks_exact(2).eq(end.bytes().map(|byte| [byte, 0]))
    }

    /// The pairs whose key is wanted, with long values cut. A response of HttpClient is a text of many lines, which begins with its
    /// status: that is a pair of its own, `StatusCode`.
    pub fn pairs(&self, wanted: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        let Some((count, mut rest)) = self.rest.split_first_chunk() else { return Vec::new() };
        let (mut pairs, mut text) = (Vec::new(), Vec::new());
        for _ in 0..usize::from(u16::from_le_bytes(*count)).min(MAX_PAIRS) {
            let (Some(key), Some(value)) = (utf16z(&mut rest), utf16z(&mut rest)) else { break };
            text.clear();
            push_utf16(key.get(..MAX_VALUE).unwrap_or(key), &mut text);
            let key = std::str::from_utf8(&text).unwrap_or_default();
            if key == RESPONSE.0 && wanted(RESPONSE.1) {
                pairs.extend(status(value).map(|status| (RESPONSE.1.to_owned(), status)));
            }
            if wanted(key) {
                pairs.push((key.to_owned(), utf16_string(value.get(..MAX_VALUE).unwrap_or(value))));
            }
        }
        pairs
    }
}

/// The key of a response, and the one that its status gets.
const RESPONSE: (&str, &str) = ("Response", "StatusCode");

/// The number in `StatusCode: 200, ReasonPhrase: ...`, which HttpResponseMessage.ToString gives.
fn status(value: &[u8]) -> Option<String> {
    let text = utf16_string(value.get(..64).unwrap_or(value));
    let digits = text.strip_prefix("StatusCode: ")?.split(',').next()?;
    (digits.len() == 3 && digits.bytes().all(|digit| digit.is_ascii_digit())).then(|| digits.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(out: &mut Vec<u8>, text: &str) {
        text.encode_utf16().chain([0]).for_each(|unit| out.extend(unit.to_le_bytes()));
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
            head(&payload).unwrap().pairs(|key| key == "StatusCode")
        };
        let response = "StatusCode: 404, ReasonPhrase: 'Not Found', Version: 1.1, Content: <null>, Headers:\r\n{\r\n}";
        assert_eq!(of(response), [("StatusCode".to_owned(), "404".to_owned())]);
        for other in ["Microsoft.AspNetCore.Http.DefaultHttpResponse", "StatusCode: 4x4, ", "StatusCode: ", ""] {
            assert_eq!(of(other), []);
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
        let pairs = |bytes: &[u8]| head(bytes).map(|head| head.pairs(|key| key != "Other"));
        let own = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(pairs(&payload), Some(vec![own("Id", "7"), own("Path", "/")]));
        assert_eq!(pairs(&payload[..payload.len() - 1]), Some(vec![own("Id", "7")]));
        assert!(pairs(&payload[..20]).is_none());
        let head = head(&payload).unwrap();
        assert_eq!((head.source().as_str(), head.name().as_str()), ("Source", "Work.Start"));
        assert!(head.name_ends("Start") && !head.name_ends("Stop") && !head.name_ends("A long Work.Start"));
        for cut in 0..payload.len() {
            let _ = pairs(&payload[..cut]);
        }
    }
}
