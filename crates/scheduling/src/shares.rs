//! Shares of time: threads that have one run ahead of others until they have used it up together, in a period of a CPU.
//!
//! Then they have the priority [`BEHIND`] until the period ends: all of the CPU is theirs when nobody else wants it, and what they
//! use then counts for nothing. A period begins when the last one is over and one of them is ready.
//!
//! Time is looked at when the scheduler is entered. So they use as much more as they run without that: a slice.

use crate::level::level_of;
use abi::sched::BEHIND;

/// The time used by threads with a share of time, and where they are queued.
pub(crate) struct Shares {
    /// The levels at which some are queued, and of the one that runs: perhaps more.
    pub(crate) watched: u64,
    /// Since when one runs; 0 = none does.
    since: u64,
    /// When time was looked at last.
    seen: u64,
    /// When the period began, and ticks used in it.
    began: u64,
    used: u64,
    /// The share of all of them, in percent.
    pub(crate) percent: u8,
    /// It is used up.
    pub(crate) over: bool,
}

impl Shares {
    pub(crate) const fn new() -> Self {
        Self { watched: 0, since: 0, seen: 0, began: 0, used: 0, percent: 0, over: false }
    }

    /// The level that counts for a thread with a share whose own is this.
    pub(crate) fn level(&self, own: usize) -> usize {
        if self.over { own.min(level_of(BEHIND + 1) - 1) } else { own }
    }

    /// One of them runs.
    pub(crate) fn run(&mut self) {
        self.since = self.seen;
    }

    /// The running thread stopped `now`, and there are threads at the `filled` levels. True if it is `over` now
    /// that was not, or the other way round.
    pub(crate) fn look(&mut self, filled: u64, now: u64, period: u64) -> bool {
        self.watched &= filled;
        if self.since != 0 {
            self.used += now.wrapping_sub(self.since);
        }
        self.since = 0;
        self.seen = now.max(1);
        if now.wrapping_sub(self.began) >= period {
            self.began = now;
            self.used = 0;
        }
        let over = self.used * 100 >= period * u64::from(self.percent);
        over != self.over
    }
}
