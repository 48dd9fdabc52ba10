//! The words in the pages.
//!
//! ```text
//! page 0          superblock
//! page 1, 512·k   table: one word per page (512 of them) that says who pays or that it is a hole
//! other           inodes (16 per page), directory entries (32 per page), file content, indirect blocks, or free
//! ```
//! Numbers of pages fit 32 bits; 0 means none, as page 0 is never anything else.

use crate::PAGE_BYTES;

/// Words of a page.
pub const PAGE_WORDS: usize = PAGE_BYTES / 8;

/// First word of the superblock: "cairntr" and the version of this layout. Written last.
pub const MAGIC_VALUE: u64 = u64::from_le_bytes(*b"cairntr2");
/// Superblock: see [`MAGIC_VALUE`].
pub const MAGIC: usize = 0;
/// Superblock: pages that were ever used, holes included.
pub const COUNT: usize = 1;
/// Superblock: last generation given to an inode.
pub const GENERATION: usize = 2;
/// Superblock: first free inode.
pub const FREE_INODES: usize = 3;
/// Superblock: first hole.
pub const HOLES: usize = 4;
/// Superblock: directory slot that is the source of a rename in progress.
pub const MOVING: usize = 5;
/// Superblock: a word for the server: the note made with [`crate::Tree::set_note`].
pub const NOTE: usize = 6;
/// Superblock: first free page of each class of payers.
pub const FREE_PAGES: usize = 64;
/// Classes of payers.
pub const CLASSES: usize = 64;

/// Table word of a page that is present: payer in the upper bits.
pub const PRESENT: u64 = 1;
/// Table word of a hole: the next hole in the upper bits.
pub const HOLE: u64 = 2;
/// Table word of table pages and the superblock.
pub const FIXED: u64 = 3;
/// Bits of the kind of a table word.
pub const TABLE_SHIFT: u32 = 8;

/// The page that holds the table word of a page.
pub const fn table_page(page: u32) -> u32 {
    let first = page & !(PAGE_WORDS as u32 - 1);
    if first == 0 { 1 } else { first }
}

/// Inodes per page.
pub const INODES: u32 = 16;
/// Words of an inode.
pub const INODE_WORDS: usize = PAGE_WORDS / INODES as usize;
/// The root directory: first inode of page 2.
pub const ROOT: u32 = 2 * INODES;

/// Inode: kind (low 8 bits: 0 free, [`KIND_FILE`], [`KIND_DIRECTORY`]) and generation. The commit of creation and deletion.
pub const INODE_KIND: usize = 0;
/// Inode: bytes, and [`IN_ARCHIVE`]. The commit of growth and truncation.
pub const INODE_SIZE: usize = 1;
/// Inode: where its content begins in the archive. Free inode: the next free one.
pub const INODE_ARCHIVE: usize = 2;
/// Inode: bit 0 = executable; the payer in the upper half.
pub const INODE_MODE: usize = 3;
/// Inode: nanoseconds of its last change.
pub const INODE_MODIFIED: usize = 4;
/// Inode: the directory it is in.
pub const INODE_PARENT: usize = 5;
/// Inode: page of pointers.
pub const INODE_INDIRECT: usize = 6;
/// Inode: page of pointers to pages of pointers.
pub const INODE_DOUBLE: usize = 7;
/// Inode: its compartment, a number that means something to the server; 0 = none.
pub const INODE_COMPARTMENT: usize = 8;
/// Inode: first direct pointer.
pub const INODE_DIRECT: usize = 9;
/// Direct pointers.
pub const DIRECT: u64 = (INODE_WORDS - INODE_DIRECT) as u64;

/// Kind of a file.
pub const KIND_FILE: u64 = 1;
/// Kind of a directory.
pub const KIND_DIRECTORY: u64 = 2;
/// In the size word: the content is a range of the archive, pointers mean nothing.
pub const IN_ARCHIVE: u64 = 1 << 63;

/// Pages of the largest file.
pub const MAX_FILE_PAGES: u64 = DIRECT + (PAGE_WORDS as u64) + (PAGE_WORDS * PAGE_WORDS) as u64;
/// Bytes of the largest file.
pub const MAX_FILE_BYTES: u64 = MAX_FILE_PAGES * PAGE_BYTES as u64;

/// Directory entries per page.
pub const ENTRIES: u32 = 32;
/// Words of a directory entry: a header (inode, bytes of the name, hash; 0 = free; its commit) and the name.
pub const ENTRY_WORDS: usize = PAGE_WORDS / ENTRIES as usize;
