//! Entries of our portal table, and their owners.

use abi::Error;
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
        match op::entry_remove(Entry::OWN, self.0) {
            // An entry that is revoked or gone already needs no removing; the index is free.
            Ok(()) | Err(Error::Empty | Error::Revoked) => table::free(self.0),
            // It stays, and so does the index: labels forbid that it goes.
            Err(_) => {}
        }
    }
}
