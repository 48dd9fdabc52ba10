//! The interfaces `FileSystem` and `File` over the tree.
//!
//! An open file is a call entry whose badge says everything: inode, generation, and whether it may be
//! written. So nothing is kept per opening, and a file outlives a restart of this component as far as
//! the tree does.

use filetree::{Error, Kind, Node, Origin, Sink, Tree, normalize};
use idl::{Delegate, Input, Output};
use protocols::file::{
    EXCLUSIVE, EXECUTABLE, FileError, FileServer, FileSystemServer, Image, Kind as NodeKind, Stat, TRUNCATE, WRITE,
};
use protocols::listing::{Record, Writer};
use runtime::entry::Entry;
use runtime::label::{self, Compartments, May, is_compartment};
use runtime::sync::Mutex;
use runtime::{log_refused, op};

use crate::memory::Memory;

/// The tree; there from the first call on.
pub static TREE: Mutex<Option<Tree<Memory>>> = Mutex::new(None);

/// All pages of the tree are charged to the vault's account.
const PAYER: u32 = 0;

/// In a badge: bits of the inode, then of the generation.
const INODE_BITS: u32 = 24;
/// See [`INODE_BITS`].
const GENERATION_BITS: u32 = 38;
/// In a badge: may be written.
const WRITABLE: u64 = 1 << 63;
/// Always set in the badge of a file, so that it is never that of the file system.
const IS_FILE: u64 = 1 << 62;

/// A badge that means this file.
fn badge_of(node: Node, writable: bool) -> Result<u64, FileError> {
    if node.inode >> INODE_BITS != 0 || node.generation >> GENERATION_BITS != 0 {
        return Err(FileError::NoSpace);
    }
    let writable = if writable { WRITABLE } else { 0 };
    Ok(u64::from(node.inode) | node.generation << INODE_BITS | writable | IS_FILE)
}

/// The file that a badge means.
fn node_of(badge: u64) -> Node {
    Node {
        inode: (badge & ((1 << INODE_BITS) - 1)) as u32,
        generation: badge >> INODE_BITS & ((1 << GENERATION_BITS) - 1),
    }
}

pub fn refusal(error: Error) -> FileError {
    match error {
        Error::NotFound => FileError::NotFound,
        Error::Exists => FileError::Exists,
        Error::NotADirectory => FileError::NotADirectory,
        Error::IsADirectory => FileError::IsADirectory,
        Error::NotEmpty => FileError::NotEmpty,
        Error::BadName => FileError::BadName,
        Error::NameTooLong => FileError::NameTooLong,
        Error::NoSpace => FileError::NoSpace,
        Error::TooLarge => FileError::TooLarge,
        Error::Stale => FileError::Stale,
        Error::IsRoot => FileError::IsRoot,
        Error::IntoItself => FileError::IntoItself,
        Error::BadReference => FileError::BadReference,
        Error::Denied => FileError::Flow,
    }
}

/// The callers' rights to files and directories of a compartment.
pub static COMPARTMENTS: Compartments = Compartments::new();

fn allow(allowed: bool) -> Result<(), Error> {
    if allowed { Ok(()) } else { Err(Error::Denied) }
}

/// Whether the caller may learn what has this compartment.
fn may_observe(compartment: u64) -> bool {
    COMPARTMENTS.caller_may(compartment).observe
}

/// Refuses a caller that may not observe a node.
fn observe(tree: &Tree<Memory>, node: Node) -> Result<(), Error> {
    allow(may_observe(tree.compartment(node)?))
}

/// Refuses a caller that may not change a node and learn the outcome.
fn change(tree: &Tree<Memory>, node: Node) -> Result<(), Error> {
    allow(COMPARTMENTS.caller_may(tree.compartment(node)?).both())
}

/// The caller's rights along a path. It asks once for each compartment that follows another.
struct Way {
    last: Option<(u64, May)>,
}

impl Way {
    const fn new() -> Self {
        Self { last: None }
    }

    fn may(&mut self, compartment: u64) -> May {
        match self.last {
            Some((known, may)) if known == compartment => may,
            _ => {
                let may = COMPARTMENTS.caller_may(compartment);
                self.last = Some((compartment, may));
                may
            }
        }
    }

