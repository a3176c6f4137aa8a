//! The contents of a heap dump: objects by type.

use crate::prelude::*;

use tracequet_facts::ProblemSummary;
use tracequet_facts::fact::{Fact, FactSink};
use tracequet_facts::heap_dump;
use tracequet_trace::map::Map;
use tracequet_trace::reader::gcdump;
use tracequet_trace::source::Input;

use super::report::{HeapCount, HeapTypeCount, Inspection, ProcessCount};

/// Counts what a conversion would write.
#[derive(Default)]
struct Counter {
    heap: HeapCount,
    names: Map<u64, String>,
    by_type: Map<u64, (u64, u64)>,
    problems: Vec<ProblemSummary>,
}

impl FactSink for Counter {
    fn fact(&mut self, fact: Fact<'_>) {
        match fact {
            Fact::Type(rows) => rows.iter().for_each(|row| {
                self.names.insert(row.type_id, row.name.to_owned());
            }),
            Fact::HeapObject(rows) => {
                for row in rows {
                    self.heap.objects += 1;
                    self.heap.bytes = self.heap.bytes.saturating_add(row.size_bytes);
                    let (count, bytes) = self.by_type.entry(row.type_id).or_default();
                    *count += 1;
                    *bytes = bytes.saturating_add(row.size_bytes);
                }
            }
            Fact::HeapReference(rows) => self.heap.references += rows.len() as u64,
            Fact::GcRoot(rows) => self.heap.roots += rows.len() as u64,
            Fact::Diagnostic(rows) => rows.iter().for_each(|row| ProblemSummary::note(&mut self.problems, row)),
            _ => {}
        }
    }
}

/// Reads a heap dump.
pub fn inspect(path: &Path, input: Input, progress: &mut dyn FnMut(u64, Option<u64>)) -> Result<Inspection> {
    let total = input.size();
    let dump = gcdump::read(input)?;
    progress(dump.bytes, total);
    let mut counter = Counter::default();
    if let Some(problem) = &dump.problem {
        counter.problem(problem);
    }
    heap_dump::facts(&dump, &mut counter);
    let Counter { mut heap, names, by_type, mut problems } = counter;
    heap.types = by_type
        .into_iter()
        .map(|(id, (objects, bytes))| HeapTypeCount {
            name: names.get(&id).cloned().unwrap_or_default(),
            objects,
            bytes,
        })
        .collect();
    heap.types.sort_by(|a, b| (b.bytes, b.objects, &a.name).cmp(&(a.bytes, a.objects, &b.name)));
    problems.sort_by_key(|p| p.code);
    let process = ProcessCount {
        process_id: dump.about.process_id.into(),
        name: dump.about.process.clone().unwrap_or_default(),
        command_line: String::new(),
        threads: 0,
        events: 0,
    };
    Ok(Inspection {
        path: path.to_owned(),
        info: dump.info(),
        end: dump.end(),
        processes: vec![process],
        heap: Some(heap),
        problems,
        ..Inspection::default()
    })
}
