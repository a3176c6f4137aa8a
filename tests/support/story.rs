//! One collection as events of the runtime, for whatever carries them.

/// The runtime's provider, as it lies in memory.
pub const RUNTIME: [u8; 16] =
    [0x23, 0x0D, 0x3C, 0xE1, 0xBC, 0xCC, 0x12, 0x4E, 0x93, 0x1B, 0xD9, 0xCC, 0x2E, 0xEE, 0x27, 0xE4];

/// Surviving ranges of [`collection`], address and length.
pub const SURVIVING: [[u64; 2]; 3] = [[0x7000_1000, 64], [0x7000_2000, 24], [0x7000_4000, 1 << 33]];

/// An event of the runtime.
#[derive(Clone, Debug)]
pub struct ClrEvent {
    pub id: u16,
    pub version: u8,
    pub opcode: u8,
    pub keyword: u64,
    pub payload: Vec<u8>,
}

/// Collection 5 of generation 1: the pause, the start, surviving ranges in two pieces, the end.
pub fn collection() -> Vec<ClrEvent> {
    let words = |words: &[u32], rest: usize| -> Vec<u8> {
        let mut out: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        out.resize(out.len() + rest, 0);
        out
    };
    let ranges = |index: u32, ranges: &[[u64; 2]]| -> Vec<u8> {
        let mut out = words(&[index, ranges.len() as u32], 2);
        out.extend(ranges.iter().flatten().flat_map(|v| v.to_le_bytes()));
        out
    };
    let event = |id, version, opcode, keyword, payload| ClrEvent { id, version, opcode, keyword, payload };
    vec![
        event(9, 1, 10, 1, words(&[1, 5], 2)),
        event(8, 1, 137, 1, words(&[], 2)),
        event(1, 2, 1, 1, words(&[5, 1, 0, 0], 2 + 8)),
        event(21, 0, 25, 0x40_0000, ranges(0, &SURVIVING[..2])),
        event(21, 0, 25, 0x40_0000, ranges(1, &SURVIVING[2..])),
        event(2, 1, 2, 1, words(&[5, 1], 2)),
        event(7, 1, 136, 1, words(&[], 2)),
        event(3, 1, 132, 1, words(&[], 2)),
    ]
}
