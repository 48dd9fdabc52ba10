//! The pages of the tree: the component's vault, mapped one page after the other at a fixed address.
//!
//! This is the only module of the component with unsafe code. All access goes through [`Memory::word`]
//! and [`Memory::place`], which check that the page is mapped.

use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use alloc::vec::Vec;

use abi::{PAGE_BYTES, layout};
use filetree::{Error, Pages};
use interface::Failure;
use interfaces::vault::{VaultClient, VaultError};
use runtime::connection::Direct;

/// Where the vault is mapped.
const START: u64 = layout::FREE_START;
/// Pages there can be at most: 4 GiB of them, so that the number of an inode fits a badge.
const MAX_PAGES: u64 = 1 << 20;

/// The memory of the tree.
pub struct Memory {
    vault: VaultClient<Direct>,
    /// One bit per page: is it mapped?
    mapped: Vec<u64>,
    archive: &'static [u8],
    /// Pages there can be.
    limit: u64,
}

impl Memory {
    /// Maps all pages that the vault holds.
    pub fn open(vault: VaultClient<Direct>, archive: &'static [u8]) -> Result<Self, Failure<VaultError>> {
        let limit = vault.limit()?.min(MAX_PAGES);
        // From now on no page needs memory of ours.
        let mapped = alloc::vec![0; limit.div_ceil(64) as usize];
        let mut memory = Self { vault, mapped, archive, limit };
        let pages = memory.vault.pages()?.min(limit) as u32;
        for page in 0..pages {
            if memory.vault.existing(page.into(), address(page))? {
                memory.set_mapped(page, true);
            }
        }
        Ok(memory)
    }

    /// Pages there can be.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    fn is_mapped(&self, page: u32) -> bool {
        self.mapped.get(page as usize / 64).is_some_and(|word| word & 1 << (page % 64) != 0)
    }

    fn set_mapped(&mut self, page: u32, mapped: bool) {
        let word = page as usize / 64;
        let bit = 1 << (page % 64);
        self.mapped[word] = if mapped { self.mapped[word] | bit } else { self.mapped[word] & !bit };
    }

    #[inline]
    fn word(&self, page: u32, word: usize) -> &AtomicU64 {
        assert!(self.is_mapped(page) && word < PAGE_BYTES / 8, "page of the tree is not there");
        // SAFETY: the page is mapped writable, stays so while `self` is not changed, and is only
        // accessed through this component's single tree; the word is aligned and inside of it.
        unsafe { AtomicU64::from_ptr((address(page) as usize + word * 8) as *mut u64) }
    }

    #[inline]
    fn place(&self, page: u32, offset: usize, length: usize) -> *mut u8 {
        let inside = offset.checked_add(length).is_some_and(|end| end <= PAGE_BYTES);
        assert!(inside && self.is_mapped(page), "bytes of the tree are not there");
        (address(page) as usize + offset) as *mut u8
    }
}

const fn address(page: u32) -> u64 {
    START + page as u64 * PAGE_BYTES as u64
}

impl Pages for Memory {
    #[inline]
    fn load(&self, page: u32, word: usize) -> u64 {
        self.word(page, word).load(Ordering::Relaxed)
    }

    #[inline]
    fn loads(&self, page: u32) -> impl Fn(usize) -> u64 {
        let first = self.word(page, 0).as_ptr().cast::<[AtomicU64; PAGE_BYTES / 8]>();
        // SAFETY: the page is mapped writable, stays so while `self` is borrowed, and all its words are aligned.
        let words = unsafe { &*first };
        move |word| words[word].load(Ordering::Relaxed)
    }

    /// Release keeps the order of stores: whoever comes after a kill sees them in program order.
    #[inline]
    fn store(&mut self, page: u32, word: usize, value: u64) {
        self.word(page, word).store(value, Ordering::Release);
    }

    #[inline]
    fn read(&self, page: u32, offset: usize, length: usize, look: impl FnOnce(&[u8])) {
        // SAFETY: the page is mapped writable, stays so while `self` is borrowed, and nobody writes to it meanwhile.
        look(unsafe { core::slice::from_raw_parts(self.place(page, offset, length), length) });
    }

    #[inline]
    fn write(&mut self, page: u32, offset: usize, length: usize, fill: impl FnOnce(&mut [u8])) {
        let target = self.place(page, offset, length);
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the target is inside a mapped page, which no other reference of Rust's refers to.
        fill(unsafe { core::slice::from_raw_parts_mut(target, length) });
        compiler_fence(Ordering::SeqCst);
    }

    fn clear(&mut self, page: u32, offset: usize, length: usize) {
        let target = self.place(page, offset, length);
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the target is inside a mapped page, which no reference of Rust's refers to.
        unsafe { core::ptr::write_bytes(target, 0, length) };
        compiler_fence(Ordering::SeqCst);
    }

    fn populate(&mut self, page: u32, _payer: u32) -> Result<(), Error> {
        if self.is_mapped(page) {
            return Ok(());
        }
        if u64::from(page) >= self.limit {
            return Err(Error::NoSpace);
        }
        match self.vault.page(page.into(), address(page)) {
            Ok(_) => {
                self.set_mapped(page, true);
                Ok(())
            }
            Err(error) => {
                runtime::log!("vault page {page}: {error}");
                Err(Error::NoSpace)
            }
        }
    }

    fn release(&mut self, page: u32) {
        if self.is_mapped(page) {
            self.set_mapped(page, false);
            if let Err(error) = self.vault.release(page.into()) {
                runtime::log!("vault page {page} cannot be given back: {error}");
            }
        }
    }

    fn exists(&self) -> bool {
        self.is_mapped(0)
    }

    fn archive(&self) -> &[u8] {
        self.archive
    }
}

/// The boot archive, where `roottask` says that it mapped it: `ARCHIVE=address,bytes`.
pub fn archive(description: &str) -> Option<&'static [u8]> {
    let (address, bytes) = description.split_once(',')?;
    let address = number(address)?;
    let bytes = number(bytes)?;
    let end = address.checked_add(bytes)?;
    if address < layout::USER_START || end > layout::USER_END || !address.is_multiple_of(PAGE_BYTES as u64) {
        return None;
    }
    // SAFETY: our creator, who mapped all we have, says that these bytes are mapped for us, read-only.
    Some(unsafe { core::slice::from_raw_parts(address as *const u8, bytes as usize) })
}

/// A number, decimal or with `0x` hexadecimal.
fn number(text: &str) -> Option<u64> {
    match text.trim().strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.trim().parse().ok(),
    }
}
