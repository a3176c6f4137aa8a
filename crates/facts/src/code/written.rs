//! Names of methods as people wrote them, from those that compilers make: `Orders.Load` of
//! `Orders+<Load>d__5.MoveNext`.
//!
//! The names that the C# compiler writes are in Roslyn's `GeneratedNameKind`: `<M>d__5` is the class of an async method
//! or an iterator, `<>c` and `<>c__DisplayClass4_0` are those of lambdas, `<M>b__4_0` is a lambda, `<M>g__F|4_0` a
//! local function. One may be within another: `<<M>b__4_0>d` is the class of an async lambda.

/// Appends the name of a lambda, which has none of its own: `<lambda_3>`, by its number among those of its method. It is
/// the last one of `<M>b__0_3`, `<M>b__3` and `_Lambda$__0-3`.
fn push_lambda(text: &mut String, from: usize, name: &str) {
    let number = name.rsplit(['_', '-']).next().unwrap_or_default();
    let is_number = !number.is_empty() && number.len() < 10 && number.bytes().all(|b| b.is_ascii_digit());
    push_part(text, from, if is_number { "<lambda_" } else { "<lambda" });
    text.extend([if is_number { number } else { "" }, ">"]);
}

/// Parts of a name within each other that are looked into.
const MAX_DEPTH: usize = 8;

/// Appends the name of a method of a type, without arguments, as it was written.
pub fn push(text: &mut String, type_name: &str, method: &str) {
    let from = text.len();
    let mut of_machine = false;
    for (place, part) in type_parts(type_name).enumerate() {
        let part = without_arity(part);
        of_machine = false;
        match generated(part) {
            // A class that holds what lambdas share: it has no name of its own.
            Some(Generated { kind: 'c', .. }) => {}
            Some(Generated { kind: 'd', inner }) => {
                push_inner(text, from, inner, MAX_DEPTH);
                of_machine = true;
            }
            Some(Generated { kind: 'F', inner: _ }) => {
                // A type of one file: `<File>F1A2B__Name`.
                push_part(text, from, part.split_once("__").map_or(part, |(_, name)| name));
            }
            _ => {
                if let Some(name) = visual_basic(part) {
                    push_part(text, from, name);
                    of_machine = true;
                } else if let (Some((name, _)), true) = (f_sharp(part), place > 0) {
                    push_part(text, from, name);
                    of_machine = true;
                } else if !part.starts_with("_Closure$__") {
                    push_part(text, from, part);
                }
            }
        }
    }
    // The methods of such a class are parts of the one that was written.
    if !of_machine {
        push_inner(text, from, without_arguments(method), MAX_DEPTH);
    }
}

/// Appends a name that may be made of another: a method, or what is within the brackets of a class.
fn push_inner(text: &mut String, from: usize, name: &str, depth: usize) {
    let lambda_in_basic = name.strip_prefix("_Lambda$__").is_some();
    match generated(name) {
        _ if lambda_in_basic => push_lambda(text, from, name),
        Some(Generated { kind: 'b', inner }) if depth > 0 => {
            push_inner(text, from, inner, depth - 1);
            push_lambda(text, from, name);
        }
        Some(Generated { kind: 'g', inner }) if depth > 0 => {
            push_inner(text, from, inner, depth - 1);
            let local = name.split_once(">g__").map_or("", |(_, behind)| behind);
            push_part(text, from, local.split('|').next().unwrap_or(local));
        }
        // `<Main>$` has the statements of a file, `<Main>` waits for it when it is async.
        Some(Generated { kind: '$' | '\0', inner }) => push_inner(text, from, inner, depth.saturating_sub(1)),
        _ => push_part(text, from, name),
    }
}

fn push_part(text: &mut String, from: usize, part: &str) {
    if part.is_empty() {
        return;
    }
    if text.len() > from {
        text.push('.');
    }
    text.push_str(part);
}

/// A name that the compiler made: what kind, and what is within its brackets.
struct Generated<'n> {
    /// The letter behind the brackets; a zero when nothing is there.
    kind: char,
    inner: &'n str,
}

/// `<inner>k...`
fn generated(name: &str) -> Option<Generated<'_>> {
    let rest = name.strip_prefix('<')?;
    let mut open = 1usize;
    let close = rest.char_indices().find_map(|(at, c)| {
        match c {
            '<' => open += 1,
            '>' => open -= 1,
            _ => {}
        }
        (open == 0).then_some(at)
    })?;
    let kind = rest.get(close + 1..)?.chars().next().unwrap_or_default();
    Some(Generated { kind, inner: rest.get(..close)? })
}

