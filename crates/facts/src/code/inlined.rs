//! Whose call an address in optimized code is. The compiler puts small methods into their callers, and then stacks have the caller alone.
//!
//! Code that is not optimized shows the truth while the program is young: the caller (the host), the method within it, and what that
//! method calls or allocates (a sign). Later the host alone stands above the same sign. Each address in its code belongs to one call or
//! allocation, so that what is found out holds for the address. Nothing is said where more than one method comes into question, the
//! host itself among them, or where the compiler's own word ([`Inlinings`]) is against it.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use super::inlinings::{Inlinings, MethodKey};
use super::nodes::{Allocated, Node};
use crate::fact::CallsiteId;

/// Frames between a host and the method within it, and between that and a sign, at most.
const REACH: usize = 16;

/// Pairs of host and sign that are remembered, methods of each, and bytes of names.
const MOST_PAIRS: usize = 1 << 18;
const MOST_METHODS: usize = 4;
const MOST_TEXT: usize = 16 << 20;

/// No method of the user.
const NO_USER_METHOD: u32 = u32::MAX;

/// How far the code of a frame can hide methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Code {
    /// Not code of a method, or it is not known.
    #[default]
    Other,
    /// As it was written: each call is one.
    Plain,
    /// Compiled ahead of time: it may hide methods of its own assembly.
    Precompiled,
    /// Optimized while the program ran: it may hide any.
    Optimized,
}

impl Code {
    /// By the column `tier` of a method.
    pub fn of_tier(tier: Option<&str>) -> Code {
        match tier {
            Some("ReadyToRun") => Code::Precompiled,
            Some(tier) if tier.starts_with("Optimized") => Code::Optimized,
            Some("QuickJitted" | "QuickJittedInstrumented" | "MinOptJitted") => Code::Plain,
            _ => Code::Other,
        }
    }

    fn is_host(self) -> bool {
        matches!(self, Code::Precompiled | Code::Optimized)
    }
}

/// What is known of a frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// That of all frames of the same name.
    pub group: u32,
    /// The same for all versions and types.
    pub method: MethodKey,
    /// Whether it is a method of the user.
    pub is_own: bool,
    /// What code it is.
    pub code: Code,
    /// Whether the code was made while it was recorded.
    pub is_new: bool,
}

impl Look {
    fn is_method(self) -> bool {
        self.code != Code::Other
    }
}

/// What is seen below a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Sign {
    /// A method, by its group.
    Callee(u32),
    /// An allocation of a type of a process.
    Type(u64, u64),
}

/// A method of the user.
#[derive(Debug)]
struct Own {
    written: Box<str>,
    method: MethodKey,
}

/// What the stacks of a recording say of methods within others.
#[derive(Debug, Default)]
pub struct Inlined {
    /// The methods through which a host gets to a sign; the host itself where it does so directly.
    through: HashMap<(u32, Sign), Vec<u32>, RandomState>,
    /// Hosts whose optimized code calls a method.
    called: HashSet<(u32, u32), RandomState>,
    own: HashMap<u32, Own, RandomState>,
    text_bytes: usize,
    /// By group, whether there is code that may hide methods.
    hosts: Vec<bool>,
}

/// The frames of a part of the call stacks.
#[derive(Clone, Copy)]
pub struct Part<'p> {
    /// The call sites.
    pub nodes: &'p [Node],
    /// The number before the first one's.
    pub base: CallsiteId,
    /// Their frames.
    pub looks: &'p [Look],
}

impl<'p> Part<'p> {
    fn index(self, site: CallsiteId) -> Option<usize> {
        Some(site.checked_sub(self.base)?.checked_sub(1)? as usize).filter(|at| *at < self.nodes.len())
    }

    /// The frames from a call site outwards, with their places.
    fn outwards(self, from: CallsiteId) -> impl Iterator<Item = (usize, Look)> + 'p {
        let mut next = self.index(from);
        std::iter::from_fn(move || {
            let at = next?;
            next = self.index(self.nodes.get(at)?.parent);
            Some((at, self.looks.get(at).copied().unwrap_or_default()))
        })
    }
}

/// What is said of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vote {
    One(u32),
    Contradicted,
}

impl Inlined {
    /// A method of the user, by the group of its frames.
    pub fn own_method(&mut self, look: Look, written: &str) {
        if self.text_bytes + written.len() <= MOST_TEXT && !self.own.contains_key(&look.group) {
            self.text_bytes += written.len();
            self.own.insert(look.group, Own { written: written.into(), method: look.method });
        }
    }

    /// The name of a method as it was written.
    pub fn written(&self, group: u32) -> Option<&str> {
        self.own.get(&group).map(|own| &*own.written)
    }

    /// Groups begin again.
    pub fn clear(&mut self) {
        *self = Inlined::default();
    }

