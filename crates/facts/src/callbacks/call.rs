//! One call of ICorProfilerCallback, from either format.

use tracequet_trace::reader::callback::Body;

use crate::fact::CallsiteId;

/// A call, as a record of a `.corprof` or an event describes it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Nanoseconds since the recording began.
    pub ts_ns: i64,
    /// Dense number of the thread that was called.
    pub thread: u32,
    /// OS thread id.
    pub thread_id: u64,
    /// The call stack.
    pub callsite_id: CallsiteId,
    /// Whether the process has pointers of 8 bytes.
    pub wide: bool,
    /// Whether this is a second version after which the first is never recorded.
    pub alone: bool,
    /// Whether the callback returned a failure: after that of a second version the runtime does not call the first.
    pub failed: bool,
    /// Whether more rows of the same call follow.
    pub continues: bool,
    /// Byte offset in the recording.
    pub offset: u64,
    /// The content of the call.
    pub body: Body<'a>,
}
