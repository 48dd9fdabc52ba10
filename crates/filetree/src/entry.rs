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

impl Name {
    pub fn new(name: &[u8]) -> Result<Self, Error> {
        if name.len() > MAX_NAME {
            return Err(Error::NameTooLong);
        }
        if matches!(name, b"" | b"." | b"..") || name.iter().any(|byte| *byte == b'/' || *byte == 0) {
            return Err(Error::BadName);
        }
        let mut words = [0; NAME_WORDS];
        let mut hash = 0u64;
        let (whole, rest) = name.as_chunks();
        let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let values = whole.iter().map(|bytes| u64::from_le_bytes(*bytes)).chain((!rest.is_empty()).then_some(last));
        for (word, value) in words.iter_mut().zip(values) {
            *word = value;
            // Multiplication by an odd constant spreads upwards; the top bits are used.
            hash = (hash.rotate_left(23) ^ *word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
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
