//! Which indices of our portal table are free.
//!
//! The nucleus can choose an index itself (0 as index to fill), but a receive index has to be named
//! beforehand, so the runtime keeps its own map and names every index, the lowest that is free: the table grows to it.
//! A bit is set while the index is in use. Indices below [`abi::layout::FIRST_FREE`] are never given out. The bits of the
//! first indices are here; those of the others are in pages at [`abi::layout::TABLE_MAP`], drawn when they are needed.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use abi::layout::{MAX_TABLE_ENTRIES, TABLE_MAP};
use abi::{Error, PAGE_BYTES, layout};

use crate::Entry;
#[cfg(all(feature = "alloc", not(test)))]
use crate::heap::draw;

/// Words for the first indices.
const WORDS: usize = 64;
/// Indices of a program that has no heap are below this.
pub const WITHOUT_HEAP: usize = WORDS * 64;
/// Words for all.
const ALL_WORDS: usize = MAX_TABLE_ENTRIES / 64;
/// Words of a page.
const PAGE_WORDS: usize = PAGE_BYTES / 8;

/// Indices in use.
struct Map {
    words: [AtomicU64; WORDS],
    /// Pages that are there for further words.
    pages: AtomicUsize,
}

static MAP: Map = Map::new();

impl Map {
    const fn new() -> Self {
        let mut words = [const { AtomicU64::new(0) }; WORDS];
        words[0] = AtomicU64::new(u64::MAX);
        words[1] = AtomicU64::new((1 << (layout::FIRST_FREE - 64)) - 1);
        Self { words, pages: AtomicUsize::new(0) }
    }

    /// The words after the first ones, up to the last.
    #[cold]
    fn more(&self) -> &[AtomicU64] {
        let words = self.pages.load(Ordering::Acquire) * PAGE_WORDS;
        // SAFETY: these pages are there for good, for this alone; unwritten words are 0. The first words are not used.
        unsafe { core::slice::from_raw_parts(TABLE_MAP as *const AtomicU64, words) }.get(WORDS..).unwrap_or_default()
    }

    /// The word with the bit of this index.
    fn word(&self, index: usize) -> Option<&AtomicU64> {
        let number = index / 64;
        self.words.get(number).or_else(|| self.more().get(number - WORDS))
    }

    /// Has words for the next indices; false if there are none, or no page for them. `draw` gets the place of that.
    #[cold]
    fn extend(&self, draw: impl Fn(u64, u64) -> Result<(), ()>) -> bool {
        let pages = self.pages.load(Ordering::Acquire);
        let start = TABLE_MAP + (pages * PAGE_BYTES) as u64;
        if pages * PAGE_WORDS == ALL_WORDS || draw(start, start + PAGE_BYTES as u64).is_err() {
            return false;
        }
        // Another thread may have been faster, with the same page.
        let _ = self.pages.compare_exchange(pages, pages + 1, Ordering::Release, Ordering::Relaxed);
        true
    }

    fn allocate(&self) -> Result<usize, Error> {
        // In the first word there is none.
        let first = find_free(&self.words[1..]).map(|place| 64 + place);
        first.or_else(|| Some(64 * WORDS + find_free(self.more())?)).ok_or(Error::TableFull)
    }

    fn reserve(&self, index: usize) -> bool {
        let bit = 1 << (index % 64);
        match self.word(index) {
            Some(word) => word.fetch_or(bit, Ordering::Acquire) & bit == 0,
            None => false,
        }
    }

    fn free(&self, index: usize) {
        if index >= layout::FIRST_FREE
            && let Some(word) = self.word(index)
        {
            word.fetch_and(!(1 << (index % 64)), Ordering::Release);
        }
    }
}

/// The place of the first bit that is not set, which is set now.
fn find_free(words: &[AtomicU64]) -> Option<usize> {
    for (number, word) in words.iter().enumerate() {
        let mut used = word.load(Ordering::Relaxed);
        while used != u64::MAX {
            let bit = used.trailing_ones();
            match word.compare_exchange_weak(used, used | 1 << bit, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(number * 64 + bit as usize),
                Err(now) => used = now,
            }
        }
    }
    None
}

/// Without a heap there are no further pages.
#[cfg(any(not(feature = "alloc"), test))]
fn draw(_: u64, _: u64) -> Result<(), ()> {
    Err(())
}

/// A free index, now ours.
pub fn allocate() -> Result<Entry, Error> {
    loop {
        match MAP.allocate() {
            Err(_) if MAP.extend(draw) => {}
            found => return found.map(Entry),
        }
    }
}

/// Marks an index as used by something that is there already; says whether it was free.
pub fn reserve(entry: Entry) -> bool {
    MAP.reserve(entry.0)
}

/// Gives an index back. Its entry must have been removed.
pub fn free(entry: Entry) {
    MAP.free(entry.0);
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
    use abi::layout::HEAP_END;

    use super::*;

    #[test]
    fn gives_out_each_index_once_and_none_that_is_well_known() {
        let map = Map::new();
        let mut last = layout::FIRST_FREE - 1;
        while let Ok(index) = map.allocate() {
            assert_eq!(index, last + 1);
            last = index;
        }
        assert_eq!(last, 64 * WORDS - 1);
        map.free(100);
        assert_eq!(map.allocate(), Ok(100));
        assert_eq!(map.allocate(), Err(Error::TableFull));
    }

    #[test]
    fn reserved_indices_are_skipped_and_well_known_ones_never_freed() {
        let map = Map::new();
        assert!(map.reserve(96));
        assert!(!map.reserve(96));
        assert_eq!(map.allocate(), Ok(97));
        map.free(layout::PARENT);
        assert_eq!(map.allocate(), Ok(98));
        assert!(!map.reserve(1 << 20));
    }

    #[test]
    fn further_words_need_pages() {
        let map = Map::new();
        let last = HEAP_END - PAGE_BYTES as u64;
        assert!(!map.extend(|_, _| Err(())));
        assert!(map.extend(|start, end| if (start, end) == (TABLE_MAP, TABLE_MAP + 4096) { Ok(()) } else { Err(()) }));
        map.pages.store(ALL_WORDS / PAGE_WORDS - 1, Ordering::Relaxed);
        assert!(map.extend(|start, _| if start == last { Ok(()) } else { Err(()) }));
        assert!(!map.extend(|_, _| Ok(())));
    }
}
