//! Names of functions as people write them, of those that compilers make of them.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Bytes of a name that is spelled out. A compiled name can repeat its parts, and their parts again: without a bound a
/// few bytes would be spelled as gigabytes.
const MAX_SPELLED: usize = 16 << 10;
/// Bytes of a compiled name that is looked at.
const MAX_COMPILED: usize = 64 << 10;

/// A name of C++ or Rust as it is written in source; any other as it is, and one that would be too long.
pub fn spelled(compiled: &str) -> Cow<'_, str> {
    if !compiled.starts_with('_') || compiled.len() > MAX_COMPILED {
        return Cow::Borrowed(compiled);
    }
    let mut out = Bounded(String::new());
    if let Ok(name) = rustc_demangle::try_demangle(compiled) {
        return if write!(out, "{name:#}").is_ok() { Cow::Owned(out.0) } else { Cow::Borrowed(compiled) };
    }
    let Ok(symbol) = cpp_demangle::Symbol::new(compiled) else { return Cow::Borrowed(compiled) };
    match symbol.structured_demangle(&mut out, &cpp_demangle::DemangleOptions::default()) {
        Ok(()) => Cow::Owned(out.0),
        Err(_) => Cow::Borrowed(compiled),
    }
}

/// Text up to a length.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_SPELLED {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spelled_as_in_source() {
        for (compiled, expected) in [
            ("_ZN5space3fooEii", "space::foo(int, int)"),
            ("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"),
            ("main", "main"),
            ("_start", "_start"),
            ("ZN5space3fooEii", "ZN5space3fooEii"),
        ] {
            assert_eq!(spelled(compiled), expected);
        }
    }

    #[test]
    fn a_name_that_doubles_itself_again_and_again_stays_as_it_is() {
        // A function whose parameters are pairs, each of the parameter before it twice. `S1_` is the template `P`, and
        // `S3_` the type that the function returns, `P<A, A>`; the first parameter is a pair of that and becomes `S4_`.
        let doubled = |times: u32| -> String {
            let types =
                (3..36).filter_map(|number| char::from_digit(number, 36)).map(|digit| digit.to_ascii_uppercase());
            let pairs: String = types.take(times as usize).map(|digit| format!("S1_IS{digit}_S{digit}_E")).collect();
            format!("_Z1fI1AE1PI1AS0_E{pairs}")
        };
        assert_eq!(spelled(&doubled(1)), "P<A, A> f<A>(P<P<A, A>, P<A, A> >)");
        assert!(spelled(&doubled(8)).len() > 6000);
        // Spelled out, these names have 100 kB and 60 GB.
        for times in [12, 33] {
            assert_eq!(spelled(&doubled(times)), doubled(times));
        }
        assert_eq!(spelled(&"_Z".repeat(100_000)).len(), 200_000);
    }
}
