//! One figure, every surface: what stands on the page, in a view, a metric, a finding, `explain --json` and an export is one number.

mod pairs;
mod pauses;
mod surfaces;