/// The method of a class that Visual Basic makes of an async method or iterator: `VB$StateMachine_5_Load`.
fn visual_basic(part: &str) -> Option<&str> {
    let (number, name) = part.strip_prefix("VB$StateMachine_")?.split_once('_')?;
    number.bytes().all(|b| b.is_ascii_digit()).then_some(name)
}

/// The function of a closure of F#: `load@12-1`.
fn f_sharp(part: &str) -> Option<(&str, &str)> {
    let (name, line) = part.split_once('@')?;
    line.starts_with(|c: char| c.is_ascii_digit()).then_some((name, line))
}

/// The types that a nested one is within, and itself, without the arguments of generic ones.
fn type_parts(type_name: &str) -> impl Iterator<Item = &str> {
    without_arguments(type_name).split('+')
}

/// A name up to its type arguments.
fn without_arguments(name: &str) -> &str {
    name.split('[').next().unwrap_or(name)
}

/// ``List`1`` is `List`.
fn without_arity(name: &str) -> &str {
    match name.rsplit_once('`') {
        Some((before, count)) if !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit()) => before,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_named_as_they_were_written() {
        let cases = [
            ("Shop.Orders", "Load", "Shop.Orders.Load"),
            ("Shop.Orders+<Load>d__5", "MoveNext", "Shop.Orders.Load"),
            ("Shop.Orders+<Load>d__5`1[System.__Canon]", "MoveNext", "Shop.Orders.Load"),
            ("Shop.Orders+<Rows>d__6", "System.Collections.IEnumerator.Reset", "Shop.Orders.Rows"),
            ("Shop.Orders+Line", "Sum", "Shop.Orders.Line.Sum"),
            ("Shop.Orders+<>c", "<Load>b__4_0", "Shop.Orders.Load.<lambda_0>"),
            ("Shop.Orders+<>c__DisplayClass4_0", "<Load>b__1", "Shop.Orders.Load.<lambda_1>"),
            ("Shop.Orders+<>c__DisplayClass4_0+<<Load>b__0>d", "MoveNext", "Shop.Orders.Load.<lambda_0>"),
            ("Shop.Orders+<>c+<<Load>b__4_0>d", "MoveNext", "Shop.Orders.Load.<lambda_0>"),
            ("Shop.Orders", "<Load>g__Inner|5_0", "Shop.Orders.Load.Inner"),
            ("Shop.Orders+<<Load>g__Inner|5_0>d", "MoveNext", "Shop.Orders.Load.Inner"),
            ("Shop.Orders+<>c", "<<Load>g__Inner|5_0>b__5_1", "Shop.Orders.Load.Inner.<lambda_1>"),
            ("Program", "<Main>$", "Program.Main"),
            ("Program", "<Main>", "Program.Main"),
            ("Program+<<Main>$>d__0", "MoveNext", "Program.Main"),
            ("Program+<>c", "<<Main>$>b__0_2", "Program.Main.<lambda_2>"),
            ("Program", "<<Main>$>g__Work|0_1", "Program.Main.Work"),
            ("Program+<>c+<<<Main>$>b__0_1>d", "MoveNext", "Program.Main.<lambda_1>"),
            ("Shop.Box`1[System.__Canon]", "Get", "Shop.Box.Get"),
            ("Shop.Box`1+Iterator`2[System.Int32,System.__Canon]", "Next", "Shop.Box.Iterator.Next"),
            ("<Program>F1A2B__Part", "Run", "Part.Run"),
            ("Shop.Orders", ".ctor", "Shop.Orders..ctor"),
            ("Shop.Orders+VB$StateMachine_5_Load", "MoveNext", "Shop.Orders.Load"),
            ("Shop.Orders+_Closure$__", "_Lambda$__4-0", "Shop.Orders.<lambda_0>"),
            ("Shop.Orders+load@12-1", "Invoke", "Shop.Orders.load"),
            ("", "Run", "Run"),
            ("<", "<", "<.<"),
        ];
        for (type_name, method, expected) in cases {
            let mut text = String::new();
            push(&mut text, type_name, method);
            assert_eq!(text, expected, "{type_name} {method}");
        }
        // Text that is there already stays.
        let mut text = String::from("before ");
        push(&mut text, "A", "B");
        assert_eq!(text, "before A.B");
        let mut text = String::new();
        push(&mut text, "A", &format!("{}M{}", "<".repeat(5000), ">b__0".repeat(5000)));
        assert!(text.len() < 40_000 && text.ends_with("<lambda_0>"));
    }
}
