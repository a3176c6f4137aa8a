//! Call stacks on which no own method is known because names were not recorded, and not because there is none.

use crate::prelude::*;

/// Memory of a call site or a frame with what finds it.
const ROW_STORED: u64 = 64;

row!(struct Frame of frame { frame_id, kind, is_named });

row!(struct Callsite of callsite { callsite_id, parent_callsite_id, depth, frame_id, own_callsite_id });

/// Call sites without an own method, where most frames outwards have no name and may be methods.
#[derive(Debug, Default)]
pub(crate) struct Unnamed(Set<u32>);

impl Unnamed {
    /// Those of a recording that has the tables `callsite` and `frame`.
    pub(crate) fn read(recording: &Recording<'_>) -> Result<Unnamed> {
        let mut nameless: Set<u32> = Set::default();
        each_row::<Frame<'_>>(recording, ROW_STORED, |row| {
            if !row.is_named && !matches!(row.kind, "native" | "kernel") {
                nameless.insert(row.frame_id);
            }
            Ok(())
        })?;
        let mut found = Unnamed::default();
        if nameless.is_empty() {
            return Ok(found);
        }
        let mut counts: Map<u32, u32> = Map::default();
        each_row::<Callsite<'_>>(recording, ROW_STORED, |row| {
            let above = counts.get(&row.parent_callsite_id).copied().unwrap_or_default();
            let count = above.saturating_add(nameless.contains(&row.frame_id).into());
            if count > 0 {
                counts.insert(row.callsite_id, count);
            }
            if row.own_callsite_id == 0 && count.saturating_mul(2) > row.depth.saturating_add(1) {
                found.0.insert(row.callsite_id);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Whether a call site is one of them.
    pub(crate) fn has(&self, site: u32) -> bool {
        self.0.contains(&site)
    }
}
