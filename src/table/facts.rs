//! Facts become rows: which column each part of a fact goes into.

use super::columns::Builder;
use super::tables::*;
use crate::error::Problem;
use crate::normalize::fact::*;
use crate::reader::{Thread, TraceInfo};
use crate::time::Clock;

/// Nanoseconds since 1970 of a moment of the recording; clamped when the calendar ends before it.
#[inline]
pub fn utc_ns(clock: &Clock, ts_ns: i64) -> i64 {
    clock.sync_utc_ns.saturating_add(ts_ns)
}

macro_rules! row {
    ($table:expr, $($column:ident = $value:expr),* $(,)?) => {{
        let table = $table;
        table.rows += 1;
        $(table.$column.push($value);)*
    }};
}

impl GcTable {
    /// Adds a row.
    pub fn push(&mut self, c: &Collection, clock: &Clock) {
        row!(
            self,
            gc_id = c.gc_id,
            process_id = c.process_id,
            clr_instance_id = c.clr_instance_id,
            gc_number = c.gc_number,
            generation = c.generation,
            reason = c.reason,
            kind = c.kind,
            start_ts = utc_ns(clock, c.start_ns),
            start_ts_ns = c.start_ns,
            end_ts_ns = c.end_ns,
            duration_ns = c.end_ns.map(|end| end.saturating_sub(c.start_ns)),
            pause_ns = c.pause_ns,
            pause_count = c.pause_count,
            complete = c.complete,
            heap_count = c.heap_count,
            memory_load_percent = c.memory_load_percent,
            mechanisms = c.mechanisms,
            size_before_bytes = c.size_before_bytes,
            size_after_bytes = c.size_after_bytes,
            promoted_bytes = c.promoted_bytes,
            finalization_promoted_count = c.finalization_promoted_count,
            pinned_object_count = c.pinned_object_count,
            handle_count = c.handle_count,
            surviving_range_count = c.surviving_range_count,
            surviving_bytes = c.surviving_bytes,
            moved_range_count = c.moved_range_count,
            moved_bytes = c.moved_bytes,
            root_count = c.root_count,
            heap_object_count = c.heap_object_count,
        );
    }
}

impl PauseTable {
    /// Adds a row.
    pub fn push(&mut self, p: &Pause, clock: &Clock) {
        row!(
            self,
            gc_id = p.gc_id,
            process_id = p.process_id,
            start_ts = utc_ns(clock, p.start_ns),
            start_ts_ns = p.start_ns,
            duration_ns = p.duration_ns,
            suspend_ns = p.suspend_ns,
            reason = p.reason,
        );
    }
}

impl GenerationRangeTable {
    /// Adds a row.
    pub fn push(&mut self, gc_id: GcId, r: &GenerationRange) {
        row!(
            self,
            gc_id = gc_id,
            at = if r.at_end { "end" } else { "start" },
            generation = r.generation,
            range_start = r.start,
            range_length = r.length,
            range_length_reserved = r.reserved,
        );
    }
}

impl SurvivingRangeTable {
    /// Adds the rows of a collection, column by column.
    pub fn extend(&mut self, gc_id: GcId, ranges: &[SurvivingRange]) {
        self.rows += ranges.len();
        self.gc_id.repeat(gc_id, ranges.len());
        self.range_start.extend(ranges.iter().map(|r| r.start));
        self.range_length.extend(ranges.iter().map(|r| r.length));
        for same in ranges.chunk_by(|a, b| a.length_kind == b.length_kind) {
            self.length_kind.repeat(same.first().map_or("", |r| r.length_kind.as_str()), same.len());
        }
        self.generation_before.extend(ranges.iter().map(|r| r.generation_before));
        self.generation_after.extend(ranges.iter().map(|r| r.generation_after));
    }
}

impl MovedRangeTable {
    /// Adds the rows of a collection, column by column.
    pub fn extend(&mut self, gc_id: GcId, ranges: &[MovedRange]) {
        self.rows += ranges.len();
        self.gc_id.repeat(gc_id, ranges.len());
        self.old_range_start.extend(ranges.iter().map(|r| r.old_start));
        self.new_range_start.extend(ranges.iter().map(|r| r.new_start));
        self.range_length.extend(ranges.iter().map(|r| r.length));
        for same in ranges.chunk_by(|a, b| a.length_kind == b.length_kind) {
            self.length_kind.repeat(same.first().map_or("", |r| r.length_kind.as_str()), same.len());
        }
        self.generation_before.extend(ranges.iter().map(|r| r.generation_before));
        self.generation_after.extend(ranges.iter().map(|r| r.generation_after));
    }
}

