//! State that survives the component: records and values in pages that outlive it.
//!
//! A component may be killed between any two stores; its pages stay, and the next instance opens them. A record, a value, or a
//! change of several values is there whole or not at all: an acknowledged change is never lost.
//!
//! # How
//! | pages | what |
//! |---|---|
//! | 0 | the *mark*, with the version of the content; the *state*: which half counts, and how many bytes of it |
//! | 1, 3, 5 … | one half: records, one after the other, each after its length |
//! | 2, 4, 6 … | the other half |
//!
//! A record is written after the last one, then one store of the state makes it count. [`Log::keep`] writes what shall stay into
//! the other half, then one store of the state makes that half count.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod log;
mod values;

pub use log::{Log, Record};
pub use values::{Change, MAX_KEY, Values};

use core::fmt;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;

/// The memory: pages numbered from 0, words of 8 bytes.
///
/// Stores must reach the memory in program order, seen from an instance that comes after a kill.
pub trait Pages {
    /// Pages there can be.
    fn limit(&self) -> u32;
    /// Is the page there?
    fn is_present(&self, page: u32) -> bool;
    /// Makes a page present, clear if it was not; does nothing if it was. False: there is no memory.
    fn populate(&mut self, page: u32) -> bool;
    /// Gives a page back, if it is present.
    fn release(&mut self, page: u32);
    /// Reads a word of a page that is present.
    fn load(&self, page: u32, word: usize) -> u64;
    /// Writes a word of a page that is present.
    fn store(&mut self, page: u32, word: usize, value: u64);
    /// Copies bytes of a page that is present.
    fn read(&self, page: u32, offset: usize, into: &mut [u8]);
    /// Copies bytes into a page that is present: in any order, but after earlier and before later stores.
    fn write(&mut self, page: u32, offset: usize, bytes: &[u8]);
}

/// Why something was refused. Nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// It does not fit, also if all is thrown away that no longer counts.
    NoSpace,
    /// A key has [`MAX_KEY`] bytes at most.
    KeyTooLong,
    /// The pages hold something else.
    Corrupt,
    /// The pages hold content of this version.
    OtherVersion(u32),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSpace => f.write_str("no room for it is left in the vault, or in the account of its component"),
            Self::KeyTooLong => write!(f, "a key has {MAX_KEY} bytes at most"),
            Self::Corrupt => f.write_str("the content of the vault was not written by this"),
            Self::OtherVersion(version) => write!(f, "the content of the vault has version {version}"),
        }
    }
}

impl core::error::Error for Error {}
