//! Commands that show more of what a rule found. Each runs as it is printed, once its words in capitals are replaced.

use super::rule::{Closer, Look, PAGE};
use super::words;

pub(super) const INSPECT: Closer = &[("", "tracequet inspect IN")];
pub(super) const INSPECT_FRAMES: Closer = &[("", "tracequet inspect IN --frames")];
pub(super) const LIFETIMES: Closer = &[("", "tracequet lifetimes IN")];
pub(super) const HEAP_OF_TYPE: Closer =
    &[("", "tracequet collect -p PID --heap -o heap && tracequet heap heap --type TYPE")];
pub(super) const RECORD_HANDLES: Closer = &[("", "tracequet collect -p PID --for gc-verbose -o handles")];
pub(super) const RECORD_LIFETIMES: Closer = &[
    ("survivals", "tracequet lifetimes IN"),
    ("", "tracequet collect -p PID --for lifetimes -o lifetimes && tracequet lifetimes lifetimes"),
];
pub(super) const ALLOCATIONS: Closer =
    &[("allocations", "tracequet export IN --what allocation --own --format folded --top 10"), PAGE];
pub(super) const COMPILATIONS: Closer =
    &[("compilations", "tracequet export IN --what jit --own --format folded --top 10"), PAGE];
pub(super) const PROCESSOR: Closer =
    &[("samples", "tracequet export IN --what cpu --own --format folded --top 10"), PAGE];
pub(super) const WAITING_SAMPLES: Closer =
    &[("samples", "tracequet export IN --what cpu --samples all --own --format folded --top 10"), PAGE];
pub(super) const EXCEPTIONS: Closer =
    &[("exceptions", "tracequet export IN --what exception --own --format folded --top 10"), PAGE];
pub(super) const LOCKS: Closer =
    &[("contentions", "tracequet export IN --what contention --own --format folded --top 10"), PAGE];
pub(super) const WAITS: Closer = &[
    ("waits", "tracequet export IN --what wait --own --format folded --top 10"),
    ("samples", "tracequet export IN --what cpu --samples all --own --format folded --top 10"),
    PAGE,
];

/// The command for what was recorded, with the process and the subject filled in.
pub(super) fn command(closer: Closer, look: &Look<'_>, subject: Option<&str>) -> String {
    let is_there = |need: &str| need.is_empty() || look.picture.has(need);
    let command = closer.iter().find(|(need, _)| is_there(need)).map_or("", |(_, command)| command);
    let command = match subject {
        Some(subject) => command.replace("TYPE", &words::in_shell(&words::short(subject, 400))),
        None => command.replace(" --type TYPE", ""),
    };
    if look.id == 0 { command } else { command.replace("PID", &look.id.to_string()) }
}
