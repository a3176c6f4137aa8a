//! Errors of requests in a sentence without secrets: no query of an address, and of an
//! answer only its code and message.

use std::error::Error as StdError;

use object_store::client::{HttpError, HttpErrorKind};

use super::object::{Failure, FailureKind};

/// The service of a machine in a cloud that gives credentials to the programs on it.
const METADATA: [&str; 3] = ["169.254.169.254", "169.254.170.2", "metadata.google.internal"];
/// Characters of an answer that are shown.
const MOST: usize = 300;

/// The failure of a request.
pub(super) fn of(error: &object_store::Error) -> Failure {
    use object_store::Error as E;
    let (kind, what) = match error {
        E::NotFound { .. } => (FailureKind::Missing, with_answer("is not there", error)),
        E::AlreadyExists { .. } | E::Precondition { .. } => {
            (FailureKind::Changed, "another writer changed it".to_owned())
        }
        E::NotImplemented { .. } | E::NotSupported { .. } => {
            (FailureKind::Unsupported, format!("the store cannot do this: {}", plain(error)))
        }
        E::PermissionDenied { .. } => (FailureKind::Other, with_answer("the store refuses it (403)", error)),
        E::Unauthenticated { .. } => {
            (FailureKind::Other, with_answer("the store does not take these credentials (401)", error))
        }
        _ => generic(error),
    };
    Failure { kind, what }
}

fn generic(error: &object_store::Error) -> (FailureKind, String) {
    let text = plain(error);
    if METADATA.iter().any(|host| text.contains(host)) {
        let what = "there are no credentials: none in the environment, and no service of this machine gives any";
        return (FailureKind::Other, what.to_owned());
    }
    if let Some(status) = status(&text) {
        let kind = match status {
            // Of WebDAV, by which plain servers list, and of conditions.
            405 | 501 => FailureKind::Unsupported,
            409 | 412 => FailureKind::Changed,
            404 | 410 => FailureKind::Missing,
            _ => FailureKind::Other,
        };
        return (kind, with_answer(&format!("the store answers with {status}"), error));
    }
    let http = causes(error).find_map(|cause| cause.downcast_ref::<HttpError>());
    let root = causes(error).last().map_or_else(String::new, |cause| redacted(&cause.to_string()));
    let what = match http.map(HttpError::kind) {
        Some(HttpErrorKind::Connect) => format!("cannot be reached: {root}"),
        Some(HttpErrorKind::Timeout) => format!("gave no answer in time: {root}"),
        Some(_) => format!("the connection broke: {root}"),
        None => text,
    };
    (FailureKind::Other, what)
}

/// An error and its causes.
fn causes<'e>(error: &'e object_store::Error) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    let mut next: Option<&'e (dyn StdError + 'static)> = Some(error);
    std::iter::from_fn(move || {
        let cause = next?;
        next = cause.source();
        Some(cause)
    })
}

/// The error in one line without anything secret.
fn plain(error: &object_store::Error) -> String {
    redacted(&error.to_string())
}

/// A text in one line, its addresses without queries.
fn redacted(text: &str) -> String {
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

/// A sentence with the code and the message of the answer behind it, if there was one.
fn with_answer(what: &str, error: &object_store::Error) -> String {
    let text = error.to_string();
    let parts: Vec<&str> = ["Code", "Message"].iter().filter_map(|name| element(&text, name)).collect();
    if parts.is_empty() { what.to_owned() } else { format!("{what}: {}", redacted(&parts.join(": "))) }
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

    fn generic(text: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: text.to_owned().into() }
    }

    #[test]
    fn sentences_have_no_secrets() {
        let failure = of(&generic("Error performing GET https://h/x?X-Amz-Signature=secret in 3s - broken"));
        assert!(!failure.what.contains("secret") && failure.what.contains("https://h/x in 3s"), "{}", failure.what);
        let body = "<Error><Code>SignatureDoesNotMatch</Code><Message>Wrong.</Message><StringToSign>secret</StringToSign></Error>";
        let source = format!("Server returned non-2xx status code: 403 Forbidden: {body}").into();
        let failure = of(&object_store::Error::PermissionDenied { path: "x".into(), source });
        assert_eq!(failure.what, "the store refuses it (403): SignatureDoesNotMatch: Wrong.");
    }

    #[test]
    fn an_answer_is_known_by_its_status() {
        let answer = |status: &str| of(&generic(&format!("Server returned non-2xx status code: {status}: ")));
        assert_eq!(answer("405 Method Not Allowed").kind, FailureKind::Unsupported);
        assert_eq!(answer("503 Slow Down").what, "the store answers with 503");
        let none = of(&generic("Error performing PUT http://169.254.169.254/latest/api/token in 1s"));
        assert!(none.what.starts_with("there are no credentials"), "{}", none.what);
    }
}
