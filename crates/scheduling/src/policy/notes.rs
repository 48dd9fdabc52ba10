//! What an instance notes of threads.

use abi::MAX_THREADS;

/// A bit for each thread.
pub(super) struct Threads([u64; MAX_THREADS / 64]);

impl Threads {
    pub(super) const NONE: Self = Self([0; MAX_THREADS / 64]);

    pub(super) fn set(&mut self, number: usize, value: bool) {
        let word = &mut self.0[number % MAX_THREADS / 64];
        *word = *word & !(1 << (number % 64)) | u64::from(value) << (number % 64);
    }

    pub(super) fn has(&self, number: usize) -> bool {
        self.0[number % MAX_THREADS / 64] >> (number % 64) & 1 != 0
    }
}

/// Who wakes us alone, and a CPU that rests in step with it.
pub(super) struct Companion {
    pub(super) number: usize,
    pub(super) cpu: usize,
    /// What that CPU's count of rests was last, and how often in a row it had changed.
    pub(super) rests: u32,
    pub(super) times: u32,
}