    /// The node of a path, which the caller may observe.
    fn walk(&mut self, tree: &Tree<Memory>, path: &[u8]) -> Result<Node, Error> {
        tree.walk_through(path, |compartment| self.may(compartment).observe)
    }

    /// Where the last part of a path is, in a directory which the caller may observe; that part; and whether the caller may change the directory, too.
    fn walk_parent<'a>(&mut self, tree: &Tree<Memory>, path: &'a [u8]) -> Result<(Node, &'a [u8], bool), Error> {
        let (directory, name) = tree.walk_parent_through(path, |compartment| self.may(compartment).observe)?;
        // That directory was asked about last.
        Ok((directory, name, self.last.is_some_and(|(_, may)| may.both())))
    }

    /// The same, for a caller that may change the directory.
    fn walk_to_change<'a>(&mut self, tree: &Tree<Memory>, path: &'a [u8]) -> Result<(Node, &'a [u8]), Error> {
        let (directory, name, may_change) = self.walk_parent(tree, path)?;
        allow(may_change)?;
        Ok((directory, name))
    }
}

/// Bytes of a path that a line of the log shows.
const MOST_SHOWN: usize = 160;

/// Does something to the tree.
fn with<R>(work: impl FnOnce(&mut Tree<Memory>) -> Result<R, Error>) -> Result<R, FileError> {
    with_named("an open file", work)
}

/// The same; what is forbidden stands in the log under a name.
fn with_named<R>(name: &str, work: impl FnOnce(&mut Tree<Memory>) -> Result<R, Error>) -> Result<R, FileError> {
    match TREE.lock().as_mut() {
        Some(tree) => work(tree).map_err(|error| {
            if error == Error::Denied {
                log_refused!("{name:.MOST_SHOWN$}");
            }
            refusal(error)
        }),
        None => Err(FileError::BadReference),
    }
}

/// Does something to the tree with a path. No name is `..`, or ends a path as `.`: an operation on a path with such parts fails, and is
/// repeated for the path without them. One call after the other, so that only one path at a time takes memory.
fn with_path<R>(path: &str, work: impl Fn(&mut Tree<Memory>, &[u8]) -> Result<R, Error>) -> Result<R, FileError> {
    with_named(path, |tree| {
        let result = work(tree, path.as_bytes());
        if result.is_err() && path.split('/').any(|part| matches!(part, ".." | ".")) {
            return work(tree, normalize("/", path).as_bytes());
        }
        result
    })
}

/// Has a directory for each compartment, which leads from the name to the handle.
pub const COMPARTMENT_NAMES: &str = "compartments";

/// Bytes of a client, in its message or in its window.
struct Client<B>(B);

impl Sink for Client<Output<'_>> {
    #[inline]
    fn room(&self) -> usize {
        self.0.len()
    }
    #[inline]
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0.copy_from(at, bytes);
    }
}

impl Origin for Client<Input<'_>> {
    #[inline]
    fn count(&self) -> usize {
        self.0.len()
    }
    #[inline]
    fn take(&self, at: usize, into: &mut [u8]) {
        self.0.copy_to(at, into);
    }
}

/// An open file.
pub struct Files;

impl FileServer for Files {
    fn read(&self, badge: u64, offset: u64, into: Output<'_>) -> Result<usize, FileError> {
        let node = node_of(badge);
        with(|tree| {
            observe(tree, node)?;
            tree.read_to(node, offset, Client(into))
        })
    }

    fn write(&self, badge: u64, offset: u64, bytes: Input<'_>) -> Result<usize, FileError> {
        let node = writable(badge)?;
        with(|tree| {
            change(tree, node)?;
            tree.write_from(node, offset, Client(bytes), op::clock(), PAYER)
        })
    }

    fn append(&self, badge: u64, bytes: Input<'_>) -> Result<usize, FileError> {
        let node = writable(badge)?;
        with(|tree| {
            change(tree, node)?;
            let end = tree.stat(node)?.size;
            let (now, count) = (op::clock(), bytes.len());
            let written = tree.write_from(node, end, Client(bytes), now, PAYER)?;
            if written < count {
                tree.truncate(node, end, now, PAYER)?;
                return Err(Error::NoSpace);
            }
            Ok(written)
        })
    }

