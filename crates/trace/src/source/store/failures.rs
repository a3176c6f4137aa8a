//! Errors of requests as failures of a store.

use std::error::Error as StdError;

use object_store::client::{HttpError, HttpErrorKind};

use super::answers::{self, redacted, with_answer};
use super::object::{Failure, FailureKind};

/// The failure of a request.
pub(super) fn failure_of(error: &object_store::Error) -> Failure {
    use object_store::Error as E;
    let answer = |what: &str| with_answer(what, &error.to_string());
    let (kind, what) = match error {
        E::NotFound { .. } => (FailureKind::Missing, answer("is not there")),
        E::AlreadyExists { .. } | E::Precondition { .. } => {
            (FailureKind::Changed, "another writer changed it".to_owned())
        }
        E::NotImplemented { .. } | E::NotSupported { .. } => {
            (FailureKind::Unsupported, format!("the store cannot do this: {}", redacted(&error.to_string())))
        }
        E::PermissionDenied { .. } => (FailureKind::Other, answer("the store refuses it (403)")),
        E::Unauthenticated { .. } => (FailureKind::Other, answer("the store does not take these credentials (401)")),
        _ => generic(error),
    };
    Failure { kind, what }
}

fn generic(error: &object_store::Error) -> (FailureKind, String) {
    let text = error.to_string();
    if let Some(answer) = answers::parse_answer(&text) {
        return answer;
    }
    let http = causes(error).find_map(|cause| cause.downcast_ref::<HttpError>());
    let root = causes(error).last().map_or_else(String::new, |cause| redacted(&cause.to_string()));
    let what = match http.map(HttpError::kind) {
        Some(HttpErrorKind::Connect) => format!("cannot be reached: {root}"),
        Some(HttpErrorKind::Timeout) => format!("gave no answer in time: {root}"),
        Some(_) => format!("the connection broke: {root}"),
        None => redacted(&text),
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
