//! Finds where reading can continue behind damage: the next bytes that are certainly the beginning of a block or of an
//! event.
//!
//! Objects of V3 to V5 begin with three tags and a name. Blocks of V6 begin with no more than a size and a kind, so
//! that the contents of the block, and the bytes behind it, have to agree. Flat events (V1 to V3) give three lengths
//! that have to fit.

use nom::combinator::rest_len;

use super::event_header::EventHeader;
use super::event_types::EventTypes;
use super::object_type::object_type;
use super::report::Reporter;
use super::rows_v6::{label_list, metadata_row, thread_row};
use super::state::NettraceState;
use crate::bytes::{Parsed, i64le, take, u16le, u32le, varuint32, varuint64};
use crate::prelude::*;
use crate::reader::End;
use crate::source::{MAX_CHUNK, Source};

/// The first bytes of a recording of V1 to "V5", from V4 on behind "Nettrace".
pub const FAST_SERIALIZATION: &[u8] = b"\x14\0\0\0!FastSerialization.1";

/// Bytes that are searched at a time, and as many are looked at behind them: more than two of the largest blocks of V6.
const STEP: usize = 8 << 20;
const WINDOW: usize = STEP + (34 << 20);
/// Bytes of a live stream that are searched first.
const LIVE_STEP: usize = 64 << 10;
/// Number of blocks of V6 in a row that have to have their form.
const CHAIN: usize = 3;
/// No more rows of a block than this are looked at.
const MAX_ROWS: u32 = 64;

/// The kind of a block of removed threads, and the most bytes that one is believed to have.
const REMOVED_THREADS: u8 = 7;
const MAX_REMOVED: usize = 16 << 10;

/// The result of reading a block.
pub enum Step {
    /// The next block may begin behind it.
    Next,
    /// No block can be expected behind it: from where on, and why.
    Damaged(u64, String),
    /// The file ends in it.
    Cut,
}

/// The find of a search, and how many bytes behind its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The beginning of a block.
    Block(u64),
    /// The magic of another recording.
    Recording(u64),
    /// Neither, up to the end of the file.
    Nothing(u64),
}

/// Recognises a beginning: the bytes from there on, and whether the file ends with them.
pub type Beginning = fn(bytes: &[u8], at_end: bool) -> bool;

/// Looks for a beginning in `window`, before `limit`.
pub fn find(window: &[u8], limit: usize, at_end: bool, begins: Beginning) -> Option<Found> {
    for at in 0..limit.min(window.len()) {
        let rest = window.get(at..).unwrap_or_default();
        if is_recording(rest) {
            return Some(Found::Recording(at as u64));
        }
        if begins(rest, at_end) {
            return Some(Found::Block(at as u64));
        }
    }
    None
}

/// Moves `source` to the next beginning, or to the end of the file.
pub fn skip_to(source: &mut Source<'_>, begins: Beginning) -> Found {
    let start = source.position();
    loop {
        let skipped = source.position() - start;
        if source.is_live()
            && let Some(at) = find_live(source, begins)
        {
            source.skip(at);
            return Found::Block(skipped + at as u64);
        }
        let window = source.peek(WINDOW);
        let at_end = window.len() < WINDOW;
        let limit = if at_end { window.len() } else { STEP };
        let found = find(window, limit, at_end, begins);
        let step = match found {
            Some(Found::Block(at) | Found::Recording(at)) => usize::try_from(at).unwrap_or(limit),
            _ => limit,
        };
        source.skip(step);
        source.release(source.position());
        match found {
            Some(Found::Block(at)) => return Found::Block(skipped + at),
            Some(Found::Recording(at)) => return Found::Recording(skipped + at),
            _ if at_end => return Found::Nothing(skipped + limit as u64),
            _ => {}
        }
    }
}

/// Looks for a block in what has come of a live stream, again and again until the window is full or the stream has
/// ended: nothing would be published before that. Each search has twice the bytes of the one before, or all that came
/// before a silence.
fn find_live(source: &mut Source<'_>, begins: Beginning) -> Option<usize> {
    let (mut wanted, mut searched) = (LIVE_STEP, 0);
    while wanted < WINDOW {
        let has_come = source.comes(wanted);
        let window = if has_come { source.peek(wanted) } else { source.looked_at() };
        if has_come && window.len() < wanted {
            return None;
        }
        if window.len() > searched {
            searched = window.len();
            match find(window, searched, false, begins) {
                Some(Found::Block(at)) => return usize::try_from(at).ok(),
                Some(_) => return None,
                None => {}
            }
        }
        if has_come {
            wanted *= 2;
        }
    }
    None
}

