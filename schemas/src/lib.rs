//! The files of `schemas/`: what the tables, events, views, metrics and profiles of tracequet are.
//!
//! `README.md` of this folder says what the keys of the files mean. The crates that read them take the text from here, so that
//! each file exists once and is published with this crate. What is TOML in the files is JSON here.

#[cfg(feature = "generate")]
pub mod generate;

/// Name and text of each file of `events`: how the payloads of a provider's events are laid out.
pub const EVENTS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/events.rs"));

/// Name and text of each file of `manifests`: the events of a provider of Windows, as its manifest has them.
pub const MANIFESTS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/manifests.rs"));

/// GUID and name of each provider of Windows, a line each, in the order of GUIDs; comments begin with `#`.
pub const PROVIDERS: &str = include_str!("../providers.txt");

/// Name and text of each file of `tables`: the columns of a table.
pub const TABLES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/tables.rs"));

/// Name and text of each file of `views`: views and macros of DuckDB over the tables.
pub const VIEWS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/views.rs"));

/// The metrics: name, unit, and how each is made from the tables.
pub const METRICS: &str = include_str!(concat!(env!("OUT_DIR"), "/metrics.json"));

/// The profiles of live sessions: which providers each name of `collect --for` asks for.
pub const PRESETS: &str = include_str!(concat!(env!("OUT_DIR"), "/presets.json"));

/// The profiles of call stacks: which rows each name of `export --what` takes, and how much each stands for.
pub const PROFILES: &str = include_str!(concat!(env!("OUT_DIR"), "/profiles.json"));

/// The GUID of a provider, as the file of `events` or `manifests` of this text has it. The other keys are not looked at.
pub fn guid_of(text: &str) -> Option<&str> {
    text.split_once(r#""guid":""#)?.1.split_once('"').map(|(guid, _)| guid)
}
