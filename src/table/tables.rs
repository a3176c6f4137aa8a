//! The builders of all tables but the payload tables: one struct per table, a builder per column.

use super::columns::*;

/// A table while a batch of its rows is collected.
pub trait TableBuilder: Default {
    /// Name of the table and of its schema.
    const NAME: &'static str;
    /// Name, type word and nullability of each column: what the schema has to say, too.
    fn columns() -> Vec<(&'static str, &'static str, bool)>;
    /// Rows so far.
    fn rows(&self) -> usize;
    /// The columns of the rows so far; the builder is empty afterwards.
    fn finish(&mut self) -> Vec<arrow_array::ArrayRef>;
}

macro_rules! table {
    ($(#[$doc:meta])* $name:ident = $table:literal { $($column:ident: $builder:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Default)]
        #[allow(missing_docs, reason = "documented in schemas/tables")]
        pub struct $name {
            pub rows: usize,
            $(pub $column: $builder,)*
        }

        impl TableBuilder for $name {
            const NAME: &'static str = $table;

            fn columns() -> Vec<(&'static str, &'static str, bool)> {
                // A keyword that names a column is written with a trailing underscore in Rust.
                vec![$((stringify!($column), <$builder as Builder>::TYPE, <$builder as Builder>::NULLABLE)),*]
            }

            fn rows(&self) -> usize {
                self.rows
            }

            fn finish(&mut self) -> Vec<arrow_array::ArrayRef> {
                self.rows = 0;
                vec![$(Builder::finish(&mut self.$column)),*]
            }
        }
    };
}

table!(
    /// Builder of `trace`.
    TraceTable = "trace" {
        path: Text, size_bytes: U64, sha256: Text, container: Text, format_version: U32, format_minor_version: U32,
        start_ts: Time, start_known: Bool, clock_frequency: I64, pointer_size: U8, process_id: U64,
        processor_count: U64, sampling_ns: U64, duration_ns: I64, event_count: U64, dropped_event_count: U64,
        complete: Bool, key_values: OptText,
    }
);
table!(
    /// Builder of `diagnostic`.
    DiagnosticTable = "diagnostic" {
        severity: Label, code: Label, message: Text, byte_offset: U64, count: U64, thread_id: U64,
    }
);
table!(
    /// Builder of `process`.
    ProcessTable = "process" {
        process_id: U64, name: Text, command_line: Text, parent_process_id: U64, start_ts_ns: OptI64,
        end_ts_ns: OptI64, exit_code: OptI64, os: Text, arch: Text, runtime_path: Text, runtime_kind: OptLabel,
        event_count: U64, first_ts_ns: I64, last_ts_ns: I64,
    }
);
table!(
    /// Builder of `thread`.
    ThreadTable = "thread" {
        process_id: U64, thread_id: U64, name: OptText, start_ts_ns: OptI64, end_ts_ns: OptI64, start_address: U64,
        event_count: U64, capture_count: U64, first_ts_ns: I64, last_ts_ns: I64,
    }
);
table!(
    /// Builder of `module`.
    ModuleTable = "module" {
        process_id: U64, module_id: U64, kind: Label, path: Text, base_address: U64, size_bytes: U64,
        time_date_stamp: U32, load_ts_ns: OptI64, unload_ts_ns: OptI64, pdb_guid: OptGuid, pdb_age: OptU32,
        pdb_path: OptText,
    }
);
table!(
    /// Builder of `cpu_sample`.
    CpuSampleTable = "cpu_sample" {
        ts: Time, ts_ns: I64, process_id: U64, thread_id: U64, processor: OptU32, callsite_id: U32, kind: OptLabel,
        instruction_pointer: U64, sample_count: U32, priority: OptU8,
    }
);
table!(
    /// Builder of `event_type`.
    EventTypeTable = "event_type" {
        provider_name: Text, event_id: U32, event_version: U32, event_name: Text, opcode: OptU8, level: U32,
        keywords: U64, event_count: U64, payload_bytes: U64, decoded: Label, longer_count: U64, shorter_count: U64,
        reason: OptText, table_name: OptText, message_template: OptText,
    }
);
table!(
    /// Builder of `callsite`.
    CallsiteTable = "callsite" {
        callsite_id: U32, parent_callsite_id: U32, process_id: U64, address: U64, depth: U32,
    }
);
table!(
    /// Builder of `gc`.
    GcTable = "gc" {
        gc_id: U32, process_id: U64, clr_instance_id: U16, gc_number: U32, generation: OptU8, reason: OptLabel,
        kind: OptLabel, start_ts: Time, start_ts_ns: I64, end_ts_ns: OptI64, duration_ns: OptI64, pause_ns: I64,
        pause_count: U32, complete: Bool, heap_count: U32, memory_load_percent: OptU32, mechanisms: OptU32,
        size_before_bytes: OptU64, size_after_bytes: OptU64, promoted_bytes: OptU64,
        finalization_promoted_count: OptU64, pinned_object_count: OptU32, handle_count: OptU32,
        surviving_range_count: U64, surviving_bytes: U64, moved_range_count: U64, moved_bytes: U64, root_count: U64,
        heap_object_count: U64,
    }
);
table!(
    /// Builder of `gc_pause`.
    PauseTable = "gc_pause" {
        gc_id: U32, process_id: U64, start_ts: Time, start_ts_ns: I64, duration_ns: I64, suspend_ns: I64,
        reason: OptLabel,
    }
);
table!(
    /// Builder of `gc_heap_stats`.
    HeapStatsTable = "gc_heap_stats" { gc_id: U32, generation: U8, size_bytes: U64, promoted_bytes: U64 }
);
table!(
    /// Builder of `gc_generation_range`.
    GenerationRangeTable = "gc_generation_range" {
        gc_id: U32, at: Label, generation: U8, range_start: U64, range_length: U64, range_length_reserved: U64,
    }
);
table!(
    /// Builder of `gc_surviving_range`.
    SurvivingRangeTable = "gc_surviving_range" {
        gc_id: U32, range_start: U64, range_length: U64, length_kind: Label, generation_before: OptU8,
        generation_after: OptU8,
    }
);
table!(
    /// Builder of `gc_moved_range`.
    MovedRangeTable = "gc_moved_range" {
        gc_id: U32, old_range_start: U64, new_range_start: U64, range_length: U64, length_kind: Label,
        generation_before: OptU8, generation_after: OptU8,
    }
);
table!(
    /// Builder of `gc_root`.
    RootTable = "gc_root" {
        gc_id: U32, object_id: U64, root_kind: Label, root_flags: U32, root_id: U64, name: OptText,
    }
);
table!(
    /// Builder of `gc_weak_element`.
    WeakElementTable = "gc_weak_element" { gc_id: U32, key_object_id: U64, value_object_id: U64, root_id: U64 }
);
table!(
    /// Builder of `gc_handle`.
    HandleTable = "gc_handle" {
        ts: Time, ts_ns: I64, process_id: U64, thread_id: U64, action: Label, handle_id: U64, object_id: U64,
        handle_kind: OptLabel, generation: OptU8, callsite_id: U32,
    }
);
table!(
    /// Builder of `gc_finalizable`.
    FinalizableTable = "gc_finalizable" {
        gc_id: U32, ts: Time, ts_ns: I64, process_id: U64, action: Label, object_id: U64, type_id: U64,
        finalizer_flags: U32,
    }
);
table!(
    /// Builder of `heap_object`.
    HeapObjectTable = "heap_object" {
        gc_id: U32, object_id: U64, type_id: U64, size_bytes: U64, reference_count: U64,
    }
);
table!(
    /// Builder of `heap_reference`.
    HeapReferenceTable = "heap_reference" { gc_id: U32, object_id: U64, target_object_id: U64, field_id: U64 }
);
table!(
    /// Builder of `type`.
    TypeTable = "type" {
        process_id: U64, type_id: U64, name: Text, module_id: U64, flags: U32, element_type: U8,
        type_parameter_ids: U64List,
    }
);
table!(
    /// Builder of `method`.
    MethodTable = "method" {
        process_id: U64, method_id: U64, namespace: Text, name: Text, signature: Text, start_address: U64,
        size_bytes: U64, module_id: U64,
    }
);
table!(
    /// Builder of `allocation`.
    AllocationTable = "allocation" {
        ts: Time, ts_ns: I64, process_id: U64, thread_id: U64, callsite_id: U32, source: Label,
        allocation_bytes: U64, object_count: U64, heap_kind: OptLabel, type_id: U64, type_name: OptText,
        object_id: U64, object_size_bytes: U64, heap_index: OptU32, sampled_byte_offset: OptU64,
    }
);
table!(
    /// Builder of the columns that payload tables begin with.
    EventHeaderColumns = "event_header" {
        ts: Time, ts_ns: I64, process_id: U64, thread_id: U64, processor: OptU32, event_version: U32,
        activity_id: OptGuid, related_activity_id: OptGuid, callsite_id: U32, labels: OptText,
    }
);
