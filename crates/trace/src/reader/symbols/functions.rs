//! Functions of a native file by their addresses.

use std::ops::Range;

/// Functions of a file, and bytes of their names, at most. The largest file of .NET 10 has some 100,000 functions.
const MAX_FUNCTIONS: usize = 1 << 20;
const MAX_TEXT: usize = 64 << 20;

/// Functions, whose names are parts of one text.
#[derive(Debug, Default)]
pub struct Functions {
    list: Vec<Function>,
    text: String,
}

#[derive(Debug)]
struct Function {
    start: u64,
    end: u64,
    name: Range<usize>,
    owner: u32,
}

/// A function at an address, with its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativePlace<'n> {
    /// The function.
    pub name: &'n str,
    /// Distance from its beginning.
    pub offset: u64,
    /// File and line, where the symbols have them.
    pub line: Option<(&'n str, u32)>,
}

/// A function that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundFunction<'f> {
    /// The first address.
    pub start: u64,
    /// The name.
    pub name: &'f str,
    /// The part of the file that it came from, as it was added.
    pub owner: u32,
}

impl Functions {
    /// Adds a function. Those without a name or a size are left out; gives `false` when there is no place for more.
    pub fn add(&mut self, addresses: Range<u64>, name: &str, owner: u32) -> bool {
        if addresses.is_empty() || name.is_empty() {
            return true;
        }
        if self.list.len() >= MAX_FUNCTIONS || self.text.len().saturating_add(name.len()) > MAX_TEXT {
            return false;
        }
        let from = self.text.len();
        self.text.push_str(name);
        let Range { start, end } = addresses;
        self.list.push(Function { start, end, name: from..self.text.len(), owner });
        true
    }

    /// Brings them into the order that [`Functions::find`] needs. Of several at one address the first that was added
    /// stays.
    pub fn sort(&mut self) {
        self.list.sort_by_key(|function| function.start);
        self.list.dedup_by_key(|function| function.start);
    }

    /// The function at an address: the last one that begins at or before it, unless it ends before.
    pub fn find(&self, address: u64) -> Option<FoundFunction<'_>> {
        let upto = self.list.partition_point(|function| function.start <= address);
        let function = self.list.get(upto.checked_sub(1)?).filter(|function| address < function.end)?;
        let name = self.text.get(function.name.clone())?;
        Some(FoundFunction { start: function.start, name, owner: function.owner })
    }

    /// Where the first function behind an address begins.
    pub fn next_start(&self, address: u64) -> Option<u64> {
        self.list.get(self.list.partition_point(|function| function.start <= address)).map(|function| function.start)
    }

    /// Bytes that they take.
    #[cfg(feature = "native-symbols")]
    pub fn size(&self) -> usize {
        self.list.capacity() * size_of::<Function>() + self.text.capacity()
    }

    /// The number of functions.
    pub fn len(&self) -> usize {
        self.list.len()
    }
}
