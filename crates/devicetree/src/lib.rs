//! The flattened device tree (Devicetree Specification, release 0.4, chapter 5): the description of a machine by its firmware.
//!
//! [`Tree::new`] looks at all of it once: header, tokens, names, depth. A tree that it accepts can be walked without an error;
//! nothing here allocates, panics, or takes longer than the device tree is long. Values of properties are still anybody's:
//! each reader checks what it needs.
//!
//! A device is [`Found`] by [`Tree::walk`], which knows the buses above it: [`Found::registers`] gives addresses as the
//! CPU sees them.
#![no_std]
#![forbid(unsafe_code)]

mod cells;
mod memory;
mod pci;
mod walk;

pub use cells::Range;
pub use memory::{MAX_RANGES, Memory};
pub use pci::Window;
pub use walk::Found;

use cells::{cell, number, text};

const MAGIC: u32 = 0xd00d_feed;
/// Bytes of the header (version 17).
pub const HEADER_BYTES: usize = 40;
/// Bytes that a device tree may have.
pub const MAX_BYTES: usize = 2 << 20;
/// Nodes above a node, with itself, at most.
pub const MAX_DEPTH: usize = 16;

const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROPERTY: u32 = 3;
const NOP: u32 = 4;
const END: u32 = 9;

/// Why a device tree is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// It does not begin with the number of a device tree.
    NoTree,
    /// It is larger than [`MAX_BYTES`], or smaller than its header.
    Size,
    /// It ends before it should, or a part lies outside of it.
    CutOff,
    /// It was written for readers that come later than version 17.
    Version,
    /// A token that there is not, or one where it may not be.
    Token,
    /// More than [`MAX_DEPTH`] nodes in each other.
    TooDeep,
    /// Memory is reserved at a place that cannot be determined.
    Reserved,
}

impl Error {
    /// For people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::NoTree => "the loader gave no device tree",
            Self::Size => "the device tree has an impossible size",
            Self::CutOff => "the device tree is cut off",
            Self::Version => "the device tree has a version that is not understood",
            Self::Token => "the device tree is malformed",
            Self::TooDeep => "the device tree is too deep",
            Self::Reserved => "the device tree reserves memory at an address that cannot be determined",
        }
    }
}

/// A tree that was looked at.
#[derive(Clone, Copy)]
pub struct Tree<'a> {
    structure: &'a [u8],
    strings: &'a [u8],
    /// The memory reservation block (5.3).
    reserved: &'a [u8],
}

/// One token of the structure.
pub(crate) enum Token<'a> {
    Begin { name: &'a [u8] },
    End,
    Property { name: &'a [u8], value: &'a [u8] },
    Last,
}

/// How many bytes a device tree has, by its first [`HEADER_BYTES`].
pub fn total_bytes(header: &[u8]) -> Result<usize, Error> {
    if cell(header, 0) != Some(MAGIC) {
        return Err(Error::NoTree);
    }
    let bytes = cell(header, 4).ok_or(Error::CutOff)? as usize;
    if (HEADER_BYTES..=MAX_BYTES).contains(&bytes) { Ok(bytes) } else { Err(Error::Size) }
}

impl<'a> Tree<'a> {
    /// Looks at all of a device tree.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        // Loaders leave room behind: all that counts must be there, not all that the header says.
        let bytes = &bytes[..total_bytes(bytes)?.min(bytes.len())];
        let field = |at| cell(bytes, at).ok_or(Error::CutOff);
        // "Last compatible version": 16 and 17 have the same structure.
        if field(24)? > 17 || field(20)? < 16 {
            return Err(Error::Version);
        }
        let part = |start: u32, length: u32| {
            let start = start as usize;
            bytes.get(start..start.saturating_add(length as usize)).ok_or(Error::CutOff)
        };
        let structure = match field(20)? {
            // Without a size of the structure: up to the end.
            16 => bytes.get(field(8)? as usize..).ok_or(Error::CutOff)?,
            _ => part(field(8)?, field(36)?)?,
        };
        let reserved = bytes.get(field(16)? as usize..).ok_or(Error::CutOff)?;
        let tree = Self { structure, strings: part(field(12)?, field(32)?)?, reserved };
        tree.check()?;
        Ok(tree)
    }

    /// Reads a device tree that was refused, up to where it is damaged: for last words about it. `None` if that is
    /// nothing. Nothing in such a tree may be trusted.
    pub fn remains(bytes: &'a [u8]) -> Option<Self> {
        let part = |start| bytes.get(cell(bytes, start)? as usize..);
        (cell(bytes, 0)? == MAGIC).then_some(())?;
        Some(Self { structure: part(8)?, strings: part(12)?, reserved: &[] })
    }

    /// Memory that is not to be used, besides that of nodes (5.3).
    pub fn reservations(&self) -> impl Iterator<Item = Range> + use<'a> {
        self.reserved.chunks_exact(16).map_while(|entry| {
            let range = Range { start: number(entry, 0, 2)?, bytes: number(entry, 8, 2)? };
            (range.bytes != 0).then_some(range)
        })
    }

    /// Bytes from the header to the last one that counts.
    pub fn used_bytes(bytes: &[u8]) -> usize {
        let end = |start, length| Some(cell(bytes, start)? as usize + cell(bytes, length)? as usize);
        end(8, 36).max(end(12, 32)).unwrap_or(0).min(bytes.len())
    }

    fn check(&self) -> Result<(), Error> {
        let (mut at, mut depth, mut begun, mut may_have_properties) = (0, 0, false, false);
        loop {
            match self.token(&mut at)? {
                Token::Begin { .. } if begun && depth == 0 => return Err(Error::Token),
                Token::Begin { .. } => {
                    depth += 1;
                    begun = true;
                    may_have_properties = true;
                    if depth > MAX_DEPTH {
                        return Err(Error::TooDeep);
                    }
                }
                Token::End if depth > 0 => {
                    depth -= 1;
                    may_have_properties = false;
                }
                // Properties stand before the nodes below (5.4.2).
                Token::Property { .. } if may_have_properties => {}
                Token::Last if begun && depth == 0 => return Ok(()),
                _ => return Err(Error::Token),
            }
        }
    }

    /// The token at an offset, which goes behind it.
    pub(crate) fn token(&self, at: &mut usize) -> Result<Token<'a>, Error> {
        loop {
            let kind = cell(self.structure, *at).ok_or(Error::CutOff)?;
            *at += 4;
            return Ok(match kind {
                NOP => continue,
                BEGIN_NODE => {
                    let name = self.structure.get(*at..).and_then(text).ok_or(Error::CutOff)?;
                    *at = (*at + name.len() + 1).next_multiple_of(4);
                    Token::Begin { name }
                }
                END_NODE => Token::End,
                PROPERTY => {
                    let length = cell(self.structure, *at).ok_or(Error::CutOff)? as usize;
                    let name = cell(self.structure, *at + 4).ok_or(Error::CutOff)? as usize;
                    let name = self.strings.get(name..).and_then(text).ok_or(Error::CutOff)?;
                    let value = self.structure.get(*at + 8..(*at + 8).saturating_add(length)).ok_or(Error::CutOff)?;
                    *at = (*at + 8 + length).next_multiple_of(4);
                    Token::Property { name, value }
                }
                END => Token::Last,
                _ => return Err(Error::Token),
            });
        }
    }
}
