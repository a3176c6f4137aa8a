//! Which methods the compiler put into which, by its own word.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

use foldhash::quality::RandomState;

use crate::prelude::*;

/// Calls that are remembered (64 bytes each).
const MOST: usize = 1 << 20;

/// Calls within one method that are followed.
const MOST_FOLLOWED: usize = 1 << 12;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InliningsAction {
    /// A method was put into another one.
    Inlined,
    /// A method is compiled from now on.
    Begins,
}

/// A method by its type and name, whatever its arguments, types and process.
pub type MethodKey = u64;

/// Methods that were put into others. Events name each with the method that calls it and the one whose code it is in, however deep.
#[derive(Debug, Default)]
pub struct Inlinings {
    hasher: RandomState,
    /// The method that was compiled, and the one within it.
    pairs: HashSet<(MethodKey, MethodKey)>,
    compiled: HashMap<MethodKey, Compiled>,
    /// Calls of all of them.
    calls: usize,
    is_full: bool,
}

/// A method into which others were put.
#[derive(Debug, Default)]
struct Compiled {
    /// Caller and callee within the code, with how many calls were replaced.
    calls: HashMap<(MethodKey, MethodKey), Times>,
    /// The number of times that the method was compiled.
    turn: u32,
}

/// Calls that were replaced when the method was compiled: the last time, and the most.
#[derive(Debug, Default)]
struct Times {
    turn: u32,
    now: u32,
    most: u32,
}

impl Inlinings {
    /// The key of a method.
    pub fn key(&self, type_name: &str, method: &str) -> MethodKey {
        let part = |text: &str| text.find('[').unwrap_or(text.len());
        self.hasher.hash_one((type_name.get(..part(type_name)), method.get(..part(method))))
    }

    /// Whether a method is in the code of another one; `None` where the recording does not say. `is_new`: the code was made while it was
    /// recorded.
    pub fn has(&self, (host, is_new): (MethodKey, bool), method: MethodKey) -> Option<bool> {
        let is_recorded = !self.pairs.is_empty() && !self.is_full && (is_new || self.compiled.contains_key(&host));
        is_recorded.then(|| self.pairs.contains(&(host, method)))
    }

    /// The methods within the code of another one; empty where they are too many.
    pub fn within(&self, host: MethodKey) -> HashSet<MethodKey> {
        self.calls(host).map(|((_, method), _)| *method).collect()
    }

    /// By which calls of its own a method got another one into its code: the method that it calls, which is that one or leads to it, and
    /// at how many places. Empty where the events do not say.
    pub fn ways(&self, host: MethodKey, method: MethodKey) -> Vec<(MethodKey, u32)> {
        let (mut ways, mut seen, mut next) = (Vec::new(), vec![method], 0);
        while let Some(callee) = seen.get(next).copied().filter(|_| seen.len() < MOST_FOLLOWED) {
            for ((caller, _), times) in self.calls(host).filter(|((_, of), _)| *of == callee) {
                if *caller == host {
                    ways.push((callee, times.most));
                } else if !seen.contains(caller) {
                    seen.push(*caller);
                }
            }
            next += 1;
        }
        ways
    }

    fn calls(&self, host: MethodKey) -> impl Iterator<Item = (&(MethodKey, MethodKey), &Times)> {
        let of = self.compiled.get(&host).filter(|host| host.calls.len() <= MOST_FOLLOWED);
        of.into_iter().flat_map(|host| &host.calls)
    }

    /// A method is compiled from now on.
    pub fn begins(&mut self, host: MethodKey) {
        if let Some(compiled) = self.compiled.get_mut(&host) {
            compiled.turn = compiled.turn.wrapping_add(1);
        }
    }

    /// In the code of a method one calls another, whose code stands there.
    pub fn inlined(&mut self, host: MethodKey, call: (MethodKey, MethodKey)) {
        let of = self.compiled.entry(host).or_default();
        let turn = of.turn;
        let times = of.calls.entry(call).or_insert_with(|| {
            self.calls += 1;
            Times::default()
        });
        times.now = if times.turn == turn { times.now.saturating_add(1) } else { 1 };
        (times.turn, times.most) = (turn, times.most.max(times.now));
        self.pairs.insert((host, call.1));
    }
}

impl Tracker for Inlinings {
    type Action = InliningsAction;
    const EVENTS: Events<InliningsAction> = &[
        (RUNTIME, "MethodJitInliningSucceeded", InliningsAction::Inlined),
        (RUNTIME, "MethodJittingStarted", InliningsAction::Begins),
    ];

    fn is_reference(_: InliningsAction) -> bool {
        true
    }

    fn event(&mut self, action: InliningsAction, input: &Input<'_>, _: &mut Shared, _: &mut impl FactSink) {
        let key = |type_name, method| self.key(input.text(type_name), input.text(method));
        if action == InliningsAction::Begins {
            let host = key("MethodNamespace", "MethodName");
            return self.begins(host);
        }
        if self.calls >= MOST {
            self.is_full = true;
            return;
        }
        let host = key("MethodBeingCompiledNamespace", "MethodBeingCompiledName");
        let call = (key("InlinerNamespace", "InlinerName"), key("InlineeNamespace", "InlineeName"));
        self.inlined(host, call);
    }
}

#[cfg(test)]
impl Inlinings {
    /// With these pairs.
    pub fn of(pairs: impl Iterator<Item = (MethodKey, MethodKey)>) -> Inlinings {
        let mut all = Inlinings::default();
        pairs.for_each(|(host, method)| all.inlined(host, (host, method)));
        all
    }
}
