//! Opening: making an empty tree, or repairing one that was left in the middle of something.
//!
//! Repair walks the tree from its root with a mark per page and per inode, drops what cannot be
//! (which never happens unless the server itself wrote nonsense), cuts what lies beyond the end of a
//! file, and rebuilds the free lists from what it did not reach. It can itself be killed anywhere.

use alloc::vec::Vec;

use crate::entry::{Slot, header_inode, header_length};
use crate::layout::*;
use crate::tree::Tree;
use crate::{Error, MAX_NAME, PAGE_BYTES, Pages};

/// The use of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Unknown,
    /// Content, directory entries or pointers of one file.
    Content,
    /// Inodes; a bit for each that was reached.
    Inodes(u16),
}

/// The findings of the walk.
pub(crate) struct Marks {
    pub roles: Vec<Role>,
    /// Highest generation seen.
    generation: u64,
    /// Directories still to be walked.
    pending: Vec<u32>,
    /// The source of a rename in progress: looked at last.
    moving: Option<Slot>,
    /// The directory it is in, when it was met.
    postponed: Option<u32>,
}

impl<P: Pages> Tree<P> {
    /// Opens the tree in these pages: repairs the one that is there, or makes an empty one charged to
    /// `payer`. True if there was one.
    pub fn open(pages: P, payer: u32) -> Result<(Self, bool), Error> {
        let mut tree = Tree { pages };
        let existed = tree.pages.exists() && tree.super_word(MAGIC) == MAGIC_VALUE;
        if existed {
            tree.repair()
        } else {
            tree.format(payer)?
        }
        Ok((tree, existed))
    }

    fn format(&mut self, payer: u32) -> Result<(), Error> {
        for page in 0..3 {
            self.pages.populate(page, payer)?;
            self.pages.clear(page, 0, PAGE_BYTES);
        }
        self.set_table(0, FIXED);
        self.set_table(1, FIXED);
        self.set_table(2, u64::from(payer) << TABLE_SHIFT | PRESENT);
        for inode in (ROOT + 1..ROOT + INODES).rev() {
            self.add_free_inode(inode);
        }
        self.set_super(GENERATION, 1);
        self.set_inode(ROOT, INODE_PARENT, u64::from(ROOT));
        self.set_inode(ROOT, INODE_KIND, 1 << 8 | KIND_DIRECTORY);
        self.set_super(COUNT, 3);
        self.set_super(MAGIC, MAGIC_VALUE);
        Ok(())
    }

    fn repair(&mut self) {
        let marks = self.mark();
        let generation = marks.generation.max(self.super_word(GENERATION));
        self.set_super(GENERATION, generation);
        self.set_super(MOVING, 0);
        self.set_super(FREE_INODES, 0);
        self.set_super(HOLES, 0);
        for class in 0..CLASSES {
            self.set_super(FREE_PAGES + class, 0);
        }
        for page in (2..self.count()).rev() {
            match (self.table(page) & 0xff, marks.roles[page as usize]) {
                (FIXED, _) => {}
                (PRESENT, Role::Unknown) => self.free(page),
                (PRESENT, Role::Content) => {}
                (PRESENT, Role::Inodes(reached)) => {
                    for slot in (0..INODES).rev().filter(|slot| reached & 1 << slot == 0) {
                        self.erase_inode(page * INODES + slot);
                    }
                }
                _ => self.make_hole(page),
            }
        }
    }

    fn erase_inode(&mut self, inode: u32) {
        for word in 0..INODE_WORDS {
            self.set_inode(inode, word, 0);
        }
        self.add_free_inode(inode);
    }

    /// Walks the tree and drops what is wrong.
    fn mark(&mut self) -> Marks {
        let count = self.count() as usize;
        let moving = self.super_word(MOVING);
        let mut marks = Marks {
            roles: alloc::vec![Role::Unknown; count],
            generation: 0,
            pending: Vec::new(),
            moving: (moving != 0).then_some(Slot(moving)),
            postponed: None,
        };
        marks.roles[(ROOT / INODES) as usize] = Role::Inodes(1);
        marks.pending.push(ROOT);
        self.mark_blocks(ROOT, &mut marks);
        loop {
            while let Some(directory) = marks.pending.pop() {
                self.mark_entries(directory, &mut marks);
            }
            // Only now it is known whether the other end of the rename exists.
            let (Some(slot), Some(directory)) = (marks.moving.take(), marks.postponed.take()) else { break };
            self.mark_entry(directory, slot, &mut marks);
        }
        marks
    }

