//! The component's vault: pages that outlive it, and what is kept in them.
//!
//! A component has a vault if the system description gives it one (`vault = "256K"`). The pages are mapped at a fixed address;
//! all access goes through [`Memory`], which checks that a page is there. [`values`] and [`log`] keep state that is whole after
//! a kill between any two stores; a vault holds one of the two, once. A component that needs another layout uses [`Memory`] itself.

extern crate alloc;

use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use abi::{PAGE_BYTES, layout};
use idl::Failure;
use protocols::parent::{ParentClient, ParentError};
use protocols::vault::{VaultClient, VaultError};
pub use saved::{Error as ContentError, Log, MAX_KEY, Pages, Record, Values};

use crate::{Direct, Entry};

/// Where the vault is mapped.
const START: u64 = layout::FREE_START;
/// Pages there can be at most: 4 GiB of them.
const MAX_PAGES: u64 = 1 << 20;

/// Why there is no vault, or not what should be in it.
#[derive(Debug)]
pub enum Error {
    /// The parent gives none.
    Parent(Failure<ParentError>),
    /// The system description gives none.
    Absent,
    /// The vault refuses.
    Vault(Failure<VaultError>),
    /// The vault holds something else, or has no room.
    Content(ContentError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parent(error) => write!(f, "no vault: {error}"),
            Self::Absent => f.write_str("it has no vault: `vault` in the system description gives it one"),
            Self::Vault(error) => write!(f, "the vault cannot be mapped: {error}"),
            Self::Content(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for Error {}

/// Values of this version in our vault, empty at first.
pub fn values(version: u32) -> Result<Values<Memory>, Error> {
    Values::open(Memory::open()?, version).map_err(Error::Content)
}

/// A log of this version in our vault, empty at first.
pub fn log(version: u32) -> Result<Log<Memory>, Error> {
    Log::open(Memory::open()?, version).map_err(Error::Content)
}

/// The pages.
pub struct Memory {
    vault: VaultClient<Direct>,
    /// One bit per page: is it mapped?
    mapped: Vec<u64>,
    /// Pages there can be.
    limit: u32,
}

impl Memory {
    /// Maps all pages that the vault holds. A second one in the same domain cannot map what the first one has.
    pub fn open() -> Result<Self, Error> {
        let vault = ParentClient(Direct(Entry::PARENT)).vault().map_err(Error::Parent)?;
        let memory = Self::map(VaultClient(Direct(vault.into()))).map_err(Error::Vault)?;
        if memory.limit == 0 { Err(Error::Absent) } else { Ok(memory) }
    }

    fn map(vault: VaultClient<Direct>) -> Result<Self, Failure<VaultError>> {
        let limit = vault.limit()?.min(MAX_PAGES) as u32;
        // From now on no page needs memory of ours.
        let mapped = alloc::vec![0; limit.div_ceil(64) as usize];
        let mut memory = Self { vault, mapped, limit };
        let pages = memory.vault.pages()?.min(limit.into()) as u32;
        for page in 0..pages {
            if memory.vault.existing(page.into(), address(page))? {
                memory.set_mapped(page, true);
            }
        }
        Ok(memory)
    }

    fn set_mapped(&mut self, page: u32, mapped: bool) {
        let word = page as usize / 64;
        let bit = 1 << (page % 64);
        self.mapped[word] = if mapped { self.mapped[word] | bit } else { self.mapped[word] & !bit };
    }

    /// The words of a page that is present.
    #[inline]
    pub fn words(&self, page: u32) -> &[AtomicU64; PAGE_BYTES / 8] {
        assert!(self.is_present(page), "page of the vault is not there");
        // SAFETY: the page is mapped writable, stays so while `self` is borrowed, all its words are aligned, and only this
        // object leads to it: another one cannot have mapped it at this address.
        unsafe { &*(address(page) as *const [AtomicU64; PAGE_BYTES / 8]) }
    }

    #[inline]
    fn place(&self, page: u32, offset: usize, length: usize) -> *mut u8 {
        let inside = offset.checked_add(length).is_some_and(|end| end <= PAGE_BYTES);
        assert!(inside && self.is_present(page), "bytes of the vault are not there");
        (address(page) as usize + offset) as *mut u8
    }

    /// Shows bytes of a page that is present, to be copied.
    #[inline]
    pub fn read(&self, page: u32, offset: usize, length: usize, look: impl FnOnce(&[u8])) {
        // SAFETY: the page is mapped writable, stays so while `self` is borrowed, and nobody writes to it meanwhile.
        look(unsafe { core::slice::from_raw_parts(self.place(page, offset, length), length) });
    }

    /// Has `fill` write bytes of a page that is present: in any order, but after earlier and before later stores.
    #[inline]
    pub fn write(&mut self, page: u32, offset: usize, length: usize, fill: impl FnOnce(&mut [u8])) {
        let target = self.place(page, offset, length);
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the target is inside a mapped page, which no other reference of Rust's refers to.
        fill(unsafe { core::slice::from_raw_parts_mut(target, length) });
        compiler_fence(Ordering::SeqCst);
    }
}

const fn address(page: u32) -> u64 {
    START + page as u64 * PAGE_BYTES as u64
}

impl Pages for Memory {
    fn limit(&self) -> u32 {
        self.limit
    }

    #[inline]
    fn is_present(&self, page: u32) -> bool {
        self.mapped.get(page as usize / 64).is_some_and(|word| word & 1 << (page % 64) != 0)
    }

    /// The log says why a page cannot be had.
    fn populate(&mut self, page: u32) -> bool {
        if self.is_present(page) {
            return true;
        }
        if page >= self.limit {
            return false;
        }
        let made = self.vault.page(page.into(), address(page));
        match &made {
            Ok(_) => self.set_mapped(page, true),
            Err(error) => crate::log!("vault page {page}: {error}"),
        }
        made.is_ok()
    }

    fn release(&mut self, page: u32) {
        if self.is_present(page) {
            self.set_mapped(page, false);
            if let Err(error) = self.vault.release(page.into()) {
                crate::log!("vault page {page} cannot be given back: {error}");
            }
        }
    }

    #[inline]
    fn load(&self, page: u32, word: usize) -> u64 {
        self.words(page)[word].load(Ordering::Relaxed)
    }

    /// Release keeps the order of stores: the instance after a kill sees them in program order.
    #[inline]
    fn store(&mut self, page: u32, word: usize, value: u64) {
        self.words(page)[word].store(value, Ordering::Release);
    }

    fn read(&self, page: u32, offset: usize, into: &mut [u8]) {
        self.read(page, offset, into.len(), |bytes| into.copy_from_slice(bytes));
    }

    fn write(&mut self, page: u32, offset: usize, bytes: &[u8]) {
        self.write(page, offset, bytes.len(), |place| place.copy_from_slice(bytes));
    }
}
