//! Kinds of records: their numbers, and the names of their callbacks.

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        $($(#[$doc])* pub const $name: u8 = $number;)*

        /// The callback of a kind of record, or the record's own name; `None` for an unknown kind.
        pub fn name(kind: u8) -> Option<&'static str> {
            match kind {
                $($number => Some($text),)*
                _ => None,
            }
        }

        /// Every kind with its name, in the order of the numbers.
        pub const ALL: &[(u8, &str)] = &[$(($number, $text)),*];
    };
}

kinds! {
    /// The last record of a recording that was ended properly.
    END = 1, "End";
    /// The wall clock at the time of the record.
    CLOCK = 2, "Clock";
    /// A collection starts.
    GC_STARTED = 3, "GarbageCollectionStarted";
    /// A collection ends.
    GC_FINISHED = 4, "GarbageCollectionFinished";
    /// Surviving ranges with 32-bit lengths.
    SURVIVING = 5, "SurvivingReferences";
    /// Surviving ranges.
    SURVIVING2 = 6, "SurvivingReferences2";
    /// Moved ranges with 32-bit lengths.
    MOVED = 7, "MovedReferences";
    /// Moved ranges.
    MOVED2 = 8, "MovedReferences2";
    /// Roots: objects only.
    ROOTS = 9, "RootReferences";
    /// Roots.
    ROOTS2 = 10, "RootReferences2";
    /// An object and what it refers to.
    OBJECT = 11, "ObjectReferences";
    /// Keys, values and dependent handles.
    WEAK = 12, "ConditionalWeakTableElementReferences";
    /// A handle was created.
    HANDLE_CREATED = 13, "HandleCreated";
    /// A handle was destroyed.
    HANDLE_DESTROYED = 14, "HandleDestroyed";
    /// An object waits for its finalizer.
    FINALIZEABLE = 15, "FinalizeableObjectQueued";
    /// Objects in generation 0 by class.
    BY_CLASS = 16, "ObjectsAllocatedByClass";
    /// An object was allocated.
    ALLOCATED = 17, "ObjectAllocated";
    /// The runtime begins to suspend its threads.
    SUSPEND_STARTED = 18, "RuntimeSuspendStarted";
    /// All threads are suspended.
    SUSPEND_FINISHED = 19, "RuntimeSuspendFinished";
    /// The suspension was given up.
    SUSPEND_ABORTED = 20, "RuntimeSuspendAborted";
    /// The runtime begins to resume its threads.
    RESUME_STARTED = 21, "RuntimeResumeStarted";
    /// All threads run again.
    RESUME_FINISHED = 22, "RuntimeResumeFinished";
    /// One thread is suspended.
    THREAD_SUSPENDED = 23, "RuntimeThreadSuspended";
    /// One thread is resumed.
    THREAD_RESUMED = 24, "RuntimeThreadResumed";
    /// A managed thread was created.
    THREAD_CREATED = 25, "ThreadCreated";
    /// A managed thread ended.
    THREAD_DESTROYED = 26, "ThreadDestroyed";
    /// A managed thread runs on a thread of the OS.
    THREAD_ASSIGNED = 27, "ThreadAssignedToOSThread";
    /// A managed thread has a name.
    THREAD_NAME = 28, "ThreadNameChanged";
    /// The class of a ClassID.
    CLASS = 29, "Class";
    /// The function of a FunctionID.
    FUNCTION = 30, "Function";
    /// The module of a ModuleID.
    MODULE = 31, "Module";
    /// A ClassID is free to mean another class.
    CLASS_UNLOADED = 32, "ClassUnloadStarted";
    /// A FunctionID is free to mean another function.
    FUNCTION_UNLOADED = 33, "FunctionUnloadStarted";
    /// A ModuleID is free to mean another module.
    MODULE_UNLOADED = 34, "ModuleUnloadStarted";
    /// Records that could not be written: how many.
    LOST = 35, "Lost";
    /// The profiler is attached.
    ATTACHED = 36, "ProfilerAttachComplete";
    /// Something that the profiler has to say: a `NOTE_` code and a text. Since version 1.1.
    NOTE = 37, "Note";
}
