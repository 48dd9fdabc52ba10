//! Time: a counter (ticks) that is the same on all CPUs and always runs, and a one-shot timer of each CPU.
//!
//! There is no periodic tick. The timer is armed for the earliest moment that somebody asked for; a
//! moment that is no longer wanted costs one early interrupt.

/// Ticks.
pub fn now() -> u64 {
    unimplemented!()
}

/// Finds out how long a tick is.
pub fn init() {
    unimplemented!()
}

/// Nanoseconds since boot.
pub fn nanoseconds() -> u64 {
    unimplemented!()
}

/// The tick of a moment in nanoseconds since boot, rounded up; a moment out of range is never.
pub fn ticks(nanoseconds: u64) -> u64 {
    unimplemented!()
}

/// Ticks as nanoseconds.
pub fn to_nanoseconds(ticks: u64) -> u64 {
    unimplemented!()
}

/// Microseconds as ticks.
pub fn from_microseconds(microseconds: u64) -> u64 {
    unimplemented!()
}

/// An interrupt comes to this CPU at `moment` (ticks) or before.
pub fn arm_no_later_than(moment: u64) {
    unimplemented!()
}

/// The timer's interrupt came.
pub fn fired() {
    unimplemented!()
}
