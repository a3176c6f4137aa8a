//! Tuning values of the collector: GCDynamicEvent, one event for many layouts that differ by name.
//!
//! The data are packed, and begin with a version in 16 bits; a newer version appends values.

use super::event_collections::EventGcTracker;
use crate::fact::GcTuning;
use crate::prelude::*;

#[derive(Clone, Copy)]
enum Type {
    U8,
    U16,
    U32,
    U64,
    F32,
}
use Type::{F32, U8, U16, U32, U64};

struct Layout {
    name: &'static str,
    fields: &'static [(&'static str, Type)],
}

/// The layouts, behind the version. Those of HeapCountTuning and HeapCountSample (.NET 8) were not seen in a recording.
const LAYOUTS: &[Layout] = &[
    Layout {
        name: "CommittedUsage",
        fields: &[
            ("total_committed_in_use", U64),
            ("total_committed_in_global_decommit", U64),
            ("total_committed_in_free", U64),
            ("total_committed_in_global_free", U64),
            ("total_bookkeeping_committed", U64),
        ],
    },
    Layout {
        name: "HeapCountTuning",
        fields: &[
            ("new_heap_count", U16),
            ("gc_index", U64),
            ("median_throughput_cost_percent", F32),
            ("smoothed_median_throughput_cost_percent", F32),
            ("throughput_cost_percent_reduction_per_step_up", F32),
            ("throughput_cost_percent_increase_per_step_down", F32),
            ("space_cost_percent_increase_per_step_up", F32),
            ("space_cost_percent_decrease_per_step_down", F32),
        ],
    },
    Layout {
        name: "HeapCountSample",
        fields: &[("gc_index", U64), ("elapsed_time_between_gcs", U64), ("gc_pause_time", U64), ("msl_wait_time", U64)],
    },
    Layout {
        name: "SizeAdaptationTuning",
        fields: &[
            ("new_heap_count", U16),
            ("max_heap_count", U16),
            ("min_heap_count", U16),
            ("current_gc_index", U64),
            ("total_soh_stable_size", U64),
            ("median_throughput_cost_percent", F32),
            ("throughput_cost_percent_to_consider", F32),
            ("current_around_target_accumulation", F32),
            ("recorded_throughput_cost_percent_count", U16),
            ("recorded_throughput_cost_percent_slope", F32),
            ("gc_count_since_last_change", U32),
            ("agg_factor", U8),
            ("change_decision", U16),
            ("adjustment_reason", U16),
            ("heap_count_change_frequency_factor", U16),
            ("heap_count_change_frequency_reason", U16),
            ("adjustment_metric", U8),
        ],
    },
    Layout {
        name: "SizeAdaptationFullGCTuning",
        fields: &[
            ("new_heap_count", U16),
            ("current_gc_index", U64),
            ("median_gen2_throughput_cost_percent", F32),
            ("gen2_count_since_last_change", U32),
            ("gen2_sample0_gc_index_distance", U32),
            ("gen2_sample0_gc_percent", F32),
            ("gen2_sample1_gc_index_distance", U32),
            ("gen2_sample1_gc_percent", F32),
            ("gen2_sample2_gc_index_distance", U32),
            ("gen2_sample2_gc_percent", F32),
        ],
    },
    Layout {
        name: "SizeAdaptationSample",
        fields: &[
            ("gc_index", U64),
            ("elapsed_time_between_gcs", U32),
            ("gc_pause_time", U32),
            ("soh_msl_wait_time", U32),
            ("uoh_msl_wait_time", U32),
            ("total_soh_stable_size", U64),
            ("gen0_budget_per_heap", U32),
        ],
    },
];

/// Takes a value off the bytes.
fn value(bytes: &mut &[u8], kind: Type) -> Option<f64> {
    fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
        let (value, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(*value)
    }
    Some(match kind {
        U8 => f64::from(take::<1>(bytes)?[0]),
        U16 => f64::from(u16::from_le_bytes(take(bytes)?)),
        U32 => f64::from(u32::from_le_bytes(take(bytes)?)),
        U64 => u64::from_le_bytes(take(bytes)?) as f64,
        F32 => f64::from(f32::from_le_bytes(take(bytes)?)),
    })
}

/// Tuning values.
#[derive(Debug, Default)]
pub struct Tuning;

impl Tracker for Tuning {
    type Action = ();
    const EVENTS: Events<()> = &[(RUNTIME, "GCDynamicEvent", ())];

    fn event(&mut self, _: (), input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        event(input, shared.runtimes.runtime_of(input), sink);
    }
}

/// GCDynamicEvent.
fn event(input: &Input<'_>, runtime: Option<(usize, &mut EventGcTracker)>, sink: &mut impl FactSink) {
    let Some(layout) = LAYOUTS.iter().find(|layout| layout.name == input.text("Name")) else { return };
    let Value::Bytes(data) = input.fields.get("Data") else { return };
    let gc_id = runtime.and_then(|(_, collections)| collections.current().map(|row| row.gc_id)).unwrap_or_default();
    let mut rest = data.get(2..).unwrap_or_default();
    let mut rows = Vec::with_capacity(layout.fields.len());
    for (field, kind) in layout.fields {
        let Some(value) = value(&mut rest, *kind) else { break };
        rows.push(GcTuning { gc_id, event_name: layout.name, field, value, ..input.row() });
    }
    sink.add(rows.as_slice());
}
