//! Which indices of our portal table are free.
//!
//! The nucleus can choose an index itself (0 as index to fill), but a receive index has to be named
//! beforehand, so the runtime keeps its own map and names every index. A bit is set while the index
//! is in use. Indices below [`abi::layout::FIRST_FREE`] and beyond the table's end are never given out.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use abi::{Error, layout};

use crate::Entry;

const WORDS: usize = (layout::TABLE_ENTRIES << layout::MAX_TABLE_ORDER) / 64;

/// Indices in use.
struct Map {
    words: [AtomicU64; WORDS],
    entries: AtomicUsize,
}

static MAP: Map = Map::new();

impl Map {
    const fn new() -> Self {
        let mut words = [const { AtomicU64::new(0) }; WORDS];
        words[0] = AtomicU64::new((1 << layout::FIRST_FREE) - 1);
        Self { words, entries: AtomicUsize::new(layout::TABLE_ENTRIES) }
    }

    fn allocate(&self) -> Result<usize, Error> {
        let words = self.entries.load(Ordering::Relaxed) / 64;
        for (number, word) in self.words.iter().take(words).enumerate() {
            let mut used = word.load(Ordering::Relaxed);
            while used != u64::MAX {
                let bit = used.trailing_ones();
                match word.compare_exchange_weak(used, used | 1 << bit, Ordering::Acquire, Ordering::Relaxed) {
                    Ok(_) => return Ok(number * 64 + bit as usize),
                    Err(now) => used = now,
                }
            }
        }
        Err(Error::TableFull)
    }

    fn reserve(&self, index: usize) -> bool {
        let bit = 1 << (index % 64);
        match self.words.get(index / 64) {
            Some(word) => word.fetch_or(bit, Ordering::Acquire) & bit == 0,
            None => false,
        }
    }

    fn free(&self, index: usize) {
        if index >= layout::FIRST_FREE
            && let Some(word) = self.words.get(index / 64)
        {
            word.fetch_and(!(1 << (index % 64)), Ordering::Release);
        }
    }
}

/// A free index, now ours.
pub fn allocate() -> Result<Entry, Error> {
    MAP.allocate().map(Entry)
}

/// Marks an index as used by something that is there already; tells whether it was free.
pub fn reserve(entry: Entry) -> bool {
    MAP.reserve(entry.0)
}

/// Gives an index back. What stands there must have been removed.
pub fn free(entry: Entry) {
    MAP.free(entry.0);
}

/// How many entries our table has; the startup page tells it.
pub fn entries() -> usize {
    MAP.entries.load(Ordering::Relaxed)
}

/// Sets how many entries our table has: 64 to 1,024, in powers of two.
pub fn set_entries(entries: usize) {
    MAP.entries.store(entries.clamp(layout::TABLE_ENTRIES, WORDS * 64), Ordering::Relaxed);
}

/// Allocates an index, runs an operation that fills it, and gives the index back if that fails.
pub(crate) fn fill(operation: impl FnOnce(Entry) -> Result<Entry, Error>) -> Result<Entry, Error> {
    let entry = allocate()?;
    match operation(entry) {
        Ok(_) => Ok(entry),
        Err(error) => {
            free(entry);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_out_each_index_once_and_none_that_is_well_known() {
        let map = Map::new();
        let mut last = layout::FIRST_FREE - 1;
        while let Ok(index) = map.allocate() {
            assert_eq!(index, last + 1);
            last = index;
        }
        assert_eq!(last, layout::TABLE_ENTRIES - 1);
        map.free(50);
        assert_eq!(map.allocate(), Ok(50));
        assert_eq!(map.allocate(), Err(Error::TableFull));
    }

    #[test]
    fn reserved_indices_are_skipped_and_well_known_ones_never_freed() {
        let map = Map::new();
        assert!(map.reserve(48));
        assert!(!map.reserve(48));
        assert_eq!(map.allocate(), Ok(49));
        map.free(layout::PARENT);
        assert_eq!(map.allocate(), Ok(50));
        assert!(!map.reserve(1 << 20));
    }

    #[test]
    fn a_larger_table_has_more() {
        let map = Map::new();
        map.entries.store(1024, Ordering::Relaxed);
        assert_eq!((0..).take_while(|_| map.allocate().is_ok()).count(), 1024 - layout::FIRST_FREE);
    }
}
