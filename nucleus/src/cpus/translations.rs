//! Translations that processors keep (TLBs): what got weaker is dropped on every CPU that may have it (*shootdown*), and a ledger
//! of what is owed.
//!
//! Whoever takes rights out of a page table holds an [`Owed`] until `invalidate` consumes it. A checked
//! build writes each debt of each CPU down, strikes it out when the processor executes the invalidation
//! (`paid`, `all_paid`), and panics when the nucleus is left with one: the emulator never shows a stale
//! translation, only the ledger does.

use super::{counters, cpu};
use crate::arch::paging;
use crate::objects::{Cpu, Domain, FRAME};
use crate::pointer::{Held, Ref};

/// A translation that the processor may still have and must not.
#[must_use = "a stale translation stays until `invalidate`"]
pub struct Owed {
    domain: Ref<Domain>,
    address: u64,
}

impl Owed {
    /// The translation of `address` in the space of `domain` got weaker. Where translations are kept while another space is loaded
    /// ([`paging::KEEPS_TRANSLATIONS`]) any CPU may have it, and this one, which invalidates on all, owes it. Otherwise those owe it
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
                cpu::stop(other);
                if other.domain.get() == Some(domain) && !other.debts.is_full() {
                    other.debts.add(root, address);
                }
            }
        }
        Self { domain, address }
    }

    /// Pays: drops the translation wherever a processor can have it.
    pub fn invalidate(self) {
        let (domain, address) = (self.domain, self.address);
        let held = domain.held();
        // Where translations outlive the space that is loaded, this reaches all CPUs.
        if paging::KEEPS_TRANSLATIONS || cpu::this(held).domain.get() == Some(domain) {
            counters::all(held).invalidations.up();
            paging::drop_page(domain.root, address);
            paid(held, domain.root, address);
        }
        if !paging::KEEPS_TRANSLATIONS {
            shoot_down(domain);
        }
    }
}

/// Translations of pages in the slot of a window, which only one CPU can have, and must not: see `memory::lend`.
#[must_use = "stale translations stay until `invalidate`"]
pub struct OwedSlot {
    domain: Ref<Domain>,
    cpu: Ref<Cpu>,
    address: u64,
    pages: usize,
}

impl OwedSlot {
    /// Those of so many pages from `address` on, of the space of `domain` as `cpu` sees it.
    pub fn new(domain: Ref<Domain>, cpu: Ref<Cpu>, address: u64, pages: usize) -> Self {
        let owed = Self { domain, cpu, address, pages };
        if cfg!(feature = "checked") {
            let own = cpu::this(domain.held());
            let debtor = if paging::KEEPS_TRANSLATIONS { own } else { cpu };
            if debtor != own {
                cpu::stop(debtor);
            }
            if paging::KEEPS_TRANSLATIONS || debtor.domain.get() == Some(domain) {
                owed.each(|address| {
                    if !debtor.debts.is_full() {
                        debtor.debts.add(domain.root, address)
                    }
                });
            }
        }
        owed
    }

    fn each(&self, what: impl Fn(u64)) {
        if cfg!(feature = "checked") {
            (0..self.pages).for_each(|page| what(self.address + (page * FRAME) as u64));
        }
    }

    /// Pays.
    pub fn invalidate(self) {
        let (domain, cpu) = (self.domain, self.cpu);
        let held = domain.held();
        if paging::KEEPS_TRANSLATIONS || cpu == cpu::this(held) && cpu.domain.get() == Some(domain) {
            counters::all(held).invalidations.up();
            paging::drop_pages(domain.root, self.address, self.pages);
            self.each(|address| paid(held, domain.root, address));
        } else {
            // The entries were written before it is looked where that CPU is: see `cpu::others`.
            for other in cpu::others(held).filter(|other| *other == cpu && other.domain_there() == Some(domain)) {
                cpu::stop(other);
                other.flush.set(true);
            }
        }
    }
}

/// Translations of `domain` got weaker: other CPUs that may have them forget them before they use any.
#[inline(always)]
fn shoot_down(domain: Ref<Domain>) {
    let held = domain.held();
    for other in cpu::others(held) {
        if other.domain_there() == Some(domain) {
            cpu::stop(other);
            other.flush.set(true);
        }
    }
}

/// The translation of `address` in the space with this root is dropped, as far as this CPU owed it.
fn paid(held: Held, root: u64, address: u64) {
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
