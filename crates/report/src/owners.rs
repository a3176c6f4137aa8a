//! The methods that call sites belong to, such as the user's own.

use tracequet_analyze::profile::{Code, Function, Profile};
use tracequet_trace::map::Map;

/// Names of call sites that are kept at a time.
const MAX_SITES: usize = 64 << 10;

/// Finds the method that call sites belong to.
pub(crate) struct Owners<'p> {
    profile: Option<&'p Profile>,
    takes: fn(&Function) -> bool,
    known: Map<u32, String>,
}

impl<'p> Owners<'p> {
    /// The nearest method outwards that is known to be the user's own, as `own_callsite_id` says.
    pub(crate) fn of(profile: Option<&'p Profile>) -> Owners<'p> {
        Owners::by(profile, |function| function.code == Code::Managed && function.is_framework == Some(false))
    }

    /// The nearest function outwards that `takes` accepts.
    pub(crate) fn by(profile: Option<&'p Profile>, takes: fn(&Function) -> bool) -> Owners<'p> {
        Owners { profile, takes, known: Map::default() }
    }

    /// The name of the method; empty if the stack has no such function.
    pub(crate) fn name(&mut self, callsite: u32) -> &str {
        if self.known.len() >= MAX_SITES {
            self.known.clear();
        }
        let (profile, takes) = (self.profile, self.takes);
        self.known.entry(callsite).or_insert_with(|| {
            let Some(profile) = profile else { return String::new() };
            let stack = profile.stack(profile.place_of(callsite));
            let mut functions = stack.iter().rev().filter_map(|function| profile.functions.get(*function as usize));
            functions.find(|function| takes(function)).map_or_else(String::new, |function| function.name.clone())
        })
    }
}
