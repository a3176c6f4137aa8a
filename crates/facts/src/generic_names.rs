//! Names of generic types as the runtime writes them, from the form of heap dumps (`.gcdump`).
//!
//! A writer of such a dump takes the runtime's name, leaves out the number of type parameters, and makes angles of all
//! brackets but those of arrays; the angles that were there stay:
//!
//! ```text
//! System.Collections.Generic.List`1[Road]    System.Collections.Generic.List<Road>
//! Entry[System.String,System.Object][]       Entry<System.String,System.Object>[]
//! System.Int32[,]                            System.Int32<,>
//! <>c                                        []c
//! Program+<Main>d__0                         Program+<Main>d__0
//! ```
//! A generic type with a namespace is no nested one (of those the runtime leaves out namespace and outer type), so that
//! all arguments are its own and their number is known. The number of a type without a namespace stays out.

/// Arguments within arguments, at most. Deeper names stay as they are.
const MAX_DEPTH: usize = 64;

/// The runtime's form of a name; the name itself where it is of no such form.
pub fn as_in_runtime(name: &str) -> String {
    if !name.contains(['<', '[']) {
        return name.to_owned();
    }
    let mut reader = Reader { rest: name, out: String::with_capacity(name.len() + 8) };
    match reader.type_name(0) {
        Some(()) if reader.rest.is_empty() => reader.out,
        _ => name.to_owned(),
    }
}

struct Reader<'n> {
    rest: &'n str,
    out: String,
}

impl Reader<'_> {
    fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn copy(&mut self, length: usize) -> Option<()> {
        let (copied, rest) = self.rest.split_at_checked(length)?;
        self.out.push_str(copied);
        self.rest = rest;
        Some(())
    }

    /// A name, its arguments, and the ranks of an array of them.
    fn type_name(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        let begin = self.out.len();
        let is_not_nested = self.plain_name()?;
        if self.out.len() == begin {
            return None;
        }
        if !self.ranks() && self.rest.starts_with('<') {
            let place = self.out.len();
            let count = self.arguments(depth)?;
            if is_not_nested {
                self.out.insert_str(place, &format!("`{count}"));
            }
        }
        while self.ranks() {}
        Some(())
    }

    /// `[]`, or `<,>` for an array of two dimensions.
    fn ranks(&mut self) -> bool {
        if self.take("[]") {
            self.out.push_str("[]");
            return true;
        }
        let Some(inside) = self.rest.strip_prefix('<') else { return false };
        let length = inside.find(|c| c != ',' && c != '*').unwrap_or_default();
        let Some((ranks, behind)) = inside.split_at_checked(length) else { return false };
        let (false, Some(behind)) = (ranks.is_empty(), behind.strip_prefix('>')) else { return false };
        self.out.extend(["[", ranks, "]"]);
        self.rest = behind;
        true
    }

    /// The name without arguments: parts with `+` or `.` between, each of which may begin with angles of its own.
    /// Returns whether it is surely that of a type that is not nested.
    fn plain_name(&mut self) -> Option<bool> {
        let (mut has_namespace, mut is_nested) = (false, false);
        loop {
            if self.rest.strip_prefix("[]").is_some_and(|behind| behind.starts_with(char::is_alphanumeric)) {
                self.take("[]");
                self.out.push_str("<>");
            } else if self.rest.starts_with('<') {
                self.copy(angles(self.rest)?)?;
            }
            let length = self.rest.find(['<', '>', ',', '[', '+', '.']).unwrap_or(self.rest.len());
            self.copy(length)?;
            match self.rest.chars().next() {
                Some('+') => is_nested = true,
                Some('.') => has_namespace = true,
                _ => return Some(has_namespace && !is_nested),
            }
            self.copy(1)?;
        }
    }

    /// The arguments; returns how many there are.
    fn arguments(&mut self, depth: usize) -> Option<usize> {
        self.take("<");
        self.out.push('[');
        let mut count = 0;
        loop {
            self.type_name(depth + 1)?;
            count += 1;
            if self.take(">") {
                self.out.push(']');
                return Some(count);
            }
            if !self.take(",") {
                return None;
            }
            self.out.push(',');
        }
    }
}

/// The length of a group of angles, which may hold others.
fn angles(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    text.bytes()
        .position(|byte| {
            match byte {
                b'<' => depth += 1,
                b'>' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        })
        .map(|last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name that dotnet-gcdump makes of a name.
    fn dumped(name: &str) -> String {
        let mut out = String::new();
        let mut rest = name.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '`' => while rest.next_if(char::is_ascii_digit).is_some() {},
                '[' => out.push('<'),
                ']' => out.push('>'),
                c => out.push(c),
            }
        }
        out.replace("<>", "[]")
    }

    #[test]
    fn names_of_dumps_are_those_of_the_runtime() {
        for name in [
            "System.String",
            "Road[]",
            "System.Int32[,]",
            "System.Int32[,,][]",
            "System.Collections.Generic.List`1[Road]",
            "System.Collections.Generic.Dictionary`2[System.String,System.Collections.Generic.List`1[System.Object[]]][]",
            "Entry[System.String,System.Object][]",
            "<>c",
            "<>c[System.Char]",
            "<>c__DisplayClass0_0",
            "Program+<>c__DisplayClass9_1",
            "Program+<Main>d__0",
            "System.Func`2[Program+<Main>d__0,<>c]",
            "System.Collections.Generic.List`1[System.Int32[,]]",
        ] {
            assert_eq!(as_in_runtime(&dumped(name)), name);
        }
        // Of a type without a namespace the number is not known.
        assert_eq!(as_in_runtime(&dumped("Holder`1[City]")), "Holder[City]");
    }

    #[test]
    fn what_is_no_such_name_stays() {
        for name in ["", "A<", "A<B", "A<B>>", "A>B", "[", "A<B>C", "A,B", "<", "A<,B>", "List`1[B]", "x[y]"] {
            assert_eq!(as_in_runtime(name), name);
        }
        let deep = "A<".repeat(1 << 16) + &">".repeat(1 << 16);
        assert_eq!(as_in_runtime(&deep), deep);
    }
}
