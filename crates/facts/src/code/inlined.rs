//! Whose call an address in optimized code is. The compiler puts small methods into their callers, and then stacks have the caller alone.
//!
//! Code that is not optimized shows the truth while the program is young: the caller (the host), the method within it, and what that
//! method calls or allocates (a sign). Later the host alone stands above the same sign. Each address in its code belongs to one call or
//! allocation, so that what is found out holds for the address. Nothing is said where more than one method comes into question, the
//! host itself among them, or where the compiler's own word ([`Inlinings`]) is against it. Then the frame has all that come into question: the
//! methods that the compiler put into the host, as far as stacks of the recording have them at all. Where it says at which statement an
//! address is, and stacks of plain code show all statements at which a method is called, the method is at these alone.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry;

use tracequet_trace::map::{Map, Set};

use super::inlinings::{Inlinings, MethodKey};
use super::nodes::{Allocated, Node};
use crate::fact::CallsiteId;

/// Frames between a host and the method within it, and between that and a sign, at most.
const REACH: usize = 16;

/// Pairs of host and sign that are remembered, ways from one to the other, and bytes of names.
const MOST_PAIRS: usize = 1 << 18;
const MOST_WAYS: usize = 6;
const MOST_TEXT: usize = 16 << 20;

/// Methods in a list of those that an address may belong to, and bytes of their names.
const MOST_NAMES: usize = 8;
const MOST_NAME_BYTES: usize = 1 << 10;

/// Statements with a call that are remembered, by pairs of caller and callee, and those of a pair.
const MOST_CALLS: usize = 1 << 18;
const MOST_STATEMENTS: usize = 64;

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
    /// The statement that the address is in, by its offset in the IL.
    pub il_offset: Option<u32>,
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

/// The methods of the user through which a host gets to a sign: the first one that it calls, and the last one. Both are the host where it
/// does so directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    first: u32,
    last: u32,
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
    /// The ways of a host to a sign.
    through: Map<(u32, Sign), Vec<Way>>,
    /// Hosts whose optimized code calls a method.
    called: Set<(u32, u32)>,
    own: Map<u32, Own>,
    /// The groups of methods of the user by their keys.
    groups: Map<MethodKey, u32>,
    /// The statements of a method, by their offsets in the IL, at which it calls another one.
    statements: Map<(MethodKey, MethodKey), Vec<u32>>,
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

