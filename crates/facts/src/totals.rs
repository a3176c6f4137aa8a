//! What normalisation counted.

/// What normalisation counted, for the summary.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Collections.
    pub collections: u64,
    /// Frames of call stacks.
    pub frames: FrameCounts,
}

/// How many frames there are, and how many of them have a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Frames of all call stacks: different addresses in a process.
    pub frames: u64,
    /// Those whose method or function is known.
    pub named: u64,
    /// Those of which only the file is known that they lie in.
    pub in_modules: u64,
    /// Those with a source line.
    pub with_line: u64,
}
