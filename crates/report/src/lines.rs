//! Where in an own method most of something is: file and line, or the offset in its IL where no symbols say the line.

use tracequet_analyze::subjects::processor::State;
use tracequet_dataset::read::Column;

use crate::prelude::*;

/// Kinds of rows with call stacks: the part of the page, the table, and the column of amounts; without one each row is one.
const KINDS: [(&str, &str, Option<&str>); 8] = [
    ("cpu", "cpu_sample", Some("sample_count")),
    ("allocations", "allocation", Some("allocation_bytes")),
    ("exceptions", "exception", None),
    ("locks", "contention", Some("duration_ns")),
    ("waits", "wait", Some("duration_ns")),
    ("blocked", "thread_time", Some("duration_ns")),
    ("jit", "method_compilation", Some("duration_ns")),
    ("async", "async_task", Some("waiting_ns")),
];

/// Call sites that are known.
const MAX_SITES: usize = 4 << 20;

tracequet_dataset::row! {
    struct Callsite of callsite { callsite_id, own_callsite_id, frame_id }
}

tracequet_dataset::row! {
    struct Frame of frame { frame_id, written_name, is_framework, file, line, line_kind, il_offset, inlined_into }
}

/// The own code of call sites.
pub(crate) struct Lines<'r> {
    recording: &'r Recording<'r>,
    /// Of each call site that of the own code, and its frame.
    sites: Map<u32, (u32, u32)>,
    /// Of each frame of own code the method and the place in it.
    frames: Map<u32, (String, String)>,
    /// Of each kind the amounts by call site: of threads that ran, and of those that did not.
    sums: Map<&'static str, [Map<u32, f64>; 2]>,
}

impl<'r> Lines<'r> {
    pub(crate) fn of(recording: &'r Recording<'r>) -> Result<Lines<'r>> {
        let mut lines = Lines { recording, sites: Map::default(), frames: Map::default(), sums: Map::default() };
        recording.each_recorded::<Callsite<'_>>(|row| {
            if lines.sites.len() < MAX_SITES {
                lines.sites.insert(row.callsite_id, (row.own_callsite_id, row.frame_id));
            }
        })?;
        recording.each_recorded::<Frame<'_>>(|row| {
            let file = row.file.map(|file| file.rsplit(['/', '\\']).next().unwrap_or(file));
            let place = match (file, row.line, row.il_offset) {
                (Some(file), Some(line), _) if row.line_kind == Some("exact") => format!("{file}:{line}"),
                (_, _, Some(offset)) => format!("IL_{offset:04x}"),
                (Some(file), Some(line), None) => format!("{file}, from line {line} on"),
                _ => return,
            };
            // The place of code that the compiler put into another method is one of that method.
            let is_own = row.is_framework == Some(false) && row.inlined_into.is_none();
            if is_own && lines.frames.len() < MAX_SITES {
                lines.frames.insert(row.frame_id, (row.written_name.to_owned(), place));
            }
        })?;
        Ok(lines)
    }

    /// The place in a method that has most of what a part of the page shows, and how much of it; `None` where nothing says it.
    pub(crate) fn place(&mut self, part: &str, method: &str) -> Result<Option<(String, f64)>> {
        let part = part.trim_start_matches("stacks-");
        let Some((kind, table, amount)) = KINDS.iter().find(|(kind, ..)| *kind == part) else { return Ok(None) };
        if !self.sums.contains_key(kind) {
            self.sums.insert(*kind, sums(self.recording, table, *amount)?);
        }
        for sums in self.sums.get(kind).into_iter().flatten() {
            let (mut places, mut all): (Map<&str, f64>, f64) = (Map::default(), 0.0);
            for (site, amount) in sums {
                let own = self.sites.get(site).and_then(|(own, _)| self.sites.get(own));
                let place = own.and_then(|(_, frame)| self.frames.get(frame));
                if let Some((_, place)) = place.filter(|(of, _)| of == method) {
                    *places.entry(place).or_default() += amount;
                    all += amount;
                }
            }
            let most = places.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then_with(|| b.0.cmp(a.0)));
            if let Some((place, most)) = most.filter(|_| all > 0.0) {
                return Ok(Some((place.to_owned(), most / all)));
            }
        }
        Ok(None)
    }
}

/// Amounts of a table by call site.
fn sums(recording: &Recording<'_>, name: &str, amount: Option<&str>) -> Result<[Map<u32, f64>; 2]> {
    let mut sums = [Map::default(), Map::default()];
    let Ok(table) = recording.table(name) else { return Ok(sums) };
    let state = (name == "cpu_sample").then_some("kind");
    let columns = ["callsite_id"].into_iter().chain(amount).chain(state);
    for batch in table.scan().columns(columns).batches()? {
        let batch = batch?;
        let column = |name: Option<&str>| name.map(|name| Column::of(&batch, name)).transpose();
        let (site, amount, state) = (Column::of(&batch, "callsite_id")?, column(amount)?, column(state)?);
        for row in 0..batch.num_rows() {
            let waits = state.is_some_and(|state| State::of(state.text(row)) != State::Running);
            let more = amount.map_or(Some(1.0), |amount| amount.real(row)).unwrap_or_default();
            let [ran, waited] = &mut sums;
            let sums = if waits { waited } else { ran };
            *sums.entry(site.number(row).unwrap_or_default() as u32).or_default() += more;
        }
    }
    Ok(sums)
}
