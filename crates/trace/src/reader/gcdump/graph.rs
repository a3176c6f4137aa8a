//! The nodes of a dump: objects, and groups of roots that are no objects.

use super::stream::{Read, Stream};

/// A type of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeType {
    /// Name of the type, or of a group of roots: `[static vars]`.
    pub name: String,
    /// Bytes of the nodes that do not say it themselves.
    pub size: i32,
    /// File of the module.
    pub module: Option<String>,
}

/// Types and nodes of a dump.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Graph {
    /// The types.
    pub types: Vec<NodeType>,
    /// The node above all roots.
    pub root: u32,
    /// Bytes of a pointer: 4 or 8.
    pub pointer_size: u8,
    /// Where each node is in the blob.
    places: Vec<u32>,
    blob: Vec<u8>,
    addresses: Vec<u64>,
}

/// A node.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Node<'g> {
    /// The index of the type.
    pub type_index: u32,
    /// Bytes.
    pub size: u32,
    /// The objects that this one refers to.
    pub children: Children<'g>,
}

/// The references of a node.
#[derive(Clone, Copy, Debug)]
pub struct Children<'g> {
    node: u32,
    left: u32,
    blob: &'g [u8],
}

impl Graph {
    pub(super) fn read(stream: &mut Stream<'_, '_>) -> Read<Graph> {
        let mut graph = Graph::default();
        stream.u64("the bytes of all nodes")?;
        graph.root = stream.u32("the root")?;
        let types = stream.count("the types", 12)?;
        stream.hold("the types", types, size_of::<NodeType>())?;
        for _ in 0..types {
            let name = stream.text("a type")?.unwrap_or_default();
            let size = i32::from_le_bytes(stream.bytes("a type")?);
            graph.types.push(NodeType { name, size, module: stream.text("a type")? });
        }
        let nodes = stream.count("the nodes", 4)?;
        stream.hold("the nodes", nodes, size_of::<u32>())?;
        stream.chunks("the nodes", u64::from(nodes) * 4, |bytes| {
            graph.places.extend(bytes.as_chunks().0.iter().map(|place| u32::from_le_bytes(*place)));
        })?;
        let blob = stream.count("the blob", 1)?;
        stream.hold("the blob", blob, 1)?;
        stream.chunks("the blob", blob.into(), |bytes| graph.blob.extend_from_slice(bytes))?;
        let addresses = stream.count("the addresses", 8)?;
        stream.hold("the addresses", addresses, size_of::<u64>())?;
        stream.chunks("the addresses", u64::from(addresses) * 8, |bytes| {
            graph.addresses.extend(bytes.as_chunks().0.iter().map(|address| u64::from_le_bytes(*address)));
        })?;
        graph.pointer_size = if stream.tagged_bytes("the graph")? == Some(0) { 4 } else { 8 };
        Ok(graph)
    }

    /// Number of nodes.
    pub fn nodes(&self) -> u32 {
        self.places.len() as u32
    }

    /// Bytes in which nodes are described: there cannot be more references, unless nodes overlap.
    pub fn blob_bytes(&self) -> u64 {
        self.blob.len() as u64
    }

    /// Address of a node; 0 for one that is no object.
    pub fn address(&self, node: u32) -> u64 {
        self.addresses.get(node as usize).copied().unwrap_or_default()
    }

    /// A node; `None` where its bytes make no sense.
    pub fn node(&self, node: u32) -> Option<Node<'_>> {
        let mut blob = self.blob.get(*self.places.get(node as usize)? as usize..)?;
        let head = u32::try_from(number(&mut blob)?).ok()?;
        let type_index = head >> 1;
        let node_type = self.types.get(type_index as usize)?;
        let size = if head & 1 != 0 { number(&mut blob)? } else { node_type.size };
        let left = u32::try_from(number(&mut blob)?).ok().filter(|left| *left as usize <= blob.len())?;
        Some(Node {
            type_index,
            size: u32::try_from(size).unwrap_or_default(),
            children: Children { node, left, blob },
        })
    }
}

impl Children<'_> {
    /// The number of references.
    pub fn total(&self) -> u32 {
        self.left
    }
}

impl Iterator for Children<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        let distance = number(&mut self.blob)?;
        Some(self.node.wrapping_add_signed(distance))
    }
}

/// A compressed number: seven bits a byte, the highest first, with a sign; at most five bytes.
fn number(blob: &mut &[u8]) -> Option<i32> {
    let (first, mut rest) = blob.split_first()?;
    // The sign is the second highest bit.
    let mut value = i32::from((*first << 1) as i8 >> 1);
    let mut byte = *first;
    for _ in 0..4 {
        if byte & 0x80 == 0 {
            break;
        }
        (byte, rest) = rest.split_first().map(|(byte, rest)| (*byte, rest))?;
        value = (value << 7).wrapping_add(i32::from(byte & 0x7F));
    }
    *blob = rest;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_take_as_many_bytes_as_they_need() {
        let cases: [(&[u8], i32); 10] = [
            (&[0x00], 0),
            (&[0x3F], 63),
            (&[0x40], -64),
            (&[0x7F], -1),
            (&[0x80, 0x40], 64),
            (&[0xBF, 0x7F], 8191),
            (&[0xC0, 0x00], -8192),
            (&[0x81, 0x80, 0x00], 16384),
            (&[0x87, 0xFF, 0xFF, 0xFF, 0x7F], i32::MAX),
            (&[0xF8, 0x80, 0x80, 0x80, 0x00], i32::MIN),
        ];
        for (bytes, value) in cases {
            let mut left = bytes;
            assert_eq!((number(&mut left), left), (Some(value), &[][..]), "{bytes:x?}");
            let mut cut = &bytes[..bytes.len() - 1];
            assert_eq!(number(&mut cut), None);
        }
    }
}
