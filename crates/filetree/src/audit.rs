//! Where every page is: for `frames`-like reports and for tests.

use alloc::vec::Vec;

use crate::layout::*;
use crate::tree::Tree;
use crate::{Error, Kind, Node, PAGE_BYTES, Pages};

/// Pages by use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Superblock and tables.
    pub fixed: u32,
    /// In files and directories.
    pub content: u32,
    /// Of inodes.
    pub inodes: u32,
    /// Free.
    pub free: u32,
    /// Given back.
    pub holes: u32,
    /// Nodes that can be reached, the root included.
    pub nodes: u32,
}

impl<P: Pages> Tree<P> {
    /// Counts every page, and checks that each is in exactly one place. `BadReference` if not.
    pub fn audit(&self) -> Result<Usage, Error> {
        let mut audit = Audit { seen: alloc::vec![false; self.count() as usize], usage: Usage::default() };
        for page in 0..self.count() {
            match self.table(page) & 0xff {
                FIXED => {
                    audit.take(page)?;
                    audit.usage.fixed += 1;
                }
                PRESENT | HOLE => {}
                _ => return Err(Error::BadReference),
            }
        }
        let mut free_inodes = Vec::new();
        let mut inode = self.super_word(FREE_INODES) as u32;
        while inode != 0 {
            if free_inodes.len() > self.count() as usize * INODES as usize {
                return Err(Error::BadReference);
            }
            free_inodes.push(inode);
            inode = self.inode(inode, INODE_ARCHIVE) as u32;
        }
        let mut inodes = free_inodes;
        self.audit_tree(&mut audit, &mut inodes)?;
        inodes.sort_unstable();
        let before = inodes.len();
        inodes.dedup();
        if inodes.len() != before || before % INODES as usize != 0 {
            return Err(Error::BadReference);
        }
        for inode in inodes.iter().step_by(INODES as usize) {
            audit.take(inode / INODES)?;
            audit.usage.inodes += 1;
        }
        for class in 0..CLASSES {
            audit.usage.free +=
                self.audit_list(&mut audit, self.super_word(FREE_PAGES + class), |page| self.pages.load(page, 0))?;
        }
        audit.usage.holes =
            self.audit_list(&mut audit, self.super_word(HOLES), |page| self.table(page) >> TABLE_SHIFT)?;
        if audit.seen.iter().all(|seen| *seen) { Ok(audit.usage) } else { Err(Error::BadReference) }
    }

    fn audit_list(&self, audit: &mut Audit, first: u64, next: impl Fn(u32) -> u64) -> Result<u32, Error> {
        let mut page = first as u32;
        let mut length = 0;
        while page != 0 {
            audit.take(page)?;
            length += 1;
            page = next(page) as u32;
        }
        Ok(length)
    }

    fn audit_tree(&self, audit: &mut Audit, inodes: &mut Vec<u32>) -> Result<(), Error> {
        let mut pending: Vec<Node> = alloc::vec![self.root()];
        while let Some(node) = pending.pop() {
            audit.usage.nodes += 1;
            inodes.push(node.inode);
            let stat = self.stat(node)?;
            if !stat.in_archive {
                let blocks = self.inode(node.inode, INODE_SIZE).div_ceil(PAGE_BYTES as u64);
                for block in 0..blocks {
                    audit.content(self.block(node.inode, block))?;
                }
            }
            audit.content(self.inode(node.inode, INODE_INDIRECT) as u32)?;
            let double = self.inode(node.inode, INODE_DOUBLE) as u32;
            audit.content(double)?;
            for word in 0..if double == 0 { 0 } else { PAGE_WORDS } {
                audit.content(self.pages.load(double, word) as u32)?;
            }
            if stat.kind == Kind::Directory {
                let mut position = 0;
                while let Some(entry) = self.list(node, position)? {
                    position = entry.next;
                    pending.push(entry.node);
                }
            }
        }
        Ok(())
    }
}

struct Audit {
    seen: Vec<bool>,
    usage: Usage,
}

impl Audit {
    fn take(&mut self, page: u32) -> Result<(), Error> {
        match self.seen.get_mut(page as usize) {
            Some(seen) if !*seen => {
                *seen = true;
                Ok(())
            }
            _ => Err(Error::BadReference),
        }
    }

    fn content(&mut self, page: u32) -> Result<(), Error> {
        if page != 0 {
            self.take(page)?;
            self.usage.content += 1;
        }
        Ok(())
    }
}
