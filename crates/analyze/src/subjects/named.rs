//! The names at call sites: those of their own frames, and of the nearest own methods outwards.

use super::unnamed::Unnamed;
use crate::prelude::*;

/// Memory of a call site or a frame with what finds it.
const ROW_STORED: u64 = 64;

row!(struct CallsiteRow of callsite { callsite_id, frame_id, own_callsite_id });

row!(struct FrameRow of frame { frame_id, name, written_name, assembly, may_belong_to });

/// A frame. What is not known is empty.
#[derive(Debug, Default)]
pub(crate) struct Named {
    pub(crate) name: Arc<str>,
    /// The name as it was written.
    pub(crate) written: Arc<str>,
    pub(crate) assembly: Arc<str>,
    /// Other methods that it may belong to.
    pub(crate) others: Option<String>,
}

/// The names at call sites.
#[derive(Debug, Default)]
pub(crate) struct NamedSites {
    /// By call site the frame, and that of the nearest own method.
    sites: Map<u32, [u32; 2]>,
    frames: Map<u32, Named>,
    unnamed: Unnamed,
}

impl NamedSites {
    /// Reads the names at the call sites that are wanted.
    pub(crate) fn read(recording: &Recording<'_>, is_wanted: impl Fn(u32) -> bool) -> Result<NamedSites> {
        let mut all: Map<u32, (u32, u32)> = Map::default();
        each_row::<CallsiteRow<'_>>(recording, ROW_STORED, |row| {
            all.insert(row.callsite_id, (row.frame_id, row.own_callsite_id));
            Ok(())
        })?;
        let frame = |site: u32| all.get(&site).map_or(0, |(frame, _)| *frame);
        let wanted = all.iter().filter(|(site, _)| is_wanted(**site));
        let sites: Map<u32, [u32; 2]> = wanted.map(|(site, (own, of_own))| (*site, [*own, frame(*of_own)])).collect();
        drop(all);
        let needed: Set<u32> = sites.values().flatten().copied().collect();
        let (mut frames, mut texts) = (Map::default(), HeldTexts::of(recording, "frame"));
        each_row::<FrameRow<'_>>(recording, ROW_STORED, |row| {
            if needed.contains(&row.frame_id) {
                let named = Named {
                    name: texts.copy(row.name)?.into(),
                    written: texts.copy(row.written_name)?.into(),
                    assembly: texts.copy(row.assembly.unwrap_or_default())?.into(),
                    others: row.may_belong_to.map(|others| texts.copy(others)).transpose()?,
                };
                frames.insert(row.frame_id, named);
            }
            Ok(())
        })?;
        Ok(NamedSites { sites, frames, unnamed: Unnamed::read(recording)? })
    }

    /// Whether the call site is known.
    pub(crate) fn has(&self, site: u32) -> bool {
        self.sites.contains_key(&site)
    }

    /// The frame of a call site.
    pub(crate) fn frame(&self, site: u32) -> Option<&Named> {
        self.frames.get(&self.sites.get(&site)?[0])
    }

    /// The frame of the nearest own method outwards.
    pub(crate) fn own(&self, site: u32) -> Option<&Named> {
        self.frames.get(&self.sites.get(&site)?[1])
    }

    /// Whether there is no own method because the names of most frames were not recorded.
    pub(crate) fn is_unnamed(&self, site: u32) -> bool {
        self.unnamed.has(site)
    }
}
