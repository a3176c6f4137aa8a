//! Numbers for tests that try many cases.

/// Numbers that look random and are the same each time (xorshift).
pub struct Dice(pub u64);

impl Dice {
    /// One of the numbers below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}
