//! All integration tests in one binary, one file per subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop where it stands, and so may what it calls"
)]

// The fuzz targets ask for libfuzzer's macro: here it is one of tests/fuzzing.rs.
extern crate self as libfuzzer_sys;

#[cfg(feature = "packed")]
mod async_tasks;
mod batches;
mod bounds;
mod callback;
#[cfg(target_os = "linux")]
mod callback_attach;
#[cfg(unix)]
mod callback_c;
mod callback_damage;
#[cfg(feature = "cli")]
mod many;
// A .NET runtime for Linux.
mod backwards;
#[cfg(target_os = "linux")]
mod callback_dual;
#[cfg(target_os = "linux")]
mod callback_harmless;
#[cfg(target_os = "linux")]
mod callback_heap;
mod callback_holes;
mod callback_pairs;
#[cfg(all(feature = "cli", target_os = "linux"))]
mod callback_readme;
#[cfg(target_os = "linux")]
mod callback_runtime;
mod callback_survived;
mod callback_truth;
#[cfg(feature = "cli")]
mod cli;
mod collections;
mod collector;
mod column_names;
mod heap_memory;
#[cfg(feature = "cli")]
mod terminal;
// Sockets, signals and a .NET runtime for Linux.
#[cfg(all(feature = "cli", target_os = "linux"))]
mod collect;
#[cfg(all(feature = "cli", target_os = "linux"))]
mod collect_beside;
#[cfg(all(feature = "cli", target_os = "linux"))]
mod collect_faults;
#[cfg(all(feature = "cli", target_os = "linux"))]
mod collect_follow;
#[cfg(all(feature = "cli", target_os = "linux"))]
mod collect_service;
#[cfg(all(feature = "cli", target_os = "linux"))]
mod collect_session;
#[cfg(feature = "cli")]
mod compaction;
#[cfg(all(feature = "cli", target_os = "linux"))]
mod comparable;
#[cfg(feature = "cli")]
mod convert;
mod damage;
mod dataset;
#[cfg(all(feature = "cli", feature = "packed"))]
mod diff;
#[cfg(feature = "cli")]
mod docs;
#[cfg(all(feature = "cli", feature = "packed", target_os = "linux"))]
mod dotnet_tool;
mod empty_tables;
mod entries;
#[cfg(feature = "packed")]
mod etl;
mod examples;
#[cfg(feature = "cli")]
mod export;
#[cfg(all(feature = "cli", feature = "packed", target_os = "linux"))]
mod faults;
#[cfg(feature = "cli")]
mod fields;
#[cfg(all(feature = "cli", feature = "packed"))]
mod figures;
#[cfg(all(feature = "cli", feature = "packed"))]
mod findings;
#[cfg(all(feature = "cli", target_os = "linux"))]
mod follow_faults;
#[cfg(feature = "packed")]
mod frames;
#[cfg(feature = "packed")]
mod fuzzing;
mod gaps;
#[cfg(all(feature = "cli", feature = "packed"))]
mod gates;
#[cfg(all(feature = "cli", feature = "packed"))]
mod gc;
mod gcdump;
#[cfg(all(feature = "cli", feature = "packed"))]
mod habits;
#[cfg(feature = "cli")]
mod heap;
#[cfg(all(feature = "cli", target_os = "linux"))]
mod held_memory;
mod held_rows;
#[cfg(feature = "packed")]
mod hostile;
mod hostile_parquet;
#[cfg(feature = "cli")]
mod hostile_ranges;
#[cfg(feature = "packed")]
mod hostile_values;
// Signals, sent by a shell command.
#[cfg(all(feature = "cli", unix))]
mod interrupt;
#[cfg(all(feature = "packed", feature = "cli"))]
mod known;
mod lakes;
mod layers;
#[cfg(all(feature = "cli", feature = "packed"))]
mod lifetimes;
mod limits;
#[cfg(feature = "packed")]
mod lines;
mod linux_switches;
#[cfg(feature = "cli")]
mod lists;
mod live_reader;
#[cfg(all(feature = "cli", feature = "packed"))]
mod long_names;
mod losses;
mod measures;
#[cfg(feature = "cli")]
mod metrics;
#[cfg(all(feature = "native-symbols", target_os = "linux"))]
mod native_symbols;
mod order;
#[cfg(feature = "cli")]
mod outcome;
#[cfg(feature = "packed")]
mod packing;
#[cfg(all(feature = "cli", target_os = "linux"))]
mod processors;
mod queries;
// On Wine there is no Python with the readers, and the files are the same bytes.
#[cfg(all(feature = "cli", unix))]
mod readers;
// A shell and a .NET runtime.
#[cfg(feature = "cli")]
mod cohorts;
#[cfg(all(feature = "cli", unix))]
mod record;
#[cfg(all(feature = "cli", unix))]
mod relations;
#[cfg(feature = "cli")]
mod report;
mod resync;
#[cfg(all(feature = "cli", target_os = "linux"))]
mod same_rows;
mod samples;
#[cfg(feature = "packed")]
mod shared;
#[cfg(all(feature = "cli", target_os = "linux"))]
mod shrink;
mod silent_damage;
mod sink;
mod small_recordings;
mod subjects;
mod support;
mod tasks;
mod thread_activity;
mod unended;
#[cfg(feature = "cli")]
mod verify;
#[cfg(all(windows, feature = "cli"))]
mod windows;
