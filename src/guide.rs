//! `tracequet guide`: the skill for agents.

use super::output::{Outcome, print_result};

const SKILL: &str = include_str!("../skills/tracequet/SKILL.md");

/// Prints it.
pub fn run() -> anyhow::Result<Outcome> {
    Outcome::Whole.printed(print_result(SKILL))
}
