//! Sets of numbers: a bit for each.

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

/// Numbers that are marked, from 0 to 64 · `WORDS` - 1.
pub struct Marks<const WORDS: usize> {
    bits: [Cell<u64>; WORDS],
    /// How many are marked.
    count: Cell<usize>,
    /// No number in a word before this is marked.
    first: Cell<usize>,
}

impl<const WORDS: usize> Marks<WORDS> {
    /// None is marked.
    pub const fn new() -> Self {
        Self { bits: [const { Cell::new(0) }; WORDS], count: Cell::new(0), first: Cell::new(0) }
    }
    /// Whether none is marked.
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
    /// Takes the mark of a number away.
    #[inline(never)]
    pub fn unmark(&self, number: usize) {
        let (bits, bit) = (&self.bits[number / 64 % WORDS], 1 << (number % 64));
        if bits.get() & bit != 0 {
            bits.update(|bits| bits & !bit);
            self.count.update(|count| count - 1);
        }
    }
    /// Takes the mark of the lowest number away, and gives that number.
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