    /// The methods that addresses belong to, by the place and address of a frame: those that are not its own. What earlier parts say counts, too.
    pub fn find(
        &mut self,
        part: Part<'_>,
        allocations: &[Allocated],
        inlinings: &Inlinings,
    ) -> HashMap<(u32, u64), u32, RandomState> {
        for look in part.looks.iter().filter(|look| look.code.is_host()) {
            let group = look.group as usize;
            if self.hosts.len() <= group {
                self.hosts.resize(group + 1, false);
            }
            self.hosts.get_mut(group).into_iter().for_each(|is_host| *is_host = true);
        }
        if self.hosts.is_empty() || self.own.is_empty() {
            return HashMap::default();
        }
        let all = |part: Part<'_>, take: &mut dyn FnMut(CallsiteId, Sign)| {
            for (node, look) in part.nodes.iter().zip(part.looks).filter(|(_, look)| look.is_method()) {
                take(node.parent, Sign::Callee(look.group));
            }
            for (site, process, type_id) in allocations {
                take(*site, Sign::Type(*process, *type_id));
            }
        };
        all(part, &mut |site, sign| self.learn(part, site, sign));
        for (node, look) in part.nodes.iter().zip(part.looks).filter(|(_, look)| look.is_own) {
            let above = part.outwards(node.parent).take(REACH).filter(|(_, host)| host.code.is_host());
            self.called.extend(above.map(|(_, host)| (host.group, look.group)).take(MOST_METHODS));
        }
        let mut votes: HashMap<(u32, u64), (u32, Vote), RandomState> = HashMap::default();
        all(part, &mut |site, sign| {
            // An allocation says something of each frame up to the nearest method of the user, a call of the one that it is in.
            let most = if matches!(sign, Sign::Type(..)) { REACH } else { 1 };
            for (at, host) in part.outwards(site).take(most) {
                let vote = if host.code.is_host() { self.vote(host, sign, inlinings) } else { None };
                if let (Some(group), Some(node)) = (vote, part.nodes.get(at)) {
                    let (_, known) = votes.entry((node.place, node.address)).or_insert((host.group, Vote::One(group)));
                    *known = if *known == Vote::One(group) { *known } else { Vote::Contradicted };
                }
                if host.is_own {
                    break;
                }
            }
        });
        let other = |(key, (host, vote))| match vote {
            Vote::One(group) if group != host && self.own.contains_key(&group) => Some((key, group)),
            _ => None,
        };
        votes.into_iter().filter_map(other).collect()
    }

    /// A sign below a call site: through which method of the user the hosts above it get there.
    fn learn(&mut self, part: Part<'_>, site: CallsiteId, sign: Sign) {
        let mut own: Option<Look> = None;
        for (steps, (_, look)) in part.outwards(site).enumerate() {
            if steps >= REACH * 2 || (own.is_none() && steps >= REACH) {
                return;
            }
            match own {
                Some(own) => self.leads(look.group, sign, own.group),
                None if look.is_own => {
                    // Optimized code may hide methods: what is seen below is not surely its own.
                    if look.code != Code::Plain {
                        return;
                    }
                    self.leads(look.group, sign, look.group);
                    own = Some(look);
                }
                // Of the framework's code, precompiled code hides no method of the user.
                None if matches!(look.code, Code::Plain | Code::Precompiled) => {
                    self.leads(look.group, sign, NO_USER_METHOD)
                }
                None => {}
            }
        }
    }

    fn leads(&mut self, host: u32, sign: Sign, method: u32) {
        if !self.hosts.get(host as usize).copied().unwrap_or_default() {
            return;
        }
        let is_full = self.through.len() >= MOST_PAIRS;
        let methods = match self.through.entry((host, sign)) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(_) if is_full => return,
            std::collections::hash_map::Entry::Vacant(new) => new.insert(Vec::new()),
        };
        if !methods.contains(&method) && methods.len() < MOST_METHODS {
            methods.push(method);
        }
    }

    /// The method through which a host gets to a sign, where there is but one; it may be the host itself.
    fn vote(&self, host: Look, sign: Sign, inlinings: &Inlinings) -> Option<u32> {
        let methods = self.through.get(&(host.group, sign)).filter(|methods| methods.len() < MOST_METHODS)?;
        let may_be = |group: &&u32| {
            let Some(own) = self.own.get(*group).filter(|_| **group != host.group) else { return true };
            let is_inlined = inlinings.has((host.method, host.is_new), own.method);
            is_inlined.unwrap_or_else(|| !self.called.contains(&(host.group, **group)))
        };
        let mut possible = methods.iter().filter(may_be);
        let first = possible.next()?;
        possible.next().is_none().then_some(*first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack of frames, each a letter and the kind of its code: `X+` optimized, `X++` the same at another address, `x` of the framework
    /// and precompiled, `X` plain.
    #[derive(Default)]
    struct Made {
        nodes: Vec<Node>,
        looks: Vec<Look>,
        allocations: Vec<Allocated>,
    }

    fn group(letter: u8) -> u32 {
        u32::from(letter.to_ascii_lowercase() - b'a')
    }

    impl Made {
        fn stack(&mut self, frames: &str) -> CallsiteId {
            let mut parent = 0;
            for (depth, frame) in frames.split(' ').enumerate() {
                let letter = frame.as_bytes()[0];
                let is_own = letter.is_ascii_uppercase();
                let code = match (frame.ends_with('+'), is_own) {
                    (true, _) => Code::Optimized,
                    (false, true) => Code::Plain,
                    (false, false) => Code::Precompiled,
                };
                let address = u64::from(letter) << 8 | frame.len() as u64;
                self.nodes.push(Node { parent, place: 0, address, first_ns: 0, depth: depth as u32 });
                let group = group(letter);
                self.looks.push(Look { group, method: group.into(), is_own, code, is_new: false });
                parent = self.nodes.len() as u32;
            }
            parent
        }

        fn found(&self, inlinings: &Inlinings) -> Vec<(char, char)> {
            let mut inlined = Inlined::default();
            for look in self.looks.iter().filter(|look| look.is_own) {
                inlined.own_method(*look, &char::from(b'A' + look.group as u8).to_string());
            }
            let part = Part { nodes: &self.nodes, base: 0, looks: &self.looks };
            let mut found: Vec<_> = inlined
                .find(part, &self.allocations, inlinings)
                .into_iter()
                .map(|((_, address), group)| {
                    ((address >> 8) as u8 as char, inlined.written(group).unwrap().chars().next().unwrap())
                })
                .collect();
            found.sort_unstable();
            found
        }
    }

    fn inlinings(pairs: &[(u8, u8)]) -> Inlinings {
        Inlinings::of(pairs.iter().map(|(host, method)| (group(*host).into(), group(*method).into())))
    }

    #[test]
    fn a_call_belongs_to_the_method_that_made_it_before() {
        let mut made = Made::default();
        made.stack("w X Y t u");
        made.stack("w X+ u");
        assert_eq!(made.found(&inlinings(&[])), [('X', 'Y')]);
        assert_eq!(made.found(&inlinings(&[(b'X', b'Y')])), [('X', 'Y')]);
        assert_eq!(made.found(&inlinings(&[(b'X', b'Z')])), [], "the compiler inlined another method there");
        assert_eq!(made.found(&inlinings(&[(b'Z', b'Y')])), [('X', 'Y')], "the events are about other code");
    }

    #[test]
    fn of_several_the_compiler_says_which_one_it_is() {
        let mut made = Made::default();
        made.stack("w X Y u");
        made.stack("w X Z u");
        made.stack("w X+ u");
        assert_eq!(made.found(&inlinings(&[])), [], "Y and Z are possible");
        assert_eq!(made.found(&inlinings(&[(b'X', b'Z')])), [('X', 'Z')]);
        made.stack("w X u");
        assert_eq!(made.found(&inlinings(&[(b'X', b'Z')])), [], "X itself is possible, too");
    }

    #[test]
    fn what_is_still_called_is_not_within() {
        let mut made = Made::default();
        made.stack("w X Y u");
        made.stack("w X++ Y u");
        made.stack("w X+ u");
        assert_eq!(made.found(&inlinings(&[])), []);
        assert_eq!(made.found(&inlinings(&[(b'X', b'Y')])), [('X', 'Y')], "the compiler inlined it at another call");
    }

    #[test]
    fn code_of_the_framework_may_hold_a_method_of_the_user() {
        let mut made = Made::default();
        made.stack("w s Y u");
        made.stack("w s+ u");
        assert_eq!(made.found(&inlinings(&[(b's', b'Y')])), [('s', 'Y')]);
        made.stack("w s u");
        assert_eq!(made.found(&inlinings(&[(b's', b'Y')])), [], "the framework calls it without Y, too");
    }

    #[test]
    fn allocations_are_told_apart_by_type() {
        let mut made = Made::default();
        let (plain, direct) = (made.stack("w X Y"), made.stack("w X"));
        let optimized = made.stack("w X+");
        made.allocations = vec![(plain, 7, 1), (direct, 7, 2), (optimized, 7, 1)];
        assert_eq!(made.found(&inlinings(&[])), [('X', 'Y')]);
        made.allocations.push((optimized, 7, 2));
        assert_eq!(made.found(&inlinings(&[])), [], "two methods allocate at the address");
        made.allocations = vec![(plain, 7, 1), (optimized, 8, 1)];
        assert_eq!(made.found(&inlinings(&[])), [], "a type of another process");
    }
}
