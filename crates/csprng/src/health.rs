//! Checks of what a source gives, after NIST SP 800-90B, 4.4: a source that broke is not used.
//!
//! They find what breaks in practice (the same again and again, all zeros, all ones, one value much too often).
//! They do not say how good a source is: no check of its output can.

/// Equal bytes in a row at which a source counts as broken (SP 800-90B, 4.4.1: 1 + 40 / 8 for bytes of 8 bits of
/// entropy and a false alarm in 2^40).
const MAX_EQUAL: u32 = 6;
/// Bytes over which values are counted (SP 800-90B, 4.4.2).
const WINDOW: u32 = 512;
/// So often may the window's first byte come again in it: in expectation twice, and more than this once in 2^40.
const MAX_FREQUENT: u32 = 24;
/// Bytes of a block that must not come twice in a row.
const BLOCK: usize = 16;

/// The failure of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unhealthy {
    /// The same byte too often in a row.
    Stuck,
    /// One byte much more frequent than others.
    Biased,
    /// The same block of bytes twice in a row.
    Repeats,
}

impl core::fmt::Display for Unhealthy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Stuck => "it gives the same byte again and again",
            Self::Biased => "it gives one byte much too often",
            Self::Repeats => "it gives the same bytes twice",
        })
    }
}

/// The checks of one source, over all that it ever gave. A source that failed once stays unhealthy.
pub struct Health {
    last: Option<u8>,
    equal: u32,
    /// The window's first byte, bytes of the window so far, and how often that byte came.
    first: u8,
    seen: u32,
    frequent: u32,
    block: Option<[u8; BLOCK]>,
    failed: Option<Unhealthy>,
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

impl Health {
    /// Of a source that gave nothing yet.
    pub const fn new() -> Self {
        Self { last: None, equal: 0, first: 0, seen: 0, frequent: 0, block: None, failed: None }
    }

    /// Looks at what came; an error if it, or anything before it, is not to be used.
    pub fn check(&mut self, bytes: &[u8]) -> Result<(), Unhealthy> {
        for byte in bytes {
            self.byte(*byte);
        }
        for block in bytes.as_chunks::<BLOCK>().0 {
            // Sixteen equal bytes come by chance once in 2^128.
            if self.block == Some(*block) {
                self.failed.get_or_insert(Unhealthy::Repeats);
            }
            self.block = Some(*block);
        }
        self.failed.map_or(Ok(()), Err)
    }

    fn byte(&mut self, byte: u8) {
        self.equal = if self.last == Some(byte) { self.equal + 1 } else { 1 };
        self.last = Some(byte);
        if self.equal >= MAX_EQUAL {
            self.failed.get_or_insert(Unhealthy::Stuck);
        }
        if self.seen == 0 {
            self.first = byte;
            self.frequent = 0;
        }
        self.frequent += u32::from(byte == self.first);
        self.seen = (self.seen + 1) % WINDOW;
        if self.frequent > MAX_FREQUENT {
            self.failed.get_or_insert(Unhealthy::Biased);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Generator;
    use std::vec::Vec;

    fn good(count: usize, seed: u8) -> Vec<u8> {
        let mut generator = Generator::new();
        generator.mix(&[&[seed]]);
        let mut bytes = std::vec![0; count];
        generator.fill(&mut bytes);
        bytes
    }

    #[test]
    fn good_bytes_pass_for_long() {
        for seed in 0..20 {
            let mut health = Health::new();
            for part in good(1 << 16, seed).chunks(48) {
                assert_eq!(health.check(part), Ok(()), "seed {seed}");
            }
        }
    }

    #[test]
    fn all_ones_and_all_zeros_are_stuck() {
        for value in [0, 0xff, 0x55] {
            assert_eq!(Health::new().check(&[value; 8]), Err(Unhealthy::Stuck));
        }
        assert_eq!(Health::new().check(&[7; MAX_EQUAL as usize - 1]), Ok(()));
    }

    #[test]
    fn equal_bytes_count_over_calls() {
        let mut health = Health::new();
        for _ in 1..MAX_EQUAL {
            assert_eq!(health.check(&[9]), Ok(()));
        }
        assert_eq!(health.check(&[9]), Err(Unhealthy::Stuck));
    }

    #[test]
    fn a_block_that_repeats_is_found_over_calls() {
        let (block, mut health) = (good(BLOCK, 1), Health::new());
        assert_eq!(health.check(&block), Ok(()));
        assert_eq!(health.check(&block), Err(Unhealthy::Repeats));
    }

    #[test]
    fn one_value_too_often_is_found() {
        // Every other byte is 0x80, which a count of equal bytes in a row does not see.
        let mut bytes = good(2 * WINDOW as usize, 2);
        bytes.iter_mut().step_by(2).for_each(|byte| *byte = 0x80);
        assert_eq!(Health::new().check(&bytes), Err(Unhealthy::Biased));
    }

    #[test]
    fn a_failed_source_stays_failed() {
        let mut health = Health::new();
        assert!(health.check(&[0; 8]).is_err());
        assert_eq!(health.check(&good(64, 3)), Err(Unhealthy::Stuck));
    }
}
