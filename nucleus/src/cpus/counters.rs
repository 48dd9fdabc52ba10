//! Counters of the nucleus.

use crate::pointer::{Held, Nucleus};
use core::cell::Cell;

/// Counters that are not per CPU; see `abi::info::Counters`.
#[allow(missing_docs)]
pub struct Counts {
    pub faults: Count,
    pub interrupts: Count,
    pub deaths: Count,
    pub splits: Count,
    pub standby: Count,
    pub domains: Count,
    pub restarts: Count,
    pub invalidations: Count,
    pub again: Count,
    pub not_runnable: Count,
}

/// A counter.
pub struct Count(Cell<u64>);

impl Count {
    const fn new() -> Self {
        Self(Cell::new(0))
    }
    /// The count.
    pub fn get(&self) -> u64 {
        self.0.get()
    }
    /// Adds one.
    pub fn up(&self) {
        self.0.update(|count| count + 1);
    }
}

static COUNTS: Nucleus<Counts> = Nucleus::new(Counts {
    faults: Count::new(),
    interrupts: Count::new(),
    deaths: Count::new(),
    splits: Count::new(),
    standby: Count::new(),
    domains: Count::new(),
    restarts: Count::new(),
    invalidations: Count::new(),
    again: Count::new(),
    not_runnable: Count::new(),
});

/// The counters.
pub fn all(held: Held) -> &'static Counts {
    COUNTS.get(held)
}
