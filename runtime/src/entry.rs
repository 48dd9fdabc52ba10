//! Entries of our portal table, and their owners.

use abi::rights::Kind;

pub use crate::handle::Entry;

use crate::{op, table};

impl Entry {
    /// Whether it is of this kind and has all of these rights.
    pub fn is(self, kind: Kind, rights: u8) -> bool {
        op::entry_info(Self::OWN, self).is_ok_and(|(found, has)| found == kind && has & rights == rights)
    }
}

/// An entry that is removed, and its index given back, when this goes out of scope.
#[derive(PartialEq, Eq, Debug)]
pub struct Owned(Entry);

impl Owned {
    /// Takes over an entry.
    pub const fn new(entry: Entry) -> Self {
        Self(entry)
    }
    /// The handle.
    pub const fn entry(&self) -> Entry {
        self.0
    }
    /// Gives the entry out of this one's hands.
    pub fn leak(self) -> Entry {
        let entry = self.0;
        core::mem::forget(self);
        entry
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // An entry that is revoked or gone already needs no removing; the index is free either way.
        let _ = op::entry_remove(Entry::OWN, self.0);
        table::free(self.0);
    }
}
