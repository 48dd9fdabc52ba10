//! The operations.

use crate::entry::{Name, header_inode, header_length};
use crate::layout::*;
use crate::{Error, Kind, MAX_NAME, Node, Origin, PAGE_BYTES, Pages, Sink};

/// The content of a page that is not there.
static ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

/// The metadata of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stat {
    /// File or directory.
    pub kind: Kind,
    /// Bytes; of a directory 0.
    pub size: u64,
    /// Nanoseconds at the last change of content.
    pub modified: u64,
    /// May it be started as a program?
    pub executable: bool,
    /// Is its content still that of the boot archive?
    pub in_archive: bool,
    /// Its compartment; 0 = none.
    pub compartment: u64,
}

/// An entry of a directory.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The node that it names.
    pub node: Node,
    /// Where to go on.
    pub next: u64,
    name: [u8; MAX_NAME],
    length: usize,
}

impl Entry {
    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name[..self.length]
    }
}

/// A tree of files in [`Pages`].
pub struct Tree<P: Pages> {
    pub(crate) pages: P,
}

impl<P: Pages> Tree<P> {
    /// The memory.
    pub fn pages(&self) -> &P {
        &self.pages
    }

    /// The memory, for what does not change its content.
    pub fn pages_mut(&mut self) -> &mut P {
        &mut self.pages
    }

    /// Ends the tree, keeps the memory.
    pub fn into_pages(self) -> P {
        self.pages
    }

    /// The server's note; 0 in a new tree.
    pub fn note(&self) -> u64 {
        self.super_word(NOTE)
    }

    /// Notes a word for the instances to come.
    pub fn set_note(&mut self, note: u64) {
        self.set_super(NOTE, note);
    }

    /// The root directory.
    pub fn root(&self) -> Node {
        self.node(ROOT)
    }

    pub(crate) fn node(&self, inode: u32) -> Node {
        Node { inode, generation: self.inode(inode, INODE_KIND) >> 8 }
    }

    /// The kind word of a node, if it is still what it was.
    fn check(&self, node: Node) -> Result<Kind, Error> {
        let page = node.inode / INODES;
        if page >= self.count() || page < ROOT / INODES || self.table(page) & 0xff != PRESENT {
            return Err(Error::Stale);
        }
        let word = self.inode(node.inode, INODE_KIND);
        match word & 0xff {
            KIND_FILE if word >> 8 == node.generation => Ok(Kind::File),
            KIND_DIRECTORY if word >> 8 == node.generation => Ok(Kind::Directory),
            _ => Err(Error::Stale),
        }
    }

    fn directory(&self, node: Node) -> Result<u32, Error> {
        match self.check(node)? {
            Kind::Directory => Ok(node.inode),
            Kind::File => Err(Error::NotADirectory),
        }
    }

    fn file(&self, node: Node) -> Result<u32, Error> {
        match self.check(node)? {
            Kind::File => Ok(node.inode),
            Kind::Directory => Err(Error::IsADirectory),
        }
    }

    /// The node of a name in a directory.
    pub fn lookup(&self, directory: Node, name: &[u8]) -> Result<Node, Error> {
        let directory = self.directory(directory)?;
        Ok(self.node(self.inode_of(directory, name)?))
    }

    fn inode_of(&self, directory: u32, name: &[u8]) -> Result<u32, Error> {
        self.search(directory, &Name::new(name)?).map(|(_, inode)| inode).ok_or(Error::NotFound)
    }

    /// The node of a path from the root. Empty parts and `.` are skipped; `..` is refused (see
    /// [`crate::normalize`]).
    pub fn walk(&self, path: &[u8]) -> Result<Node, Error> {
        self.walk_through(path, |_| true)
    }

