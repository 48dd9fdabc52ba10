//! Frames of RAM, and page tables: four levels of 512 entries. `arch::paging` defines the format of an entry.

use abi::layout::{ENTRY_BYTES, MAX_TABLE_ENTRIES};
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a frame.
pub const FRAME: usize = 4096;

/// Number of a frame: physical address / 4096. 0 = none: frame 0 is never used.
pub type Frame = structures::blocks::Frame;

/// End of usable RAM: a reference to an account, mapping or table is its address / 64, in 32 bits.
pub const RAM_END: u64 = 64 << 32;

/// Bytes of the nucleus's record of a frame.
pub const RECORD_BYTES: usize = 8;

/// Bytes of address space for a portal table: room for the largest.
pub const MAX_TABLE_BYTES: usize = MAX_TABLE_ENTRIES * ENTRY_BYTES;

/// Type of memory of a mapped page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// RAM, or a part of the boot archive.
    Ram,
    /// Device registers: uncached.
    Registers,
}

/// A page table of any level.
pub type Table = [PageEntry; 512];

/// An entry of a page table. Processors read it at any time, so a write releases: a page walk that finds the entry finds
/// what was written before it. The nucleus does not use the accessed and dirty bits.
#[repr(transparent)]
pub struct PageEntry(Cell<u64>);

impl PageEntry {
    /// Reads the entry.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.0.get()
    }
    /// Writes the entry, with release.
    #[inline(always)]
    pub fn set(&self, entry: u64) {
        // SAFETY: an aligned word, which lives as long as `self`.
        unsafe { AtomicU64::from_ptr(self.0.as_ptr()).store(entry, Ordering::Release) }
    }
}

/// Index of the entry for an address in a table; level 0 is the last.
pub fn index(address: u64, level: u32) -> usize {
    (address >> (12 + 9 * level) & 511) as usize
}

/// Content of a page of the nucleus, which decides its access.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// Code: executable, not writable.
    Code,
    /// Read-only data.
    Constants,
    /// Writable data.
    Data,
    /// Device registers.
    Registers,
}