impl HeapStatsTable {
    /// Adds a row.
    pub fn push(&mut self, gc_id: GcId, s: &GenerationStats) {
        row!(
            self,
            gc_id = gc_id,
            generation = s.generation,
            size_bytes = s.size_bytes,
            promoted_bytes = s.promoted_bytes,
        );
    }
}

impl RootTable {
    /// Adds a row.
    pub fn push(&mut self, gc_id: GcId, r: &Root<'_>) {
        row!(
            self,
            gc_id = gc_id,
            object_id = r.object_id,
            root_kind = r.kind,
            root_flags = r.flags,
            root_id = r.root_id,
            name = r.name,
        );
    }
}

impl WeakElementTable {
    /// Adds a row.
    pub fn push(&mut self, gc_id: GcId, e: &WeakElement) {
        row!(
            self,
            gc_id = gc_id,
            key_object_id = e.key_object_id,
            value_object_id = e.value_object_id,
            root_id = e.root_id,
        );
    }
}

impl HandleTable {
    /// Adds a row.
    pub fn push(&mut self, h: &Handle<'_>, clock: &Clock) {
        row!(
            self,
            ts = utc_ns(clock, h.ts_ns),
            ts_ns = h.ts_ns,
            process_id = h.process_id,
            thread_id = h.thread_id,
            action = h.action,
            handle_id = h.handle_id,
            object_id = h.object_id,
            handle_kind = h.kind,
            generation = h.generation,
            callsite_id = h.callsite_id,
        );
    }
}

impl FinalizableTable {
    /// Adds a row.
    pub fn push(&mut self, f: &Finalizable, clock: &Clock) {
        row!(
            self,
            gc_id = f.gc_id,
            ts = utc_ns(clock, f.ts_ns),
            ts_ns = f.ts_ns,
            process_id = f.process_id,
            action = f.action,
            object_id = f.object_id,
            type_id = f.type_id,
            finalizer_flags = f.flags,
        );
    }
}

impl HeapObjectTable {
    /// Adds a row.
    #[inline]
    pub fn push(&mut self, gc_id: GcId, o: &HeapObject) {
        row!(
            self,
            gc_id = gc_id,
            object_id = o.object_id,
            type_id = o.type_id,
            size_bytes = o.size_bytes,
            reference_count = o.reference_count,
        );
    }
}

impl HeapReferenceTable {
    /// Adds a row.
    #[inline]
    pub fn push(&mut self, gc_id: GcId, r: &HeapReference) {
        row!(
            self,
            gc_id = gc_id,
            object_id = r.object_id,
            target_object_id = r.target_object_id,
            field_id = r.field_id,
        );
    }
}

impl TypeTable {
    /// Adds a row.
    pub fn push(&mut self, t: &Type<'_>) {
        row!(
            self,
            process_id = t.process_id,
            type_id = t.type_id,
            name = t.name,
            module_id = t.module_id,
            flags = t.flags,
            element_type = t.element_type,
            type_parameter_ids = t.type_parameters,
        );
    }
}

impl MethodTable {
    /// Adds a row.
    pub fn push(&mut self, m: &Method<'_>) {
        row!(
            self,
            process_id = m.process_id,
            method_id = m.method_id,
            namespace = m.namespace,
            name = m.name,
            signature = m.signature,
            start_address = m.start_address,
            size_bytes = m.size_bytes,
            module_id = m.module_id,
        );
    }
}

impl AllocationTable {
    /// Adds a row.
    pub fn push(&mut self, a: &Allocation<'_>, clock: &Clock) {
        row!(
            self,
            ts = utc_ns(clock, a.ts_ns),
            ts_ns = a.ts_ns,
            process_id = a.process_id,
            thread_id = a.thread_id,
            callsite_id = a.callsite_id,
            source = a.source,
            allocation_bytes = a.allocation_bytes,
            object_count = a.object_count,
            heap_kind = a.heap_kind,
            type_id = a.type_id,
            type_name = a.type_name,
            object_id = a.object_id,
            object_size_bytes = a.object_size_bytes,
            heap_index = a.heap_index,
            sampled_byte_offset = a.sampled_byte_offset,
        );
    }
}

impl CallsiteTable {
    /// Adds a row.
    pub fn push(&mut self, c: &Callsite) {
        row!(
            self,
            callsite_id = c.callsite_id,
            parent_callsite_id = c.parent_callsite_id,
            process_id = c.process_id,
            address = c.address,
            depth = c.depth,
        );
    }
}

