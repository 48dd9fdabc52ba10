//! Loops, averages, counters.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Display};

use runtime::arch::ticks;
use tool::inspect;

use crate::pages;

/// What was measured.
pub struct Row {
    value: u64,
    unit: &'static str,
    counts: Vec<(&'static str, u64)>,
}

impl Row {
    /// A value in guest instructions.
    pub fn instructions(value: u64) -> Self {
        Self { value, unit: "instructions", counts: Vec::new() }
    }

    /// A value in bytes.
    pub fn bytes(value: u64) -> Self {
        Self { value, unit: "bytes", counts: Vec::new() }
    }

    /// Adds a count.
    pub fn with(mut self, name: &'static str, count: u64) -> Self {
        self.counts.push((name, count));
        self
    }
}

impl Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.value, self.unit)?;
        self.counts.iter().try_for_each(|(name, count)| write!(f, " {name}={count}"))
    }
}

/// Ticks that a loop of `count` rounds takes.
#[inline(always)]
fn time(count: u64, mut operation: impl FnMut()) -> u64 {
    let start = ticks();
    for _ in 0..count {
        operation();
    }
    ticks() - start
}

/// Ticks of an empty loop of `count` rounds.
#[inline(never)]
pub fn empty(count: u64) -> u64 {
    time(count, pages::nothing)
}

/// Ticks per round of a loop, less those of an empty loop, rounded up.
#[inline(always)]
pub fn average(count: u64, operation: impl FnMut()) -> u64 {
    let ticks = time(count, operation);
    per_round(ticks, count)
}

/// Ticks per round, if `count` rounds took `ticks`, less those of an empty loop, rounded up.
pub fn per_round(ticks: u64, count: u64) -> u64 {
    ticks.saturating_sub(empty(count)).div_ceil(count)
}

/// The nucleus's counters that tell of expensive instructions.
pub struct Counted {
    root_writes: u64,
    invalidations: u64,
    /// Decisions of `sched`.
    pub dispatches: u64,
}

/// Runs something and counts what the nucleus did meanwhile. Asking costs a little itself.
pub fn counted<R>(work: impl FnOnce() -> R) -> Result<(R, Counted), String> {
    let before = counters()?;
    let result = work();
    let after = counters()?;
    let [root_writes, invalidations, dispatches] = core::array::from_fn(|index| after[index] - before[index]);
    Ok((result, Counted { root_writes, invalidations, dispatches }))
}

fn counters() -> Result<[u64; 3], String> {
    let counters = inspect::counters().map_err(|error| error.to_string())?;
    let find = |name| counters.iter().find(|(known, _)| *known == name).map(|(_, count)| *count);
    let all = ["root writes", "invalidations", "dispatches"].map(find);
    match all {
        [Some(root_writes), Some(invalidations), Some(dispatches)] => Ok([root_writes, invalidations, dispatches]),
        _ => Err("the nucleus has no such counters".into()),
    }
}

impl Counted {
    /// Adds the counts per operation to a row.
    pub fn per_operation(&self, row: Row, operations: u64) -> Row {
        let rounded = |count: u64| (count + operations / 2) / operations;
        row.with("root_writes", rounded(self.root_writes)).with("invalidations", rounded(self.invalidations))
    }
}