/// Whether an object of V3 to V5 begins here.
pub fn is_object(bytes: &[u8], at_end: bool) -> bool {
    if !matches!(bytes.first(), Some(4 | 5)) {
        return false;
    }
    match object_type(bytes) {
        Ok((rest, object)) => {
            let size = u32le("BlockSize")(rest).map_or(if at_end { u32::MAX } else { 0 }, |(_, size)| size);
            object.is_block() && size <= i32::MAX as u32
        }
        Err(_) => false,
    }
}

/// Whether a block of V6 begins here: its kind is known, its content has the form of the kind, and behind it are other
/// such blocks, the end mark, or the end of the file.
pub fn is_block_v6(bytes: &[u8], at_end: bool) -> bool {
    let mut rest = bytes;
    for nth in 0..CHAIN {
        let is_end = rest == [0; 4] || rest.len() < 4;
        if nth > 0 && at_end && is_end {
            return true;
        }
        // Nearly all bytes have the form of removed threads.
        let is_weak = nth == 0 && rest.get(3) == Some(&REMOVED_THREADS);
        match has_form_v6(rest, true).filter(|_| !is_weak) {
            Some(size) => rest = rest.get(size..).unwrap_or_default(),
            // Bytes beyond the window cannot contradict, but one block has to be whole.
            None => return nth > 0 && !at_end && has_form_v6(rest, false).is_some(),
        }
    }
    true
}

/// The size of the block with its header, when its kind is known and its content has the form of the kind.
pub fn has_form_v6(bytes: &[u8], at_end: bool) -> Option<usize> {
    let (rest, word) = u32le("BlockHeader")(bytes).ok()?;
    let size = (word & 0x00FF_FFFF) as usize;
    let (content, is_whole) = match rest.get(..size) {
        Some(content) => (content, true),
        None if at_end => return None,
        None => (rest, false),
    };
    let form = match word >> 24 {
        2 => event_form(content),
        3 => metadata_form(content),
        4 => sequence_point_form(content),
        5 => stack_form(content),
        6 => thread_form(content),
        7 => removed_form(content),
        8 => label_form(content),
        _ => return None,
    };
    match form {
        Ok((_, fits)) => fits.then_some(size + 4),
        // Bytes that are not there yet cannot contradict.
        Err(nom::Err::Error(e) | nom::Err::Failure(e)) => (!is_whole && e.is_short()).then_some(size + 4),
        Err(_) => None,
    }
}

/// Whether a block has the form of its kind, as far as it was looked at.
type Form<'a> = Parsed<'a, bool>;

fn event_form(content: &[u8]) -> Form<'_> {
    let (_, (left, size, flags)) = (rest_len, u16le("HeaderSize"), u16le("Flags")).parse(content)?;
    if !(20..=256).contains(&size) || usize::from(size) > left || flags > 1 {
        return Ok((content, false));
    }
    let (mut rest, _) = take(size.into(), "Header").parse(content)?;
    let mut header = EventHeader::default();
    for _ in 0..4 {
        if rest.is_empty() {
            break;
        }
        (rest, _) = if flags == 1 {
            let (after, ()) = header.compressed::<true>(rest)?;
            take(header.payload_size as usize, "Payload")(after)?
        } else {
            header.uncompressed::<true>(rest)?
        };
    }
    Ok((rest, true))
}

fn metadata_form(content: &[u8]) -> Form<'_> {
    let (mut rest, _) = u16le("HeaderSize").flat_map(|size| take(size.into(), "Header")).parse(content)?;
    for _ in 0..MAX_ROWS {
        if rest.is_empty() {
            break;
        }
        (rest, _) = metadata_row(rest)?;
    }
    Ok((rest, !content.is_empty()))
}

