//! Names as the C++ compiler of Microsoft decorates them, back to `namespace::class::function`, and as NGEN does.

/// Bytes of a name, which can repeat one of its parts with each byte.
const MAX_NAME: usize = 16 << 10;

/// Names that later parts of a decorated name refer to by a digit.
const MAX_REFERENCES: usize = 10;

/// The name of a function without its decoration. Names of templates, operators and what else has a form of its own
/// stay as they are: their text grows without bound when a hostile name refers to itself.
pub fn plain_name(decorated: &str) -> Option<String> {
    let mut rest = decorated.strip_prefix('?')?;
    // `??0` makes an object and `??1` ends it: their name is the one of the class.
    let special = [("?0", ""), ("?1", "~")].into_iter().find_map(|(mark, sign)| Some((rest.strip_prefix(mark)?, sign)));
    if let Some((behind, _)) = special {
        rest = behind;
    }
    // From the inside out.
    let mut parts: Vec<&str> = Vec::new();
    let mut known: Vec<&str> = Vec::new();
    let mut length = 0;
    while !rest.starts_with('@') {
        if let Some(digit) = rest.bytes().next().filter(u8::is_ascii_digit) {
            let part = known.get(usize::from(digit - b'0'))?;
            length += part.len();
            if length > MAX_NAME {
                return None;
            }
            parts.push(part);
            rest = rest.get(1..)?;
            continue;
        }
        let (part, behind) = rest.split_once('@')?;
        if part.starts_with(['?', '$']) {
            return None;
        }
        if known.len() < MAX_REFERENCES && !known.contains(&part) {
            known.push(part);
        }
        parts.push(part);
        rest = behind;
    }
    let class = *parts.first()?;
    let mut name = parts.iter().rev().copied().collect::<Vec<_>>().join("::");
    if let Some((_, sign)) = special {
        name.extend(["::", sign, class]);
    }
    Some(name)
}

/// The name of a method in the symbols of an NGEN image, which has `$#ASSEMBLY#TOKEN` at its end; any other name as it
/// is. Source: TraceEvent, `NativeSymbolModule`.
pub fn without_token(name: &str) -> &str {
    match name.rsplit_once("$#") {
        Some((method, rest)) if !method.is_empty() && rest.contains('#') => method,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ngen_lose_their_token() {
        for (name, expected) in [
            (
                "System.String.Concat(System.String, System.String)$#mscorlib#6000545",
                "System.String.Concat(System.String, System.String)",
            ),
            ("Shop.Basket.Add(Int32)$##6000002", "Shop.Basket.Add(Int32)"),
            ("main", "main"),
            ("odd$name", "odd$name"),
            ("odd$#name", "odd$#name"),
            ("$#mscorlib#6000545", "$#mscorlib#6000545"),
        ] {
            assert_eq!(without_token(name), expected);
        }
    }

    #[test]
    fn plain_names_are_those_of_the_source() {
        // Each as llvm-undname says it, with the name only.
        for (decorated, name) in [
            ("?run@probe@@YAHH@Z", "probe::run"),
            ("?add@Counter@probe@@QEAAHH@Z", "probe::Counter::add"),
            ("??0Box@plain@@QEAA@H@Z", "plain::Box::Box"),
            ("??1Counter@probe@@QEAA@XZ", "probe::Counter::~Counter"),
            ("?global@@YAXXZ", "global"),
            ("?f@a@1@YAXXZ", "a::a::f"),
        ] {
            assert_eq!(plain_name(decorated).as_deref(), Some(name), "{decorated}");
        }
        let kept = [
            "main",
            "_start@4",
            "??$twice@H@probe@@YAHH@Z",
            "??HCounter@probe@@QEAAHH@Z",
            "?",
            "??0",
            "?a",
            "?@",
            "?9@",
        ];
        for name in kept {
            assert_eq!(plain_name(name), None, "{name}");
        }
        // Each digit would be the long part once more.
        let repeated = |times: usize| plain_name(&format!("?{}@{}@YAXXZ", "a".repeat(1000), "0".repeat(times)));
        assert_eq!(repeated(16).map(|name| name.len()), Some(17 * 1000 + 16 * 2));
        assert_eq!(repeated(17), None);
    }
}
