//! Directories: files of entries of 128 bytes, searched linearly.
//!
//! An entry is compared by its header first (length and hash of the name), so that a search costs a
//! load and a compare per entry.

use crate::entry::{Name, Slot, header_inode, header_length};
use crate::layout::*;
use crate::tree::Tree;
use crate::{Error, MAX_NAME, PAGE_BYTES, Pages};

impl<P: Pages> Tree<P> {
    /// The slot of a name, and its inode.
    pub(crate) fn search(&self, directory: u32, name: &Name<'_>) -> Option<(Slot, u32)> {
        let is_it = |page, index, header: u64| (header ^ name.key) >> 32 == 0 && self.same_name(page, index, name);
        self.find_slot(directory, is_it).map(|(slot, header)| (slot, header_inode(header)))
    }

    /// The first slot of which this holds: page, index, header; and the header. That of a free slot is 0.
    #[inline]
    fn find_slot(&self, directory: u32, is_it: impl Fn(u32, u32, u64) -> bool) -> Option<(Slot, u64)> {
        let blocks = self.inode(directory, INODE_SIZE) / PAGE_BYTES as u64;
        let pages = (0..blocks).map(|block| self.block(directory, block)).filter(|page| *page != 0);
        for page in pages {
            let load = self.pages.loads(page);
            // Some at a time: a step of the loop costs as much as the comparison.
            for first in (0..ENTRIES).step_by(4) {
                for index in first..first + 4 {
                    let header = load(index as usize * ENTRY_WORDS);
                    if is_it(page, index, header) {
                        return Some((Slot::new(page, index), header));
                    }
                }
            }
        }
        None
    }

    // Seldom asked, so not in the loop over slots.
    #[inline(never)]
    fn same_name(&self, page: u32, index: u32, name: &Name<'_>) -> bool {
        let first = index as usize * ENTRY_WORDS + 1;
        name.words().zip(first..).all(|(word, place)| self.pages.load(page, place) == word)
    }

    /// Makes an entry: in a free slot, or in a new page.
    pub(crate) fn add_entry(&mut self, directory: u32, name: &Name<'_>, inode: u32, payer: u32) -> Result<(), Error> {
        let slot = match self.find_slot(directory, |_, _, header| header == 0) {
            Some((slot, _)) => slot,
            None => {
                let size = self.inode(directory, INODE_SIZE);
                let page = self.add_block(directory, size / PAGE_BYTES as u64, payer)?;
                self.set_inode(directory, INODE_SIZE, size + PAGE_BYTES as u64);
                Slot::new(page, 0)
            }
        };
        let (page, word) = (slot.page(), slot.word());
        for (value, place) in name.words().zip(word + 1..) {
            self.pages.store(page, place, value);
        }
        self.pages.store(page, word, name.header(inode));
        Ok(())
    }

    pub(crate) fn clear_entry(&mut self, slot: Slot) {
        self.pages.store(slot.page(), slot.word(), 0);
    }

    /// The entry at or after a position: its header, name, and the position after it.
    pub(crate) fn entry_after(&self, directory: u32, mut position: u64) -> Option<(u64, [u8; MAX_NAME], u64)> {
        let blocks = self.inode(directory, INODE_SIZE) / PAGE_BYTES as u64;
        loop {
            let block = position / u64::from(ENTRIES);
            if block >= blocks {
                return None;
            }
            let page = self.block(directory, block);
            let word = (position % u64::from(ENTRIES)) as usize * ENTRY_WORDS;
            position += 1;
            let header = if page == 0 { 0 } else { self.pages.load(page, word) };
            if header != 0 {
                let mut name = [0; MAX_NAME];
                let length = header_length(header).min(MAX_NAME);
                self.pages.read(page, word * 8 + 8, length, |bytes| name[..length].copy_from_slice(bytes));
                return Some((header, name, position));
            }
        }
    }
}
