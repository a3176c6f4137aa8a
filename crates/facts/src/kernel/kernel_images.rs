//! Where the modules of the kernel lie while a recording is read.

use std::collections::BTreeMap;

/// Modules that are remembered; a machine has some hundreds.
const MAX_IMAGES: usize = 1 << 14;

#[derive(Clone, Copy, Debug)]
struct Image {
    end: u64,
    /// Whether it was there before the recording began.
    is_listed: bool,
}

/// The modules of the kernel by their base addresses.
#[derive(Debug, Default)]
pub struct KernelImages {
    images: BTreeMap<u64, Image>,
    /// Modules that did not fit.
    pub lost: u64,
}

impl KernelImages {
    /// A module is loaded.
    pub fn load(&mut self, base: u64, size: u64) {
        self.put(base, Image { end: base.saturating_add(size), is_listed: false });
    }

    /// A module is there, since before the recording began unless its loading was seen.
    pub fn listed(&mut self, base: u64, size: u64) {
        let end = base.saturating_add(size);
        if self.images.get(&base).is_none_or(|known| known.end != end) {
            self.put(base, Image { end, is_listed: true });
        }
    }

    fn put(&mut self, base: u64, image: Image) {
        if self.images.len() < MAX_IMAGES || self.images.contains_key(&base) {
            self.images.insert(base, image);
        } else {
            self.lost += 1;
        }
    }

    /// A module is gone.
    pub fn unload(&mut self, base: u64) {
        self.images.remove(&base);
    }

    /// The base of the module at an address now.
    pub fn at(&self, address: u64) -> Option<u64> {
        self.find(address).map(|(base, _)| base)
    }

    /// The load address of a module that was there before the recording began.
    pub fn listed_at(&self, address: u64) -> Option<u64> {
        self.find(address).filter(|(_, image)| image.is_listed).map(|(base, _)| base)
    }

    fn find(&self, address: u64) -> Option<(u64, Image)> {
        let (base, image) = self.images.range(..=address).next_back()?;
        (address < image.end).then_some((*base, *image))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_come_and_go() {
        let mut images = KernelImages::default();
        images.listed(100, 50);
        images.load(200, 10);
        images.listed(200, 10);
        assert_eq!(
            [99, 100, 149, 150, 205, 210].map(|at| images.at(at)),
            [None, Some(100), Some(100), None, Some(200), None]
        );
        // A module that was loaded meanwhile was not there before.
        assert_eq!([120, 205].map(|at| images.listed_at(at)), [Some(100), None]);
        images.unload(100);
        assert_eq!(images.at(120), None);
        images.listed(u64::MAX - 1, u64::MAX);
        assert_eq!(images.at(u64::MAX - 1), Some(u64::MAX - 1));
    }
}
