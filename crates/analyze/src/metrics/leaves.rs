//! The innermost frames of call stacks: their names, and the assemblies or files that they lie in.

use arrow_array::RecordBatch;

use super::definition::{OfFrame, UNKNOWN};
use crate::prelude::*;
use crate::subjects::sites::set;
use crate::subjects::texts::Texts;

/// Call sites whose frame is remembered (4 bytes each), frames (8 bytes each), and bytes of their names. Samples of
/// others are left out.
const MOST_SITES: usize = 4 << 20;
const MOST_FRAMES: usize = 1 << 20;
const MOST_BYTES: usize = 32 << 20;

row!(struct Callsite of callsite { callsite_id, frame_id });

row!(struct Frame of frame { frame_id, kind, name, assembly });

/// The innermost frames of call sites. The tables may come in any order.
#[derive(Debug)]
pub(super) struct Leaves {
    /// The frame of each call site; 0 for none.
    frames: Vec<u32>,
    /// Of each frame, the places of its name and its assembly among the texts.
    texts_of: Vec<[u32; 2]>,
    texts: Texts,
}

impl Default for Leaves {
    fn default() -> Leaves {
        Leaves { frames: Vec::new(), texts_of: Vec::new(), texts: Texts::new(MOST_BYTES) }
    }
}

impl Leaves {
    /// The tables that say it.
    pub(super) const TABLES: [&str; 2] = ["callsite", "frame"];

    /// The columns of a table that say it.
    pub(super) fn columns(table: &str) -> &'static [&'static str] {
        match table {
            "callsite" => Callsite::COLUMNS,
            "frame" => Frame::COLUMNS,
            _ => &[],
        }
    }

    /// Sees rows of a table.
    pub(super) fn add(&mut self, table: &str, batch: &RecordBatch) -> Result<()> {
        match table {
            "callsite" => self.callsites(batch),
            "frame" => self.frames(batch),
            _ => Ok(()),
        }
    }

    fn callsites(&mut self, batch: &RecordBatch) -> Result<()> {
        for row in rows_of::<Callsite<'_>>(batch)? {
            set(&mut self.frames, row.callsite_id, row.frame_id, MOST_SITES);
        }
        Ok(())
    }

    fn frames(&mut self, batch: &RecordBatch) -> Result<()> {
        for row in rows_of::<Frame<'_>>(batch)? {
            let name = known(Some(row.name)).unwrap_or(UNKNOWN);
            let file = known(name.split_once('!').map(|(file, _)| file));
            let assembly = known(row.assembly).or(file).unwrap_or(row.kind);
            let texts = [name, assembly].map(|text| self.texts.place(text));
            if !texts.contains(&0) {
                set(&mut self.texts_of, row.frame_id, texts, MOST_FRAMES);
            }
        }
        Ok(())
    }

    /// The name of the frame of a call site; `None` when that is not remembered.
    pub(super) fn text(&self, site: u32, of: OfFrame) -> Option<&str> {
        let frame = self.frames.get((site as usize).checked_sub(1)?)?;
        let [name, assembly] = self.texts_of.get((*frame as usize).checked_sub(1)?)?;
        self.texts.get(match of {
            OfFrame::Name => *name,
            OfFrame::Assembly => *assembly,
        })
    }
}

/// A text that says something.
fn known(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}
