//! The graph of imports between the files of a crate, read from its source text.
//!
//! A path counts for the file that defines what it names: `crate::event::Event` that `event/mod.rs` hands on from
//! `event/decoded.rs` is a use of `decoded.rs`. So a `mod.rs` may hand on what its files define without being in a
//! circle with them. Test modules may use anything and are left out. Methods need no path and are not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// One file of a crate.
#[derive(Debug, Default)]
struct Module {
    path: PathBuf,
    /// Modules that have files of their own below this one.
    children: BTreeSet<String>,
    /// Types, functions, traits and so on by name.
    defines: BTreeSet<String>,
    /// What `use` brings here, by its name here.
    imports: BTreeMap<String, Import>,
    /// Modules of which everything is brought here.
    globs: Vec<Vec<String>>,
    /// Every path outside of `pub use`, resolved against the crate, with its line.
    paths: Vec<(Vec<String>, usize)>,
}

#[derive(Debug)]
struct Import {
    target: Vec<String>,
    line: usize,
    /// Handed on by `pub use`; it is a use by this file only if `used`.
    handed_on: bool,
    used: bool,
}

/// The files of a crate and who uses whom.
#[derive(Debug)]
pub struct Graph {
    files: Vec<PathBuf>,
    /// For each file the files that it uses, with the first line that does.
    uses: Vec<BTreeMap<usize, usize>>,
}

impl Graph {
    /// Reads a crate: `files` are its paths below the root file's folder, with their text. `roots` are the root files,
    /// `lib.rs` before `main.rs`; folders that `main.rs` declares belong to it.
    pub fn new(files: &[(PathBuf, String)]) -> Graph {
        let mut modules: BTreeMap<Vec<String>, Module> = BTreeMap::new();
        let parsed: Vec<_> = files.iter().map(|(path, text)| (path, tokens(text))).collect();
        let declared_by_main: BTreeSet<String> = parsed
            .iter()
            .filter(|(path, _)| path.as_path() == Path::new("main.rs"))
            .flat_map(|(_, tokens)| children(tokens))
            .collect();
        for (path, tokens) in &parsed {
            let name = module_of(path, &declared_by_main);
            modules.insert(name.clone(), Module::read(path, &name, tokens));
        }
        let files: Vec<PathBuf> = modules.values().map(|module| module.path.clone()).collect();
        let index: BTreeMap<&Vec<String>, usize> = modules.keys().zip(0..).collect();
        let mut uses = vec![BTreeMap::new(); files.len()];
        for ((_, module), from) in modules.iter().zip(0..) {
            let imported = module.imports.values().filter(|import| !import.handed_on || import.used);
            let imported = imported.map(|import| (&import.target, import.line));
            for (path, line) in module.paths.iter().map(|(path, line)| (path, *line)).chain(imported) {
                let Some(to) = defining(&modules, path, &mut BTreeSet::new()).and_then(|name| index.get(&name)) else {
                    continue;
                };
                if *to != from {
                    let first = uses[from].entry(*to).or_insert(line);
                    *first = line.min(*first);
                }
            }
        }
        Graph { files, uses }
    }

    /// Number of imports between files.
    pub fn imports(&self) -> usize {
        self.uses.iter().map(BTreeMap::len).sum()
    }

    /// Groups of files each of which uses, by way of others, all of its group, with the imports within the group.
    pub fn circles(&self) -> Vec<Circle> {
        // The crates are small: who can be reached from whom, by search from every file.
        let reached: Vec<BTreeSet<usize>> = (0..self.files.len()).map(|from| self.reached(from)).collect();
        let mut found: Vec<Circle> = Vec::new();
        for file in 0..self.files.len() {
            let group: Vec<usize> =
                reached[file].iter().copied().filter(|other| reached[*other].contains(&file)).collect();
            if group.len() < 2 || group[0] != file {
                continue;
            }
            let name = |file: usize| self.files[file].to_string_lossy().replace('\\', "/");
            let imports = group.iter().flat_map(|from| {
                let within = self.uses[*from].iter().filter(|(to, _)| group.contains(to));
                within.map(|(to, line)| format!("{}:{line} uses {}", name(*from), name(*to)))
            });
            found.push(Circle { files: group.iter().map(|file| name(*file)).collect(), imports: imports.collect() });
        }
        found
    }

    fn reached(&self, from: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(file) = open.pop() {
            open.extend(self.uses[file].keys().filter(|to| reached.insert(**to)));
        }
        reached
    }
}

/// Files that use each other, directly or by way of others.
#[derive(Debug, PartialEq, Eq)]
pub struct Circle {
    pub files: Vec<String>,
    pub imports: Vec<String>,
}

