//! Loops, averages, rows.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Display};
use core::sync::atomic::{AtomicU64, Ordering};

use runtime::arch::ticks;
use tool::inspect;

use crate::{arch, pages};

/// A measurement.
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

    /// So many per cent as `many` are of `one`, rounded up.
    pub fn percent(many: u64, one: u64) -> Result<Self, String> {
        let value =
            (100 * many).checked_div(one).ok_or("nothing was counted")? + u64::from(!(100 * many).is_multiple_of(one));
        Ok(Self { value, unit: "percent", counts: Vec::new() })
    }

    /// The value.
    pub const fn value(&self) -> u64 {
        self.value
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

/// Ticks that `work` takes; its expensive instructions count for the row that is measured.
#[inline(always)]
pub fn timed(work: impl FnOnce()) -> u64 {
    arch::mark::<{ arch::BEGIN }>();
    let start = ticks();
    work();
    let ticks = ticks() - start;
    arch::mark::<{ arch::END }>();
    ticks
}

#[inline(always)]
fn repeat(count: u64, mut operation: impl FnMut()) {
    for _ in 0..count {
        operation();
    }
}

/// Ticks of an empty loop of `count` rounds.
#[inline(never)]
pub fn empty(count: u64) -> u64 {
    let start = ticks();
    repeat(count, pages::nothing);
    ticks() - start
}

/// Ticks per round of a loop, less those of an empty loop, rounded up.
#[inline(always)]
pub fn average(count: u64, operation: impl FnMut()) -> u64 {
    per_round(timed(|| repeat(count, operation)), count)
}

/// Ticks per round, if `count` rounds took `ticks`, less those of an empty loop, rounded up.
pub fn per_round(ticks: u64, count: u64) -> u64 {
    ticks.saturating_sub(empty(count)).div_ceil(count)
}

/// The rows with their additional costs.
static ROWS: AtomicU64 = AtomicU64::new(0);

/// A row begins: nothing is counted for it yet.
pub fn begin_row() {
    arch::mark::<{ arch::DROP }>();
}

impl Row {
    /// Everything that was [timed] since the row began took so many operations: `./x bench` divides the counts by them.
    pub fn of(self, operations: u64) -> Self {
        arch::mark::<{ arch::KEEP }>();
        self.with("counted", ROWS.fetch_add(1, Ordering::Relaxed)).with("operations", operations)
    }
}

/// Runs something and counts what `sched` decided meanwhile.
pub fn dispatches<R>(work: impl FnOnce() -> R) -> Result<(R, u64), String> {
    let before = decisions()?;
    let result = work();
    Ok((result, decisions()? - before))
}

fn decisions() -> Result<u64, String> {
    let counters = inspect::counters().map_err(|error| error.to_string())?;
    let found = counters.iter().find(|(known, _)| *known == "dispatches");
    found.map(|(_, count)| *count).ok_or_else(|| "the nucleus has no such counter".into())
}
