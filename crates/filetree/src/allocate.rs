//! Pages and inodes: free lists.
//!
//! Lists are singly linked through the first word of what is free. They are only hints across a
//! kill, as recovery rebuilds them.

use crate::layout::*;
use crate::tree::Tree;
use crate::{Error, Kind, Node, Pages};

impl<P: Pages> Tree<P> {
    pub(crate) fn super_word(&self, word: usize) -> u64 {
        self.pages.load(0, word)
    }

    pub(crate) fn set_super(&mut self, word: usize, value: u64) {
        self.pages.store(0, word, value);
    }

    pub(crate) fn table(&self, page: u32) -> u64 {
        self.pages.load(table_page(page), page as usize % PAGE_WORDS)
    }

    pub(crate) fn set_table(&mut self, page: u32, value: u64) {
        self.pages.store(table_page(page), page as usize % PAGE_WORDS, value);
    }

    /// Pages ever used.
    pub(crate) fn count(&self) -> u32 {
        self.super_word(COUNT) as u32
    }

    /// Pages in use: those that were ever used without those that are free or given back. Walks along their lists.
    pub fn used(&self) -> u32 {
        let length = |first: u64, next: &dyn Fn(u32) -> u64| {
            core::iter::successors(Some(first as u32), |page| Some(next(*page) as u32))
                .take_while(|page| *page != 0)
                .count()
        };
        let free: usize = (0..CLASSES)
            .map(|class| length(self.super_word(FREE_PAGES + class), &|page| self.pages.load(page, 0)))
            .sum();
        let holes = length(self.super_word(HOLES), &|page| self.table(page) >> TABLE_SHIFT);
        self.count() - (free + holes) as u32
    }

    /// A page for this payer, with anything in it.
    pub(crate) fn allocate(&mut self, payer: u32) -> Result<u32, Error> {
        let list = FREE_PAGES + payer as usize % CLASSES;
        let page = self.super_word(list) as u32;
        if page != 0 {
            let next = self.pages.load(page, 0);
            self.set_super(list, next);
            return Ok(page);
        }
        let hole = self.super_word(HOLES) as u32;
        if hole != 0 {
            self.pages.populate(hole, payer)?;
            let next = self.table(hole) >> TABLE_SHIFT;
            self.set_super(HOLES, next);
            self.set_table(hole, u64::from(payer) << TABLE_SHIFT | PRESENT);
            return Ok(hole);
        }
        let mut page = self.count();
        if (page as usize).is_multiple_of(PAGE_WORDS) {
            self.pages.populate(page, payer)?;
            self.pages.clear(page, 0, crate::PAGE_BYTES);
            self.set_table(page, FIXED);
            page += 1;
            self.set_super(COUNT, u64::from(page));
        }
        let next = page.checked_add(1).ok_or(Error::NoSpace)?;
        self.pages.populate(page, payer)?;
        self.set_table(page, u64::from(payer) << TABLE_SHIFT | PRESENT);
        self.set_super(COUNT, u64::from(next));
        Ok(page)
    }

    /// A page for this payer, all zero.
    pub(crate) fn allocate_clear(&mut self, payer: u32) -> Result<u32, Error> {
        let page = self.allocate(payer)?;
        self.pages.clear(page, 0, crate::PAGE_BYTES);
        Ok(page)
    }

    /// Puts a page that nothing points to on its free list.
    pub(crate) fn free(&mut self, page: u32) {
        let payer = self.table(page) >> TABLE_SHIFT;
        let list = FREE_PAGES + payer as usize % CLASSES;
        let next = self.super_word(list);
        self.pages.store(page, 0, next);
        self.set_super(list, u64::from(page));
    }

    /// Returns up to `most` free pages of a payer's class to their payers. How many they were.
    pub fn give_back(&mut self, payer: u32, most: usize) -> usize {
        let list = FREE_PAGES + payer as usize % CLASSES;
        let mut given = 0;
        while given < most {
            let page = self.super_word(list) as u32;
            if page == 0 {
                break;
            }
            let next = self.pages.load(page, 0);
            self.set_super(list, next);
            self.make_hole(page);
            given += 1;
        }
        given
    }

    pub(crate) fn make_hole(&mut self, page: u32) {
        let next = self.super_word(HOLES);
        self.set_table(page, next << TABLE_SHIFT | HOLE);
        self.set_super(HOLES, u64::from(page));
        self.pages.release(page);
    }

    pub(crate) fn inode(&self, inode: u32, word: usize) -> u64 {
        self.pages.load(inode / INODES, (inode % INODES) as usize * INODE_WORDS + word)
    }

    pub(crate) fn set_inode(&mut self, inode: u32, word: usize, value: u64) {
        self.pages.store(inode / INODES, (inode % INODES) as usize * INODE_WORDS + word, value);
    }

    /// A new inode without content. Nothing points to it yet.
    pub(crate) fn new_inode(&mut self, kind: Kind, parent: u32, now: u64, payer: u32) -> Result<Node, Error> {
        if self.super_word(FREE_INODES) == 0 {
            let page = self.allocate_clear(payer)?;
            for inode in (page * INODES..(page + 1) * INODES).rev() {
                self.add_free_inode(inode);
            }
        }
        let inode = self.super_word(FREE_INODES) as u32;
        let next = self.inode(inode, INODE_ARCHIVE);
        self.set_super(FREE_INODES, next);
        let generation = self.super_word(GENERATION) + 1;
        self.set_super(GENERATION, generation);
        self.set_inode(inode, INODE_SIZE, 0);
        self.set_inode(inode, INODE_ARCHIVE, 0);
        self.set_inode(inode, INODE_MODE, u64::from(payer) << 32);
        self.set_inode(inode, INODE_MODIFIED, now);
        self.set_inode(inode, INODE_PARENT, u64::from(parent));
        self.set_inode(inode, INODE_COMPARTMENT, self.inode(parent, INODE_COMPARTMENT));
        let kind = if kind == Kind::File { KIND_FILE } else { KIND_DIRECTORY };
        self.set_inode(inode, INODE_KIND, generation << 8 | kind);
        Ok(Node { inode, generation })
    }

    /// Frees an inode whose pointers are all zero and to which nothing points.
    pub(crate) fn add_free_inode(&mut self, inode: u32) {
        let next = self.super_word(FREE_INODES);
        self.set_inode(inode, INODE_KIND, 0);
        self.set_inode(inode, INODE_ARCHIVE, next);
        self.set_super(FREE_INODES, u64::from(inode));
    }
}
