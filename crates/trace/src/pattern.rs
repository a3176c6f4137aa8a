//! Patterns of names, in which a star stands for anything.

/// Whether a text fits a pattern. `one` says how many letters of the pattern, which is not at a star, stand for a letter of
/// the text, if they do. Takes time in proportion to both at worst.
pub fn fits<L: Copy + PartialEq>(text: &[L], pattern: &[L], star: L, one: impl Fn(&[L], L) -> Option<usize>) -> bool {
    let (mut place, mut at) = (0, 0);
    // The last star, and the place up to which it was tried.
    let mut tried: Option<(usize, usize)> = None;
    while let Some(letter) = text.get(place) {
        let rest = pattern.get(at..).unwrap_or_default();
        if rest.first() == Some(&star) {
            tried = Some((at, place));
            at += 1;
            continue;
        }
        match (one(rest, *letter), &mut tried) {
            (Some(length), _) => (place, at) = (place + 1, at + length),
            // The last star takes one more.
            (None, Some((from, taken))) => {
                *taken += 1;
                (at, place) = (*from + 1, *taken);
            }
            (None, None) => return false,
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|letter| *letter == star)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_takes_as_much_as_it_must() {
        let is = |text: &str, pattern: &str| {
            fits(text.as_bytes(), pattern.as_bytes(), b'*', |rest, letter| (rest.first() == Some(&letter)).then_some(1))
        };
        for (text, pattern) in [("", ""), ("", "*"), ("ab", "*"), ("aab", "*ab"), ("abab", "a*b"), ("abc", "a**c")] {
            assert!(is(text, pattern), "{text} {pattern}");
        }
        for (text, pattern) in [("a", ""), ("", "a"), ("ab", "a"), ("ab", "*a"), ("aXbX", "a*b"), ("b", "a*")] {
            assert!(!is(text, pattern), "{text} {pattern}");
        }
        assert!(!is(&"a".repeat(5_000), &("*a".repeat(50) + "b")), "in no time");
    }
}
