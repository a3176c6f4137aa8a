//! Makes damaged recordings out of whole ones.

/// A small generator with a fixed seed (xorshift), so that a failure can be repeated.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// Numbers at which arithmetic on lengths, counts and offsets goes wrong.
pub const EDGES: [u64; 16] = [
    0,
    1,
    7,
    8,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x10000,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
    0x7FFF_FFFF_FFFF_FFFF,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// Gives one mutation of some inputs after the other, the same ones for the same seed.
#[derive(Clone, Debug)]
pub struct Mutator {
    random: Random,
}

impl Mutator {
    pub fn new(seed: u64) -> Mutator {
        // Small seeds are all zeros at first.
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        random.below(1);
        Mutator { random }
    }

    /// One of the inputs, changed in one to six places.
    pub fn mutated(&mut self, inputs: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = inputs[self.random.below(inputs.len())].clone();
        let longest = bytes.len() * 2 + 1024;
        for _ in 0..1 + self.random.below(6) {
            self.change(&mut bytes, inputs);
        }
        bytes.truncate(longest);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, inputs: &[Vec<u8>]) {
        // A third near the front, where headers and descriptions are.
        let area = if self.random.below(3) == 0 { bytes.len().min(512) } else { bytes.len() };
        let at = self.random.below(area);
        let most = 1 << self.random.below(12);
        let length = 1 + self.random.below(most);
        let end = (at + length).min(bytes.len());
        match self.random.below(12) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => bytes[at..end].fill(0),
            // Again: the same blocks twice, or a nested one deeper.
            3 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            // A part of another input.
            4 => {
                let other = &inputs[self.random.below(inputs.len())];
                let from = self.random.below(other.len());
                let part = other[from..(from + length).min(other.len())].to_vec();
                let until = if self.random.below(2) == 0 { at } else { end };
                bytes.splice(at..until, part);
            }
            5 => bytes[at..end].reverse(),
            6..=8 if at < bytes.len() => {
                bytes[at] = match self.random.below(4) {
                    0 => 0,
                    1 => 0xFF,
                    2 => bytes[at] ^ 1 << self.random.below(8),
                    _ => self.random.below(256) as u8,
                }
            }
            // A number, or a small change of one.
            _ => {
                let width = [1, 2, 4, 8][self.random.below(4)].min(bytes.len() - at);
                let mut number = [0; 8];
                number[..width].copy_from_slice(&bytes[at..at + width]);
                let old = u64::from_le_bytes(number);
                let new = match self.random.below(4) {
                    0 => old.wrapping_add(1),
                    1 => old.wrapping_sub(1),
                    2 => bytes.len() as u64,
                    _ => EDGES[self.random.below(EDGES.len())],
                };
                bytes[at..at + width].copy_from_slice(&new.to_le_bytes()[..width]);
            }
        }
    }
}

/// Makes the checksums of a .corprof right again, so that what was changed is read.
pub fn seal_corprof(bytes: &mut [u8]) {
    let u32_at = |bytes: &[u8], at: usize| bytes.get(at..at + 4).map(|b| u32::from_le_bytes(b.try_into().unwrap()));
    let put = |bytes: &mut [u8], at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    let Some(length) = u32_at(bytes, 12).map(|length| length as usize).filter(|l| (20..=bytes.len()).contains(l))
    else {
        return;
    };
    put(bytes, 16, 0);
    let sum = corprof::crc32(0, &bytes[..length]);
    put(bytes, 16, sum);
    let mut at = length.next_multiple_of(8);
    while at + corprof::CHUNK_HEADER <= bytes.len() {
        if u32_at(bytes, at) != Some(corprof::CHUNK_MARK) {
            at += 8;
            continue;
        }
        let sum = corprof::crc32(0, &bytes[at..at + 24]);
        put(bytes, at + 32, sum);
        at += corprof::CHUNK_HEADER;
        // Records follow each other until a kind of zero, which is unused space.
        while let Some(size) = u32_at(bytes, at + 4).filter(|_| bytes[at] != 0 && !bytes[at..].starts_with(b"CHNK")) {
            let payload = at + corprof::RECORD_HEADER;
            let Some(end) = payload.checked_add(size as usize).filter(|end| *end <= bytes.len()) else { break };
            let sum = corprof::crc32(corprof::crc32(0, &bytes[at..at + 28]), &bytes[payload..end]);
            put(bytes, at + 28, sum);
            at = end;
        }
        at = at.next_multiple_of(8);
    }
}