/// `reader/nettrace/v6.rs` to `[reader, nettrace, v6]`, `lib.rs` to `[]`. What `main.rs` declares is below `[main]`.
fn module_of(path: &Path, declared_by_main: &BTreeSet<String>) -> Vec<String> {
    let mut name: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let file = name.pop().unwrap_or_default();
    let stem = file.trim_end_matches(".rs");
    if !(stem == "mod" || stem == "lib" && name.is_empty()) {
        name.push(stem.to_owned());
    }
    if name.first().is_some_and(|first| declared_by_main.contains(first)) {
        name.insert(0, "main".to_owned());
    }
    name
}

/// The module whose file defines what a path names. `seen` are the paths that were followed to here: modules may import
/// all of each other.
fn defining(
    modules: &BTreeMap<Vec<String>, Module>,
    path: &[String],
    seen: &mut BTreeSet<Vec<String>>,
) -> Option<Vec<String>> {
    let length = (0..=path.len()).rev().find(|length| modules.contains_key(&path[..*length]))?;
    let (name, rest) = path.split_at(length);
    let module = &modules[name];
    let Some(item) = rest.first() else { return Some(name.to_vec()) };
    if module.defines.contains(item) || !seen.insert(path.to_vec()) {
        return Some(name.to_vec());
    }
    if let Some(import) = module.imports.get(item) {
        let full: Vec<String> = import.target.iter().chain(&rest[1..]).cloned().collect();
        return defining(modules, &full, seen);
    }
    for glob in &module.globs {
        let full: Vec<String> = glob.iter().chain(rest).cloned().collect();
        let target = defining(modules, &full, seen);
        if target.as_ref().is_some_and(|target| modules[target].defines.contains(item)) {
            return target;
        }
    }
    Some(name.to_vec())
}

/// A word or a sign of the source, and its line.
type Token = (String, usize);

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Cuts source text into words and signs (`::` is one), without comments and literals, and without test modules.
fn tokens(text: &str) -> Vec<Token> {
    let mut found: Vec<Token> = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first.is_alphabetic() || first == '_' {
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            match raw_string(rest) {
                Some(length) => length,
                None => {
                    found.push((rest[..word].to_owned(), line));
                    word
                }
            }
        } else if first == '"' {
            quoted(rest, '"')
        } else if first == '\'' {
            // A character, or the name of a lifetime.
            let closes = rest[1..].starts_with('\\') || rest.chars().nth(2) == Some('\'');
            if closes { quoted(rest, '\'') } else { 1 }
        } else if rest.starts_with("::") {
            found.push(("::".to_owned(), line));
            2
        } else {
            if !first.is_whitespace() {
                found.push((first.to_string(), line));
            }
            first.len_utf8()
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    without_test_modules(found)
}

/// Length of `r"..."`, `br#"..."#` and the like at the beginning of a text.
fn raw_string(text: &str) -> Option<usize> {
    let start = ["r", "br", "cr"].iter().find_map(|prefix| text.strip_prefix(prefix))?;
    let body = start.trim_start_matches('#');
    let hashes = &start[..start.len() - body.len()];
    let body = body.strip_prefix('"')?;
    let end = format!("\"{hashes}");
    Some(text.len() - body.len() + body.find(&end)? + end.len())
}

/// Length of a literal that begins here and ends with `quote`.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn without_test_modules(tokens: Vec<Token>) -> Vec<Token> {
    const HEAD: [&str; 8] = ["#", "[", "cfg", "(", "test", ")", "]", "mod"];
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let is_test = tokens[at..].len() > 9 && HEAD.iter().zip(&tokens[at..]).all(|(want, (have, _))| want == have);
        if !is_test {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        // Past the name: a body, or a file of its own.
        at += HEAD.len() + 1;
        let mut depth = 0;
        loop {
            match tokens.get(at).map(|(token, _)| token.as_str()) {
                Some("{") => depth += 1,
                Some("}") => depth -= 1,
                None => break,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                break;
            }
        }
    }
    kept
}

/// Names of modules declared as `mod name;`.
fn children(tokens: &[Token]) -> BTreeSet<String> {
    let declared = tokens.windows(3).filter(|t| t[0].0 == "mod" && t[2].0 == ";");
    declared.map(|t| t[1].0.clone()).collect()
}

