//! A sampled allocation, and a packed list of them, in a quarter of the memory of a plain list.

use tracequet_trace::guid::Guid;

use crate::packed::{Numbers, Packed};
use crate::subjects::allocations::SOURCES;

/// An allocation with the address of its object.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// When, nanoseconds since the recording began.
    pub ts_ns: i64,
    /// OS process.
    pub process_id: u64,
    /// OS thread.
    pub thread_id: u64,
    /// Call stack; 0 for none.
    pub callsite_id: u32,
    /// The activity that the thread worked on; without value when that is not recorded.
    pub activity_id: Guid,
    /// Type of the object.
    pub type_id: u64,
    /// Kind of sample, a word of the column `source`.
    pub source: &'static str,
    /// Address of the object.
    pub object_id: u64,
    /// Bytes that it stands for.
    pub allocation_bytes: Option<u64>,
    /// Objects that it stands for.
    pub object_count: Option<f64>,
}

impl Sample {
    /// An object at an address.
    pub fn new(ts_ns: i64, process_id: u64, object_id: u64) -> Sample {
        Sample { ts_ns, process_id, object_id, source: "object", ..Sample::default() }
    }

    /// The process, the thread and the activity: mostly those of the sample before.
    fn owner(&self) -> (u64, u64, Guid) {
        (self.process_id, self.thread_id, self.activity_id)
    }
}

/// Bits of the first number of a sample: whether its owner, its bytes and its count follow. The place of its source is
/// in the bits above.
const OWNER: u64 = 1;
const BYTES: u64 = 2;
const COUNT: u64 = 4;
const SOURCE: u32 = 3;

/// Samples in the order in which they were added.
#[derive(Debug, Default)]
pub struct SampleList {
    numbers: Packed,
    last: Sample,
    len: usize,
}

impl SampleList {
    /// Adds a sample. Its source is a known one.
    pub fn push(&mut self, sample: Sample) {
        let (numbers, last) = (&mut self.numbers, &self.last);
        let source = SOURCES.iter().position(|(word, _)| *word == sample.source).unwrap_or_default();
        let is_others = sample.owner() != last.owner();
        let has =
            [(OWNER, is_others), (BYTES, sample.allocation_bytes.is_some()), (COUNT, sample.object_count.is_some())];
        let bits = has.into_iter().filter(|(_, has)| *has).fold(0, |bits, (bit, _)| bits | bit);
        numbers.push((source as u64) << SOURCE | bits);
        numbers.push(sample.ts_ns.wrapping_sub(last.ts_ns).cast_unsigned());
        numbers.push(sample.callsite_id.into());
        numbers.push_step(last.type_id, sample.type_id);
        numbers.push_step(last.object_id, sample.object_id);
        if is_others {
            let activity = u128::from_le_bytes(sample.activity_id.0);
            [sample.process_id, sample.thread_id, activity as u64, (activity >> 64) as u64]
                .into_iter()
                .for_each(|number| numbers.push(number));
        }
        sample.allocation_bytes.into_iter().for_each(|bytes| numbers.push(bytes));
        // The lowest bytes of a whole number are zero; swapped they are the highest, which take no room.
        sample.object_count.into_iter().for_each(|count| numbers.push(count.to_bits().swap_bytes()));
        self.last = sample;
        self.len += 1;
    }

    /// The number of samples.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The samples.
    pub fn iter(&self) -> Unpacked<'_> {
        Unpacked { numbers: self.numbers.numbers(), last: Sample::default() }
    }
}

impl FromIterator<Sample> for SampleList {
    fn from_iter<I: IntoIterator<Item = Sample>>(samples: I) -> SampleList {
        let mut list = SampleList::default();
        samples.into_iter().for_each(|sample| list.push(sample));
        list
    }
}

/// Gives samples back.
pub struct Unpacked<'l> {
    numbers: Numbers<'l>,
    last: Sample,
}

impl Iterator for Unpacked<'_> {
    type Item = Sample;

    fn next(&mut self) -> Option<Sample> {
        let (numbers, last) = (&mut self.numbers, &mut self.last);
        let head = numbers.next()?;
        last.source = SOURCES.get((head >> SOURCE) as usize)?.0;
        last.ts_ns = last.ts_ns.wrapping_add(numbers.next()?.cast_signed());
        last.callsite_id = numbers.next()? as u32;
        last.type_id = numbers.step(last.type_id)?;
        last.object_id = numbers.step(last.object_id)?;
        if head & OWNER != 0 {
            (last.process_id, last.thread_id) = (numbers.next()?, numbers.next()?);
            let activity = u128::from(numbers.next()?) | u128::from(numbers.next()?) << 64;
            last.activity_id = Guid(activity.to_le_bytes());
        }
        last.allocation_bytes = if head & BYTES == 0 { None } else { Some(numbers.next()?) };
        last.object_count = if head & COUNT == 0 { None } else { Some(f64::from_bits(numbers.next()?.swap_bytes())) };
        Some(*last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::dice::Dice;

    #[test]
    fn any_samples_come_back() {
        let mut dice = Dice(7);
        let mut number = |bits: u64| {
            let bits = dice.below(bits);
            dice.below(1 << bits)
        };
        let samples: Vec<Sample> = (0..20_000i64)
            .map(|row| Sample {
                ts_ns: row * 1000 - (number(20) as i64),
                process_id: number(2),
                thread_id: number(2),
                callsite_id: number(32) as u32,
                activity_id: Guid([number(2) as u8; 16]),
                type_id: number(62),
                source: SOURCES[number(3) as usize].0,
                object_id: u64::MAX - number(62),
                allocation_bytes: Some(number(62)).filter(|bytes| bytes % 3 != 0),
                object_count: Some(number(60) as f64 / 7.0).filter(|count| *count > 1.0),
            })
            .collect();
        let list: SampleList = samples.iter().copied().collect();
        assert_eq!((list.len(), list.is_empty()), (samples.len(), false));
        assert!(list.iter().eq(samples.iter().copied()));
    }

    #[test]
    fn a_sample_takes_few_bytes() {
        let sample = |n: i64| Sample {
            callsite_id: n as u32,
            type_id: 0x7f00_1234_5678 + n as u64 % 7 * 0x150,
            allocation_bytes: Some(102_400),
            ..Sample::new(n * 250_000, 4242, 0x7e00_0000_0000 + n as u64 * 102_424)
        };
        let list: SampleList = (0..100_000).map(sample).collect();
        let bytes = list.numbers.bytes() / list.len() as u64;
        assert!(bytes < size_of::<Sample>() as u64 / 4, "{bytes} bytes");
    }
}
