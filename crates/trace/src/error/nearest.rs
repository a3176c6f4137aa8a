//! Which of the names that there are somebody may have meant.

/// Names that are compared, at most, and characters of each.
const MAX_NAMES: usize = 4 << 10;
const MAX_CHARACTERS: usize = 200;

/// The name that is like what was typed: the same in another case, one that it is a part of, or one with few other
/// letters.
pub fn nearest<'n>(typed: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let letters = |text: &str| text.to_lowercase().chars().take(MAX_CHARACTERS).collect::<Vec<char>>();
    let typed_letters = letters(typed);
    let most = (typed_letters.len() / 3).max(2);
    let distance = |name: &'n str| {
        let name_letters = letters(name);
        let is_part = typed_letters.len() > 2 && name.to_lowercase().contains(&typed.to_lowercase());
        let distance = if is_part { 1 } else { distance_of(&typed_letters, &name_letters) };
        (distance <= most && distance < typed_letters.len().max(1)).then_some((distance, name.len(), name))
    };
    let near = names.into_iter().take(MAX_NAMES).filter_map(distance).min();
    near.map(|(_, _, name)| name)
}

/// The nearest name as the end of a sentence: `; did you mean gc_pause?`, or nothing.
pub fn did_you_mean<'n>(typed: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    nearest(typed, names).map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

/// The number of letters that have to be put in, left out or replaced to make one text of another (Levenshtein).
pub fn edit_distance(one: &str, other: &str) -> usize {
    let letters = |text: &str| text.chars().take(MAX_CHARACTERS).collect::<Vec<char>>();
    distance_of(&letters(one), &letters(other))
}

fn distance_of(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut diagonal = at;
        let mut left = at + 1;
        for (cell, theirs) in row.iter_mut().skip(1).zip(other) {
            let above = *cell;
            *cell = (above + 1).min(left + 1).min(diagonal + usize::from(letter != theirs));
            (diagonal, left) = (above, *cell);
        }
        if let Some(first) = row.first_mut() {
            *first = at + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_with_the_fewest_other_letters_is_meant() {
        let names = ["gc", "gc_pause", "gc_generation_range", "cpu_sample", "Microsoft-Windows-DotNETRuntime"];
        let of = |typed| nearest(typed, names);
        assert_eq!(of("gc_puase"), Some("gc_pause"));
        assert_eq!(of("GC"), Some("gc"));
        assert_eq!(of("generation_range"), Some("gc_generation_range"));
        assert_eq!(of("microsoft-windows-dotnetruntimee"), Some("Microsoft-Windows-DotNETRuntime"));
        assert_eq!(of("DotNETRuntime"), Some("Microsoft-Windows-DotNETRuntime"));
        assert_eq!((of("exceptions"), of(""), of("x")), (None, None, None));
        assert_eq!(did_you_mean("cpu_samples", names), "; did you mean cpu_sample?");
    }

    #[test]
    fn changes_are_counted() {
        let of =
            |one: &str, other: &str| distance_of(&one.chars().collect::<Vec<_>>(), &other.chars().collect::<Vec<_>>());
        assert_eq!((of("kitten", "sitting"), of("", "abc"), of("abc", ""), of("abc", "abc")), (3, 3, 3, 0));
    }
}
