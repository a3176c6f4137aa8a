//! The nodes of the trie of call stacks while they wait for the end of the recording, with bounded memory.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use tracequet_trace::source::temporary;

use crate::fact::CallsiteId;

/// A frame of a call stack, as it was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The caller; 0 for the outermost frame.
    pub parent: CallsiteId,
    /// Whose address it is: an index of the places of [`super::callsites::Callsites`].
    pub place: u32,
    /// As recorded.
    pub address: u64,
    /// When it was first seen.
    pub first_ns: i64,
    /// Number of frames between this one and the outermost.
    pub depth: u32,
}

/// An allocation: call site, process and type.
pub type Allocated = (CallsiteId, u64, u64);

const NODE_BYTES: usize = 28;

/// Nodes in parts. Within a part a parent comes before its children, and no child is in another part.
#[derive(Debug, Default)]
pub struct Nodes {
    /// The part that is collected.
    part: Vec<Node>,
    /// Nodes in earlier parts, which are in the file.
    earlier: Vec<usize>,
    file: Option<File>,
    /// Parts that the file could not take.
    in_memory: VecDeque<Vec<Node>>,
    /// Nodes that are in neither.
    pub lost: u64,
    count: u32,
    parts_read: usize,
}

/// Nodes in memory, at most, when they cannot be written to a file.
const MAX_IN_MEMORY: usize = 4 << 20;

impl Nodes {
    /// Adds a node to the part that is collected, and gives its number.
    #[inline]
    pub fn push(&mut self, node: Node) -> CallsiteId {
        self.part.push(node);
        self.count = self.count.saturating_add(1);
        self.count
    }

    /// Nodes in the part that is collected.
    pub fn len(&self) -> usize {
        self.part.len()
    }

    /// Ends a part: later nodes do not refer to its own.
    pub fn end_part(&mut self) {
        let part = std::mem::take(&mut self.part);
        if part.is_empty() {
            return;
        }
        // Once it failed it stays so: parts keep their order.
        if self.in_memory.is_empty() && self.lost == 0 && self.write(&part).is_ok() {
            self.earlier.push(part.len());
        } else if self.in_memory.iter().map(Vec::len).sum::<usize>() < MAX_IN_MEMORY {
            self.in_memory.push_back(part);
        } else {
            self.lost += part.len() as u64;
        }
    }

    fn write(&mut self, part: &[Node]) -> io::Result<()> {
        let file = if let Some(file) = &mut self.file { file } else { self.file.insert(temporary::file()?) };
        let at: usize = self.earlier.iter().sum();
        file.seek(SeekFrom::Start((at * NODE_BYTES) as u64))?;
        let mut bytes = Vec::with_capacity(NODE_BYTES << 10);
        for nodes in part.chunks(1 << 10) {
            bytes.clear();
            for Node { parent, place, address, first_ns, depth } in nodes {
                for number in [parent, place, depth] {
                    bytes.extend_from_slice(&number.to_le_bytes());
                }
                bytes.extend_from_slice(&address.to_le_bytes());
                bytes.extend_from_slice(&first_ns.to_le_bytes());
            }
            file.write_all(&bytes)?;
        }
        Ok(())
    }

    /// The next part from the beginning; `None` behind the last one. No node can be added from now on.
    pub fn next_part(&mut self) -> io::Result<Option<Vec<Node>>> {
        if let Some(file) = &mut self.file
            && let Some(count) = self.earlier.get(self.parts_read)
        {
            if self.parts_read == 0 {
                file.seek(SeekFrom::Start(0))?;
            }
            self.parts_read += 1;
            let mut bytes = vec![0; count * NODE_BYTES];
            file.read_exact(&mut bytes)?;
            return Ok(Some(bytes.chunks_exact(NODE_BYTES).map(node).collect()));
        }
        if let Some(part) = self.in_memory.pop_front() {
            return Ok(Some(part));
        }
        let last = std::mem::take(&mut self.part);
        Ok((!last.is_empty()).then_some(last))
    }
}

fn node(bytes: &[u8]) -> Node {
    let u32_at = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u32::from_le_bytes(*b));
    let u64_at = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u64::from_le_bytes(*b));
    Node {
        parent: u32_at(0),
        place: u32_at(4),
        depth: u32_at(8),
        address: u64_at(12),
        first_ns: u64_at(20).cast_signed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_from_the_file_in_order() {
        let mut nodes = Nodes::default();
        let made = |n: u32| Node { parent: n, place: n + 1, address: u64::MAX - u64::from(n), first_ns: -5, depth: n };
        let mut expected = Vec::new();
        for (part, count) in [3u32, 2000, 1].into_iter().enumerate() {
            let part: Vec<_> = (0..count).map(|n| made(n + part as u32 * 10_000)).collect();
            part.iter().for_each(|node| {
                nodes.push(*node);
            });
            nodes.end_part();
            nodes.end_part();
            expected.push(part);
        }
        assert_eq!(nodes.push(made(7)), 2005);
        expected.push(vec![made(7)]);
        for part in expected {
            assert_eq!(nodes.next_part().unwrap().unwrap(), part);
        }
        assert_eq!(nodes.next_part().unwrap(), None);
        assert_eq!(nodes.lost, 0);
    }
}
