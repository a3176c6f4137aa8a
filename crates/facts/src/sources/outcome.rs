//! The outcome of a piece of work, as its stop states it.

/// A field of a stop that says it.
#[derive(Clone, Debug)]
pub struct Said {
    /// Name of the field.
    pub field: &'static str,
    /// The value as text.
    pub text: String,
}

/// The work succeeded.
pub const SUCCESS: &str = "success";
/// The work failed.
pub const FAILURE: &str = "failure";
/// The work has ended, and nothing says how.
pub const UNKNOWN: &str = "unknown";

/// Fields of a stop that say it, the first one that is there.
pub const FIELDS: &[&str] = &[
    "statusCode",
    "StatusCode",
    "http.response.status_code",
    "RequestTaskStatus",
    "success",
    "Success",
    "sqlExceptionNumber",
    "IsExceptional",
    "exceptionMessage",
    "Status",
    "status",
];

impl Said {
    /// Which of the three words it comes to.
    pub fn result(&self) -> &'static str {
        let of = |is_success: bool| if is_success { SUCCESS } else { FAILURE };
        match (self.field, self.text.as_str()) {
            // HttpClient's word for no answer at all.
            ("statusCode", "-1") => FAILURE,
            ("sqlExceptionNumber", number) => of(number == "0"),
            ("exceptionMessage", message) => of(message.is_empty()),
            ("IsExceptional", "true" | "True" | "1") => FAILURE,
            ("IsExceptional", "false" | "False" | "0") => SUCCESS,
            (_, "true" | "True" | "Ok" | "RanToCompletion" | "completed") => SUCCESS,
            (_, "false" | "False" | "Error" | "Faulted" | "Canceled" | "canceled" | "failed") => FAILURE,
            _ => self.status_code().map_or(UNKNOWN, |code| of(code < 500)),
        }
    }

    /// The status of HTTP, where it is one.
    pub fn status_code(&self) -> Option<u32> {
        let is_status = matches!(self.field, "statusCode" | "StatusCode" | "http.response.status_code");
        self.text.parse().ok().filter(|code| is_status && (100..=599).contains(code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_has_its_own_words_of_success() {
        for (field, text, result, status_code) in [
            ("statusCode", "200", SUCCESS, Some(200)),
            ("StatusCode", "404", SUCCESS, Some(404)),
            ("http.response.status_code", "503", FAILURE, Some(503)),
            ("statusCode", "-1", FAILURE, None),
            ("statusCode", "600", UNKNOWN, None),
            ("StatusCode", "OK", UNKNOWN, None),
            ("RequestTaskStatus", "RanToCompletion", SUCCESS, None),
            ("RequestTaskStatus", "Faulted", FAILURE, None),
            ("success", "true", SUCCESS, None),
            ("Success", "False", FAILURE, None),
            ("sqlExceptionNumber", "0", SUCCESS, None),
            ("sqlExceptionNumber", "208", FAILURE, None),
            ("IsExceptional", "true", FAILURE, None),
            ("IsExceptional", "false", SUCCESS, None),
            ("exceptionMessage", "no", FAILURE, None),
            ("Status", "Error", FAILURE, None),
            ("Status", "Unset", UNKNOWN, None),
            // A number of something else.
            ("Status", "503", UNKNOWN, None),
        ] {
            let said = Said { field, text: text.to_owned() };
            assert_eq!((said.result(), said.status_code()), (result, status_code), "{said:?}");
        }
    }
}
