//! The virtual counter (ticks), which is the same on all CPUs, and each CPU's virtual timer (Arm ARM D12.1, D12.2).

use super::processor::{self, read};
use crate::objects::Rate;
use core::arch::asm;

/// For a counter whose frequency the firmware did not set: that of the architecture's example.
const USUAL_FREQUENCY: u64 = 62_500_000;

/// Ticks. What comes later here, or on another CPU after this one was heard of, never reads less (Arm ARM D12.1.2: the counter may be
/// read ahead, but not past the barrier).
#[inline(always)]
pub fn now() -> u64 {
    let ticks;
    // SAFETY: only waits for what came before.
    unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags)) }
    ticks
}

/// Instructions, in an emulator that counts them: the clock of traces.
#[inline(always)]
pub fn instructions() -> u64 {
    processor::cycles()
}

/// Instructions of a record in a trace that come before the first and after the second look at that clock, those of a lock
/// that is free included; and those that a call, or a return, takes more on the slow path, on which it is recorded.
pub const UNSEEN: [u64; 2] = [32, 110];

/// Learns how fast the counter is.
pub fn init() -> Rate {
    let frequency = match read!("cntfrq_el0") {
        0 => USUAL_FREQUENCY,
        frequency => frequency,
    };
    Rate { nanoseconds: (1_000_000_000u64 << 32) / frequency, microsecond: (frequency << 32) / 1_000_000 }
}

/// Enabled, not masked.
const ON: u64 = 1;

/// The timer's interrupt comes at this moment (ticks), at once if that has passed.
pub fn set(moment: u64) {
    // SAFETY: only makes an interrupt come, for which there is a handler.
    unsafe {
        asm!("msr cntv_cval_el0, {}", "msr cntv_ctl_el0, {}", "isb", in(reg) moment, in(reg) ON, options(nostack))
    }
}

/// The timer's interrupt came, and does not come again: it is level-triggered, and ends when the timer is off.
pub fn stop() {
    // SAFETY: only stops the timer.
    unsafe { asm!("msr cntv_ctl_el0, xzr", "isb", options(nostack)) }
}
