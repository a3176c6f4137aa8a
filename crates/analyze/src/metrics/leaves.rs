//! The innermost frames of call stacks: their names, and the assemblies or files that they lie in.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use foldhash::fast::RandomState;
use tracequet_dataset::error::Result;
use tracequet_dataset::read::rows::{Row, rows_of};

use super::definition::{OfFrame, UNKNOWN};
use crate::subjects::sites::set;

/// Call sites whose frame is remembered (4 bytes each), frames (8 bytes each), and bytes of their names. Samples of
/// others are left out.
const MOST_SITES: usize = 4 << 20;
const MOST_FRAMES: usize = 1 << 20;
const MOST_BYTES: usize = 32 << 20;

tracequet_dataset::row! {
    struct Callsite of callsite { callsite_id, frame_id }
}

tracequet_dataset::row! {
    struct Frame of frame { frame_id, kind, name, assembly }
}

/// The innermost frames of call sites. The tables may come in any order.
#[derive(Debug, Default)]
pub(super) struct Leaves {
    /// The frame of each call site; 0 for none.
    frames: Vec<u32>,
    /// Of each frame, the places of its name and its assembly among the texts.
    texts_of: Vec<[u32; 2]>,
    texts: Vec<Arc<str>>,
    places: HashMap<Arc<str>, u32, RandomState>,
    bytes: usize,
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
            let (Some(name), Some(assembly)) = (self.place(name), self.place(assembly)) else { continue };
            set(&mut self.texts_of, row.frame_id, [name, assembly], MOST_FRAMES);
        }
        Ok(())
    }

    /// The number of a text, from 1.
    fn place(&mut self, text: &str) -> Option<u32> {
        if let Some(place) = self.places.get(text) {
            return Some(*place);
        }
        if self.bytes + text.len() > MOST_BYTES {
            return None;
        }
        self.bytes += text.len();
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        let place = u32::try_from(self.texts.len()).ok()?;
        self.places.insert(text, place);
        Some(place)
    }

    /// The name of the frame of a call site; `None` when that is not remembered.
    pub(super) fn text(&self, site: u32, of: OfFrame) -> Option<&str> {
        let frame = self.frames.get((site as usize).checked_sub(1)?)?;
        let [name, assembly] = self.texts_of.get((*frame as usize).checked_sub(1)?)?;
        let place = match of {
            OfFrame::Name => name,
            OfFrame::Assembly => assembly,
        };
        self.texts.get((*place as usize).checked_sub(1)?).map(|text| &**text)
    }
}

/// A text that says something.
fn known(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}
