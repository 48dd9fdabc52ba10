//! The map of an inode from its blocks to pages, and content.

use crate::layout::*;
use crate::tree::Tree;
use crate::{Error, PAGE_BYTES, Pages};

/// Where the pointer to a block is: in a page, at a word.
type Place = (u32, usize);

impl<P: Pages> Tree<P> {
    fn inode_place(inode: u32, word: usize) -> Place {
        (inode / INODES, (inode % INODES) as usize * INODE_WORDS + word)
    }

    /// The page of a block; 0 if there is none.
    pub(crate) fn block(&self, inode: u32, block: u64) -> u32 {
        if block < DIRECT {
            return self.inode(inode, INODE_DIRECT + block as usize) as u32;
        }
        let (mut table, mut rest) = (self.inode(inode, INODE_INDIRECT) as u32, block - DIRECT);
        if rest >= PAGE_WORDS as u64 {
            rest -= PAGE_WORDS as u64;
            let double = self.inode(inode, INODE_DOUBLE) as u32;
            let word = (rest / PAGE_WORDS as u64) as usize;
            if double == 0 || word >= PAGE_WORDS {
                return 0;
            }
            table = self.pages.load(double, word) as u32;
            rest %= PAGE_WORDS as u64;
        }
        if table == 0 { 0 } else { self.pages.load(table, rest as usize) as u32 }
    }

    /// The place of the pointer to a block; tables on the way are made.
    fn block_place(&mut self, inode: u32, block: u64, payer: u32) -> Result<Place, Error> {
        if block < DIRECT {
            return Ok(Self::inode_place(inode, INODE_DIRECT + block as usize));
        }
        if block >= MAX_FILE_PAGES {
            return Err(Error::TooLarge);
        }
        let rest = block - DIRECT;
        if rest < PAGE_WORDS as u64 {
            let table = self.table_at(Self::inode_place(inode, INODE_INDIRECT), payer)?;
            return Ok((table, rest as usize));
        }
        let rest = rest - PAGE_WORDS as u64;
        let double = self.table_at(Self::inode_place(inode, INODE_DOUBLE), payer)?;
        let table = self.table_at((double, (rest / PAGE_WORDS as u64) as usize), payer)?;
        Ok((table, (rest % PAGE_WORDS as u64) as usize))
    }

    fn table_at(&mut self, (page, word): Place, payer: u32) -> Result<u32, Error> {
        let table = self.pages.load(page, word) as u32;
        if table != 0 {
            return Ok(table);
        }
        let table = self.allocate_clear(payer)?;
        self.pages.store(page, word, u64::from(table));
        Ok(table)
    }

    /// Has `fill` write so many bytes into one block, from `offset` on. Does not touch the size.
    pub(crate) fn write_block(
        &mut self,
        inode: u32,
        block: u64,
        (offset, length): (usize, usize),
        fill: impl FnOnce(&mut [u8]),
        payer: u32,
    ) -> Result<(), Error> {
        let page = self.block(inode, block);
        if page != 0 {
            self.pages.write(page, offset, length, fill);
            return Ok(());
        }
        let (table, word) = self.block_place(inode, block, payer)?;
        let page = self.allocate(payer)?;
        self.pages.clear(page, 0, offset);
        self.pages.write(page, offset, length, fill);
        self.pages.clear(page, offset + length, PAGE_BYTES - offset - length);
        self.pages.store(table, word, u64::from(page));
        Ok(())
    }

    /// Links a clear page as a block; for directories.
    pub(crate) fn add_block(&mut self, inode: u32, block: u64, payer: u32) -> Result<u32, Error> {
        let (table, word) = self.block_place(inode, block, payer)?;
        let page = self.allocate_clear(payer)?;
        self.pages.store(table, word, u64::from(page));
        Ok(page)
    }

    /// Unlinks and frees the blocks `from..to` and the tables that are no longer needed; no block
    /// may be left at or after `from`.
    pub(crate) fn free_blocks(&mut self, inode: u32, from: u64, to: u64) {
        for block in from..to.min(DIRECT) {
            self.unlink(Self::inode_place(inode, INODE_DIRECT + block as usize));
        }
        let words = PAGE_WORDS as u64;
        if to > DIRECT {
            let indirect = Self::inode_place(inode, INODE_INDIRECT);
            self.free_table(indirect, from.saturating_sub(DIRECT), (to - DIRECT).min(words));
        }
        if to > DIRECT + words {
            let first = from.saturating_sub(DIRECT + words);
            let last = to - DIRECT - words;
            let place = Self::inode_place(inode, INODE_DOUBLE);
            let double = self.pages.load(place.0, place.1) as u32;
            if double != 0 {
                for index in first / words..last.div_ceil(words).min(words) {
                    let start = first.saturating_sub(index * words).min(words);
                    self.free_table((double, index as usize), start, (last - index * words).min(words));
                }
                if first == 0 {
                    self.unlink(place);
                }
            }
        }
    }

    /// Frees the pages in the words `from..to` of a table, and the table if it is empty then.
    fn free_table(&mut self, place: Place, from: u64, to: u64) {
        let table = self.pages.load(place.0, place.1) as u32;
        if table == 0 {
            return;
        }
        for word in from..to {
            self.unlink((table, word as usize));
        }
        if from == 0 {
            self.unlink(place);
        }
    }

    fn unlink(&mut self, (page, word): Place) {
        let target = self.pages.load(page, word) as u32;
        if target != 0 {
            self.pages.store(page, word, 0);
            self.free(target);
        }
    }
}
