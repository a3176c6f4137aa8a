//! Roots: what keeps an object alive from outside of the heap.

use std::sync::Arc;

/// Bits of `gc_root.root_flags`.
const PINNED: u32 = 1;
const WEAK: u32 = 2;
const INTERIOR: u32 = 4;
const REFERENCE_COUNTED: u32 = 8;
/// The flag of a thread's static field; the same place means another thing for other roots.
const THREAD_STATIC: u32 = 1;

/// A root, which keeps an object alive from outside of the heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The object, a node of the graph.
    pub node: u32,
    /// `stack`, `handle`, `static` and so on: `gc_root.root_kind`.
    pub kind: Arc<str>,
    /// Bits of `gc_root.root_flags`.
    pub flags: u32,
    /// Address of the handle, or the method of a stack; 0 when there is none.
    pub id: u64,
    /// Name of a static field, or of the method whose frame holds the object, when it is recorded.
    pub name: Option<Arc<str>>,
}

impl Root {
    /// Whether a root of this kind keeps its object alive: a weak handle does not.
    pub(super) fn is_strong(kind: &str, flags: u32) -> bool {
        kind == "static" || flags & WEAK == 0
    }

    /// Of several roots of an object the least is shown: names say more than addresses.
    pub(super) fn rank(&self) -> u8 {
        match (&*self.kind, self.name.is_some()) {
            ("static", true) => 0,
            ("stack", true) => 1,
            ("com", _) => 2,
            ("handle" | "sized_ref", _) => 3,
            ("finalizer", _) => 4,
            ("static" | "stack", false) => 5,
            _ => 6,
        }
    }

    /// The root in words: `static field Cache.items`, `pinned handle 0x7f12`.
    pub fn describe(&self) -> String {
        let name = self.name.as_deref();
        let id = || if self.id == 0 { String::new() } else { format!(" {:#x}", self.id) };
        match &*self.kind {
            "static" => {
                let kind = if self.flags & THREAD_STATIC != 0 { "thread-static field" } else { "static field" };
                name.map_or_else(|| kind.to_owned(), |name| format!("{kind} {name}"))
            }
            "stack" => {
                let interior = if self.flags & INTERIOR != 0 { ", inside of the object" } else { "" };
                match name {
                    Some(name) => format!("stack of {name}{interior}"),
                    None => format!("stack{interior}"),
                }
            }
            "com" => format!("COM object{}", id()),
            "finalizer" => "finalizer queue".into(),
            "older_generation" => "older generation".into(),
            "dependent_handle" => format!("dependent handle{}", id()),
            "sized_ref" => format!("sized handle{}", id()),
            "handle" => {
                let kind = match self.flags {
                    flags if flags & PINNED != 0 => "pinned handle",
                    flags if flags & REFERENCE_COUNTED != 0 => "reference counted handle",
                    _ => "handle",
                };
                format!("{kind}{}", id())
            }
            other => format!("root ({}){}", name.unwrap_or(other), id()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_named_as_far_as_they_are_told() {
        let root = |kind: &str, flags, id, name: Option<&str>| {
            Root { node: 0, kind: kind.into(), flags, id, name: name.map(Into::into) }.describe()
        };
        assert_eq!(root("static", 0, 0, Some("App.Cache.items")), "static field App.Cache.items");
        assert_eq!(root("static", 1, 0, Some("App.Cache.items")), "thread-static field App.Cache.items");
        assert_eq!(root("handle", 1, 0x7f12, None), "pinned handle 0x7f12");
        assert_eq!(root("stack", 4, 9, Some("App.Run")), "stack of App.Run, inside of the object");
        assert!(Root::is_strong("static", 2) && Root::is_strong("handle", 1) && !Root::is_strong("handle", 2));
    }
}