fn sequence_point_form(content: &[u8]) -> Form<'_> {
    let (mut rest, (_, flags, count)) = (i64le("TimeStamp"), u32le("Flags"), u32le("ThreadCount")).parse(content)?;
    if flags > 3 || count as usize > rest.len() / 2 {
        return Ok((rest, false));
    }
    for _ in 0..count.min(MAX_ROWS) {
        (rest, _) = (varuint64("ThreadIndex"), varuint32("SequenceNumber")).parse(rest)?;
    }
    Ok((rest, count > MAX_ROWS || rest.is_empty()))
}

fn stack_form(content: &[u8]) -> Form<'_> {
    let (mut rest, (_, count)) = (u32le("FirstId"), u32le("Count")).parse(content)?;
    if count as usize > rest.len() / 4 {
        return Ok((rest, false));
    }
    for _ in 0..count.min(MAX_ROWS) {
        let stack;
        (rest, stack) = u32le("StackSize").flat_map(|size| take(size as usize, "Stack")).parse(rest)?;
        if stack.len() % 4 != 0 {
            return Ok((rest, false));
        }
    }
    // Zeros have this form, too.
    Ok((rest, (count > MAX_ROWS || rest.is_empty()) && content.iter().take(256).any(|byte| *byte != 0)))
}

fn thread_form(content: &[u8]) -> Form<'_> {
    let mut rest = content;
    for _ in 0..MAX_ROWS {
        if rest.is_empty() {
            break;
        }
        let row;
        (rest, row) = thread_row(rest, 0)?;
        if row.unknown {
            return Ok((rest, false));
        }
    }
    Ok((rest, !content.is_empty()))
}

fn removed_form(content: &[u8]) -> Form<'_> {
    let mut rest = content;
    let fits = content.len() <= MAX_REMOVED && content.iter().any(|byte| *byte != 0);
    while fits && !rest.is_empty() {
        (rest, _) = (varuint64("Index"), varuint32("SequenceNumber")).parse(rest)?;
    }
    Ok((rest, fits))
}

fn label_form(content: &[u8]) -> Form<'_> {
    let (mut rest, (_, count)) = (u32le("firstIndex"), u32le("count")).parse(content)?;
    if count as usize > rest.len() / 2 {
        return Ok((rest, false));
    }
    for _ in 0..count.min(MAX_ROWS) {
        (rest, _) = label_list(rest)?;
    }
    Ok((rest, count > 0 && (count > MAX_ROWS || rest.is_empty())))
}

/// The next object behind damage among the flat events of V1 to V3, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// An event.
    Event(usize),
    /// Another recording.
    Recording(usize),
    /// Neither.
    Nothing,
}

/// Bytes after which the progress of the search is reported.
const SEARCHED: usize = 1 << 20;

/// An event may hold the first bytes of a recording further behind than this.
const MAX_IN_EVENT: usize = 1 << 16;

/// The next flat event (`padded`: V3) behind the first byte, or the recording before it: the kind of the event is
/// described or it is a description, its lengths fit together, and behind it is another event or nothing. `passed`
/// is called now and then with the number of bytes that are done.
pub fn next_flat_event(bytes: &[u8], padded: bool, types: &EventTypes, mut passed: impl FnMut(usize)) -> Behind {
    let step = if padded { 4 } else { 1 };
    let known = |header: &EventHeader| header.metadata_id == 0 || types.is_defined(header.metadata_id);
    for at in 0..bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        if at % SEARCHED == SEARCHED - 1 {
            passed(at);
        }
        if is_recording(rest) {
            return Behind::Recording(at);
        }
        // Cheap, since it is asked at every byte: an event has 56 bytes at least.
        let size = rest.first_chunk().map_or(0, |size| u32::from_le_bytes(*size) as usize);
        if at == 0 || at % step != 0 || size < 56 || size > rest.len() {
            continue;
        }
        let mut header = EventHeader::default();
        let Ok((behind, _)) = header.flat(rest, padded) else { continue };
        let is_event = known(&header) && (behind.is_empty() || header.flat(behind, padded).is_ok());
        let front = rest.get(..size.min(MAX_IN_EVENT)).unwrap_or_default();
        if is_event && !(0..front.len()).any(|at| is_recording(front.get(at..).unwrap_or_default())) {
            return Behind::Event(at);
        }
    }
    Behind::Nothing
}

