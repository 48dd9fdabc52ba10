//! The ledger of TLB invalidations: see `cpus::translations`.

use core::cell::Cell;

/// TLB invalidations that a CPU owes.
pub struct Debts {
    /// Root of the space and address of each; the first `count` are valid.
    pub owed: [Cell<(u64, u64)>; MOST],
    /// Number of invalidations owed.
    pub count: Cell<usize>,
}

impl Debts {
    /// An empty ledger.
    pub const fn new() -> Self {
        Self { owed: [const { Cell::new((0, 0)) }; MOST], count: Cell::new(0) }
    }

    /// Whether the ledger has no room for another.
    pub fn is_full(&self) -> bool {
        self.count.get() == MOST
    }

    /// Adds one.
    pub fn add(&self, root: u64, address: u64) {
        let count = self.count.get();
        assert!(count < self.owed.len(), "too many owed invalidations");
        self.owed[count].set((root, address));
        self.count.set(count + 1);
    }

    /// Removes all for which `is_paid` holds.
    pub fn strike_out(&self, is_paid: impl Fn((u64, u64)) -> bool) {
        while let Some(place) = self.owed[..self.count.get()].iter().position(|debt| is_paid(debt.get())) {
            let last = self.count.get() - 1;
            self.count.set(last);
            self.owed[place].swap(&self.owed[last]);
        }
    }
}

/// Capacity of the ledger; only a checked build uses it.
const MOST: usize = if cfg!(feature = "checked") { 32 } else { 1 };
