//! A counter (ticks) that is the same on all CPUs and always runs, and a one-shot timer of each CPU; see `cpus::timer`.

use crate::objects::Rate;

/// Ticks.
pub fn now() -> u64 {
    unimplemented!()
}

/// Instructions, in an emulator that counts them: the clock of traces.
pub fn instructions() -> u64 {
    unimplemented!()
}

/// Instructions of a record in a trace that come before the first and after the second look at that clock, those of a lock
/// that is free included; and those that a crossing on the fast path takes besides, with the registers that it keeps.
pub const UNSEEN: [u64; 2] = [0; 2];

/// Finds out how long a tick is.
pub fn init() -> Rate {
    unimplemented!()
}

/// The timer's interrupt comes at this moment (ticks), at once if that has passed.
pub fn set(moment: u64) {
    unimplemented!()
}

/// The timer's interrupt came, and does not come again.
pub fn stop() {
    unimplemented!()
}
