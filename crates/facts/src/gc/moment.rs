//! The place of an event in a collection.

/// The moment in a collection at which the runtime writes an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The collection of this number starts.
    Start(u32),
    /// A bound of a generation, which belongs to the start until its thread reports something else.
    Bounds,
    /// The collection of this number ends.
    End(u32),
    /// Threads are suspended, for another collection maybe.
    Suspend,
    /// Anything else.
    Within,
}
