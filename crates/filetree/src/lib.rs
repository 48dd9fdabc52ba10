//! A file tree in pages of memory that outlive the component that serves it.
//!
//! The server may be killed between any two stores; the pages stay, and the next instance calls
//! [`Tree::open`], which repairs half-done operations. An acknowledged one is never lost, and an
//! operation that was not acknowledged has happened or not (a write may have happened in part).
//!
//! # How
//! There is no journal. Every operation has one store that makes it true (its *commit*): the header
//! of a directory entry, the size of a file, the kind of an inode. The page that it points to is complete
//! before, the one that it no longer points to is freed after. A kill in between leaves pages and inodes
//! that nothing points to; [`Tree::open`] walks the tree from its root and rebuilds all free lists
//! from what it did not find. Only a rename that replaces a file needs a note ([`layout::MOVING`]).
//!
//! # What is where
//! [`layout`] defines the words; [`Pages`] is the memory. A file's content is either in pages of the
//! tree or a range of the boot archive, which is copied when it is first written to.
//!
//! # Who pays
//! Each page is charged to a *payer*, a small number that the server maps to an account. Free pages
//! are kept per class of payers ([`layout::CLASSES`]), so that with fewer payers than classes nobody
//! uses a page for which another one pays. [`Tree::give_back`] returns free pages.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod allocate;
mod audit;
mod blocks;
mod directory;
mod entry;
pub mod layout;
mod path;
mod recover;
mod tree;

pub use audit::Usage;
pub use path::{MAX_DEPTH, normalize};
pub use tree::{Entry, Stat, Tree};

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
/// Longest name in bytes.
pub const MAX_NAME: usize = 120;

/// The memory that the tree lives in: pages numbered from 0, words of 8 bytes.
///
/// Stores must reach the memory in program order, seen from an instance that comes after a kill.
pub trait Pages {
    /// Reads a word of a page that is present.
    fn load(&self, page: u32, word: usize) -> u64;
    /// Reads words of a page that is present: for many of one page.
    #[inline]
    fn loads(&self, page: u32) -> impl Fn(usize) -> u64 {
        move |word| self.load(page, word)
    }
    /// Writes a word.
    fn store(&mut self, page: u32, word: usize, value: u64);
    /// Shows bytes of a page, to be copied.
    fn read(&self, page: u32, offset: usize, length: usize, look: impl FnOnce(&[u8]));
    /// Has `fill` write bytes of a page: in any order, but after earlier and before later stores.
    fn write(&mut self, page: u32, offset: usize, length: usize, fill: impl FnOnce(&mut [u8]));
    /// Zeroes bytes of a page, ordered as [`Pages::write`].
    fn clear(&mut self, page: u32, offset: usize, length: usize);
    /// Makes a page present and charges it to the payer; does nothing if it is present.
    fn populate(&mut self, page: u32, payer: u32) -> Result<(), Error>;
    /// Gives a page back, if it is present.
    fn release(&mut self, page: u32);
    /// Is page 0 there (and with it all that follows)? Asked once, by [`Tree::open`].
    fn exists(&self) -> bool;
    /// The boot archive.
    fn archive(&self) -> &[u8];
}

/// Where the bytes go that are read.
pub trait Sink {
    /// Bytes there is room for.
    fn room(&self) -> usize;
    /// Takes these, for a position that has room for them.
    fn put(&mut self, at: usize, bytes: &[u8]);
}

impl Sink for &mut [u8] {
    fn room(&self) -> usize {
        self.len()
    }
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// Where the bytes come from that are written.
pub trait Origin {
    /// Bytes there are.
    fn count(&self) -> usize;
    /// Gives those from a position on, as many as there are then.
    fn take(&self, at: usize, into: &mut [u8]);
}

impl Origin for &[u8] {
    fn count(&self) -> usize {
        self.len()
    }
    fn take(&self, at: usize, into: &mut [u8]) {
        into.copy_from_slice(&self[at..at + into.len()]);
    }
}

/// Why an operation was refused. Nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// There is no entry of that name.
    NotFound,
    /// There is an entry of that name.
    Exists,
    /// A part of the path before the last is not a directory, or the operation needs one.
    NotADirectory,
    /// The operation cannot be done to a directory.
    IsADirectory,
    /// The directory has entries.
    NotEmpty,
    /// A name is empty, `.` or `..`, or has a `/` or zero byte in it.
    BadName,
    /// A name is longer than [`MAX_NAME`].
    NameTooLong,
    /// The payer's account is empty, or there is no memory.
    NoSpace,
    /// The file would be larger than [`layout::MAX_FILE_BYTES`].
    TooLarge,
    /// The file was deleted since it was opened.
    Stale,
    /// The root directory has no name, and is neither removed nor moved.
    IsRoot,
    /// A directory cannot be moved into itself.
    IntoItself,
    /// An archive reference outside the archive.
    BadReference,
    /// A directory on the way may not be entered.
    Denied,
}

/// A file or directory: an inode and the generation that says it is still the same one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct Node {
    /// Number of the inode.
    pub inode: u32,
    /// Generation; below 2^40.
    pub generation: u64,
}

/// The kind of an inode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
}
