//! Call sites of a recording: their own code, and what their frames are.

use arrow_array::RecordBatch;
use tracequet_dataset::error::Result;
use tracequet_dataset::read::{Column, Recording};

use super::texts::Texts;

/// Call sites (12 bytes each), frames (8 bytes each) and bytes of names that are remembered.
const MOST_SITES: usize = 4 << 20;
const MOST_FRAMES: usize = 1 << 20;
const MOST_BYTES: usize = 32 << 20;

/// Frames of a stack that are looked at.
const MOST_DEPTH: usize = 1024;

/// What a method is, as far as rules ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Is {
    /// Runs what the thread pool is given.
    PoolWorker = 1,
    /// Blocks until a task is done.
    TaskWait = 2,
    /// Makes a string of others.
    MakesString = 4,
    /// Puts a value into an object.
    Boxes = 8,
    /// Takes a lock.
    Locks = 16,
    /// Reports what happens: activities, listeners and events.
    Reports = 32,
}

/// Beginnings of the names of such methods.
const KINDS: &[(&str, Is)] = &[
    ("System.Diagnostics.", Is::Reports),
    ("System.Threading.PortableThreadPool+WorkerThread.", Is::PoolWorker),
    ("System.Threading.ThreadPoolWorkQueue.Dispatch", Is::PoolWorker),
    ("System.Threading._ThreadPoolWaitCallback.", Is::PoolWorker),
    ("System.Threading.WindowsThreadPool.", Is::PoolWorker),
    ("System.Threading.Tasks.Task.Wait", Is::TaskWait),
    ("System.Threading.Tasks.Task.InternalWait", Is::TaskWait),
    ("System.Threading.Tasks.Task.SpinThenBlockingWait", Is::TaskWait),
    ("System.Runtime.CompilerServices.TaskAwaiter.HandleNonSuccess", Is::TaskWait),
    ("System.Threading.Monitor.Enter", Is::Locks),
    ("System.Threading.Monitor.TryEnter", Is::Locks),
    ("System.Threading.Lock.", Is::Locks),
    ("System.String.Concat", Is::MakesString),
    ("System.String.Format", Is::MakesString),
    ("System.String.Join", Is::MakesString),
    ("System.String.Substring", Is::MakesString),
    ("System.String.Replace", Is::MakesString),
    ("System.String.Split", Is::MakesString),
    ("System.String.Insert", Is::MakesString),
    ("System.String.Remove", Is::MakesString),
    ("System.String.ToUpper", Is::MakesString),
    ("System.String.ToLower", Is::MakesString),
    ("System.String.Trim", Is::MakesString),
    ("System.String.Pad", Is::MakesString),
    ("System.String.Ctor", Is::MakesString),
    ("System.String.Create", Is::MakesString),
    ("System.Text.StringBuilder.", Is::MakesString),
    ("System.Runtime.CompilerServices.DefaultInterpolatedStringHandler.", Is::MakesString),
    ("System.Number.", Is::MakesString),
    ("System.Runtime.CompilerServices.BoxingHelpers.", Is::Boxes),
    ("System.Runtime.CompilerServices.CastHelpers.Box", Is::Boxes),
    ("System.Runtime.CompilerServices.RuntimeHelpers.Box", Is::Boxes),
];

#[derive(Clone, Copy, Debug, Default)]
struct OfFrame {
    written: u32,
    kinds: u8,
    /// Its code was optimized, so that other methods may be within it.
    is_optimized: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Site {
    parent: u32,
    frame: u32,
    own: u32,
}

/// The call sites of a recording. The tables may come in any order.
#[derive(Debug)]
pub(crate) struct Sites {
    sites: Vec<Site>,
    frames: Vec<OfFrame>,
    texts: Texts,
}

impl Default for Sites {
    fn default() -> Sites {
        Sites { sites: Vec::new(), frames: Vec::new(), texts: Texts::new(MOST_BYTES) }
    }
}

impl Sites {
    /// The columns of a table that are read.
    pub(crate) fn columns(table: &str) -> &'static [&'static str] {
        match table {
            "callsite" => &["callsite_id", "parent_callsite_id", "frame_id", "own_callsite_id"],
            "frame" => &["frame_id", "name", "written_name", "tier"],
            _ => &[],
        }
    }

    /// Those of a recording that has the tables `callsite` and `frame`.
    pub(crate) fn read(recording: &Recording<'_>) -> Result<Sites> {
        let mut sites = Sites::default();
        for table in ["callsite", "frame"] {
            for batch in recording.table(table)?.scan().columns(Sites::columns(table).iter().copied()).batches()? {
                sites.add(table, &batch?)?;
            }
        }
        Ok(sites)
    }

    /// Sees rows of a table.
    pub(crate) fn add(&mut self, table: &str, batch: &RecordBatch) -> Result<()> {
        match table {
            "callsite" => self.callsites(batch),
            "frame" => self.frames(batch),
            _ => Ok(()),
        }
    }

    fn callsites(&mut self, batch: &RecordBatch) -> Result<()> {
        let column = |name| Column::of(batch, name);
        let (id, parent) = (column("callsite_id")?, column("parent_callsite_id")?);
        let (frame, own) = (column("frame_id")?, column("own_callsite_id")?);
        for row in 0..batch.num_rows() {
            let number = |column: &Column<'_>| column.number(row).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
            let site = Site { parent: number(&parent), frame: number(&frame), own: number(&own) };
            set(&mut self.sites, number(&id), site, MOST_SITES);
        }
        Ok(())
    }

