//! Code, and its instructions.

use portalgen::Extent;

/// An instruction.
pub struct Instruction {
    /// Its first byte.
    pub at: usize,
    /// Bytes.
    pub length: usize,
    /// With names.
    pub text: String,
}

/// Code, and which part of it begins where.
pub struct Code {
    /// The code.
    pub bytes: Vec<u8>,
    /// Where its halves begin.
    pub extent: Extent,
    pub(crate) parts: Vec<(usize, &'static str)>,
}
