//! Frames of RAM, and tables of pages: four levels of 512 entries. What an entry looks like says `arch::paging`.

use abi::layout::{ENTRY_BYTES, MAX_TABLE_ENTRIES};
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a frame.
pub const FRAME: usize = 4096;

/// Number of a frame: physical address / 4096; 0 means none (frame 0 is never used).
pub type Frame = structures::blocks::Frame;

/// RAM beyond is not used: accounts, mappings and tables are known by their address / 64, in 32 bits.
pub const RAM_END: u64 = 64 << 32;

/// Bytes that the nucleus keeps of each frame.
pub const RECORD_BYTES: usize = 8;

/// Bytes of the range of addresses for a portal table: room for the largest.
pub const MAX_TABLE_BYTES: usize = MAX_TABLE_ENTRIES * ENTRY_BYTES;

/// What lies at a mapped page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// RAM, or a part of the boot archive.
    Ram,
    /// Registers of a device: nothing of them is cached.
    Registers,
}

/// A table of any level.
pub type Table = [PageEntry; 512];

/// An entry of a table, which processors read at any time: whatever they find there, they find what was written before it. What
/// they note in it themselves (accessed, dirty) nobody looks at.
#[repr(transparent)]
pub struct PageEntry(Cell<u64>);

impl PageEntry {
    /// The entry.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.0.get()
    }
    /// Writes it.
    #[inline(always)]
    pub fn set(&self, entry: u64) {
        // SAFETY: an aligned word.
        unsafe { AtomicU64::from_ptr(self.0.as_ptr()).store(entry, Ordering::Release) }
    }
}

/// The place of an address in a table; level 0 is the last.
pub fn index(address: u64, level: u32) -> usize {
    (address >> (12 + 9 * level) & 511) as usize
}

/// What a page of the nucleus holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// Code: executed, not written.
    Code,
    /// What is only read.
    Constants,
    /// What is written.
    Data,
    /// Registers of devices.
    Registers,
}
