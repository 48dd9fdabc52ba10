//! The ledger of owed TLB invalidations.
//!
//! Whoever takes rights out of a page table holds an [`Owed`] until `invalidate` consumes it. A checked
//! build writes each debt of each CPU down, strikes it out when the processor is really told
//! (`paid`, `all_paid`), and panics when the nucleus is left with one: the emulator never shows a stale
//! translation, only the ledger does.

use crate::arch::paging;
use crate::cpu;
use crate::domain::Domain;
use crate::pointer::{Held, Ref};
use core::cell::Cell;

/// A translation that the processor may still have and must not.
#[must_use = "a stale translation stays until `invalidate`"]
pub struct Owed {
    domain: Ref<Domain>,
    address: u64,
}

/// How many a CPU can owe in a checked build.
const MOST: usize = if cfg!(feature = "checked") { 32 } else { 1 };

/// What a CPU owes: roots of spaces, and addresses there.
pub struct Debts {
    owed: [Cell<(u64, u64)>; MOST],
    count: Cell<usize>,
}

impl Debts {
    /// Nothing.
    pub const fn new() -> Self {
        Self { owed: [const { Cell::new((0, 0)) }; MOST], count: Cell::new(0) }
    }

    fn add(&self, root: u64, address: u64) {
        let count = self.count.get();
        assert!(count < self.owed.len(), "too many owed invalidations");
        self.owed[count].set((root, address));
        self.count.set(count + 1);
    }

    fn strike_out(&self, is_paid: impl Fn((u64, u64)) -> bool) {
        while let Some(place) = self.owed[..self.count.get()].iter().position(|debt| is_paid(debt.get())) {
            let last = self.count.get() - 1;
            self.count.set(last);
            self.owed[place].swap(&self.owed[last]);
        }
    }
}

impl Owed {
    /// The translation of `address` in the space of `domain` got weaker. Where translations are kept while another space is loaded
    /// ([`paging::KEEPS_TRANSLATIONS`]) any CPU may have it, and this one, which tells all, owes it. Otherwise those owe it
    /// that are in the space: loading a root drops all translations.
    pub fn new(domain: Ref<Domain>, address: u64) -> Self {
        let held = domain.held();
        if cfg!(feature = "checked") {
            let (own, root) = (cpu::this(held), domain.root);
            if paging::KEEPS_TRANSLATIONS {
                own.debts.add(root, address);
                return Self { domain, address };
            }
            if own.domain.get() == Some(domain) {
                own.debts.add(root, address);
            }
            for other in cpu::others(held).filter(|other| other.domain_there() == Some(domain)) {
                // It could change the space, and so pay, without being seen.
                cpu::hold_up(other);
                if other.domain.get() == Some(domain) && other.debts.count.get() < MOST {
                    other.debts.add(root, address);
                }
            }
        }
        Self { domain, address }
    }

    /// Pays: drops the translation wherever a processor can have it.
    pub fn invalidate(self) {
        paging::invalidate_page(self.domain, self.address);
    }
}

/// The translation of `address` in the space with this root is dropped, as far as this CPU owed it.
pub fn paid(held: Held, root: u64, address: u64) {
    if cfg!(feature = "checked") {
        cpu::this(held).debts.strike_out(|debt| debt == (root, address));
    }
}

/// All translations of the space with this root are dropped; of any space with `None`.
pub fn all_paid(held: Held, root: Option<u64>) {
    if cfg!(feature = "checked") {
        cpu::this(held).debts.strike_out(|debt| root.is_none_or(|root| debt.0 == root));
    }
}

/// Panics in a checked build if an invalidation is owed by this CPU.
pub fn check_before_leaving(held: Held) {
    if cfg!(feature = "checked") {
        let debts = &cpu::this(held).debts;
        assert!(
            debts.count.get() == 0,
            "leaving the nucleus with {} owed invalidations, one of {:#x}",
            debts.count.get(),
            debts.owed[0].get().1
        );
    }
}
