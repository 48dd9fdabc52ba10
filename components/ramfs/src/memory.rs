//! The pages of the tree: the component's vault.

use core::sync::atomic::Ordering;

use abi::{PAGE_BYTES, layout};
use filetree::{Error, Pages};
use runtime::vault::{self, Pages as _};

/// The memory of the tree.
pub struct Memory {
    vault: vault::Memory,
    archive: &'static [u8],
}

impl Memory {
    /// Maps all pages that the vault holds.
    pub fn open(archive: &'static [u8]) -> Result<Self, vault::Error> {
        Ok(Self { vault: vault::Memory::open()?, archive })
    }

    /// Pages there can be.
    pub fn limit(&self) -> u64 {
        self.vault.limit().into()
    }
}

impl Pages for Memory {
    #[inline]
    fn load(&self, page: u32, word: usize) -> u64 {
        self.vault.load(page, word)
    }

    #[inline]
    fn loads(&self, page: u32) -> impl Fn(usize) -> u64 {
        let words = self.vault.words(page);
        move |word| words[word].load(Ordering::Relaxed)
    }

    #[inline]
    fn store(&mut self, page: u32, word: usize, value: u64) {
        self.vault.store(page, word, value);
    }

    #[inline]
    fn read(&self, page: u32, offset: usize, length: usize, look: impl FnOnce(&[u8])) {
        self.vault.read(page, offset, length, look);
    }

    #[inline]
    fn write(&mut self, page: u32, offset: usize, length: usize, fill: impl FnOnce(&mut [u8])) {
        self.vault.write(page, offset, length, fill);
    }

    fn clear(&mut self, page: u32, offset: usize, length: usize) {
        self.vault.write(page, offset, length, |bytes| bytes.fill(0));
    }

    fn populate(&mut self, page: u32, _payer: u32) -> Result<(), Error> {
        if self.vault.populate(page) { Ok(()) } else { Err(Error::NoSpace) }
    }

    fn release(&mut self, page: u32) {
        self.vault.release(page);
    }

    fn exists(&self) -> bool {
        self.vault.is_present(0)
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
