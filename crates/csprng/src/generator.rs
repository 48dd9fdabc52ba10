//! ChaCha20 with fast key erasure (D. J. Bernstein, "Fast-key-erasure random-number generators", 2017).
//!
//! The key makes a block of key stream once: its beginning is the next key, the rest is what is given. The old
//! key is overwritten before anything is given, and what is given is overwritten here. So what is kept at any
//! time says nothing about what was given before.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};
use zeroize::Zeroize;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;
/// Bytes made at once for small requests: as many as the cipher makes in one go, without the next key.
const STOCK_BYTES: usize = 256 - KEY_BYTES;
/// Says what the hash of a seed is for, so that no other use of it gives the same.
const PURPOSE: &[u8] = b"cairn csprng seed 1";

/// See the module. It gives what follows from its seeds: with the same seeds the same.
pub struct Generator {
    key: [u8; KEY_BYTES],
    /// Made and not given yet: the bytes that were given are overwritten.
    stock: [u8; STOCK_BYTES],
    /// Bytes of it that were given.
    used: usize,
}

impl Default for Generator {
    fn default() -> Self {
        Self::new()
    }
}

impl Generator {
    /// One whose output everybody knows, until something is mixed in.
    pub const fn new() -> Self {
        Self { key: [0; KEY_BYTES], stock: [0; STOCK_BYTES], used: STOCK_BYTES }
    }

    /// Mixes bytes of sources in. An attacker who knows only some of them, or the output before, does not know
    /// the output from now on; neither does one who chose some of them.
    pub fn mix(&mut self, sources: &[&[u8]]) {
        let mut hash = Sha256::new();
        hash.update(PURPOSE);
        hash.update(self.key);
        for source in sources {
            // Lengths: no two lists of sources give the same bytes.
            hash.update((source.len() as u64).to_le_bytes());
            hash.update(source);
        }
        hash.finalize_into((&mut self.key).into());
        self.stock.zeroize();
        self.used = STOCK_BYTES;
    }

    /// Fills the buffer.
    pub fn fill(&mut self, into: &mut [u8]) {
        if into.len() > STOCK_BYTES {
            return self.draw(into);
        }
        let (mut place, mut missing) = (0, into.len());
        while missing > 0 {
            if self.used == STOCK_BYTES {
                self.restock();
            }
            let count = missing.min(STOCK_BYTES - self.used);
            let given = &mut self.stock[self.used..self.used + count];
            into[place..place + count].copy_from_slice(given);
            given.zeroize();
            self.used += count;
            place += count;
            missing -= count;
        }
    }

    /// Makes stock.
    fn restock(&mut self) {
        let mut stock = [0; STOCK_BYTES];
        self.draw(&mut stock);
        self.stock.copy_from_slice(&stock);
        stock.zeroize();
        self.used = 0;
    }

    /// The next key, then the bytes, from one run of the cipher; the old key is gone then.
    fn draw(&mut self, into: &mut [u8]) {
        // The cipher overwrites its state when it goes out of scope.
        let mut stream = ChaCha20Rng::from_seed(self.key);
        stream.fill_bytes(&mut self.key);
        stream.fill_bytes(into);
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.key.zeroize();
        self.stock.zeroize();
    }
}

