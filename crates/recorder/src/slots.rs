//! Slots of the runtime's interfaces as corprof.idl and cor.h declare them: of the callbacks those that are recorded,
//! of the others those that are called.

use std::ffi::c_void;

use crate::com::{Guid, Hr, Slot, This};

macro_rules! slots {
    ($($(#[$doc:meta])* $name:ident = $index:literal ($($argument:ty),*) $(-> $result:ty)?;)*) => {
        $($(#[$doc])* pub const $name: Slot<unsafe extern "system" fn(This $(, $argument)*) -> slots!(@ $($result)?)> =
            Slot::at($index);)*
    };
    (@) => { Hr };
    (@ $result:ty) => { $result };
}

/// IUnknown, with which every interface begins.
pub mod unknown {
    use super::*;
    slots! {
        QUERY_INTERFACE = 0 (*const Guid, *mut *mut c_void);
        ADD_REF = 1 () -> u32;
        RELEASE = 2 () -> u32;
    }
}

/// IClassFactory.
pub mod class_factory {
    use super::*;
    /// Slots in all.
    pub const COUNT: usize = 5;
    slots! {
        CREATE_INSTANCE = 3 (This, *const Guid, *mut *mut c_void);
        LOCK_SERVER = 4 (i32);
    }
}

/// ICorProfilerCallback 1 to 11, which continue each other.
pub mod callback {
    use super::*;
    /// Slots in all: ICorProfilerCallback11 ends with LoadAsNotificationOnly.
    pub const COUNT: usize = 98;
    slots! {
        INITIALIZE = 3 (This);
        SHUTDOWN = 4 ();
        MODULE_LOAD_FINISHED = 14 (usize, Hr);
        MODULE_UNLOAD_STARTED = 15 (usize);
        CLASS_UNLOAD_STARTED = 20 (usize);
        FUNCTION_UNLOAD_STARTED = 22 (usize);
        THREAD_CREATED = 29 (usize);
        THREAD_DESTROYED = 30 (usize);
        THREAD_ASSIGNED_TO_OS_THREAD = 31 (usize, u32);
        RUNTIME_SUSPEND_STARTED = 42 (u32);
        RUNTIME_SUSPEND_FINISHED = 43 ();
        RUNTIME_SUSPEND_ABORTED = 44 ();
        RUNTIME_RESUME_STARTED = 45 ();
        RUNTIME_RESUME_FINISHED = 46 ();
        RUNTIME_THREAD_SUSPENDED = 47 (usize);
        RUNTIME_THREAD_RESUMED = 48 (usize);
        MOVED_REFERENCES = 49 (u32, *const usize, *const usize, *const u32);
        OBJECT_ALLOCATED = 50 (usize, usize);
        OBJECTS_ALLOCATED_BY_CLASS = 51 (u32, *const usize, *const u32);
        OBJECT_REFERENCES = 52 (usize, usize, u32, *const usize);
        ROOT_REFERENCES = 53 (u32, *const usize);
        THREAD_NAME_CHANGED = 72 (usize, u32, *const u16);
        GARBAGE_COLLECTION_STARTED = 73 (i32, *const i32, u32);
        SURVIVING_REFERENCES = 74 (u32, *const usize, *const u32);
        GARBAGE_COLLECTION_FINISHED = 75 ();
        FINALIZEABLE_OBJECT_QUEUED = 76 (u32, usize);
        ROOT_REFERENCES2 = 77 (u32, *const usize, *const u32, *const u32, *const usize);
        HANDLE_CREATED = 78 (usize, usize);
        HANDLE_DESTROYED = 79 (usize);
        INITIALIZE_FOR_ATTACH = 80 (This, *const u8, u32);
        PROFILER_ATTACH_COMPLETE = 81 ();
        MOVED_REFERENCES2 = 87 (u32, *const usize, *const usize, *const usize);
        SURVIVING_REFERENCES2 = 88 (u32, *const usize, *const usize);
        CONDITIONAL_WEAK_TABLE_ELEMENT_REFERENCES = 89 (u32, *const usize, *const usize, *const usize);
        DYNAMIC_METHOD_UNLOADED = 94 (usize);
        LOAD_AS_NOTIFICATION_ONLY = 97 (*mut i32);
    }
}

/// ICorProfilerInfo 1 to 15. A runtime has them up to some version; `info::get` asks for the one that has the slot.
pub mod info {
    use super::*;
    slots! {
        GET_EVENT_MASK = 6 (*mut u32);
        IS_ARRAY_CLASS = 11 (usize, *mut u32, *mut usize, *mut u32);
        GET_THREAD_INFO = 12 (usize, *mut u32);
        GET_FUNCTION_INFO = 15 (usize, *mut usize, *mut usize, *mut u32);
        SET_EVENT_MASK = 16 (u32);
        GET_MODULE_INFO = 20 (usize, *mut usize, u32, *mut u32, *mut u16, *mut usize);
        GET_MODULE_META_DATA = 21 (usize, u32, *const Guid, *mut *mut c_void);
        /// ICorProfilerInfo2.
        GET_CLASS_ID_INFO2 = 41 (usize, *mut usize, *mut u32, *mut usize, u32, *mut u32, *mut usize);
        /// ICorProfilerInfo2.
        GET_GENERATION_BOUNDS = 54 (u32, *mut u32, *mut GenerationRange);
        /// ICorProfilerInfo3.
        ENUM_MODULES = 66 (*mut This);
        /// ICorProfilerInfo3. CLR instance id, kind, four parts of the version, room for the text, its length, the
        /// text.
        GET_RUNTIME_INFORMATION = 67
            (*mut u16, *mut u32, *mut u16, *mut u16, *mut u16, *mut u16, u32, *mut u32, *mut u16);
        /// ICorProfilerInfo4.
        ENUM_THREADS = 71 (*mut This);
        /// ICorProfilerInfo4.
        GET_OBJECT_SIZE2 = 80 (usize, *mut usize);
        /// ICorProfilerInfo5.
        GET_EVENT_MASK2 = 81 (*mut u32, *mut u32);
        /// ICorProfilerInfo5.
        SET_EVENT_MASK2 = 82 (u32, u32);
        /// ICorProfilerInfo14.
        GET_NON_GC_HEAP_BOUNDS = 112 (u32, *mut u32, *mut NonGcRange);
    }
}

/// ICorProfilerThreadEnum and ICorProfilerModuleEnum, which have the same form.
pub mod enumeration {
    use super::*;
    slots! {
        NEXT = 7 (u32, *mut usize, *mut u32);
    }
}

/// IMetaDataImport.
pub mod metadata {
    use super::*;
    slots! {
        GET_TYPE_DEF_PROPS = 12 (u32, *mut u16, u32, *mut u32, *mut u32, *mut u32);
        /// Token, class, name with its room and length, attributes, signature with its length, RVA, flags.
        GET_METHOD_PROPS = 30
            (u32, *mut u32, *mut u16, u32, *mut u32, *mut u32, *mut *const u8, *mut u32, *mut u32, *mut u32);
        GET_NESTED_CLASS_PROPS = 62 (u32, *mut u32);
    }
}

/// COR_PRF_GC_GENERATION_RANGE.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct GenerationRange {
    pub generation: u32,
    pub start: usize,
    pub length: usize,
    pub reserved: usize,
}

/// COR_PRF_NONGC_HEAP_RANGE.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct NonGcRange {
    pub start: usize,
    pub length: usize,
    pub reserved: usize,
}
