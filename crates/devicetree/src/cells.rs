//! The cells that values consist of.

/// Bytes of memory or registers, as the CPU sees them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Range {
    /// First physical address.
    pub start: u64,
    /// How many.
    pub bytes: u64,
}

impl Range {
    /// Where it ends.
    pub fn end(self) -> u64 {
        self.start.saturating_add(self.bytes)
    }
}

/// Four bytes, big-endian.
pub(crate) fn cell(bytes: &[u8], at: usize) -> Option<u32> {
    let (word, _) = bytes.get(at..)?.split_first_chunk()?;
    Some(u32::from_be_bytes(*word))
}

/// A number of one or two cells; of more the last two count.
pub(crate) fn number(bytes: &[u8], at: usize, cells: usize) -> Option<u64> {
    let mut value = 0;
    for index in 0..cells {
        value = value << 32 | cell(bytes, at + 4 * index)? as u64;
    }
    Some(value)
}

/// The bytes before the first NUL.
pub(crate) fn text(bytes: &[u8]) -> Option<&[u8]> {
    bytes.iter().position(|byte| *byte == 0).map(|end| &bytes[..end])
}
