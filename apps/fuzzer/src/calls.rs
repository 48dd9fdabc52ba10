//! Calls of a child, each counted with its answer.

use runtime::abi::{Control, Error, layout, op};
use runtime::arch;

use fuzzer::histogram::{self, Histogram};
use tool::random::Random;

/// First index of the things: the runtime's entries stand before.
pub const FIRST: u64 = 192;
/// Indices that are used.
pub const THINGS: u64 = 48;
/// A page of ours that may be mapped elsewhere: in the heap, never used by the program itself.
pub const PAGE: u64 = layout::PROGRAM_END + 0x80_0000;

/// One that makes calls.
pub struct Child {
    /// The source of all random choices.
    pub random: Random,
    /// Its answers.
    pub histogram: Histogram,
    /// Index of a domain that calls are made on.
    pub victim: u64,
    /// Index of the account that pays for it.
    pub account: u64,
    /// Index of a semaphore.
    pub semaphore: u64,
    /// Calls that met a dead victim since it was made.
    pub refused_by_dead: u64,
    /// The port that something was sent to last.
    pub sent_to: u64,
}

impl Child {
    /// Makes a kernel operation and counts its answer.
    pub fn call(&mut self, index: usize, words: [u64; 6]) -> u64 {
        let status = self.enter(index, words);
        let row = if index < op::COUNT { index } else { histogram::OTHER };
        self.histogram.count(row, status);
        if status == Error::PeerDied as u64 {
            self.refused_by_dead += 1;
        }
        status
    }

    /// As [`Self::call`], uncounted.
    pub fn enter(&self, index: usize, words: [u64; 6]) -> u64 {
        let [word0, word1, word2, word3, word4, control] = words;
        // Words 5 to 8 are no operands, and go along through some portals only: in all other calls they change nothing.
        let all = [word0, word1, word2, word3, word4, word0, u64::MAX, layout::USER_END, word4 ^ control];
        // SAFETY: the drawn operands name nothing that this program lives on, see [`crate::child`].
        unsafe { arch::call_all_words(index, all, Control(control)).0 }
    }
}
