//! Numbers as a person types them.

/// Reads a number, hexadecimal behind `0x`.
pub fn number(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    number.map_err(|_| "expected a number such as 0x400001".into())
}
