//! The ring through which a scheduler learns which threads became ready: written by the holder of the nucleus lock, read by one
//! scheduler, which may run at the same time.
//!
//! A word stays in its slot until the reader exchanges it with 0. So the writer can replace a word that was not taken yet,
//! knows when it came too late, and never overwrites a word: words are not 0, and the ring is full while the next slot
//! holds one. The reader of a word sees what its writer did before.

use crate::atomic::{AtomicU32, Ordering};

/// The memory that both sides see. `written` and `read` run freely; slot = counter modulo the number of slots.
pub struct Ring<'a> {
    /// Words the writer has put in.
    pub written: &'a AtomicU32,
    /// Words the reader has passed.
    pub read: &'a AtomicU32,
    /// The words; 0 = none.
    pub slots: &'a [AtomicU32],
}

/// Whether a ring with these counters has a word that was not read. The reader's counter is whatever the reader wrote.
#[inline(always)]
pub fn is_unread(written: &AtomicU32, read: &AtomicU32) -> bool {
    written.load(Ordering::Acquire) != read.load(Ordering::Relaxed)
}

impl Ring<'_> {
    #[inline(always)]
    fn slot(&self, counter: u32) -> &AtomicU32 {
        // Not empty by construction; the remainder is within.
        &self.slots[counter as usize % self.slots.len()]
    }

    /// Puts `word` in, or replaces the word that was put in at `posted` and is `same` as this one, which 0 never is, if it
    /// was not taken yet. Gives where it stands now; `None` if the ring is full.
    #[inline(always)]
    pub fn post(&self, word: u32, posted: u32, same: impl Fn(u32) -> bool) -> Option<u32> {
        let slot = self.slot(posted);
        let old = slot.load(Ordering::Relaxed);
        if same(old) {
            // Release: pairs with `take`.
            let replaced = slot.compare_exchange(old, word, Ordering::Release, Ordering::Relaxed);
            if replaced.is_ok() {
                return Some(posted);
            }
        }
        let written = self.written.load(Ordering::Relaxed);
        let next = self.slot(written);
        if next.load(Ordering::Relaxed) != 0 {
            return None;
        }
        next.store(word, Ordering::Relaxed);
        // Release: a reader that sees the counter sees the slot.
        self.written.store(written.wrapping_add(1), Ordering::Release);
        Some(written)
    }

    /// Whether the word that was put in at `posted` was not taken yet, if it is the `same` still.
    pub fn holds(&self, posted: u32, same: impl Fn(u32) -> bool) -> bool {
        let word = self.slot(posted).load(Ordering::Relaxed);
        word != 0 && same(word)
    }

    /// Whether there is something that was not read.
    pub fn is_unread(&self) -> bool {
        is_unread(self.written, self.read)
    }

    /// Takes the next word; 0 if it was taken before. Nothing if all was read.
    #[inline(always)]
    pub fn take(&self) -> Option<u32> {
        let read = self.read.load(Ordering::Relaxed);
        // Acquire: pairs with the release of `post`.
        if self.written.load(Ordering::Acquire) == read {
            return None;
        }
        // Acquire: as before, if it was replaced.
        let word = self.slot(read).swap(0, Ordering::Acquire);
        // Nobody else counts on it: that a slot is free says the slot.
        self.read.store(read.wrapping_add(1), Ordering::Relaxed);
        Some(word)
    }
}
