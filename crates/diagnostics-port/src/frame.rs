//! Messages of the diagnostics port: how they are written and read.
//!
//! ```text
//! "DOTNET_IPC_V1\0"   14 bytes
//! size                u16, of header and payload
//! command set         u8
//! command             u8
//! reserved            u16, zero
//! payload             size - 20 bytes
//! ```
//! A string is a u32 count of UTF-16 units with the NUL, then these; an empty string is the count 0. All numbers are
//! little-endian. An answer is of command set 0xFF: command 0 is success, 0xFF an error with an HRESULT.

use std::io::Read;

use crate::error::{Error, Result};

/// The first bytes of every message.
pub const MAGIC: &[u8; 14] = b"DOTNET_IPC_V1\0";
/// Bytes of the header.
pub const HEADER: usize = 20;
/// The command set of answers.
pub const ANSWER: u8 = 0xFF;
/// The command of an answer that says yes.
pub const OK: u8 = 0;
/// The command of an answer that says no.
pub const ERROR: u8 = 0xFF;

/// A message in the making.
#[derive(Clone, Debug)]
pub struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// A message of a command, without payload.
    pub fn new(command_set: u8, command: u8) -> Message {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([0, 0, command_set, command, 0, 0]);
        Message { bytes }
    }

    /// Appends bytes as they are.
    pub fn raw(mut self, bytes: &[u8]) -> Message {
        self.bytes.extend(bytes);
        self
    }

    /// Appends a byte that is 0 or 1.
    pub fn bool(self, value: bool) -> Message {
        self.raw(&[u8::from(value)])
    }

    /// Appends a number of 32 bits.
    pub fn u32(self, value: u32) -> Message {
        self.raw(&value.to_le_bytes())
    }

    /// Appends a number of 64 bits.
    pub fn u64(self, value: u64) -> Message {
        self.raw(&value.to_le_bytes())
    }

    /// Appends a string.
    pub fn string(mut self, text: &str) -> Message {
        if text.is_empty() {
            return self.u32(0);
        }
        let units: Vec<u16> = text.encode_utf16().chain([0]).collect();
        self = self.u32(u32::try_from(units.len()).unwrap_or(u32::MAX));
        self.bytes.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
        self
    }

    /// The whole message; an error when it is larger than its header can say.
    pub fn finish(mut self) -> Result<Vec<u8>> {
        let bytes = self.bytes.len();
        let size = u16::try_from(bytes).map_err(|_| Error::TooLarge { bytes })?;
        if let Some(place) = self.bytes.get_mut(MAGIC.len()..MAGIC.len() + 2) {
            place.copy_from_slice(&size.to_le_bytes());
        }
        Ok(self.bytes)
    }
}

/// A message that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Command set.
    pub command_set: u8,
    /// Command.
    pub command: u8,
    /// The bytes behind the header.
    pub payload: Vec<u8>,
}

/// Reads one message, and nothing behind it.
pub fn read_message(input: &mut impl Read) -> Result<Received> {
    let mut header = [0; HEADER];
    input.read_exact(&mut header).map_err(cut)?;
    let [magic @ .., size_low, size_high, command_set, command, _, _] = header;
    if magic != *MAGIC {
        return Err(Error::Protocol { what: "the answer has no DOTNET_IPC_V1 header".into(), expected: "one" });
    }
    let size = usize::from(u16::from_le_bytes([size_low, size_high]));
    let Some(rest) = size.checked_sub(HEADER) else {
        return Err(Error::Protocol { what: format!("an answer of {size} bytes"), expected: "at least 20" });
    };
    let mut payload = vec![0; rest];
    input.read_exact(&mut payload).map_err(cut)?;
    Ok(Received { command_set, command, payload })
}

fn cut(error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => Error::Protocol {
            what: "the connection was closed before the answer was complete".into(),
            expected: "an answer",
        },
        _ => Error::io("reading an answer of the runtime")(error),
    }
}

/// Reads the answer to `command` and gives its payload.
pub fn read_answer(input: &mut impl Read, command: &'static str) -> Result<Vec<u8>> {
    let Received { command_set, command: outcome, payload } = read_message(input)?;
    match (command_set, outcome) {
        (ANSWER, OK) => Ok(payload),
        (ANSWER, ERROR) => {
            let hresult = payload.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
            Err(Error::Refused { command, hresult })
        }
        (set, id) => Err(Error::Protocol { what: format!("an answer {set:#04x}/{id:#04x}"), expected: "0xff/0x00" }),
    }
}

