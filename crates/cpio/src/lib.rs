//! The boot archive: a cpio archive in its *newc* form (`070701`), as `cpio -H newc` writes it.
//!
//! [`Archive`] is a reader over bytes that nobody vouched for: it allocates nothing, follows no
//! pointer, never panics, and accepts only what a strict writer makes, so that the nucleus,
//! `roottask` and `ramfs` agree on what an archive says. [`Archive::check`] walks all of it once;
//! afterwards [`Archive::find`] and iteration cannot meet an error that was not reported before.
//! The writer (feature `write`) makes archives that are the same, byte for byte, for the same files.
//!
//! # The format
//! Each member is a header of 110 bytes (`070701` and thirteen numbers of eight hexadecimal digits),
//! the name with a NUL, padding to four bytes, the data, padding to four bytes. The writer puts more NULs
//! after a name, as part of its field, where a file's data is to begin at a page of the archive. A further name of a
//! file is a member without data that has the file's inode number; both count their names as links. A member called
//! `TRAILER!!!` ends the archive; the rest must be zero (padding to a block).
//! Source: "cpio(5)", section "New ASCII Format".
#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(feature = "write", test))]
extern crate alloc;

mod read;
#[cfg(any(feature = "write", test))]
mod write;

pub use read::{Archive, Entry, Error, ErrorKind, Kind};
#[cfg(any(feature = "write", test))]
pub use write::{WriteError, Writer};

/// Bytes of a member's header.
pub const HEADER_BYTES: usize = 110;
/// Most bytes a name may have, the NUL not counted.
pub const MAX_NAME_BYTES: usize = 255;
/// Most bytes an archive may have.
pub const MAX_ARCHIVE_BYTES: usize = 1 << 30;
/// Bytes of a page, at which the data of a file of this length and more begins.
pub const PAGE: usize = 4096;
/// The first bytes of each header.
pub(crate) const MAGIC: &[u8; 6] = b"070701";
/// The name of the member that ends the archive.
pub(crate) const TRAILER: &str = "TRAILER!!!";
/// Type bits of a mode.
pub(crate) const TYPE_MASK: u32 = 0o170_000;
/// Permissions to execute.
pub(crate) const EXECUTABLE: u32 = 0o111;
/// A folder.
pub(crate) const TYPE_FOLDER: u32 = 0o040_000;
/// A regular file.
pub(crate) const TYPE_FILE: u32 = 0o100_000;
