//! Time: a counter (ticks) that is the same on all CPUs and always runs, and a one-shot timer of each CPU.
//!
//! There is no periodic tick. The timer is armed for the earliest moment that somebody asked for; a
//! moment that is no longer wanted costs one early interrupt.

use crate::pointer::Held;
/// Ticks.
pub fn now() -> u64 {
    unimplemented!()
}

/// Instructions, in an emulator that counts them: the clock of traces.
pub fn instructions() -> u64 {
    unimplemented!()
}

/// Instructions of a record in a trace that come before the first and after the second look at that clock, those of a lock
/// that is free included; and those that a crossing on the short way takes besides, with the registers that it keeps.
pub const UNSEEN: [u64; 2] = [0; 2];

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
pub fn arm_no_later_than(_: Held, moment: u64) {
    unimplemented!()
}

/// The timer's interrupt came.
pub fn fired(_: Held) {
    unimplemented!()
}
