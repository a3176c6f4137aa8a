//! Requests to disks, and page faults that have to read from one.

use crate::fact::{DiskIo, PageFault};
use crate::prelude::*;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskAction {
    /// A request is done.
    Done(&'static str),
    /// A page is there.
    Fault,
}

/// Requests to disks, and page faults.
#[derive(Debug, Default)]
pub struct Disk;

const DISK_IO: &str = "Windows-Kernel-DiskIo";

impl Tracker for Disk {
    type Action = DiskAction;
    const EVENTS: Events<DiskAction> = &[
        (DISK_IO, "Read", DiskAction::Done("read")),
        (DISK_IO, "Write", DiskAction::Done("write")),
        (DISK_IO, "FlushBuffers", DiskAction::Done("flush")),
        ("Windows-Kernel-PageFault", "HardFault", DiskAction::Fault),
    ];

    fn event(&mut self, action: DiskAction, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        event(action, input, shared.clock.as_ref(), sink);
    }
}

/// An event becomes a row. The clock gives the length of the response time, which is in ticks.
fn event(action: DiskAction, input: &Input<'_>, clock: Option<&Clock>, sink: &mut impl FactSink) {
    let end_ts_ns = input.ts_ns();
    match action {
        DiskAction::Done(kind) => {
            let ticks = input.fields.number("HighResResponseTime").and_then(|ticks| i64::try_from(ticks).ok());
            let length =
                clock.zip(ticks).and_then(|(clock, ticks)| Clock { sync_ticks: 0, ..*clock }.since_start(ticks));
            sink.add(&DiskIo {
                start_ts_ns: end_ts_ns.saturating_sub(length.unwrap_or_default()),
                end_ts_ns,
                duration_ns: length,
                kind,
                disk_number: input.number("DiskNumber") as u32,
                size_bytes: input.number("TransferSize") as u32,
                byte_offset: input.number("ByteOffset"),
                file_key: input.number("FileObject"),
                irp_flags: input.number("IrpFlags") as u32,
                ..input.row()
            });
        }
        DiskAction::Fault => {
            let ticks = input.fields.number("InitialTime").filter(|ticks| *ticks != 0);
            let ticks = ticks.and_then(|ticks| i64::try_from(ticks).ok());
            let start = clock.zip(ticks).and_then(|(clock, ticks)| clock.since_start(ticks));
            let start = start.filter(|start| *start <= end_ts_ns);
            sink.add(&PageFault {
                start_ts_ns: start.unwrap_or(end_ts_ns),
                end_ts_ns,
                duration_ns: start.map(|start| end_ts_ns.saturating_sub(start)),
                address: input.number("VirtualAddress"),
                file_key: input.number("FileObject"),
                file_offset: input.number("ReadOffset"),
                size_bytes: input.number("ByteCount") as u32,
                ..input.row()
            });
        }
    }
}
