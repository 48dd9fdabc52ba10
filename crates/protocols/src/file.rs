//! Files and the tree they stand in.
//!
//! A `File` is a call entry of its own; reads and writes name their offset, so the server keeps no
//! state per opening, and a repeated call does no harm.

use idl::{codes, interface, returns_struct, scalar_enum};

codes! {
    /// Why a file or a file system refused.
    pub enum FileError {
        1 NotFound "no such file or directory"
        2 Exists "it exists already"
        3 NotADirectory "not a directory"
        4 IsADirectory "is a directory"
        5 NotEmpty "the directory is not empty"
        6 BadName "not a valid name"
        7 NameTooLong "the name is too long"
        8 NoSpace "no room for files is left: df shows how much there is, rm makes some"
        9 TooLarge "the file would be too large"
        10 Stale "the file was removed"
        11 IsRoot "that is the root directory"
        12 BadReference "damaged: refers to bytes outside the archive"
        13 ReadOnly "opened for reading only"
        14 Confined "not on the list of what this program may do with files"
        15 Flow "its compartment forbids it: `explain` says why"
        16 NotOwner "only the owner of the compartment does that"
        17 IntoItself "a directory cannot be moved into itself"
        18 NotACompartment "files are secret or protected in a compartment: it has no other level"
    }
}

scalar_enum! {
    /// The kind of a node.
    pub enum Kind {
        1 File "a file"
        2 Directory "a directory"
    }
}

returns_struct! {
    /// The metadata of a node.
    pub struct Stat {
        /// Bytes; of a directory, entries.
        pub size: u64,
        /// File or directory.
        pub kind: Kind,
        /// Whether it may be run.
        pub executable: bool,
        /// Nanoseconds since boot of the last change.
        pub modified: u64,
    }
}

returns_struct! {
    /// The facts about a file that are needed to load a program from it.
    pub struct Image {
        /// Bytes.
        pub size: u64,
        /// Whether it may be run.
        pub executable: bool,
        /// Its compartment, 8 · handle + level; 0 = none. That of a directory above if it has none of its own.
        pub compartment: u64,
        /// Whether its content is still that of the boot archive.
        pub in_archive: bool,
    }
}

/// `FileSystem::open`: the file is going to be written.
pub const WRITE: u64 = 1 << 0;
/// `FileSystem::open`, `create`: an existing file is emptied.
pub const TRUNCATE: u64 = 1 << 1;
/// `FileSystem::create`: refuse if the file exists.
pub const EXCLUSIVE: u64 = 1 << 2;
/// `FileSystem::create`: the file may be run.
pub const EXECUTABLE: u64 = 1 << 3;

/// An open file.
#[interface]
pub trait File {
    /// Reads from an offset; gives how many bytes there were, 0 = at the end.
    #[repeatable]
    fn read(&self, offset: u64, #[window] into: &mut [u8]) -> Result<usize, FileError>;
    /// Writes at an offset; gives how many bytes were taken. A gap reads as zeros.
    #[repeatable]
    fn write(&self, offset: u64, #[window] bytes: &[u8]) -> Result<usize, FileError>;
    /// Writes at the end; gives how many bytes were taken. Of those that a call brings either all are written, or none.
    fn append(&self, #[window] bytes: &[u8]) -> Result<usize, FileError>;
    /// The metadata of the file.
    #[repeatable]
    fn stat(&self) -> Result<Stat, FileError>;
    /// Cuts the file, or lengthens it with zeros.
    #[repeatable]
    fn truncate(&self, size: u64) -> Result<(), FileError>;
    /// The facts that are needed to load a program from it.
    #[repeatable]
    fn image(&self) -> Result<Image, FileError>;
}

/// A tree of files. Paths are absolute, with `/` between names. The memory of files is charged to the account of their
/// own that the system description gives them, never to a program's: see `room`.
///
/// A file or directory of a compartment h has the label {h 3, 1}: it is a secret; or {h 0, 1}: all read it, and only owners change it. Else it has {1}. To read it, to find names in it or to look at it, a program must be allowed to observe
/// that label; to write it, or to make and remove names in it, to change it, too. It is asked at each call: `Flow`.
#[interface]
pub trait FileSystem {
    /// Opens a file that exists: a call entry of `File`.
    #[repeatable]
    fn open(&self, path: &str, flags: u64) -> Result<Delegated, FileError>;
    /// Opens a file for writing, made if it does not exist.
    fn create(&self, path: &str, flags: u64) -> Result<Delegated, FileError>;
    /// Makes a directory.
    fn make_directory(&self, path: &str) -> Result<(), FileError>;
    /// Removes a file or an empty directory.
    fn remove(&self, path: &str) -> Result<(), FileError>;
    /// Moves a node; a node at the new name of the same kind (and empty) is replaced.
    fn rename(&self, from: &str, to: &str) -> Result<(), FileError>;
    /// Entries of a directory from a position on (0 at first), as [`crate::listing::Listing`] reads
    /// them: tag = kind, value = size. Gives bytes and the next position, 0 after the last.
    #[repeatable]
    fn read_directory(&self, path: &str, position: u64, into: &mut [u8]) -> Result<(usize, u64), FileError>;
    /// The metadata of a node.
    #[repeatable]
    fn stat(&self, path: &str) -> Result<Stat, FileError>;
    /// Pages of 4 KiB that files and directories take, and pages that they can take.
    fn room(&self) -> Result<(u64, u64), FileError>;
    /// The compartment to which an answer about this path belongs, whether it is there or not: 8 · handle + level, 0 = none.
    #[repeatable]
    fn compartment(&self, path: &str) -> Result<u64, FileError>;
    /// Moves a file or an empty directory to a compartment (8 · handle + level; level 3, or 0), 0 = to none. A node made in a directory
    /// gets its compartment. For the owner of both, the one that it leaves and the one that it joins.
    #[repeatable]
    fn set_compartment(&self, path: &str, compartment: u64) -> Result<(), FileError>;
}
