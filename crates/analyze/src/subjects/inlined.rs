//! Who allocates what optimized code allocates: the compiler puts small methods into their callers, and then stacks have the caller alone.
//! Before that, while the program was young, the same objects came from the method itself.

use std::collections::{BTreeMap, HashMap, HashSet};

use foldhash::fast::RandomState;

use super::sites::Sites;

/// Samples of a method that is put into its caller.
const LEAST: u64 = 2;

/// Who allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Allocator<'s> {
    /// The own method.
    pub(crate) method: &'s str,
    /// The nearest own method that is no constructor.
    pub(crate) maker: Option<&'s str>,
    /// The own method that the compiler put it into, which stacks have in its place.
    pub(crate) inlined_into: Option<&'s str>,
}

impl<'s> Allocator<'s> {
    fn of(path: &[&'s str]) -> Option<Allocator<'s>> {
        let is_constructor = |method: &str| method.ends_with("..ctor") || method.ends_with("..cctor");
        let maker = path.iter().find(|method| !is_constructor(method)).copied();
        Some(Allocator { method: path.first()?, maker, inlined_into: None })
    }
}

/// Own methods by what they allocated before they were optimized.
#[derive(Debug, Default)]
pub(crate) struct Inlined<'s> {
    /// Methods that allocate a type themselves.
    direct: HashSet<(&'s str, u64), RandomState>,
    /// Of a caller and a type: the method within it that allocates, and who made the object.
    within: HashMap<(&'s str, u64), Allocator<'s>, RandomState>,
}

impl<'s> Inlined<'s> {
    /// By the allocations of a process: call site, type, number of samples.
    pub(crate) fn of(allocations: impl Iterator<Item = (u32, u64, u64)>, sites: &'s Sites) -> Inlined<'s> {
        let mut found = Inlined::default();
        let mut within: HashMap<(&str, u64), BTreeMap<Allocator<'_>, u64>, RandomState> = HashMap::default();
        for (site, kind, samples) in allocations {
            if sites.is_optimized(site) {
                continue;
            }
            let path = sites.own_path(site);
            let Some(allocator) = Allocator::of(&path) else { continue };
            found.direct.insert((allocator.method, kind));
            for caller in path.iter().skip(1) {
                *within.entry((caller, kind)).or_default().entry(allocator).or_default() += samples;
            }
        }
        found.within = within
            .into_iter()
            .filter_map(|(key, methods)| {
                let most = methods.into_iter().max_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(&a.0)))?;
                (most.1 >= LEAST).then_some((key, most.0))
            })
            .collect();
        found
    }

    /// Who allocates a type at a call site.
    pub(crate) fn allocator(&self, sites: &'s Sites, site: u32, kind: u64) -> Option<Allocator<'s>> {
        let method = sites.own_method(site)?;
        let within = self.within.get(&(method, kind));
        match within.filter(|_| sites.is_optimized(site) && !self.direct.contains(&(method, kind))) {
            Some(within) => Some(Allocator { inlined_into: Some(method), ..*within }),
            None => Allocator::of(&sites.own_path(site)),
        }
    }
}