    fn stat(&self, badge: u64) -> Result<Stat, FileError> {
        let node = node_of(badge);
        with(|tree| {
            observe(tree, node)?;
            stat(tree, node)
        })
    }

    fn truncate(&self, badge: u64, size: u64) -> Result<(), FileError> {
        let node = writable(badge)?;
        with(|tree| {
            change(tree, node)?;
            tree.truncate(node, size, op::clock(), PAYER)
        })
    }

    fn image(&self, badge: u64) -> Result<Image, FileError> {
        let node = node_of(badge);
        with(|tree| {
            observe(tree, node)?;
            let stat = tree.stat(node)?;
            let compartment = tree.nearest_compartment(node)?;
            Ok(Image { size: stat.size, executable: stat.executable, compartment, in_archive: stat.in_archive })
        })
    }
}

fn writable(badge: u64) -> Result<Node, FileError> {
    if badge & WRITABLE == 0 { Err(FileError::ReadOnly) } else { Ok(node_of(badge)) }
}

fn stat(tree: &Tree<Memory>, node: Node) -> Result<Stat, Error> {
    let stat = tree.stat(node)?;
    let (kind, size) = match stat.kind {
        Kind::File => (NodeKind::File, stat.size),
        Kind::Directory => (NodeKind::Directory, tree.entries(node)?),
    };
    Ok(Stat { size, kind, executable: stat.executable, modified: stat.modified })
}

/// The tree as a whole. `service` is what call entries to files are made from.
pub struct FileSystem {
    /// The service of files.
    pub service: Entry,
}

impl FileSystem {
    fn entry(&self, node: Node, writable: bool) -> Result<Delegate, FileError> {
        Ok(Delegate::mint(self.service.0, badge_of(node, writable)?))
    }
}

impl FileSystemServer for FileSystem {
    fn open(&self, _badge: u64, path: &str, flags: u64) -> Result<Delegate, FileError> {
        let node = with_path(path, |tree, path| {
            let mut way = Way::new();
            let node = way.walk(tree, path)?;
            if tree.stat(node)?.kind == Kind::Directory {
                return Err(Error::IsADirectory);
            }
            if flags & WRITE != 0 {
                allow(way.last.is_some_and(|(_, may)| may.both()))?;
            }
            if flags & TRUNCATE != 0 && flags & WRITE != 0 {
                tree.truncate(node, 0, op::clock(), PAYER)?;
            }
            Ok(node)
        })?;
        self.entry(node, flags & WRITE != 0)
    }

    fn create(&self, _badge: u64, path: &str, flags: u64) -> Result<Delegate, FileError> {
        let node = with_path(path, |tree, path| {
            let (directory, name, may_make) = Way::new().walk_parent(tree, path)?;
            let now = op::clock();
            let made = match may_make {
                true => tree.create(directory, name, Kind::File, now, PAYER),
                // An existing node may belong to another compartment.
                false => tree.lookup(directory, name).map_or(Err(Error::Denied), |_| Err(Error::Exists)),
            };
            match made {
                Ok(node) => {
                    if flags & EXECUTABLE != 0 {
                        tree.set_executable(node, true)?;
                    }
                    Ok(node)
                }
                Err(Error::Exists) if flags & EXCLUSIVE == 0 => {
                    let node = tree.lookup(directory, name)?;
                    change(tree, node)?;
                    if tree.stat(node)?.kind == Kind::Directory {
                        return Err(Error::IsADirectory);
                    }
                    if flags & TRUNCATE != 0 {
                        tree.truncate(node, 0, now, PAYER)?;
                        tree.set_executable(node, flags & EXECUTABLE != 0)?;
                    }
                    Ok(node)
                }
                Err(error) => Err(error),
            }
        })?;
        self.entry(node, true)
    }

    fn make_directory(&self, _badge: u64, path: &str) -> Result<(), FileError> {
        with_path(path, |tree, path| {
            if path.iter().all(|byte| *byte == b'/') {
                return Err(Error::Exists);
            }
            let (directory, name) = Way::new().walk_to_change(tree, path)?;
            tree.create(directory, name, Kind::Directory, op::clock(), PAYER).map(drop)
        })
    }

