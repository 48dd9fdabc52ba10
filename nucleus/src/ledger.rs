//! The ledger of owed TLB invalidations.
//!
//! Whoever takes rights out of a page table holds an [`Owed`] until `invalidate` consumes it. A checked
//! build writes each debt of the running space down, strikes it out when the processor is really told
//! (`paid`, `all_paid`), and panics when the nucleus is left with one: the emulator never shows a stale
//! translation, only the ledger does.

use crate::arch::paging;
use crate::cpu;
use crate::domain::Domain;
use crate::pointer::{Nucleus, Ref};

/// A translation that the processor may still have and must not.
#[must_use = "a stale translation stays until `invalidate`"]
pub struct Owed {
    domain: Ref<Domain>,
    address: u64,
}

struct Debts {
    addresses: [u64; 32],
    count: usize,
}

static DEBTS: Nucleus<Debts> = Nucleus::new(Debts { addresses: [0; 32], count: 0 });

impl Owed {
    /// The translation of `address` in the space of `domain` got weaker. Another space than the running
    /// one owes nothing: loading a root drops all of its translations.
    pub fn new(domain: Ref<Domain>, address: u64) -> Self {
        if cfg!(feature = "checked") && cpu::this().domain == Some(domain) {
            let debts = DEBTS.get();
            assert!(debts.count < debts.addresses.len(), "too many owed invalidations");
            debts.addresses[debts.count] = address;
            debts.count += 1;
        }
        Self { domain, address }
    }

    /// Pays: drops the translation if the processor can have it.
    pub fn invalidate(self) {
        if cpu::this().domain == Some(self.domain) {
            paging::invalidate_page(self.address);
        }
    }
}

/// The processor dropped its translation of `address`.
pub fn paid(address: u64) {
    if cfg!(feature = "checked") {
        let debts = DEBTS.get();
        while let Some(place) = debts.addresses[..debts.count].iter().position(|debt| *debt == address) {
            debts.count -= 1;
            debts.addresses[place] = debts.addresses[debts.count];
        }
    }
}

/// The processor dropped all translations of users.
pub fn all_paid() {
    if cfg!(feature = "checked") {
        DEBTS.get().count = 0;
    }
}

/// Panics in a checked build if an invalidation is owed.
pub fn check_before_leaving() {
    if cfg!(feature = "checked") {
        let debts = DEBTS.get();
        assert!(
            debts.count == 0,
            "leaving the nucleus with {} owed invalidations, one of {:#x}",
            debts.count,
            debts.addresses[0]
        );
    }
}