impl Module {
    fn read(path: &Path, name: &[String], tokens: &[Token]) -> Module {
        let mut module = Module { path: path.to_owned(), children: children(tokens), ..Module::default() };
        let text = |at: usize| tokens.get(at).map_or("", |(token, _)| token.as_str());
        // Where `crate::` begins: what main.rs declares is another crate than the library.
        let root = usize::from(name.first().is_some_and(|first| first == "main"));
        // Inline modules that are open here, and the depth of their bodies.
        let mut inline: Vec<(String, usize)> = Vec::new();
        let mut depth = 0usize;
        let mut words_used: BTreeMap<&str, usize> = BTreeMap::new();
        let mut at = 0;
        while at < tokens.len() {
            let (token, line) = (text(at), tokens[at].1);
            match token {
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    inline.retain(|(_, opened)| *opened <= depth);
                }
                "struct" | "enum" | "union" | "fn" | "trait" | "const" | "static" | "type" if is_word(text(at + 1)) => {
                    module.defines.insert(text(at + 1).to_owned());
                }
                "macro_rules" => {
                    module.defines.insert(text(at + 2).to_owned());
                }
                "mod" if text(at + 2) == "{" => inline.push((text(at + 1).to_owned(), depth + 1)),
                _ => {}
            }
            let is_use = token == "use";
            let begins = is_word(token) && text(at + 1) == "::" && (at == 0 || !matches!(text(at - 1), "::" | "."));
            let known = matches!(token, "crate" | "super" | "self") || module.children.contains(token);
            if !(is_use || begins && known) {
                if is_word(token) {
                    *words_used.entry(token).or_default() += 1;
                }
                at += 1;
                continue;
            }
            let here: Vec<String> = name.iter().cloned().chain(inline.iter().map(|(name, _)| name.clone())).collect();
            let mut leaves = Vec::new();
            let end = tree(tokens, at + usize::from(is_use), &mut Vec::new(), &mut leaves);
            // `pub use` and `pub(crate) use`, but not a `use` that is private.
            let handed_on = is_use && at > 0 && matches!(text(at - 1), "pub" | ")");
            for (path, alias) in leaves {
                let Some(target) = absolute(&path, &here, root, &module) else { continue };
                if !is_use {
                    module.paths.push((target, line));
                } else if target.last().is_some_and(|last| last == "*") {
                    let target = target[..target.len() - 1].to_vec();
                    if !handed_on {
                        module.paths.push((target.clone(), line));
                    }
                    module.globs.push(target);
                } else {
                    module.imports.insert(alias, Import { target, line, handed_on, used: false });
                }
            }
            at = end.max(at + 1);
        }
        for (alias, import) in &mut module.imports {
            import.used = words_used.contains_key(alias.as_str());
        }
        module
    }
}

/// The paths of a tree like `a::{b, c::d as e}`, each with its name here. Gives where the tree ends.
fn tree(tokens: &[Token], mut at: usize, prefix: &mut Vec<String>, leaves: &mut Vec<(Vec<String>, String)>) -> usize {
    let text = |at: usize| tokens.get(at).map_or("", |(token, _)| token.as_str());
    let length = prefix.len();
    loop {
        match text(at) {
            "{" => {
                at += 1;
                while !matches!(text(at), "}" | "") {
                    at = if text(at) == "," { at + 1 } else { tree(tokens, at, prefix, leaves).max(at + 1) };
                }
                at += 1;
                break;
            }
            token if is_word(token) || token == "*" => {
                // `{self, X}` names the module itself.
                if token != "self" || prefix.is_empty() {
                    prefix.push(token.to_owned());
                }
                at += 1;
                if text(at) == "::" && (is_word(text(at + 1)) || matches!(text(at + 1), "{" | "*")) {
                    at += 1;
                    continue;
                }
                let mut alias = prefix.last().cloned().unwrap_or_default();
                if text(at) == "as" {
                    alias = text(at + 1).to_owned();
                    at += 2;
                }
                leaves.push((prefix.clone(), alias));
                break;
            }
            _ => break,
        }
    }
    prefix.truncate(length);
    at
}

/// A path as seen from the root of the crate; `None` for paths into other crates.
fn absolute(path: &[String], here: &[String], root: usize, module: &Module) -> Option<Vec<String>> {
    let first = path.first()?;
    let mut base = match first.as_str() {
        "crate" => return Some(here[..root.min(here.len())].iter().chain(&path[1..]).cloned().collect()),
        "self" | "super" => here.to_vec(),
        name if module.children.contains(name) => return Some(here.iter().chain(path).cloned().collect()),
        _ => return None,
    };
    let mut rest = path;
    while let Some((first, more)) = rest.split_first() {
        match first.as_str() {
            "self" => {}
            "super" => drop(base.pop()),
            _ => break,
        }
        rest = more;
    }
    Some(base.into_iter().chain(rest.iter().cloned()).collect())
}
