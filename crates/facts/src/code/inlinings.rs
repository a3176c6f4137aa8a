//! Which methods the compiler put into which, by its own word.

use std::collections::HashSet;
use std::hash::BuildHasher;

use foldhash::quality::RandomState;

use crate::fact::FactSink;
use crate::input::{self, Input, ProviderEvents, RUNTIME};
use crate::shared::Shared;
use crate::tracker::Tracker;

/// Pairs of methods that are remembered (16 bytes each).
const MOST: usize = 1 << 20;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InliningsAction {
    /// A method was put into another one.
    Inlined,
}

impl input::Action for InliningsAction {
    fn is_reference(self) -> bool {
        true
    }
}

/// A method by its type and name, whatever its arguments, types and process.
pub type MethodKey = u64;

/// Methods that were put into others. Events name each with the method whose code it is in, however deep.
#[derive(Debug, Default)]
pub struct Inlinings {
    hasher: RandomState,
    /// The method that was compiled, and the one within it.
    pairs: HashSet<(MethodKey, MethodKey)>,
    compiled: HashSet<MethodKey>,
    is_full: bool,
}

impl Inlinings {
    /// The key of a method.
    pub fn key(&self, type_name: &str, method: &str) -> MethodKey {
        let part = |text: &'_ str| text.split('[').next().unwrap_or_default().to_owned();
        self.hasher.hash_one((part(type_name), part(method)))
    }

    /// Whether a method is in the code of another one; `None` where the recording does not say. `is_new`: the code was made while it was
    /// recorded.
    pub fn has(&self, (host, is_new): (MethodKey, bool), method: MethodKey) -> Option<bool> {
        let is_recorded = !self.pairs.is_empty() && !self.is_full && (is_new || self.compiled.contains(&host));
        is_recorded.then(|| self.pairs.contains(&(host, method)))
    }
}

impl Tracker for Inlinings {
    type Action = InliningsAction;
    const EVENTS: &'static [ProviderEvents<InliningsAction>] =
        &[ProviderEvents { provider: RUNTIME, events: &[("MethodJitInliningSucceeded", InliningsAction::Inlined)] }];

    fn event(&mut self, _: InliningsAction, input: &Input<'_>, _: &mut Shared, _: &mut impl FactSink) {
        if self.pairs.len() >= MOST {
            self.is_full = true;
            return;
        }
        let host = self.key(input.text("MethodBeingCompiledNamespace"), input.text("MethodBeingCompiledName"));
        let method = self.key(input.text("InlineeNamespace"), input.text("InlineeName"));
        self.compiled.insert(host);
        self.pairs.insert((host, method));
    }
}

#[cfg(test)]
impl Inlinings {
    /// With these pairs.
    pub fn of(pairs: impl Iterator<Item = (MethodKey, MethodKey)>) -> Inlinings {
        let mut all = Inlinings::default();
        for (host, method) in pairs {
            all.compiled.insert(host);
            all.pairs.insert((host, method));
        }
        all
    }
}
