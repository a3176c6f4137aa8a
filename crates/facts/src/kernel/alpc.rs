//! Messages between processes over ALPC, from sending to receiving, and waits for them.

use crate::fact::Alpc;
use crate::prelude::*;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlpcAction {
    /// A message is sent.
    Send,
    /// A message is received.
    Receive,
    /// A thread begins to wait; the word of the table for it.
    Wait(&'static str),
    /// The wait of a thread ends.
    Unwait,
}

/// Messages and waits that are remembered, and bytes of names of ports. Beyond that all are reported as they are.
const MAX_OPEN: usize = 1 << 16;
const MAX_TEXT: usize = 16 << 20;

/// The key of an open row: a message by its number, or a wait by its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum AlpcKey {
    Message(u32),
    Thread(u64),
}

/// A message or a wait: its row, but for the text.
#[derive(Debug)]
struct OpenAlpc {
    row: Alpc<'static>,
    port: Option<String>,
}

impl OpenAlpc {
    fn report(&self, sink: &mut impl FactSink) {
        sink.add(&Alpc { port_name: self.port.as_deref(), ..self.row });
    }
}

/// Messages that are on their way, and waits.
#[derive(Debug, Default)]
pub struct Messages {
    open: Map<AlpcKey, OpenAlpc>,
    text: usize,
    /// The number of rows that were reported before their end, because too many were open.
    unkept: u64,
}

impl Messages {
    /// Events were lost (`is_lost`), or the recording ends: what is open may have ended unseen.
    fn take_all(&mut self, is_lost: bool, sink: &mut impl FactSink) {
        self.text = 0;
        let mut open: Vec<(AlpcKey, OpenAlpc)> = self.open.drain().collect();
        open.sort_unstable_by_key(|(of, open)| (open.row.start_ts_ns, open.row.thread_id, open.row.kind, *of));
        for (_, open) in &mut open {
            open.row.touches_gap |= is_lost;
            open.report(sink);
        }
    }

    fn begin(&mut self, of: AlpcKey, row: Alpc<'static>, port: Option<&str>, sink: &mut impl FactSink) {
        self.text += port.map_or(0, str::len);
        if self.open.len() >= MAX_OPEN || self.text > MAX_TEXT {
            self.unkept += self.open.len() as u64;
            self.take_all(false, sink);
            self.text = port.map_or(0, str::len);
        }
        // The number is used again: the end of what it was used for before is not in the recording.
        if let Some(before) = self.open.insert(of, OpenAlpc { row, port: port.map(str::to_owned) }) {
            self.text -= before.port.as_deref().map_or(0, str::len);
            before.report(sink);
        }
    }

    fn end(&mut self, of: AlpcKey, ts_ns: i64, change: impl FnOnce(&mut Alpc<'static>), sink: &mut impl FactSink) {
        // An end from before the beginning is that of another one.
        if self.open.get(&of).is_some_and(|open| open.row.start_ts_ns <= ts_ns)
            && let Some(mut open) = self.open.remove(&of)
        {
            self.text -= open.port.as_deref().map_or(0, str::len);
            open.row.end_ts_ns = Some(ts_ns);
            change(&mut open.row);
            open.report(sink);
        }
    }
}

const ALPC: &str = "Windows-Kernel-Alpc";

impl Tracker for Messages {
    type Action = AlpcAction;
    const EVENTS: Events<AlpcAction> = &[
        (ALPC, "SendMessage", AlpcAction::Send),
        (ALPC, "ReceiveMessage", AlpcAction::Receive),
        (ALPC, "WaitForReply", AlpcAction::Wait("reply_wait")),
        (ALPC, "WaitForNewMessage", AlpcAction::Wait("message_wait")),
        (ALPC, "Unwait", AlpcAction::Unwait),
    ];

    fn needs_others(_: AlpcAction) -> bool {
        true
    }

    fn event(&mut self, action: AlpcAction, input: &Input<'_>, _: &mut Shared, sink: &mut impl FactSink) {
        let (ts_ns, process_id, thread_id) = (input.ts_ns(), input.process_id(), input.thread_id());
        let message_id: Option<u32> = input.fields.small("MessageId");
        let row = Alpc {
            start_ts_ns: ts_ns,
            message_id,
            process_id,
            thread_id,
            callsite_id: input.callsite_id,
            ..Alpc::default()
        };
        let message = AlpcKey::Message(message_id.unwrap_or_default());
        match action {
            AlpcAction::Send => self.begin(message, Alpc { kind: "message", ..row }, None, sink),
            AlpcAction::Receive => {
                let received = |row: &mut Alpc<'_>| {
                    (row.receiver_process_id, row.receiver_thread_id) = (Some(process_id), Some(thread_id));
                };
                self.end(message, ts_ns, received, sink);
            }
            AlpcAction::Wait(kind) => {
                let port = input.fields.text("PortName").filter(|name| !name.is_empty());
                self.begin(AlpcKey::Thread(thread_id), Alpc { kind, ..row }, port, sink);
            }
            AlpcAction::Unwait => {
                let status = input.fields.small("Status");
                self.end(AlpcKey::Thread(thread_id), ts_ns, |row| row.status = status, sink);
            }
        }
    }

    fn cut(&mut self, cut: &Cut, sink: &mut impl FactSink) {
        self.take_all(cut.is_lost(), sink);
    }

    fn dropped(&self) -> Vec<Dropped> {
        let message = "too many concurrent messages and waits of ALPC; ends missing in the table alpc";
        vec![Dropped { code: "too_many_messages", count: self.unkept, message }]
    }
}