/// The method that an address belongs to, by the group of its frames, where that is not surely the one whose code it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Belongs {
    /// Another one, which was put there.
    To(u32),
    /// The one whose code it is, or one of these.
    ToOneOf(Vec<u32>),
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
            self.groups.entry(look.method).or_insert(look.group);
            self.own.insert(look.group, Own { written: written.into(), method: look.method });
        }
    }

    /// The name of a method as it was written.
    pub fn written(&self, group: u32) -> Option<&str> {
        self.own.get(&group).map(|own| &*own.written)
    }

    /// The names of methods as they were written, in their order and without one of them; `None` where there is no other. Of many the
    /// first ones.
    pub fn list(&self, groups: &[u32], but: &str) -> Option<String> {
        let names = groups.iter().filter_map(|group| self.written(*group)).filter(|name| *name != but);
        let names: BTreeSet<&str> = names.collect();
        let mut text = String::new();
        for (at, name) in names.iter().enumerate() {
            if at >= MOST_NAMES || text.len() + name.len() > MOST_NAME_BYTES {
                text.push_str(", ...");
                break;
            }
            text.extend([if at > 0 { ", " } else { "" }, name]);
        }
        (!text.is_empty()).then_some(text)
    }

    /// Groups begin again.
    pub fn clear(&mut self) {
        *self = Inlined::default();
    }

    /// The methods that addresses belong to, by the place and address of a frame, where these are not surely its own. What earlier parts
    /// say counts, too.
    pub fn find(
        &mut self,
        part: Part<'_>,
        allocations: &[Allocated],
        inlinings: &Inlinings,
    ) -> Map<(u32, u64), Belongs> {
        for look in part.looks.iter().filter(|look| look.code.is_host()) {
            let group = look.group as usize;
            if self.hosts.len() <= group {
                self.hosts.resize(group + 1, false);
            }
            self.hosts.get_mut(group).into_iter().for_each(|is_host| *is_host = true);
        }
        if self.hosts.is_empty() || self.own.is_empty() {
            return Map::default();
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
        self.learn_statements(part);
        for (node, look) in part.nodes.iter().zip(part.looks).filter(|(_, look)| look.is_own) {
            let above = part.outwards(node.parent).take(REACH).filter(|(_, host)| host.code.is_host());
            self.called.extend(above.map(|(_, host)| (host.group, look.group)).take(MOST_WAYS));
        }
        let mut votes: Map<(u32, u64), (u32, Vote)> = Map::default();
        all(part, &mut |site, sign| {
            // An allocation says something of each frame up to the nearest method of the user, a call of the one that it is in.
            let most = if matches!(sign, Sign::Type(..)) { REACH } else { 1 };
            for (steps, (at, host)) in part.outwards(site).take(most).enumerate() {
                let vote = if host.code.is_host() { self.vote(host, sign, inlinings) } else { None };
                if let (Some(group), Some(node)) = (vote, part.nodes.get(at)) {
                    // A method that a nearer frame calls is not in the code of the callers of that frame.
                    let mut nearer = part.outwards(site).take(steps);
                    let is_below =
                        group != host.group && nearer.any(|(_, look)| self.gets_through(look.group, sign, group));
                    let vote = if is_below { Vote::Contradicted } else { Vote::One(group) };
                    let (_, known) = votes.entry((node.place, node.address)).or_insert((host.group, vote));
                    *known = if *known == vote { *known } else { Vote::Contradicted };
                }
                if host.is_own {
                    break;
                }
            }
        });
        let mut within: Map<MethodKey, Vec<u32>> = Map::default();
        let mut found = Map::default();
        for (node, look) in part.nodes.iter().zip(part.looks).filter(|(_, look)| look.code.is_host()) {
            let key = (node.place, node.address);
            match votes.get(&key) {
                _ if found.contains_key(&key) => {}
                Some((host, Vote::One(group))) if group == host || !self.own.contains_key(group) => {}
                Some((_, Vote::One(group))) => drop(found.insert(key, Belongs::To(*group))),
                _ => {
                    let all = within.entry(look.method).or_insert_with(|| self.within(*look, inlinings));
                    let may_be = |group: &u32| self.may_be(*look, *group, inlinings);
                    let possible: Vec<u32> = all.iter().copied().filter(may_be).collect();
                    if !possible.is_empty() {
                        found.insert(key, Belongs::ToOneOf(possible));
                    }
                }
            }
        }
        found
    }

    /// The other methods of the user that the compiler put into one, and that stacks have.
    fn within(&self, host: Look, inlinings: &Inlinings) -> Vec<u32> {
        let all = inlinings.within(host.method);
        all.iter().filter_map(|method| self.groups.get(method).copied()).filter(|group| *group != host.group).collect()
    }

    /// Whether a method that is in the code of another one may be at a statement of it.
    fn may_be(&self, host: Look, group: u32, inlinings: &Inlinings) -> bool {
        let (Some(at), Some(own)) = (host.il_offset, self.own.get(&group)) else { return true };
        let ways = inlinings.ways(host.method, own.method);
        let may_lead = |(callee, places): &(MethodKey, u32)| {
            let known = self.statements.get(&(host.method, *callee)).map(Vec::as_slice).unwrap_or_default();
            known.contains(&at) || known.len() < *places as usize
        };
        ways.is_empty() || ways.iter().any(may_lead)
    }

    /// The statements at which plain code calls methods.
    fn learn_statements(&mut self, part: Part<'_>) {
        for (node, look) in part.nodes.iter().zip(part.looks).filter(|(_, look)| look.is_method()) {
            let caller =
                part.index(node.parent).and_then(|at| part.looks.get(at)).filter(|look| look.code == Code::Plain);
            let Some((caller, at)) = caller.and_then(|caller| Some((caller.method, caller.il_offset?))) else {
                continue;
            };
            let is_full = self.statements.len() >= MOST_CALLS;
            let Some(known) = (match self.statements.entry((caller, look.method)) {
                Entry::Occupied(known) => Some(known.into_mut()),
                Entry::Vacant(new) => (!is_full).then(|| new.insert(Vec::new())),
            }) else {
                continue;
            };
            if known.len() < MOST_STATEMENTS && !known.contains(&at) {
                known.push(at);
            }
        }
    }

    /// A sign below a call site: through which method of the user the hosts above it get there.
    fn learn(&mut self, part: Part<'_>, site: CallsiteId, sign: Sign) {
        let mut way: Option<Way> = None;
        for (steps, (_, look)) in part.outwards(site).enumerate() {
            if steps >= REACH * 2 || (way.is_none() && steps >= REACH) {
                return;
            }
            match &mut way {
                Some(way) => {
                    self.leads(look.group, sign, *way);
                    way.first = if look.is_own { look.group } else { way.first };
                }
                None if look.is_own => {
                    // Optimized code may hide methods: what is seen below is not surely its own.
                    if look.code != Code::Plain {
                        return;
                    }
                    let direct = Way { first: look.group, last: look.group };
                    self.leads(look.group, sign, direct);
                    way = Some(direct);
                }
                // Of the framework's code, precompiled code hides no method of the user.
                None if matches!(look.code, Code::Plain | Code::Precompiled) => {
                    self.leads(look.group, sign, Way { first: NO_USER_METHOD, last: NO_USER_METHOD });
                }
                None => {}
            }
        }
    }

    fn leads(&mut self, host: u32, sign: Sign, way: Way) {
        if !self.hosts.get(host as usize).copied().unwrap_or_default() {
            return;
        }
        let is_full = self.through.len() >= MOST_PAIRS;
        let ways = match self.through.entry((host, sign)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if is_full => return,
            Entry::Vacant(new) => new.insert(Vec::new()),
        };
        if !ways.contains(&way) && ways.len() < MOST_WAYS {
            ways.push(way);
        }
    }

    /// Whether a host gets to a sign through this method.
    fn gets_through(&self, host: u32, sign: Sign, method: u32) -> bool {
        let ways = self.through.get(&(host, sign));
        ways.is_some_and(|ways| ways.iter().any(|way| way.first == method || way.last == method))
    }

    /// The method through which a host gets to a sign, where there is but one; it may be the host itself. Of several that all are called by
    /// way of one method that method, which is there in any case.
    fn vote(&self, host: Look, sign: Sign, inlinings: &Inlinings) -> Option<u32> {
        let ways = self.through.get(&(host.group, sign)).filter(|ways| ways.len() < MOST_WAYS)?;
        let may_be = |group: u32| {
            let Some(own) = self.own.get(&group).filter(|_| group != host.group) else { return true };
            let is_inlined = inlinings.has((host.method, host.is_new), own.method);
            is_inlined.unwrap_or_else(|| !self.called.contains(&(host.group, group)))
        };
        let possible: Vec<&Way> = ways.iter().filter(|way| may_be(way.last)).collect();
        let Way { first, last } = **possible.first()?;
        if possible.iter().all(|way| way.last == last) {
            return Some(last);
        }
        let is_on_all = possible.iter().all(|way| way.first == first) && first != NO_USER_METHOD;
        (is_on_all && first != host.group && may_be(first)).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack of frames, each a letter and the kind of its code: `X+` optimized, `X++` the same at another address, `x` of the framework
    /// and precompiled, `X` plain. `X@5` is at the statement 5.
    #[derive(Default)]
    struct Made {
        /// Whether methods that come into question are found, or those that are sure.
        asks_for_possible: bool,
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
                let code = match (frame.contains('+'), is_own) {
                    (true, _) => Code::Optimized,
                    (false, true) => Code::Plain,
                    (false, false) => Code::Precompiled,
                };
                let address = u64::from(letter) << 8 | frame.bytes().map(u64::from).sum::<u64>() & 0xFF;
                self.nodes.push(Node { parent, place: 0, address, first_ns: 0, depth: depth as u32 });
                let group = group(letter);
                let il_offset = frame.split_once('@').map(|(_, at)| at.parse().unwrap());
                self.looks.push(Look { group, method: group.into(), is_own, code, is_new: false, il_offset });
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
            let found = inlined.find(part, &self.allocations, inlinings).into_iter();
            let letter = |group| inlined.written(group).unwrap().chars().next().unwrap();
            let mut found: Vec<_> = found
                .flat_map(|((_, address), belongs)| {
                    let methods = match belongs {
                        Belongs::To(group) if !self.asks_for_possible => vec![group],
                        Belongs::ToOneOf(groups) if self.asks_for_possible => groups,
                        _ => Vec::new(),
                    };
                    methods.into_iter().map(move |group| ((address >> 8) as u8 as char, letter(group)))
                })
                .collect();
            found.sort_unstable();
            found.dedup();
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
    fn of_several_below_one_method_it_is_that_one() {
        let mut made = Made::default();
        made.stack("w X Y t Z u");
        made.stack("w X Y t u");
        made.stack("w X+ u");
        let both = [(b'X', b'Y'), (b'X', b'Z')];
        assert_eq!(made.found(&inlinings(&both)), [('X', 'Y')], "Z is called by way of Y");
        made.stack("w X V u");
        assert_eq!(
            made.found(&inlinings(&[both.as_slice(), &[(b'X', b'V')]].concat())),
            [],
            "V comes into question, too"
        );
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
    fn a_method_is_in_the_code_of_the_framework_that_calls_it_alone() {
        let mut made = Made::default();
        let (plain, optimized) = (made.stack("w r s Y"), made.stack("w r+ s+"));
        made.allocations = vec![(plain, 7, 1), (optimized, 7, 1)];
        assert_eq!(made.found(&inlinings(&[(b'r', b'Y'), (b's', b'Y')])), [('s', 'Y')]);
    }

    #[test]
    fn what_the_compiler_put_into_the_code_comes_into_question() {
        let mut made = Made { asks_for_possible: true, ..Made::default() };
        // Y and Z are called at one statement each, U by Z.
        made.stack("w X@1 Y");
        made.stack("w X@5 Z U");
        made.stack("w X+@5");
        let all = [(b'X', b'Y'), (b'X', b'Z'), (b'X', b'V')];
        assert_eq!(made.found(&inlinings(&[])), [], "the events do not say");
        assert_eq!(made.found(&inlinings(&all)), [('X', 'Z')], "Y is at the other statement, and V on no stack");
        let twice = [all.as_slice(), &[(b'X', b'Y')]].concat();
        assert_eq!(
            made.found(&inlinings(&twice)),
            [('X', 'Y'), ('X', 'Z')],
            "one call of Y is at an unknown statement"
        );
        // Z was put into the code, and U into what was there of it.
        let deep = |turns: u32| {
            let key = |letter| MethodKey::from(group(letter));
            let mut inlinings = Inlinings::default();
            for _ in 0..turns {
                inlinings.begins(key(b'X'));
                for (caller, callee) in [(b'X', b'Y'), (b'X', b'Z'), (b'Z', b'U')] {
                    inlinings.inlined(key(b'X'), (key(caller), key(callee)));
                }
            }
            inlinings
        };
        assert_eq!(made.found(&deep(1)), [('X', 'U'), ('X', 'Z')]);
        assert_eq!(made.found(&deep(2)), [('X', 'U'), ('X', 'Z')], "compiled again, the calls are the same");
        made.stack("w X+@9");
        assert_eq!(made.found(&deep(1)), [('X', 'U'), ('X', 'Z')], "the other statement has none of them");
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