/// Whether another recording begins with these bytes.
pub fn is_recording(bytes: &[u8]) -> bool {
    match bytes.strip_prefix(b"Nettrace") {
        Some(rest) => rest.starts_with(FAST_SERIALIZATION) || rest.starts_with(&[0, 0, 0, 0]),
        None => bytes.starts_with(FAST_SERIALIZATION),
    }
}

/// Moves to the next beginning of a block and reports the gap, which began at `from`. `false` when there is none.
pub fn go_on(
    state: &mut NettraceState<'_, '_>,
    source: &mut Source<'_>,
    from: u64,
    what: &str,
    begins: Beginning,
) -> bool {
    let found = skip_to(source, begins);
    let bytes = source.position() - from;
    match found {
        Found::Block(_) => {
            state.gap(from, bytes, format!("{what}; reading continues {bytes} bytes later"));
            return true;
        }
        Found::Recording(_) if bytes == 0 => {}
        _ => state.gap(from, bytes, format!("{what}; no valid block was found behind it")),
    }
    if let Found::Recording(_) = found {
        report_second(&mut state.out, source.position());
    }
    false
}

/// Reports that the file ends at `at`, or `have` bytes further `inside` of what begins there.
pub fn cut(state: &mut NettraceState<'_, '_>, at: u64, have: usize, inside: &str) {
    let (code, message) = match have {
        0 => ("no_end_mark", "the file ends here without its end mark; every block before it is complete".to_owned()),
        _ => ("truncated", format!("the file ends here, {have} bytes into {inside}")),
    };
    state.problem(Problem::error(code, at + have as u64, message));
}

/// Ends the reading of a recording in blocks; `complete`: with its end mark.
pub fn end<'a>(mut state: NettraceState<'a, '_>, source: &mut Source<'a>, complete: bool) -> End {
    let bytes = source.position();
    state.finish(source);
    let trailing_bytes = if complete { trailing_bytes(&mut state.out, source) } else { 0 };
    End { complete, bytes, trailing_bytes, dropped_events: state.drops.total }
}

/// The number of bytes behind the end mark (of a live stream those that were read); a recording among the first is
/// reported.
fn trailing_bytes(out: &mut Reporter<'_>, source: &mut Source<'_>) -> u64 {
    let end = source.position();
    let behind = source.peek(MAX_CHUNK);
    let seen = behind.len() as u64;
    if let Some(Found::Recording(at)) = find(behind, behind.len(), true, |_, _| false) {
        report_second(out, end + at);
    }
    if let Some(len) = source.len() {
        return len - end.min(len);
    }
    if source.is_live() {
        return seen;
    }
    source.skip(usize::MAX);
    source.position() - end
}

pub fn report_second(out: &mut Reporter<'_>, offset: u64) {
    let message = "another recording begins here, behind the first; it is not read: convert it as a file of its own";
    out.problem(Problem::loss("second_recording", offset, message));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_for_an_event_ends_at_the_first_one_and_tells_how_far_it_is() {
        let types = EventTypes::default();
        // A description without payload and stack: 56 bytes behind its size.
        let event = [&56u32.to_le_bytes()[..], &[0; 56]].concat();
        let search = |bytes: &[u8]| {
            let mut passed = 0;
            (next_flat_event(bytes, false, &types, |_| passed += 1), passed)
        };
        let behind = vec![0u8; 3 << 20];
        let near = [&[7; 10][..], &event, &event, &behind, b"Nettrace\0\0\0\0"].concat();
        // Whoever looks at all that is behind for each damage takes for ever where there are many.
        assert_eq!(search(&near), (Behind::Event(10), 0));
        assert_eq!(search(&behind), (Behind::Nothing, 3));
        let recording = [&behind, &b"Nettrace\0\0\0\0"[..], &event].concat();
        assert_eq!(search(&recording), (Behind::Recording(3 << 20), 3));
        // An event in front of the beginning of a recording would be part of it.
        let over =
            [&[7; 10][..], &156u32.to_le_bytes(), &[0; 48], &100u32.to_le_bytes(), b"Nettrace\0\0\0\0", &[0; 92]]
                .concat();
        assert_eq!(search(&over).0, Behind::Recording(10 + 56));
    }
}