/// Does the cipher give, on this machine, what its standard says (RFC 8439, A.1, test vector 1)?
pub fn works() -> bool {
    const FIRST: [u8; 16] =
        [0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90, 0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86, 0xbd, 0x28];
    let mut bytes = [0; 16];
    ChaCha20Rng::from_seed([0; KEY_BYTES]).fill_bytes(&mut bytes);
    bytes == FIRST
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    fn seeded(seed: &[u8]) -> Generator {
        let mut generator = Generator::new();
        generator.mix(&[seed]);
        generator
    }

    fn draw(generator: &mut Generator, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        generator.fill(&mut bytes);
        bytes
    }

    /// Everything that is kept.
    fn kept(generator: &Generator) -> Vec<u8> {
        [&generator.key[..], &generator.stock[..]].concat()
    }

    fn holds(kept: &[u8], part: &[u8]) -> bool {
        kept.windows(part.len()).any(|window| window == part)
    }

    #[test]
    fn the_cipher_is_the_standard_one() {
        // RFC 8439, A.1: test vectors 1 and 2 are two blocks of one stream, of the key of zeros.
        let blocks = "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7\
                      da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586\
                      9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed\
                      29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f";
        let expected: Vec<u8> =
            (0..128).map(|place| u8::from_str_radix(&blocks[2 * place..2 * place + 2], 16).unwrap()).collect();
        let mut bytes = [0; 128];
        ChaCha20Rng::from_seed([0; KEY_BYTES]).fill_bytes(&mut bytes);
        assert_eq!(bytes[..], expected);
        assert!(works());
        // RFC 8439, A.1, test vector 3: only the last bit of the key is 1; it is block 1 there.
        let mut key = [0; KEY_BYTES];
        key[31] = 1;
        let mut stream = ChaCha20Rng::from_seed(key);
        stream.fill_bytes(&mut bytes);
        assert_eq!(bytes[64..72], [0x3a, 0xeb, 0x52, 0x24, 0xec, 0xf8, 0x49, 0x92]);
    }

    #[test]
    fn output_is_the_stream_after_the_next_key() {
        let mut generator = Generator::new();
        let mut expected = [0; 1000];
        ChaCha20Rng::from_seed([0; KEY_BYTES]).fill_bytes(&mut expected);
        assert_eq!(draw(&mut generator, 500), expected[KEY_BYTES..KEY_BYTES + 500]);
        assert_eq!(generator.key, expected[..KEY_BYTES]);
    }

    #[test]
    fn keys_and_what_was_given_are_erased() {
        for count in [1, 16, STOCK_BYTES, STOCK_BYTES + 1, 5000] {
            let mut generator = seeded(b"seed");
            let key = generator.key;
            let given = draw(&mut generator, count);
            let kept = kept(&generator);
            assert!(!holds(&kept, &key), "the key stays after {count} bytes");
            if count >= 16 {
                assert!(!holds(&kept, &given[..16]) && !holds(&kept, &given[count - 16..]), "{count} bytes stay");
            }
            assert!(generator.stock[..generator.used.min(count)].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn a_seed_discards_what_was_made_before() {
        let mut generator = seeded(b"one");
        draw(&mut generator, 1);
        let before = kept(&generator);
        generator.mix(&[b"two"]);
        let after = kept(&generator);
        assert!(!holds(&after, &before[..KEY_BYTES]) && !holds(&after, &before[KEY_BYTES + 1..]));
        assert_eq!(generator.used, STOCK_BYTES);
    }

    #[test]
    fn every_source_and_its_place_matter() {
        let lists: [&[&[u8]]; 7] =
            [&[b"ab", b"c"], &[b"a", b"bc"], &[b"abc"], &[b"c", b"ab"], &[b"abc", b""], &[b"", b"abc"], &[]];
        let outputs: Vec<Vec<u8>> = lists
            .iter()
            .map(|list| {
                let mut generator = Generator::new();
                generator.mix(list);
                draw(&mut generator, 32)
            })
            .collect();
        for (number, output) in outputs.iter().enumerate() {
            assert!(!outputs[..number].contains(output), "{number}");
        }
    }

    proptest! {
        #[test]
        fn a_stream_never_repeats(seed: [u8; 8], counts in proptest::collection::vec(1usize..700, 2..20)) {
            let mut generator = seeded(&seed);
            let all: Vec<u8> = counts.iter().flat_map(|count| draw(&mut generator, *count)).collect();
            let mut seen = std::collections::HashSet::new();
            for window in all.windows(12) {
                prop_assert!(seen.insert(window.to_vec()));
            }
        }

        #[test]
        fn the_same_seed_gives_the_same(seed: [u8; 8], counts in proptest::collection::vec(0usize..700, 0..9)) {
            let (mut one, mut other) = (seeded(&seed), seeded(&seed));
            for count in counts {
                prop_assert_eq!(draw(&mut one, count), draw(&mut other, count));
            }
        }
    }
}
