//! Ranges and roots of callbacks, in one version or in both: impossible ones are left out and counted.

use tracequet_trace::error::{Problem, Severity};

use super::callback_collections::CallbackGcTracker;
use super::lengths::{CLAMP, CLAMPED_LENGTH, MAX_LENGTH, tag};
use super::version_pairs::{Kind, Pairs};
use crate::callbacks::call::Call;
use crate::fact::{FactSink, GcRoot, LengthKind};

/// Counts over a recording, and ranges that wait for their other version.
#[derive(Default)]
pub struct CallbackRanges {
    /// The second versions that wait for the first.
    pub pairs: Pairs,
    bad_lengths: u64,
    unaligned: u64,
    too_high: u64,
    contradictions: u64,
}

/// Whether objects cannot lie where these numbers say. The clamp is no length.
fn is_unaligned(wide: bool, starts: u64, length: u64) -> bool {
    let length = if wide && length == CLAMP { 0 } else { length };
    (starts | length) & if wide { 7 } else { 3 } != 0
}

/// Whether a range ends behind 4 GiB in a 32-bit process.
fn is_too_high(wide: bool, start: u64, length: u64) -> bool {
    !wide && start.saturating_add(length) > 1 << 32
}

/// The length that v1 means, and how well it is known.
fn length1(wide: bool, length: u64) -> (u64, LengthKind) {
    if wide && length == CLAMP { (CLAMPED_LENGTH, LengthKind::Clamped) } else { (length, LengthKind::Exact) }
}

impl CallbackRanges {
    /// SurvivingReferences or MovedReferences, or the second version of either.
    pub fn memory(
        &mut self,
        call: &Call<'_>,
        (kind, version): (Kind, u8),
        rows: impl Iterator<Item = [u64; 3]> + Clone,
        collections: &mut CallbackGcTracker,
        sink: &mut impl FactSink,
    ) {
        let wide = call.wide;
        let fits = |row: &[u64; 3]| row[2] < MAX_LENGTH;
        let count = |is: &dyn Fn(&[u64; 3]) -> bool| rows.clone().filter(is).count() as u64;
        self.leave_out(count(&|row| !fits(row)), collections);
        self.unaligned += count(&|row| is_unaligned(wide, row[0] | row[1], row[2]));
        self.too_high += count(&|row| is_too_high(wide, row[0].max(row[1]), row[2]));
        let rows = rows.filter(fits);
        if version == 2 {
            // A v2 that failed, or of which v1 is not recorded, is not followed by its v1.
            return self.pairs.second(call, kind, rows, collections);
        }
        match self.pairs.first(call, kind, rows.clone(), collections) {
            Some(true) => {}
            Some(false) => self.contradiction(call, sink),
            None => {
                let ranges = &mut collections.innermost(call.ts_ns).ranges;
                rows.clone().filter(|row| wide && row[2] == CLAMP).for_each(|row| ranges.clamped_at(row[1]));
                let tagged = |[old, new, length]: [u64; 3]| {
                    let (length, known) = length1(wide, length);
                    [old, new, tag(length, known)]
                };
                kind.put(rows.map(tagged), ranges);
            }
        }
    }

    /// RootReferences; of the second version only the objects are kept, by `pairs`.
    pub fn roots1(
        &mut self,
        call: &Call<'_>,
        objects: &[[u64; 1]],
        collections: &mut CallbackGcTracker,
        sink: &mut impl FactSink,
    ) {
        let rows = objects.iter().map(|[object_id]| [*object_id, 0, 0]);
        match self.pairs.first(call, Kind::Roots, rows, collections) {
            Some(true) => {}
            Some(false) => self.contradiction(call, sink),
            None => {
                let open = collections.innermost(call.ts_ns);
                open.row.root_count += objects.len() as u64;
                for [object_id] in objects.iter().copied() {
                    let gc_id = open.row.gc_id;
                    sink.add(&GcRoot { gc_id, object_id, root_kind: "unknown", ..GcRoot::default() });
                }
            }
        }
    }

    fn leave_out(&mut self, rows: u64, collections: &mut CallbackGcTracker) {
        if rows > 0 {
            self.bad_lengths += rows;
            collections.all.rows_lost();
        }
    }

    fn contradiction(&mut self, call: &Call<'_>, sink: &mut impl FactSink) {
        self.contradictions += 1;
        if self.contradictions <= 100 {
            let message = "a callback and the second version of it, called just before, disagree: the second counts";
            sink.problem(&Problem::error("v1_contradicts_v2", call.offset, message).thread(call.thread_id));
        }
    }

    /// The end of the recording.
    pub fn finish(&self, position: u64, sink: &mut impl FactSink) {
        let mut report = |severity, code, count: u64, message: &str| {
            sink.problems(Problem::new(severity, code, position, message), count);
        };
        report(Severity::Error, "bad_length", self.bad_lengths, "ranges with impossible lengths were left out");
        let message = "ranges where no object can begin or end";
        report(Severity::Error, "unaligned_range", self.unaligned, message);
        let message = "ranges behind 4 GiB in a 32-bit process";
        report(Severity::Error, "range_beyond_pointer", self.too_high, message);
        let message = "first versions of callbacks whose second version failed: the runtime does not call them then";
        report(Severity::Error, "v1_after_failed_v2", self.pairs.after_failure, message);
        let more = self.contradictions.saturating_sub(100);
        report(Severity::Error, "v1_contradicts_v2", more, "more callbacks that disagree with their second version");
    }
}
