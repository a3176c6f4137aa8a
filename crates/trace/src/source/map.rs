//! A file whose bytes can all be addressed: mapped (the only `unsafe` code of this layer), or in memory in a build
//! without maps.

use std::fs::File;

pub(super) use inner::{Map, drop_pages, expect_scattered_reads, map};

#[cfg(feature = "maps")]
mod inner {
    use super::File;

    pub type Map = memmap2::Mmap;

    #[allow(unsafe_code, reason = "mapping a file")]
    pub fn map(file: &File) -> std::io::Result<Map> {
        // SAFETY: the map is read-only and private to this process; that the file is not truncated meanwhile is the
        // documented condition of `MappedFile`.
        let map = unsafe { Map::map(file)? };
        #[cfg(unix)]
        map.advise(memmap2::Advice::Sequential).ok();
        Ok(map)
    }

    #[cfg(unix)]
    #[allow(unsafe_code, reason = "advice on a map")]
    pub fn drop_pages(map: &Map, start: usize, len: usize) {
        // SAFETY: the map is a shared, read-only map of a file, so that dropped pages are read from the file again when
        // they are touched: no byte changes under a borrow.
        unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, len) }.ok();
    }

    #[cfg(not(unix))]
    pub fn drop_pages(_: &Map, _: usize, _: usize) {}

    pub fn expect_scattered_reads(map: &Map) {
        #[cfg(target_os = "linux")]
        map.advise(memmap2::Advice::NoHugePage).ok();
        #[cfg(not(target_os = "linux"))]
        let _ = map;
    }
}

#[cfg(not(feature = "maps"))]
mod inner {
    use super::File;
    use std::io::{Read, Seek};

    pub type Map = Vec<u8>;

    pub fn map(mut file: &File) -> std::io::Result<Map> {
        file.rewind()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    pub fn drop_pages(_: &Map, _: usize, _: usize) {}

    pub fn expect_scattered_reads(_: &Map) {}
}
