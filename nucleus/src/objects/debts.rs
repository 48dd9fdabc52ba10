//! What CPUs owe: see `cpus::translations`.

use core::cell::Cell;

/// What a CPU owes: roots of spaces, and addresses there.
pub struct Debts {
    /// Roots and addresses, as many as `count`.
    pub owed: [Cell<(u64, u64)>; MOST],
    /// How many.
    pub count: Cell<usize>,
}

impl Debts {
    /// Nothing.
    pub const fn new() -> Self {
        Self { owed: [const { Cell::new((0, 0)) }; MOST], count: Cell::new(0) }
    }

    /// Whether there is no room for more.
    pub fn is_full(&self) -> bool {
        self.count.get() == MOST
    }

    /// One more.
    pub fn add(&self, root: u64, address: u64) {
        let count = self.count.get();
        assert!(count < self.owed.len(), "too many owed invalidations");
        self.owed[count].set((root, address));
        self.count.set(count + 1);
    }

    /// Those are paid.
    pub fn strike_out(&self, is_paid: impl Fn((u64, u64)) -> bool) {
        while let Some(place) = self.owed[..self.count.get()].iter().position(|debt| is_paid(debt.get())) {
            let last = self.count.get() - 1;
            self.count.set(last);
            self.owed[place].swap(&self.owed[last]);
        }
    }
}

/// How many a CPU can owe in a checked build.
const MOST: usize = if cfg!(feature = "checked") { 32 } else { 1 };