    fn frames(&mut self, batch: &RecordBatch) -> Result<()> {
        let column = |name| Column::of(batch, name);
        let (id, name, written) = (column("frame_id")?, column("name")?, column("written_name")?);
        let tier = column("tier")?;
        for row in 0..batch.num_rows() {
            let text = name.text(row).unwrap_or_default();
            let mut kinds = 0;
            if text.starts_with("System.") {
                let of_it = KINDS.iter().filter(|(start, _)| text.starts_with(start));
                kinds = of_it.fold(0, |kinds, (_, is)| kinds | *is as u8);
                // Task<T> has its type arguments before the method.
                if text.starts_with("System.Threading.Tasks.Task`1") && text.contains(".GetResultCore(") {
                    kinds |= Is::TaskWait as u8;
                }
            }
            let written = self.texts.place(written.text(row).unwrap_or_default());
            let number = id.number(row).and_then(|n| u32::try_from(n).ok()).unwrap_or_default();
            let is_optimized = tier.text(row).is_some_and(|tier| tier.starts_with("Optimized") || tier == "ReadyToRun");
            set(&mut self.frames, number, OfFrame { written, kinds, is_optimized }, MOST_FRAMES);
        }
        Ok(())
    }

    fn site(&self, site: u32) -> Option<Site> {
        self.sites.get((site as usize).checked_sub(1)?).copied()
    }

    fn frame(&self, site: u32) -> Option<OfFrame> {
        self.frames.get((self.site(site)?.frame as usize).checked_sub(1)?).copied()
    }

    /// The nearest own method of a call site.
    pub(crate) fn own_method(&self, site: u32) -> Option<&str> {
        let own = self.site(site)?.own;
        self.texts.get(self.frame(own)?.written)
    }

    /// The own methods on the stack of a call site, the innermost first; one that calls itself stands once.
    pub(crate) fn own_path(&self, site: u32) -> Vec<&str> {
        let mut path: Vec<&str> = Vec::new();
        let mut at = site;
        for _ in 0..MOST_DEPTH {
            let Some(own) = self.site(at).map(|site| site.own) else { break };
            let Some(of_own) = self.site(own) else { break };
            if let Some(name) = self.frame(own).and_then(|frame| self.texts.get(frame.written))
                && path.last() != Some(&name)
            {
                path.push(name);
            }
            at = of_own.parent;
        }
        path
    }

    /// Whether the code of the nearest own method of a call site was optimized.
    pub(crate) fn is_optimized(&self, site: u32) -> bool {
        self.site(site).and_then(|site| self.frame(site.own)).is_some_and(|frame| frame.is_optimized)
    }

    /// Whether the nearest own method of a call site itself says what it does: nothing but what reports it lies inside of it.
    pub(crate) fn is_reported_by_itself(&self, site: u32) -> bool {
        let Some(own) = self.site(site).map(|site| site.own) else { return false };
        let (mut at, mut frames) = (site, 0);
        while at != own && frames < MOST_DEPTH {
            let Some(site) = self.site(at) else { return false };
            if self.frame(at).is_none_or(|frame| frame.kinds & Is::Reports as u8 == 0) {
                return false;
            }
            (at, frames) = (site.parent, frames + 1);
        }
        frames > 0
    }

    /// The innermost own method that two call sites have in common, with its depth: where they part, or what called both.
    pub(crate) fn common_own(&self, a: u32, b: u32) -> Option<(usize, &str)> {
        let [a, b] = [a, b].map(|site| self.nodes(site));
        let equal = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        let part = a.get(equal).zip(b.get(equal));
        let method = |node: u32| self.frame(node).filter(|_| self.site(node).is_some_and(|site| site.own == node));
        // Two lines of one method.
        let of_part = part.and_then(|(a, b)| Some((method(*a)?, method(*b)?))).filter(|(a, b)| a.written == b.written);
        let written = match of_part {
            Some((method, _)) => method.written,
            None => {
                let node = a.get(equal.checked_sub(1)?)?;
                self.frame(self.site(*node)?.own)?.written
            }
        };
        self.texts.get(written).map(|name| (equal, name))
    }

    /// The call sites that enclose one, the outermost first, with itself.
    fn nodes(&self, site: u32) -> Vec<u32> {
        let mut nodes = Vec::new();
        let mut at = site;
        while let Some(site) = self.site(at).filter(|_| nodes.len() < MOST_DEPTH) {
            nodes.push(at);
            at = site.parent;
        }
        nodes.reverse();
        nodes
    }

    /// What of [`Is`] is on the stack of a call site.
    fn kinds(&self, site: u32) -> u8 {
        let (mut at, mut kinds) = (site, 0);
        for _ in 0..MOST_DEPTH {
            let Some(site) = self.site(at) else { break };
            kinds |= self.frame(at).map_or(0, |frame| frame.kinds);
            at = site.parent;
        }
        kinds
    }

    /// Whether such methods are all on the stack of a call site.
    pub(crate) fn has(&self, site: u32, all: &[Is]) -> bool {
        let kinds = self.kinds(site);
        all.iter().all(|is| kinds & *is as u8 != 0)
    }
}

/// Sets what belongs to a number, from 1; numbers beyond `most` have nothing.
pub(crate) fn set<T: Copy + Default>(list: &mut Vec<T>, number: u32, value: T, most: usize) {
    let Some(place) = (number as usize).checked_sub(1).filter(|place| *place < most) else { return };
    if list.len() <= place {
        list.resize(place + 1, T::default());
    }
    if let Some(known) = list.get_mut(place) {
        *known = value;
    }
}
