//! The allocator of the program: that of the system, and large pieces of memory lie on huge pages.
//!
//! The graph of a heap is read in no order, so that nearly each read is on another page. The processor remembers where
//! some thousand pages are. That is a few megabytes on pages of 4 KiB, and the whole graph on pages of 2 MiB.
#![allow(
    unsafe_code,
    reason = "the trait of allocators is unsafe; all that it does is left to the allocator of the system"
)]

use std::alloc::{GlobalAlloc, Layout, System};

/// Bytes of the smallest piece that huge pages are asked for: what converts a recording has few of these.
#[cfg(target_os = "linux")]
const LARGE: usize = 4 << 20;

/// Asks for huge pages. A system that has none is as fast as before.
#[cfg(target_os = "linux")]
fn advised(piece: *mut u8, bytes: usize) -> *mut u8 {
    const PAGE: usize = 4096;
    if bytes >= LARGE && !piece.is_null() {
        // From page to page: advice for a part of a mapping would split it.
        let before = piece.addr() % PAGE;
        let length = (before + bytes).next_multiple_of(PAGE);
        // SAFETY: the piece lies on these pages, and advice does not change what is on them.
        unsafe { libc::madvise(piece.wrapping_sub(before).cast(), length, libc::MADV_HUGEPAGE) };
    }
    piece
}

#[cfg(not(target_os = "linux"))]
fn advised(piece: *mut u8, _bytes: usize) -> *mut u8 {
    piece
}

/// The allocator of the system, which asks for huge pages.
pub struct HugePages;

// SAFETY: all is done by the allocator of the system, which keeps the rules.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`, which `System` has as well.
        advised(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        advised(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as in `alloc`.
        advised(unsafe { System.realloc(piece, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`.
        unsafe { System.dealloc(piece, layout) }
    }
}
