//! The memory that an option of `convert` may take for what it keeps until the end of a recording.

/// Memory that was allowed, and how much of it is used.
#[derive(Debug)]
pub struct Allowance {
    most: u64,
    used: u64,
    /// Whether nothing more is kept.
    pub is_spent: bool,
}

impl Allowance {
    /// A number of bytes.
    pub fn new(most: u64) -> Allowance {
        Allowance { most, used: 0, is_spent: false }
    }

    /// Takes memory for what is kept. More than there is may be taken until [`Self::is_exceeded`] is asked.
    pub fn take(&mut self, bytes: u64) {
        self.used = self.used.saturating_add(bytes);
    }

    /// Whether so many bytes more are allowed for a moment.
    pub fn allows(&self, bytes: u64) -> bool {
        self.used.saturating_add(bytes) <= self.most
    }

    /// Whether more was taken than is allowed. It stays so.
    pub fn is_exceeded(&mut self) -> bool {
        self.is_spent |= self.used > self.most;
        self.is_spent
    }

    /// Nothing more is kept.
    pub fn end(&mut self) {
        self.is_spent = true;
    }

    /// The problem of a table that needed more.
    pub fn refused(&self, table: &str, option: &str) -> Option<String> {
        let megabytes = self.most.div_ceil(1_000_000);
        self.is_spent.then(|| format!("{table}: it takes more memory than the {megabytes} MB that {option} allows"))
    }
}