/// Reads the fields of a payload, in order.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// A number of bytes.
    pub fn bytes(&mut self, count: usize, what: &'static str) -> Result<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or_else(|| Error::Protocol {
            what: format!("an answer that ends before {what}"),
            expected: "a longer one",
        })?;
        self.0 = rest;
        Ok(bytes)
    }

    /// A number of 32 bits.
    pub fn u32(&mut self, what: &'static str) -> Result<u32> {
        Ok(self.bytes(4, what)?.first_chunk().map_or(0, |b| u32::from_le_bytes(*b)))
    }

    /// A number of 64 bits.
    pub fn u64(&mut self, what: &'static str) -> Result<u64> {
        Ok(self.bytes(8, what)?.first_chunk().map_or(0, |b| u64::from_le_bytes(*b)))
    }

    /// A string, without its NUL. Units that are no UTF-16 are replaced.
    pub fn string(&mut self, what: &'static str) -> Result<String> {
        let units = self.u32(what)? as usize;
        let bytes = self.bytes(units.saturating_mul(2), what)?;
        let units: Vec<u16> =
            bytes.chunks_exact(2).filter_map(|b| Some(u16::from_le_bytes(*b.first_chunk()?))).collect();
        Ok(String::from_utf16_lossy(units.strip_suffix(&[0]).unwrap_or(&units)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_header_and_payload() {
        let bytes = Message::new(4, 1).bool(true).u32(7).string("ab").string("").finish().unwrap();
        let expected = [
            &b"DOTNET_IPC_V1\0"[..],
            &[39, 0], // size
            &[4, 1, 0, 0],
            &[1],
            &[7, 0, 0, 0],
            &[3, 0, 0, 0, b'a', 0, b'b', 0, 0, 0],
            &[0, 0, 0, 0],
        ];
        assert_eq!(bytes, expected.concat());
        let read = read_message(&mut &bytes[..]).unwrap();
        assert_eq!((read.command_set, read.command, read.payload.len()), (4, 1, 19));
        let mut fields = Fields(&read.payload);
        fields.bytes(1, "a bool").unwrap();
        assert_eq!(fields.u32("a number").unwrap(), 7);
        assert_eq!(fields.string("a string").unwrap(), "ab");
        assert_eq!(fields.string("an empty string").unwrap(), "");
        assert!(fields.string("what is not there").is_err());
        assert!(Fields(&[0xFF; 8]).string("a count beyond the bytes").is_err());
    }

    #[test]
    fn a_message_that_is_too_large_is_refused() {
        let message = Message::new(2, 2).raw(&vec![0; 65_515]);
        assert_eq!(message.clone().finish().unwrap().len(), 65_535);
        let error = message.raw(&[0]).finish().unwrap_err().to_string();
        assert!(error.contains("65536 bytes") && error.contains("fewer providers"), "{error}");
    }

    #[test]
    fn answers_that_are_none_are_told_apart() {
        let refusal = Message::new(ANSWER, ERROR).u32(0x8013_1385).finish().unwrap();
        let error = read_answer(&mut &refusal[..], "ProcessInfo").unwrap_err();
        assert!(error.is_unknown_command() && error.is_refusal() && error.to_string().contains("too old"), "{error}");
        let refusal = Message::new(ANSWER, ERROR).u32(0x8000_4005).finish().unwrap();
        let error = read_answer(&mut &refusal[..], "ProcessInfo").unwrap_err();
        assert!(error.is_refusal() && !error.is_unknown_command(), "{error}");
        for (bytes, words) in [
            (&b"HTTP/1.1 400 Bad Request\r\n"[..], "no .NET runtime"),
            (&b"DOTNET_IPC_V1\0\x13\0\xFF\0\0\0"[..], "at least 20"),
            (&b"DOTNET_IPC_V1\0\x18\0\xFF\0\0\0ab"[..], "closed before"),
            (&b""[..], "closed before"),
            (&b"DOTNET_IPC_V1\0\x14\0\x02\x02\0\0"[..], "0x02/0x02"),
        ] {
            let error = read_answer(&mut &bytes[..], "ProcessInfo").unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
