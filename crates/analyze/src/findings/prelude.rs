//! What the file of a rule is written with.

pub(super) use super::allocations;
pub(super) use super::closer;
pub(super) use super::rule::{Evidence, Example, Few, Figure, Judged, Lack, Look, Rule};
pub(super) use super::score::score;
pub(super) use super::shared;
pub(super) use super::verdict::Verdict;
pub(super) use super::windows::Windows;
pub(super) use super::words;
