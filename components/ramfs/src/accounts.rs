//! Who pays for the pages of files.
//!
//! `create` brings an account. A copy of it is kept under a number, the *payer* of the file, so that
//! the file can grow later. There is room for a bounded number of accounts; the oldest is let go of
//! when another comes. Files whose payer is not known any more (let go of, gone with its program, or
//! from before a restart) grow on our own account.
//!
//! Free pages of the tree are shared: a page that was paid for by one and freed may be used again for
//! another. All payers are therefore in one class of [`filetree::layout::CLASSES`].

use abi::rights::Kind;
use filetree::layout::CLASSES;
use runtime::entry::{Entry, Owned};
use runtime::op;

/// Accounts kept.
const SLOTS: usize = 64;

/// The accounts.
pub struct Accounts {
    slots: [Option<Owned>; SLOTS],
    next: usize,
}

impl Accounts {
    /// None.
    pub fn new() -> Self {
        Self { slots: [const { None }; SLOTS], next: 0 }
    }

    /// Keeps an account; gives its payer number.
    pub fn keep(&mut self, account: Owned) -> Option<u32> {
        if !matches!(op::entry_info(Entry::OWN, account.entry()), Ok((Kind::Account, _))) {
            return None;
        }
        let slot = self.next;
        self.next = (slot + 1) % SLOTS;
        self.slots[slot] = Some(account);
        Some((slot as u32 + 1) * CLASSES as u32)
    }

    /// Lets go of the account that was kept last.
    pub fn forget(&mut self, payer: u32) {
        if let Some(slot) = slot(payer).filter(|slot| (slot + 1) % SLOTS == self.next) {
            self.slots[slot] = None;
            self.next = slot;
        }
    }

    /// The account of a payer, or ours.
    pub fn account(&self, payer: u32) -> Entry {
        let kept = slot(payer).and_then(|slot| self.slots[slot].as_ref());
        match kept.map(Owned::entry) {
            Some(entry) if op::entry_info(Entry::OWN, entry).is_ok_and(|(kind, _)| kind == Kind::Account) => entry,
            _ => Entry::ACCOUNT,
        }
    }
}

/// The slot of a payer; payer 0 is ourselves.
fn slot(payer: u32) -> Option<usize> {
    (payer as usize / CLASSES).checked_sub(1).filter(|slot| *slot < SLOTS)
}
