//! TLB shootdowns: a translation that lost rights is dropped on every CPU that may have it. A ledger records what is owed.
//!
//! Code that takes rights out of a page table holds an [`Owed`] until `invalidate` consumes it. A checked build records each
//! debt of each CPU in the ledger, and strikes it out when the processor executes the invalidation (`paid`, `all_paid`). It
//! panics if a CPU leaves the nucleus with a debt. An emulator never uses a stale translation, so only the ledger shows a
//! missing invalidation.

use super::{counters, cpu};
use crate::arch::paging;
use crate::objects::{Cpu, Domain, FRAME};
use crate::pointer::{Held, Ref};

/// A stale translation that a TLB may still have, and that must be invalidated.
#[must_use = "a stale translation stays until `invalidate`"]
pub struct Owed {
    domain: Ref<Domain>,
    address: u64,
}

impl Owed {
    /// The translation of `address` in the space of `domain` lost rights. If TLBs keep translations of spaces that are not
    /// loaded ([`paging::KEEPS_TRANSLATIONS`]), any CPU may have it: this CPU owes the invalidation, which reaches all.
    /// Otherwise the CPUs in the space owe it, as loading a root drops all translations.
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
                // Otherwise its fast paths could leave the space, and so pay, unnoticed.
                cpu::stop(other);
                if other.domain.get() == Some(domain) && !other.debts.is_full() {
                    other.debts.add(root, address);
                }
            }
        }
        Self { domain, address }
    }

    /// Pays: drops the translation on every CPU that may have it.
    pub fn invalidate(self) {
        let (domain, address) = (self.domain, self.address);
        let held = domain.held();
        // If TLBs keep translations of other spaces, this invalidation reaches all CPUs.
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

/// Stale translations of pages in the slot of a window, which only one CPU may have: see `memory::lend`.
#[must_use = "stale translations stay until `invalidate`"]
pub struct OwedSlot {
    domain: Ref<Domain>,
    cpu: Ref<Cpu>,
    address: u64,
    pages: usize,
}

impl OwedSlot {
    /// The translations of `pages` pages from `address` on, in the space of `domain` on `cpu`.
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

    /// Pays: drops the translations on that CPU.
    pub fn invalidate(self) {
        let (domain, cpu) = (self.domain, self.cpu);
        let held = domain.held();
        if paging::KEEPS_TRANSLATIONS || cpu == cpu::this(held) && cpu.domain.get() == Some(domain) {
            counters::all(held).invalidations.up();
            paging::drop_pages(domain.root, self.address, self.pages);
            self.each(|address| paid(held, domain.root, address));
        } else {
            // The fence in `cpu::others` orders the writes of the entries before the read of that CPU's domain.
            for other in cpu::others(held).filter(|other| *other == cpu && other.domain_there() == Some(domain)) {
                cpu::stop(other);
                other.flush.set(true);
            }
        }
    }
}

/// Makes each other CPU in `domain` load its root again, which drops the stale translations, before it returns to user mode.
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

/// Strikes out this CPU's debts for `address` in the space with this root.
fn paid(held: Held, root: u64, address: u64) {
    if cfg!(feature = "checked") {
        cpu::this(held).debts.strike_out(|debt| debt == (root, address));
    }
}

/// Strikes out this CPU's debts for the space with this root; for all spaces with `None`.
pub fn all_paid(held: Held, root: Option<u64>) {
    if cfg!(feature = "checked") {
        cpu::this(held).debts.strike_out(|debt| root.is_none_or(|root| debt.0 == root));
    }
}

/// In a checked build: panics if this CPU owes an invalidation.
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
