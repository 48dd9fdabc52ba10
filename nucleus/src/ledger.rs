//! The ledger of owed TLB invalidations.
//!
//! Whoever takes rights out of a page table holds an [`Owed`] until `invalidate` consumes it. A checked
//! build writes each debt of each CPU in that space down, strikes it out when the processor is really told
//! (`paid`, `all_paid`), and panics when the nucleus is left with one: the emulator never shows a stale
//! translation, only the ledger does.

use crate::arch::paging;
use crate::cpu;
use crate::domain::Domain;
use crate::pointer::Ref;

/// A translation that the processor may still have and must not.
#[must_use = "a stale translation stays until `invalidate`"]
pub struct Owed {
    domain: Ref<Domain>,
    address: u64,
}

/// How many a CPU can owe in a checked build.
const MOST: usize = if cfg!(feature = "checked") { 32 } else { 1 };

/// What a CPU owes.
pub struct Debts {
    addresses: [u64; MOST],
    count: usize,
}

impl Debts {
    /// Nothing.
    pub const fn new() -> Self {
        Self { addresses: [0; MOST], count: 0 }
    }

    fn add(&mut self, address: u64) {
        assert!(self.count < self.addresses.len(), "too many owed invalidations");
        self.addresses[self.count] = address;
        self.count += 1;
    }
}

impl Owed {
    /// The translation of `address` in the space of `domain` got weaker. CPUs in another space owe nothing: loading a root
    /// drops all translations.
    pub fn new(domain: Ref<Domain>, address: u64) -> Self {
        if cfg!(feature = "checked") {
            let own = cpu::this();
            if own.domain == Some(domain) {
                cpu::this().debts.add(address);
            }
            for mut other in cpu::others().filter(|other| other.domain == Some(domain)) {
                // It could change the space, and so pay, without being seen.
                cpu::hold_up(other);
                if other.domain == Some(domain) && other.debts.count < MOST {
                    other.debts.add(address);
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

/// The processor dropped its translation of `address`.
#[allow(dead_code, reason = "see `paid_by_all`")]
pub fn paid(address: u64) {
    if cfg!(feature = "checked") {
        let debts = &mut cpu::this().debts;
        while let Some(place) = debts.addresses[..debts.count].iter().position(|debt| *debt == address) {
            debts.count -= 1;
            debts.addresses[place] = debts.addresses[debts.count];
        }
    }
}

/// All processors dropped their translations of `address`, where one tells all. They are held up if they owed it.
#[allow(dead_code, reason = "on some ISAs each drops its own")]
pub fn paid_by_all(address: u64) {
    if cfg!(feature = "checked") {
        for mut cpu in cpu::all() {
            let debts = &mut cpu.debts;
            while let Some(place) = debts.addresses[..debts.count].iter().position(|debt| *debt == address) {
                debts.count -= 1;
                debts.addresses[place] = debts.addresses[debts.count];
            }
        }
    }
}

/// The processor dropped all translations of users.
#[allow(dead_code, reason = "where spaces have identifiers none does so")]
pub fn all_paid() {
    if cfg!(feature = "checked") {
        cpu::this().debts.count = 0;
    }
}

/// Panics in a checked build if an invalidation is owed by this CPU.
pub fn check_before_leaving() {
    if cfg!(feature = "checked") {
        let debts = &cpu::this().debts;
        assert!(
            debts.count == 0,
            "leaving the nucleus with {} owed invalidations, one of {:#x}",
            debts.count,
            debts.addresses[0]
        );
    }
}
