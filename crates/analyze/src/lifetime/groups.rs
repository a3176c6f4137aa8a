//! Lifetimes by type, and by the method that allocates.

use crate::prelude::*;

use super::found::lifetimes;
use super::names::{By, Group, Groups};
use super::sums::Sums;

/// The fate of the allocations of a type, or of a method and a type.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupRow {
    /// Type and method.
    pub group: Group,
    /// The sums.
    pub sums: Sums,
}

/// Lifetimes by type, and by the method that allocates, those with the most bytes first. Takes the types that `takes`
/// says.
pub fn lifetimes_by(recording: &Recording<'_>, by: By, takes: impl Fn(&str) -> bool) -> Result<Vec<GroupRow>> {
    let mut groups: Groups<'_, Sums> = Groups::new(recording, by)?;
    let mut rows = 0;
    lifetimes(recording, |lifetime| {
        rows += 1;
        held(recording, "allocation_lifetime", rows, 16)?;
        if let Some(sums) = groups.of(lifetime, &takes)? {
            sums.add(lifetime);
        }
        Ok(())
    })?;
    Ok(groups.finish(|sums| sums.allocated).into_iter().map(|(group, sums)| GroupRow { group, sums }).collect())
}
