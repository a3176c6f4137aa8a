//! Names of figures as a person reads them: methods without their arguments, where that is enough to know which is
//! meant.

use std::collections::BTreeMap;

/// The names under which some metrics are shown.
pub struct Names<'n>(BTreeMap<&'n str, Option<&'n str>>);

impl<'n> Names<'n> {
    /// Of figures that are shown together.
    pub fn of(names: impl Iterator<Item = &'n str>) -> Names<'n> {
        let mut all: BTreeMap<&str, Option<&str>> = names.map(|name| (name, without_arguments(name))).collect();
        let mut known: BTreeMap<&str, u32> = BTreeMap::new();
        all.values().flatten().for_each(|short| *known.entry(short).or_default() += 1);
        for short in all.values_mut() {
            *short = short.filter(|short| known.get(short) == Some(&1));
        }
        Names(all)
    }

    /// One of them: without the arguments of its method, if no other one is the same without them.
    pub fn shown(&self, name: &str) -> String {
        match self.0.get(name).copied().flatten() {
            Some(short) => format!("{short}]"),
            None => name.to_owned(),
        }
    }
}

/// `cpu.by_method[A.B.C` of `cpu.by_method[A.B.C(int32)]`.
fn without_arguments(name: &str) -> Option<&str> {
    let inner = name.strip_suffix(")]")?;
    let mut open = 1;
    for (at, c) in inner.char_indices().rev() {
        match c {
            ')' => open += 1,
            '(' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return inner.get(..at).filter(|short| !short.ends_with('['));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_have_their_arguments_only_where_another_has_their_name() {
        let names = [
            "gc.count",
            "cpu.by_method[A.B.One(int32,class System.Func`2<(int32)>)]",
            "cpu.by_method[A.B.Two()]",
            "cpu.by_method[A.B.Two(int32)]",
            "cpu.by_method[libc.so!(anonymous namespace)::f(int)]",
            "exception.by_type[System.Exception]",
            "odd[(int)]",
            "odd[a)]",
        ];
        let all = Names::of(names.into_iter());
        let shown: Vec<String> = names.iter().map(|name| all.shown(name)).collect();
        let expected = [
            "gc.count",
            "cpu.by_method[A.B.One]",
            "cpu.by_method[A.B.Two()]",
            "cpu.by_method[A.B.Two(int32)]",
            "cpu.by_method[libc.so!(anonymous namespace)::f]",
            "exception.by_type[System.Exception]",
            "odd[(int)]",
            "odd[a)]",
        ];
        assert_eq!(shown, expected);
    }
}
