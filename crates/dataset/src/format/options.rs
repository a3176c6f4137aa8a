//! Options of a request that decide what the tables of a recording hold.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The options of a conversion that decide what its tables hold: recordings that were converted with others are not
/// alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Names of tables, if not all are wanted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<String>,
    /// Names of providers, if not all are wanted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<String>,
    /// Names or ids of processes, if not all are wanted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<String>,
    /// Instrumentation manifests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<String>,
    /// Folders with symbols.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub symbols: Vec<String>,
    /// Patterns of own code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<String>,
    /// Patterns of code that is not own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_own: Vec<String>,
    /// Only events at or after this many nanoseconds since the recording began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_ns: Option<i64>,
    /// Only events before this many nanoseconds since the recording began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_ns: Option<i64>,
    /// With the table `heap_dominator`.
    #[serde(skip_serializing_if = "is_false")]
    pub dominators: bool,
    /// With the table `gc_cohort`.
    #[serde(skip_serializing_if = "is_false")]
    pub cohorts: bool,
    /// With the table `allocation_lifetime`.
    #[serde(skip_serializing_if = "is_false")]
    pub lifetimes: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// The options of an entry. Those of another version, which are a text or have other names, are not known.
pub(super) fn known<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Options>, D::Error> {
    let value = Value::deserialize(input)?;
    if value.as_str() == Some("") {
        return Ok(Some(Options::default()));
    }
    Ok(serde_json::from_value(value).ok())
}
