//! An entry of a directory: its name as it stands there, its place, its header.

use crate::layout::*;
use crate::{Error, MAX_NAME};

/// A name as it stands in an entry.
pub(crate) struct Name {
    pub words: [u64; NAME_WORDS],
    pub length: usize,
    /// Header without the inode.
    pub key: u64,
}

/// Whether one of the eight bytes of a word is this one.
fn has(word: u64, byte: u8) -> bool {
    let [ones, tops] = [0x01, 0x80].map(|byte| u64::from_le_bytes([byte; 8]));
    let differs = word ^ (ones * u64::from(byte));
    // Only a byte of zero borrows and has had no top bit.
    differs.wrapping_sub(ones) & !differs & tops != 0
}

impl Name {
    pub fn new(name: &[u8]) -> Result<Self, Error> {
        if name.len() > MAX_NAME {
            return Err(Error::NameTooLong);
        }
        if matches!(name, b"" | b"." | b"..") {
            return Err(Error::BadName);
        }
        let (whole, rest) = name.as_chunks();
        let mut words = [0; NAME_WORDS];
        let mut hash = 0u64;
        let mut put = |index: usize, word: u64, padding: u64| {
            words[index] = word;
            // Multiplication by an odd constant spreads upwards; the top bits are used.
            hash = (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            if has(word | padding, 0) || has(word, b'/') { Err(Error::BadName) } else { Ok(()) }
        };
        for (index, bytes) in whole.iter().enumerate() {
            put(index, u64::from_le_bytes(*bytes), 0)?;
        }
        if !rest.is_empty() {
            let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            put(whole.len(), last, u64::MAX << (8 * rest.len()))?;
        }
        Ok(Self { words, length: name.len(), key: (hash & !0xff_ffff_ffff) | (name.len() as u64) << 32 })
    }

    pub fn header(&self, inode: u32) -> u64 {
        self.key | u64::from(inode)
    }

    pub fn used(&self) -> usize {
        self.length.div_ceil(8)
    }
}

/// A place for an entry: page · 32 + index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot(pub u64);

impl Slot {
    pub fn new(page: u32, index: u32) -> Self {
        Self(u64::from(page) * u64::from(ENTRIES) + u64::from(index))
    }
    pub fn page(self) -> u32 {
        (self.0 / u64::from(ENTRIES)) as u32
    }
    pub fn word(self) -> usize {
        (self.0 % u64::from(ENTRIES)) as usize * ENTRY_WORDS
    }
}

pub(crate) const fn header_inode(header: u64) -> u32 {
    header as u32
}

pub(crate) const fn header_length(header: u64) -> usize {
    (header >> 32 & 0xff) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_slash_or_a_zero_is_none_wherever_it_stands() {
        for length in 1..=MAX_NAME {
            let name = &mut [0xff; MAX_NAME][..length];
            assert!(Name::new(name).is_ok_and(|name| name.length == length));
            for place in 0..length {
                for (byte, is_good) in [(b'/', false), (0, false), (1, true), (b'/' ^ 0x80, true), (0x80, true)] {
                    name[place] = byte;
                    assert_eq!(Name::new(name).is_ok(), is_good, "{byte} at {place} of {length}");
                }
                name[place] = 0xff;
            }
        }
        let name = Name::new(b"12345678ab").expect("a name");
        assert_eq!(name.words[..3], [u64::from_le_bytes(*b"12345678"), u64::from_le_bytes(*b"ab\0\0\0\0\0\0"), 0]);
        assert!(Name::new(&[b'a'; MAX_NAME + 1]).is_err() && Name::new(b"..").is_err() && Name::new(b"...").is_ok());
    }
}