    /// The same, as far as `may_enter` admits the compartment of each directory on the way, and of the node: else `Denied`.
    pub fn walk_through(&self, path: &[u8], mut may_enter: impl FnMut(u64) -> bool) -> Result<Node, Error> {
        let mut inode = ROOT;
        for part in path.split(|byte| *byte == b'/') {
            if matches!(part, b"" | b".") {
                continue;
            }
            if self.inode(inode, INODE_KIND) & 0xff != KIND_DIRECTORY {
                return Err(Error::NotADirectory);
            }
            if !may_enter(self.inode(inode, INODE_COMPARTMENT)) {
                return Err(Error::Denied);
            }
            inode = self.inode_of(inode, part)?;
        }
        if !may_enter(self.inode(inode, INODE_COMPARTMENT)) {
            return Err(Error::Denied);
        }
        Ok(self.node(inode))
    }

    /// Where the last part of a path is, which may be no directory, and that part. `IsRoot` for the root.
    pub fn walk_parent<'a>(&self, path: &'a [u8]) -> Result<(Node, &'a [u8]), Error> {
        self.walk_parent_through(path, |_| true)
    }

    /// The same, as [`Tree::walk_through`] does.
    pub fn walk_parent_through<'a>(
        &self,
        path: &'a [u8],
        may_enter: impl FnMut(u64) -> bool,
    ) -> Result<(Node, &'a [u8]), Error> {
        let end = path.iter().rposition(|byte| *byte != b'/').ok_or(Error::IsRoot)? + 1;
        let start = path[..end].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        Ok((self.walk_through(&path[..start], may_enter)?, &path[start..end]))
    }

    /// Size and so on.
    pub fn stat(&self, node: Node) -> Result<Stat, Error> {
        let kind = self.check(node)?;
        let size = self.inode(node.inode, INODE_SIZE);
        Ok(Stat {
            kind,
            size: if kind == Kind::File { size & !IN_ARCHIVE } else { 0 },
            modified: self.inode(node.inode, INODE_MODIFIED),
            executable: self.inode(node.inode, INODE_MODE) & 1 != 0,
            in_archive: size & IN_ARCHIVE != 0,
            compartment: self.inode(node.inode, INODE_COMPARTMENT),
        })
    }

    /// The compartment of a node, which it got from the directory in which it was made; 0 = none.
    pub fn compartment(&self, node: Node) -> Result<u64, Error> {
        self.check(node)?;
        Ok(self.inode(node.inode, INODE_COMPARTMENT))
    }

    /// The same; of a node that has none, that of the first directory above it that has one.
    pub fn nearest_compartment(&self, node: Node) -> Result<u64, Error> {
        self.check(node)?;
        let mut inode = node.inode;
        while self.inode(inode, INODE_COMPARTMENT) == 0 && inode != ROOT {
            inode = self.inode(inode, INODE_PARENT) as u32;
        }
        Ok(self.inode(inode, INODE_COMPARTMENT))
    }

    /// Moves a node to a compartment.
    pub fn set_compartment(&mut self, node: Node, compartment: u64) -> Result<(), Error> {
        self.check(node)?;
        self.set_inode(node.inode, INODE_COMPARTMENT, compartment);
        Ok(())
    }

    /// Makes an empty file or directory.
    pub fn create(&mut self, directory: Node, name: &[u8], kind: Kind, now: u64, payer: u32) -> Result<Node, Error> {
        self.create_with(directory, name, kind, now, payer, |_, _| {})
    }

    /// Makes a file whose content is a range of the archive.
    pub fn import(
        &mut self,
        directory: Node,
        name: &[u8],
        start: u64,
        length: u64,
        executable: bool,
        payer: u32,
    ) -> Result<Node, Error> {
        let end = start.checked_add(length).ok_or(Error::BadReference)?;
        if end > self.pages.archive().len() as u64 {
            return Err(Error::BadReference);
        }
        self.create_with(directory, name, Kind::File, 0, payer, |tree, inode| {
            tree.set_inode(inode, INODE_ARCHIVE, start);
            tree.set_inode(inode, INODE_MODE, u64::from(payer) << 32 | u64::from(executable));
            tree.set_inode(inode, INODE_SIZE, length | IN_ARCHIVE);
        })
    }

    fn create_with(
        &mut self,
        directory: Node,
        name: &[u8],
        kind: Kind,
        now: u64,
        payer: u32,
        fill: impl FnOnce(&mut Self, u32),
    ) -> Result<Node, Error> {
        let directory = self.directory(directory)?;
        let name = Name::new(name)?;
        if self.search(directory, &name).is_some() {
            return Err(Error::Exists);
        }
        let node = self.new_inode(kind, directory, now, payer)?;
        fill(self, node.inode);
        match self.add_entry(directory, &name, node.inode, payer) {
            Ok(()) => Ok(node),
            Err(error) => {
                self.add_free_inode(node.inode);
                Err(error)
            }
        }
    }

    /// Removes a file, or an empty directory.
    pub fn remove(&mut self, directory: Node, name: &[u8]) -> Result<(), Error> {
        self.remove_if(directory, name, |_| true)
    }

    /// The same, if this admits its compartment: else `Denied`.
    pub fn remove_if(&mut self, directory: Node, name: &[u8], may: impl FnOnce(u64) -> bool) -> Result<(), Error> {
        let directory = self.directory(directory)?;
        let (slot, inode) = self.search(directory, &Name::new(name)?).ok_or(Error::NotFound)?;
        if !may(self.inode(inode, INODE_COMPARTMENT)) {
            return Err(Error::Denied);
        }
        if self.inode(inode, INODE_KIND) & 0xff == KIND_DIRECTORY && self.entry_after(inode, 0).is_some() {
            return Err(Error::NotEmpty);
        }
        self.clear_entry(slot);
        self.delete(inode);
        Ok(())
    }

    /// Frees an inode to which nothing points any more.
    fn delete(&mut self, inode: u32) {
        let size = self.inode(inode, INODE_SIZE);
        self.set_inode(inode, INODE_KIND, 0);
        if size & IN_ARCHIVE == 0 {
            self.free_blocks(inode, 0, size.div_ceil(PAGE_BYTES as u64));
        }
        self.add_free_inode(inode);
    }

    /// Gives a node another name, possibly in another directory. A file there is replaced by a file, an
    /// empty directory by a directory.
    pub fn rename(&mut self, from: Node, name: &[u8], to: Node, new_name: &[u8], payer: u32) -> Result<(), Error> {
        let from = self.directory(from)?;
        let to = self.directory(to)?;
        let (source, inode) = self.search(from, &Name::new(name)?).ok_or(Error::NotFound)?;
        let is_directory = self.inode(inode, INODE_KIND) & 0xff == KIND_DIRECTORY;
        if is_directory {
            let mut above = to;
            while above != ROOT {
                if above == inode {
                    return Err(Error::IntoItself);
                }
                above = self.inode(above, INODE_PARENT) as u32;
            }
        }
        let new_name = Name::new(new_name)?;
        match self.search(to, &new_name) {
            Some((_, old)) if old == inode => return Ok(()),
            Some((target, old)) => {
                let over_directory = self.inode(old, INODE_KIND) & 0xff == KIND_DIRECTORY;
                if is_directory != over_directory {
                    return Err(Error::Exists);
                }
                if over_directory && self.entry_after(old, 0).is_some() {
                    return Err(Error::NotEmpty);
                }
                self.set_super(MOVING, source.0);
                self.pages.store(target.page(), target.word(), new_name.header(inode));
                self.clear_entry(source);
                self.set_super(MOVING, 0);
                self.set_inode(inode, INODE_PARENT, u64::from(to));
                self.delete(old);
            }
            None => {
                self.set_super(MOVING, source.0);
                if let Err(error) = self.add_entry(to, &new_name, inode, payer) {
                    self.set_super(MOVING, 0);
                    return Err(error);
                }
                self.clear_entry(source);
                self.set_super(MOVING, 0);
                self.set_inode(inode, INODE_PARENT, u64::from(to));
            }
        }
        Ok(())
    }

    /// The entry of a directory at or after a position (0 = the first).
    pub fn list(&self, directory: Node, position: u64) -> Result<Option<Entry>, Error> {
        let directory = self.directory(directory)?;
        Ok(self.entry_after(directory, position).map(|(header, name, next)| {
            let length = header_length(header).min(MAX_NAME);
            Entry { node: self.node(header_inode(header)), next, name, length }
        }))
    }

    /// Reads from a file; fewer bytes than asked for mean its end.
    pub fn read(&self, node: Node, offset: u64, bytes: &mut [u8]) -> Result<usize, Error> {
        self.read_to(node, offset, bytes)
    }

    /// The same, wherever the bytes go: each is copied once.
    pub fn read_to(&self, node: Node, offset: u64, mut bytes: impl Sink) -> Result<usize, Error> {
        let inode = self.file(node)?;
        let word = self.inode(inode, INODE_SIZE);
        let size = word & !IN_ARCHIVE;
        let length = (bytes.room() as u64).min(size.saturating_sub(offset)) as usize;
        if word & IN_ARCHIVE != 0 {
            if length == 0 {
                return Ok(0);
            }
            let start = (self.inode(inode, INODE_ARCHIVE) + offset) as usize;
            let archive = self.pages.archive();
            let source = archive.get(start..start + length).ok_or(Error::BadReference)?;
            bytes.put(0, source);
            return Ok(length);
        }
        let mut done = 0;
        while done < length {
            let at = offset + done as u64;
            let within = at as usize % PAGE_BYTES;
            let part = (PAGE_BYTES - within).min(length - done);
            match self.block(inode, at / PAGE_BYTES as u64) {
                0 => bytes.put(done, &ZEROS[..part]),
                page => self.pages.read(page, within, part, |block| bytes.put(done, block)),
            }
            done += part;
        }
        Ok(length)
    }

    /// Writes to a file. How many bytes were written: fewer than given only if there is no space for
    /// more. The space between the end of the file and `offset` reads as zeros.
    pub fn write(&mut self, node: Node, offset: u64, bytes: &[u8], now: u64, payer: u32) -> Result<usize, Error> {
        self.write_from(node, offset, bytes, now, payer)
    }

    /// The same, wherever the bytes come from: each is copied once.
    pub fn write_from(
        &mut self,
        node: Node,
        offset: u64,
        bytes: impl Origin,
        now: u64,
        payer: u32,
    ) -> Result<usize, Error> {
        let count = bytes.count();
        let inode = self.file(node)?;
        let end = offset.checked_add(count as u64).ok_or(Error::TooLarge)?;
        if end > MAX_FILE_BYTES {
            return Err(Error::TooLarge);
        }
        if self.inode(inode, INODE_SIZE) & IN_ARCHIVE != 0 {
            self.copy_up(inode, payer)?;
        }
        if count == 0 {
            return Ok(0);
        }
        let size = self.inode(inode, INODE_SIZE);
        if offset > size {
            self.clear_tail(inode, size);
        }
        let mut done = 0;
        let mut failure = Error::NoSpace;
        while done < count {
            let at = offset + done as u64;
            let within = at as usize % PAGE_BYTES;
            let part = (PAGE_BYTES - within).min(count - done);
            let fill = |block: &mut [u8]| bytes.take(done, block);
            if let Err(error) = self.write_block(inode, at / PAGE_BYTES as u64, (within, part), fill, payer) {
                failure = error;
                break;
            }
            done += part;
        }
        let new_size = size.max(if done == 0 { 0 } else { offset + done as u64 });
        if new_size > size {
            self.set_inode(inode, INODE_SIZE, new_size);
        }
        if done < count {
            // Tables may have been made beyond the end.
            self.trim(inode, new_size);
        }
        if done == 0 {
            return Err(failure);
        }
        self.set_inode(inode, INODE_MODIFIED, now);
        Ok(done)
    }

    /// Zeroes what follows the end of a file in its last page.
    fn clear_tail(&mut self, inode: u32, size: u64) {
        let within = size as usize % PAGE_BYTES;
        let page = self.block(inode, size / PAGE_BYTES as u64);
        if within != 0 && page != 0 {
            self.pages.clear(page, within, PAGE_BYTES - within);
        }
    }

    /// Frees everything after the end of a file.
    fn trim(&mut self, inode: u32, size: u64) {
        let first = size.div_ceil(PAGE_BYTES as u64);
        let last = if self.inode(inode, INODE_DOUBLE) != 0 {
            MAX_FILE_PAGES
        } else if self.inode(inode, INODE_INDIRECT) != 0 {
            DIRECT + PAGE_WORDS as u64
        } else {
            DIRECT
        };
        self.free_blocks(inode, first, last);
    }

    /// Makes a file as long as `size`: bytes beyond are cut off, missing ones read as zeros.
    pub fn truncate(&mut self, node: Node, size: u64, now: u64, payer: u32) -> Result<(), Error> {
        let inode = self.file(node)?;
        if size > MAX_FILE_BYTES {
            return Err(Error::TooLarge);
        }
        let word = self.inode(inode, INODE_SIZE);
        if word & IN_ARCHIVE != 0 && size != 0 && size != word & !IN_ARCHIVE {
            self.copy_up(inode, payer)?;
        }
        let word = self.inode(inode, INODE_SIZE);
        if word == size | IN_ARCHIVE && size != 0 {
            self.set_inode(inode, INODE_MODIFIED, now);
            return Ok(());
        }
        let old = if word & IN_ARCHIVE != 0 { 0 } else { word };
        if size > old {
            self.clear_tail(inode, old);
        }
        self.set_inode(inode, INODE_SIZE, size);
        self.set_inode(inode, INODE_MODIFIED, now);
        if size < old {
            self.free_blocks(inode, size.div_ceil(PAGE_BYTES as u64), old.div_ceil(PAGE_BYTES as u64));
        }
        Ok(())
    }

    /// Marks a file as a program, or not.
    pub fn set_executable(&mut self, node: Node, executable: bool) -> Result<(), Error> {
        let inode = self.file(node)?;
        let payer = self.inode(inode, INODE_MODE) & !0xffff_ffff;
        self.set_inode(inode, INODE_MODE, payer | u64::from(executable));
        Ok(())
    }

    /// The payer of the node, noted when it was made.
    pub fn payer(&self, node: Node) -> Result<u32, Error> {
        self.check(node)?;
        Ok((self.inode(node.inode, INODE_MODE) >> 32) as u32)
    }

    /// Entries of a directory.
    pub fn entries(&self, node: Node) -> Result<u64, Error> {
        let directory = self.directory(node)?;
        let (mut position, mut entries) = (0, 0);
        while let Some((_, _, next)) = self.entry_after(directory, position) {
            (position, entries) = (next, entries + 1);
        }
        Ok(entries)
    }

    /// The range of the archive that is the content of a file, if it still is.
    pub fn archive_range(&self, node: Node) -> Result<Option<(u64, u64)>, Error> {
        let inode = self.file(node)?;
        let size = self.inode(inode, INODE_SIZE);
        Ok((size & IN_ARCHIVE != 0).then(|| (self.inode(inode, INODE_ARCHIVE), size & !IN_ARCHIVE)))
    }

    /// Copies the content from the archive into pages: until the last store the pages mean nothing.
    fn copy_up(&mut self, inode: u32, payer: u32) -> Result<(), Error> {
        let size = self.inode(inode, INODE_SIZE) & !IN_ARCHIVE;
        let start = self.inode(inode, INODE_ARCHIVE) as usize;
        // In pieces, as stacks are small.
        let mut piece = [0; PAGE_BYTES / 8];
        for at in (0..size as usize).step_by(piece.len()) {
            let length = (size as usize - at).min(piece.len());
            let source = self.pages.archive().get(start + at..start + at + length).ok_or(Error::BadReference)?;
            piece[..length].copy_from_slice(source);
            let fill = |block: &mut [u8]| block.copy_from_slice(&piece[..length]);
            let (block, begin) = (at / PAGE_BYTES, at % PAGE_BYTES);
            if let Err(error) = self.write_block(inode, block as u64, (begin, length), fill, payer) {
                self.trim(inode, 0);
                return Err(error);
            }
        }
        self.set_inode(inode, INODE_SIZE, size);
        Ok(())
    }
}
