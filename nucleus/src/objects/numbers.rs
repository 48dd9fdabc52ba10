//! Sets of numbers: a bit for each.

use core::cell::Cell;

/// Allocator of numbers from 0 to 64 · `WORDS` - 1.
pub struct Numbers<const WORDS: usize> {
    taken: [Cell<u64>; WORDS],
    /// All numbers in words before this one are taken.
    first: Cell<usize>,
}

impl<const WORDS: usize> Numbers<WORDS> {
    /// All numbers are free.
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
    /// Frees a number.
    pub fn give_back(&self, number: usize) {
        self.taken[number / 64].update(|taken| taken & !(1 << (number % 64)));
        self.first.update(|first| first.min(number / 64));
    }
}

/// A set of marked numbers, from 0 to 64 · `WORDS` - 1.
pub struct Marks<const WORDS: usize> {
    bits: [Cell<u64>; WORDS],
    /// Number of marks.
    count: Cell<usize>,
    /// No number in a word before this is marked.
    first: Cell<usize>,
}

impl<const WORDS: usize> Marks<WORDS> {
    /// No number is marked.
    pub const fn new() -> Self {
        Self { bits: [const { Cell::new(0) }; WORDS], count: Cell::new(0), first: Cell::new(0) }
    }
    /// Whether no number is marked.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.count.get() == 0
    }
    /// Marks a number.
    #[inline(never)]
    pub fn mark(&self, number: usize) {
        let (bits, bit) = (&self.bits[number / 64 % WORDS], 1 << (number % 64));
        if bits.get() & bit == 0 {
            bits.update(|bits| bits | bit);
            self.count.update(|count| count + 1);
            self.first.update(|first| first.min(number / 64));
        }
    }
    /// Unmarks a number.
    #[inline(never)]
    pub fn unmark(&self, number: usize) {
        let (bits, bit) = (&self.bits[number / 64 % WORDS], 1 << (number % 64));
        if bits.get() & bit != 0 {
            bits.update(|bits| bits & !bit);
            self.count.update(|count| count - 1);
        }
    }
    /// Unmarks the lowest marked number, and gives it.
    pub fn take(&self) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        let word = (self.first.get()..WORDS).find(|word| self.bits[*word].get() != 0)?;
        self.first.set(word);
        let number = word * 64 + self.bits[word].get().trailing_zeros() as usize;
        self.unmark(number);
        Some(number)
    }
}