    fn mark_entries(&mut self, directory: u32, marks: &mut Marks) {
        let blocks = self.inode(directory, INODE_SIZE) / PAGE_BYTES as u64;
        for block in 0..blocks {
            let page = self.block(directory, block);
            if page == 0 {
                continue;
            }
            for index in 0..ENTRIES {
                let slot = Slot::new(page, index);
                if marks.moving == Some(slot) {
                    marks.postponed = Some(directory);
                } else {
                    self.mark_entry(directory, slot, marks);
                }
            }
        }
    }

    fn mark_entry(&mut self, directory: u32, slot: Slot, marks: &mut Marks) {
        let header = self.pages.load(slot.page(), slot.word());
        if header == 0 {
            return;
        }
        let inode = header_inode(header);
        if !(1..=MAX_NAME).contains(&header_length(header)) || !self.mark_inode(inode, marks) {
            self.clear_entry(slot);
            return;
        }
        self.set_inode(inode, INODE_PARENT, u64::from(directory));
        self.mark_blocks(inode, marks);
        let kind = self.inode(inode, INODE_KIND);
        marks.generation = marks.generation.max(kind >> 8);
        if kind & 0xff == KIND_DIRECTORY {
            marks.pending.push(inode);
        }
    }

    /// Marks an inode; false if it cannot be one or was reached before.
    fn mark_inode(&self, inode: u32, marks: &mut Marks) -> bool {
        let page = inode / INODES;
        if page < ROOT / INODES || page >= self.count() || self.table(page) & 0xff != PRESENT {
            return false;
        }
        if !matches!(self.inode(inode, INODE_KIND) & 0xff, KIND_FILE | KIND_DIRECTORY) {
            return false;
        }
        let bit = 1u16 << (inode % INODES);
        let role = &mut marks.roles[page as usize];
        match *role {
            Role::Unknown => *role = Role::Inodes(bit),
            Role::Inodes(reached) if reached & bit == 0 => *role = Role::Inodes(reached | bit),
            _ => return false,
        }
        true
    }

    /// Marks the pages of an inode, and cuts what lies beyond its end.
    fn mark_blocks(&mut self, inode: u32, marks: &mut Marks) {
        let size = self.inode(inode, INODE_SIZE);
        let blocks = if size & IN_ARCHIVE != 0 { 0 } else { size.div_ceil(PAGE_BYTES as u64) };
        let page = inode / INODES;
        let first = (inode % INODES) as usize * INODE_WORDS;
        let words = PAGE_WORDS as u64;
        for block in 0..DIRECT {
            self.mark_pointer((page, first + INODE_DIRECT + block as usize), block < blocks, marks);
        }
        let after_direct = blocks.saturating_sub(DIRECT);
        if let Some(table) = self.mark_pointer((page, first + INODE_INDIRECT), after_direct > 0, marks) {
            self.mark_table(table, after_direct, marks);
        }
        let after_indirect = after_direct.saturating_sub(words);
        if let Some(double) = self.mark_pointer((page, first + INODE_DOUBLE), after_indirect > 0, marks) {
            for index in 0..words {
                let rest = after_indirect.saturating_sub(index * words);
                if let Some(table) = self.mark_pointer((double, index as usize), rest > 0, marks) {
                    self.mark_table(table, rest, marks);
                }
            }
        }
    }

    fn mark_table(&mut self, table: u32, used: u64, marks: &mut Marks) {
        for word in 0..PAGE_WORDS {
            self.mark_pointer((table, word), (word as u64) < used, marks);
        }
    }

    /// Marks the page of a pointer. A pointer that should not be there or leads nowhere is emptied.
    fn mark_pointer(&mut self, (page, word): (u32, usize), wanted: bool, marks: &mut Marks) -> Option<u32> {
        let value = self.pages.load(page, word);
        if value == 0 {
            return None;
        }
        let target = u32::try_from(value).unwrap_or(0);
        let possible = wanted
            && (2..self.count()).contains(&target)
            && self.table(target) & 0xff == PRESENT
            && marks.roles[target as usize] == Role::Unknown;
        if !possible {
            self.pages.store(page, word, 0);
            return None;
        }
        marks.roles[target as usize] = Role::Content;
        Some(target)
    }
}