    fn remove(&self, _badge: u64, path: &str) -> Result<(), FileError> {
        with_path(path, |tree, path| {
            let mut way = Way::new();
            let (directory, name) = way.walk_to_change(tree, path)?;
            // Whether a directory is empty is a part of its content.
            tree.remove_if(directory, name, |compartment| way.may(compartment).both())
        })
    }

    fn rename(&self, _badge: u64, from: &str, to: &str) -> Result<(), FileError> {
        with_named(to, |tree| {
            let (from, to) = (normalize("/", from), normalize("/", to));
            let (old, name) = Way::new().walk_to_change(tree, from.as_bytes())?;
            let (new, new_name) = Way::new().walk_to_change(tree, to.as_bytes())?;
            change(tree, tree.lookup(old, name)?)?;
            if let Ok(replaced) = tree.lookup(new, new_name) {
                change(tree, replaced)?;
            }
            tree.rename(old, name, new, new_name, PAYER)
        })
    }

    fn read_directory(
        &self,
        _badge: u64,
        path: &str,
        position: u64,
        into: &mut [u8],
    ) -> Result<(usize, u64), FileError> {
        let directory = with_path(path, |tree, path| Way::new().walk(tree, path))?;
        with(|tree| {
            observe(tree, directory)?;
            let mut writer = Writer::new(into);
            let mut position = position;
            let mut way = Way::new();
            while let Some(entry) = tree.list(directory, position)? {
                let stat = stat(tree, entry.node)?;
                // The name belongs to the directory, the size to what it names.
                let size = if way.may(tree.compartment(entry.node)?).observe { stat.size } else { 0 };
                let record = Record { tag: stat.kind as u8, value: size, name: entry.name() };
                if !writer.push(record) {
                    return Ok((writer.used(), position));
                }
                position = entry.next;
            }
            Ok((writer.used(), 0))
        })
    }

    fn stat(&self, _badge: u64, path: &str) -> Result<Stat, FileError> {
        with_path(path, |tree, path| {
            let node = Way::new().walk(tree, path)?;
            stat(tree, node)
        })
    }

    fn compartment(&self, _badge: u64, path: &str) -> Result<u64, FileError> {
        let mut last = 0;
        with(|tree| {
            // Under the lock, so that there is one such path at a time.
            let path = normalize("/", path);
            let enter = |compartment| {
                last = if compartment == 0 { last } else { compartment };
                may_observe(compartment)
            };
            match tree.walk_through(path.as_bytes(), enter) {
                Ok(node) => tree.compartment(node),
                // That of the last directory, or of the node.
                Err(_) => Ok(last),
            }
        })
    }

    fn set_compartment(&self, _badge: u64, path: &str, compartment: u64) -> Result<(), FileError> {
        if !is_compartment(compartment) {
            return Err(FileError::NotACompartment);
        }
        if compartment != 0 && !label::caller_owns(compartment >> 3) {
            return Err(FileError::NotOwner);
        }
        let is_owner = with_path(path, |tree, path| {
            let (directory, name) = Way::new().walk_to_change(tree, path)?;
            let node = tree.lookup(directory, name)?;
            match tree.compartment(node)? {
                0 => change(tree, node)?,
                old if label::caller_owns(old >> 3) => {}
                _ => return Ok(false),
            }
            // Its owner takes it out of a compartment with all names in it: else nobody could remove what a program left there.
            let names_compartments = tree.lookup(tree.root(), COMPARTMENT_NAMES.as_bytes()) == Ok(directory);
            let stays = compartment != 0 || names_compartments;
            if stays && tree.stat(node)?.kind == Kind::Directory && tree.entries(node)? != 0 {
                return Err(Error::NotEmpty);
            }
            tree.set_compartment(node, compartment).map(|()| true)
        })?;
        if is_owner { Ok(()) } else { Err(FileError::NotOwner) }
    }

    fn room(&self, _badge: u64) -> Result<(u64, u64), FileError> {
        with(|tree| Ok((tree.used().into(), tree.pages().limit())))
    }
}
