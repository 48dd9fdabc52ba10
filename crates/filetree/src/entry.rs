//! An entry of a directory: its name as it stands there, its place, its header.

use crate::layout::*;
use crate::{Error, MAX_NAME};

/// A name that an entry can have.
pub(crate) struct Name<'a> {
    bytes: &'a [u8],
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

/// The words of a name as they stand in an entry: the last one is filled up with zeroes.
fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (whole, rest) = bytes.as_chunks();
    let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    whole.iter().map(|bytes| u64::from_le_bytes(*bytes)).chain((!rest.is_empty()).then_some(last))
}

impl<'a> Name<'a> {
    pub fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        if bytes.len() > MAX_NAME {
            return Err(Error::NameTooLong);
        }
        if matches!(bytes, b"" | b"." | b"..") {
            return Err(Error::BadName);
        }
        let mut hash = 0u64;
        let mut left = bytes.len();
        for word in words(bytes) {
            // Multiplication by an odd constant spreads upwards; the top bits are used.
            hash = (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let padding = if left < 8 { u64::MAX << (8 * left) } else { 0 };
            if has(word | padding, 0) || has(word, b'/') {
                return Err(Error::BadName);
            }
            left = left.saturating_sub(8);
        }
        Ok(Self { bytes, key: (hash & !0xff_ffff_ffff) | (bytes.len() as u64) << 32 })
    }

    pub fn header(&self, inode: u32) -> u64 {
        self.key | u64::from(inode)
    }

    /// As they stand in an entry.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        words(self.bytes)
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
            assert!(Name::new(name).is_ok_and(|name| header_length(name.key) == length));
            for place in 0..length {
                for (byte, is_good) in [(b'/', false), (0, false), (1, true), (b'/' ^ 0x80, true), (0x80, true)] {
                    name[place] = byte;
                    assert_eq!(Name::new(name).is_ok(), is_good, "{byte} at {place} of {length}");
                }
                name[place] = 0xff;
            }
        }
        let name = Name::new(b"12345678ab").expect("a name");
        assert!(name.words().eq([*b"12345678", *b"ab\0\0\0\0\0\0"].map(u64::from_le_bytes)));
        assert!(Name::new(&[b'a'; MAX_NAME + 1]).is_err() && Name::new(b"..").is_err() && Name::new(b"...").is_ok());
    }
}
