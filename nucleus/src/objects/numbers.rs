//! Numbers that are taken and given back: a bit for each.

use core::cell::Cell;

/// Numbers from 0 to 64 · `WORDS` - 1.
pub struct Numbers<const WORDS: usize> {
    taken: [Cell<u64>; WORDS],
    /// No number in a word before this is free.
    first: Cell<usize>,
}

impl<const WORDS: usize> Numbers<WORDS> {
    /// All are free.
    pub const fn new() -> Self {
        Self { taken: [const { Cell::new(0) }; WORDS], first: Cell::new(0) }
    }
    /// Takes the lowest free number below `end`, a multiple of 64.
    pub fn take(&self, end: usize) -> Option<usize> {
        let word = (self.first.get()..end / 64).find(|word| self.taken[*word].get() != u64::MAX)?;
        let bit = self.taken[word].get().trailing_ones() as usize;
        self.taken[word].update(|taken| taken | 1 << bit);
        self.first.set(word);
        Some(word * 64 + bit)
    }
    /// Gives a number back.
    pub fn give_back(&self, number: usize) {
        self.taken[number / 64].update(|taken| taken & !(1 << (number % 64)));
        self.first.update(|first| first.min(number / 64));
    }
}
