//! A store's answer in a sentence without secrets: no query of an address, and of an answer only its code and message.

use super::object::FailureKind;

/// The service of a machine in a cloud that gives credentials to the programs on it.
const METADATA: [&str; 3] = ["169.254.169.254", "169.254.170.2", "metadata.google.internal"];
/// Characters of an answer that are shown.
const MOST: usize = 300;

/// The failure of a request whose error text names a status, or the service that gives credentials.
pub(super) fn parse_answer(text: &str) -> Option<(FailureKind, String)> {
    let line = redacted(text);
    if METADATA.iter().any(|host| line.contains(host)) {
        let what = "there are no credentials: none in the environment, and no service of this machine gives any";
        return Some((FailureKind::Other, what.to_owned()));
    }
    let status = status(&line)?;
    let kind = match status {
        // Of WebDAV, by which plain servers list, and of conditions.
        405 | 501 => FailureKind::Unsupported,
        409 | 412 => FailureKind::Changed,
        404 | 410 => FailureKind::Missing,
        _ => FailureKind::Other,
    };
    Some((kind, with_answer(&format!("the store answers with {status}"), text)))
}

/// A sentence with the code and the message of the answer behind it, if there was one.
pub(super) fn with_answer(what: &str, text: &str) -> String {
    let parts: Vec<&str> = ["Code", "Message"].iter().filter_map(|name| element(text, name)).collect();
    if parts.is_empty() { what.to_owned() } else { format!("{what}: {}", redacted(&parts.join(": "))) }
}

/// A text in one line, its addresses without queries.
pub(super) fn redacted(text: &str) -> String {
    let word = |word: &str| match word.split_once('?') {
        Some((address, _)) if address.contains("://") => address.to_owned(),
        _ => word.to_owned(),
    };
    let line = text.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    line.chars().take(MOST).collect()
}

/// The status of an answer that was no success.
fn status(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}

/// The text of the first element of this name, in an answer of XML.
fn element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (inner, _) = rest.split_once('<')?;
    Some(inner.trim()).filter(|inner| !inner.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_have_no_secrets() {
        let broken = redacted("Error performing GET https://h/x?X-Amz-Signature=secret in 3s - broken");
        assert_eq!(broken, "Error performing GET https://h/x in 3s - broken");
        let body = "<Error><Code>SignatureDoesNotMatch</Code><Message>Wrong.</Message><StringToSign>secret</StringToSign></Error>";
        let refused = with_answer("the store refuses it (403)", body);
        assert_eq!(refused, "the store refuses it (403): SignatureDoesNotMatch: Wrong.");
        let unfinished = with_answer("no", "<Code>A</Code><Message>https://h/x?sig=secret");
        assert_eq!(unfinished, "no: A");
    }

    #[test]
    fn an_answer_is_known_by_its_status() {
        let answer = |status: &str| parse_answer(&format!("Server returned non-2xx status code: {status}: ")).unwrap();
        let kinds = ["405 Method Not Allowed", "412 Precondition Failed", "410 Gone", "503 Slow Down"].map(answer);
        let expected = [FailureKind::Unsupported, FailureKind::Changed, FailureKind::Missing, FailureKind::Other];
        assert_eq!(kinds.clone().map(|(kind, _)| kind), expected);
        assert_eq!(kinds[3].1, "the store answers with 503");
        let (_, none) = parse_answer("Error performing PUT http://169.254.169.254/latest/api/token in 1s").unwrap();
        assert!(none.starts_with("there are no credentials"), "{none}");
        assert_eq!(parse_answer("connection refused"), None);
    }
}