impl ProcessTable {
    /// Adds a row.
    pub fn push(&mut self, p: &Process) {
        row!(
            self,
            process_id = p.process_id,
            name = &p.name,
            command_line = &p.command_line,
            parent_process_id = p.parent_process_id,
            start_ts_ns = p.start_ns,
            end_ts_ns = p.end_ns,
            exit_code = p.exit_code.map(i64::from),
            os = &p.os,
            arch = &p.arch,
            runtime_path = &p.runtime_path,
            runtime_kind = p.runtime_sku,
            event_count = p.event_count,
            first_ts_ns = p.first_ns,
            last_ts_ns = p.last_ns,
        );
    }
}

impl ModuleTable {
    /// Adds a row.
    pub fn push(&mut self, m: &Module) {
        row!(
            self,
            process_id = m.process_id,
            module_id = m.module_id,
            kind = m.kind,
            path = &m.path,
            base_address = m.base_address,
            size_bytes = m.size_bytes,
            time_date_stamp = m.time_date_stamp,
            load_ts_ns = m.load_ns,
            unload_ts_ns = m.unload_ns,
            pdb_guid = m.pdb_guid,
            pdb_age = m.pdb_age,
            pdb_path = m.pdb_path.as_deref(),
        );
    }
}

impl CpuSampleTable {
    /// Adds a row.
    pub fn push(&mut self, s: &CpuSample, clock: &Clock) {
        row!(
            self,
            ts = utc_ns(clock, s.ts_ns),
            ts_ns = s.ts_ns,
            process_id = s.process_id,
            thread_id = s.thread_id,
            processor = s.processor,
            callsite_id = s.callsite_id,
            kind = s.kind,
            instruction_pointer = s.instruction_pointer,
            sample_count = s.sample_count,
            priority = s.priority,
        );
    }
}

impl DiagnosticTable {
    /// Adds a row.
    pub fn push(&mut self, p: &Problem) {
        row!(
            self,
            severity = p.severity.as_str(),
            code = p.code,
            message = &p.message,
            byte_offset = p.offset,
            count = p.count,
            thread_id = p.thread_id,
        );
    }
}

/// What was counted for one thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadCounts {
    /// The thread.
    pub thread: Thread,
    /// Events about it.
    pub events: u64,
    /// Events that it recorded.
    pub captured: u64,
    /// Time of its first and last event.
    pub first_ns: i64,
    /// See `first_ns`.
    pub last_ns: i64,
}

impl ThreadCounts {
    /// Counts an event about the thread.
    pub fn event(&mut self, ts_ns: i64) {
        if self.events == 0 {
            self.first_ns = ts_ns;
        }
        self.events += 1;
        self.last_ns = ts_ns;
    }
}

impl ThreadTable {
    /// Adds a row.
    pub fn push(&mut self, t: &ThreadCounts, clock: &Clock) {
        let time = |ticks: Option<i64>| ticks.and_then(|ticks| clock.since_start(ticks));
        row!(
            self,
            process_id = t.thread.process_id,
            thread_id = t.thread.thread_id,
            name = t.thread.name.as_deref(),
            start_ts_ns = time(t.thread.start_ticks),
            end_ts_ns = time(t.thread.end_ticks),
            start_address = t.thread.start_address,
            event_count = t.events,
            capture_count = t.captured,
            first_ts_ns = t.first_ns,
            last_ts_ns = t.last_ns,
        );
    }
}

/// What the `trace` table says beside the header.
#[derive(Clone, Debug, Default)]
pub struct TraceTotals {
    /// Name of the recording.
    pub path: String,
    /// Size of the file.
    pub size_bytes: u64,
    /// Its SHA-256.
    pub sha256: String,
    /// From the first to the last event.
    pub duration_ns: i64,
    /// Events.
    pub events: u64,
    /// Events known to be lost.
    pub dropped: u64,
    /// Whether nothing is damaged or cut.
    pub complete: bool,
}

impl TraceTable {
    /// Adds a row.
    pub fn push(&mut self, info: &TraceInfo, totals: &TraceTotals) {
        let pairs: serde_json::Map<String, serde_json::Value> =
            info.key_values.iter().map(|(k, v)| (k.clone(), v.clone().into())).collect();
        let pairs = (!pairs.is_empty()).then(|| serde_json::Value::Object(pairs).to_string());
        row!(
            self,
            path = &totals.path,
            size_bytes = totals.size_bytes,
            sha256 = &totals.sha256,
            container = info.container,
            format_version = info.version,
            format_minor_version = info.minor,
            start_ts = info.clock.sync_utc_ns,
            start_known = info.start_known,
            clock_frequency = info.clock.frequency,
            pointer_size = info.pointer_size,
            process_id = info.process_id,
            processor_count = info.processor_count,
            sampling_ns = info.sampling_ns,
            duration_ns = totals.duration_ns,
            event_count = totals.events,
            dropped_event_count = totals.dropped,
            complete = totals.complete,
            key_values = pairs.as_deref(),
        );
    }
}
