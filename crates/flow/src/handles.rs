//! Handles: a permutation of a counter, so that none comes twice and nobody guesses the next one.
//!
//! A Feistel network over twice 31 bits, with SipHash-2-4 as the function of each round (M. Luby, C. Rackoff, "How to construct
//! pseudorandom permutations from pseudorandom functions", 1988; J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", 2012), permutes
//! numbers of 62 bits. Half of these are no handles: the
//! network is applied again until one is (J. Black, P. Rogaway, "Ciphers with arbitrary finite domains", 2002, cycle walking).

use crate::Handle;
use core::hash::Hasher;
use siphasher::sip::SipHasher24;

/// Bits of a half.
const HALF: u32 = 31;
const MASK: u64 = (1 << HALF) - 1;
/// Four make a permutation that looks like any other to an observer of some thousand results; more are for more results.
const ROUNDS: u64 = 8;
/// How often the network is applied at most: once in 2^64 counters, none of the results is a handle, and there is none for it.
pub const MAX_TRIES: u32 = 64;

/// Gives handles.
#[derive(Clone, Copy)]
pub struct Handles {
    key: [u64; 2],
    counter: u64,
    /// The state of the network for the counter so far, both halves.
    halves: [u64; 2],
    /// Rounds of it, of all its applications.
    rounds: u64,
}

/// The result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// There is more to do.
    Again,
    /// The next handle.
    Handle(Handle),
    /// All were given out.
    Exhausted,
}

impl Handles {
    /// The key reveals all handles.
    pub const fn new(key: [u64; 2]) -> Self {
        Self { key, counter: 0, halves: [0; 2], rounds: 0 }
    }

    /// Makes a round of the network.
    #[inline(never)]
    pub fn step(&mut self) -> Next {
        if self.counter >> Handle::BITS != 0 {
            return Next::Exhausted;
        }
        if self.rounds == 0 {
            self.halves = [self.counter >> HALF, self.counter & MASK];
        }
        let [left, right] = self.halves;
        self.halves = [right, left ^ self.round(self.rounds % ROUNDS, right)];
        self.rounds += 1;
        if !self.rounds.is_multiple_of(ROUNDS) {
            return Next::Again;
        }
        let handle = Handle::new(self.halves[0] << HALF | self.halves[1]);
        if handle.is_some() || self.rounds == ROUNDS * u64::from(MAX_TRIES) {
            self.counter += 1;
            self.rounds = 0;
        }
        handle.map_or(Next::Again, Next::Handle)
    }

    /// The next handle, in as many steps as it takes.
    #[cfg(feature = "std")]
    pub fn next_handle(&mut self) -> Option<Handle> {
        loop {
            match self.step() {
                Next::Again => {}
                Next::Handle(handle) => return Some(handle),
                Next::Exhausted => return None,
            }
        }
    }

    /// A number of 31 bits.
    #[inline(never)]
    fn round(&self, round: u64, half: u64) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.key[0], self.key[1]);
        hasher.write_u64(round << HALF | half);
        hasher.finish() & MASK
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn none_comes_twice_and_all_fit() {
        let mut handles = Handles::new([7; 2]);
        let count = if cfg!(miri) { 10 } else { 20_000 };
        let given: HashSet<u64> = (0..count).map(|_| handles.next_handle().expect("a handle").number()).collect();
        assert_eq!(given.len(), count);
        assert!(given.iter().all(|number| number >> 61 == 0));
    }

    #[test]
    fn the_permutation_is_invertible() {
        let mut handles = Handles::new([9; 2]);
        for counter in 0..200 {
            let handle = handles.next_handle().expect("a handle");
            let mut number = handle.number();
            // As often as it takes: a number that is no handle is not where it began.
            loop {
                let (mut left, mut right) = (number >> HALF, number & MASK);
                for round in (0..ROUNDS).rev() {
                    (left, right) = (right ^ handles.round(round, left), left);
                }
                number = left << HALF | right;
                if Handle::new(number).is_some() {
                    break;
                }
            }
            assert_eq!(number, counter);
        }
    }

    #[test]
    fn the_last_counter_has_a_handle_and_then_there_are_none() {
        let mut handles = Handles { counter: (1 << 61) - 1, ..Handles::new([1; 2]) };
        assert!(handles.next_handle().is_some());
        assert_eq!(handles.next_handle(), None);
    }

    #[test]
    fn another_key_gives_others() {
        let first = |key| Handles::new([key; 2]).next_handle();
        assert_ne!(first(1), first(2));
    }

    /// Each bit of a handle changes about as often as not from one to the next.
    #[test]
    fn bits_do_not_follow_the_counter() {
        let mut handles = Handles::new([3; 2]);
        let mut before = handles.next_handle().expect("a handle").number();
        let count = if cfg!(miri) { return } else { 4_000 };
        let mut changes = [0; 61];
        for _ in 0..count {
            let next = handles.next_handle().expect("a handle").number();
            (0..61).for_each(|bit| changes[bit] += (next ^ before) >> bit & 1);
            before = next;
        }
        assert!(changes.iter().all(|changes| (1_800..2_200).contains(changes)), "{changes:?}");
    }
}
