//! Chunk headers, commit words, record headers and CRCs.

/// First bytes of every chunk.
pub const CHUNK_MARK: u32 = u32::from_le_bytes(*b"CHNK");
/// Bytes of a chunk before its records.
pub const CHUNK_HEADER: usize = 40;
/// Offset of the commit word in a chunk.
pub const COMMIT_AT: usize = 24;
/// Bytes of a record before its payload.
pub const RECORD_HEADER: usize = 32;

/// Record flag: the callback returned a failure to the runtime.
pub const FLAG_FAILED: u8 = 1;
/// Record flag: more rows of the same callback follow in this thread's next record of the same kind.
pub const FLAG_CONTINUES: u8 = 2;
/// Record flag: some rows of the callback were not recorded.
pub const FLAG_CUT: u8 = 4;

/// CRC-32 (IEEE 802.3, as in zip and PNG) of bytes that follow others with the CRC `crc`; 0 to begin.
#[inline]
pub fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(crc);
    hasher.update(bytes);
    hasher.finalize()
}

/// The header of a chunk of `capacity` bytes in all, the `number`th of a thread. No record is committed yet.
#[allow(clippy::indexing_slicing, reason = "constant ranges of an array of constant size")]
pub fn chunk_header(capacity: u32, thread_id: u64, thread: u32, number: u32) -> [u8; CHUNK_HEADER] {
    let mut out = [0; CHUNK_HEADER];
    out[0..4].copy_from_slice(&CHUNK_MARK.to_le_bytes());
    out[4..8].copy_from_slice(&capacity.to_le_bytes());
    out[8..16].copy_from_slice(&thread_id.to_le_bytes());
    out[16..20].copy_from_slice(&thread.to_le_bytes());
    out[20..24].copy_from_slice(&number.to_le_bytes());
    out[24..32].copy_from_slice(&commit_word(0).to_le_bytes());
    let crc = crc32(0, &out[0..24]);
    out[32..36].copy_from_slice(&crc.to_le_bytes());
    out
}

/// The commit word of a chunk with this many bytes of complete records: the count, and its complement.
pub fn commit_word(bytes: u32) -> u64 {
    u64::from(bytes) | u64::from(!bytes) << 32
}

/// The bytes that a commit word vouches for; `None` when it is no commit word.
pub fn committed(word: u64) -> Option<u32> {
    let bytes = word as u32;
    (commit_word(bytes) == word).then_some(bytes)
}

/// The header of a record with this payload. `sequence` and `ticks` are those at the entry of the callback, `duration`
/// the ticks that it took.
#[allow(clippy::indexing_slicing, reason = "constant ranges of an array of constant size")]
pub fn record_header(
    kind: u8,
    flags: u8,
    sequence: u64,
    ticks: u64,
    duration: u32,
    payload: &[u8],
) -> [u8; RECORD_HEADER] {
    let mut out = [0; RECORD_HEADER];
    out[0] = kind;
    out[1] = flags;
    out[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    out[8..16].copy_from_slice(&sequence.to_le_bytes());
    out[16..24].copy_from_slice(&ticks.to_le_bytes());
    out[24..28].copy_from_slice(&duration.to_le_bytes());
    let crc = crc32(crc32(0, &out[0..28]), payload);
    out[28..32].copy_from_slice(&crc.to_le_bytes());
    out
}
