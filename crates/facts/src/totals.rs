//! Counts of the normalisation.

/// Counts of the normalisation, for the summary.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Collections.
    pub collections: u64,
    /// Frames of call stacks.
    pub frames: FrameCounts,
}

/// The number of frames, and of those that have a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Frames of all call stacks: different addresses in a process.
    pub frames: u64,
    /// Frames whose method or function is known.
    pub named: u64,
    /// Frames of which only the file is known that they lie in.
    pub in_modules: u64,
    /// Frames with a source line.
    pub with_line: u64,
}
