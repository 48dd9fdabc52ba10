//! The virtual counter (ticks), which is the same on all CPUs, and each CPU's virtual timer (Arm ARM D12.1, D12.2).

use super::processor::{self, read};
use crate::objects::Rate;
use core::arch::asm;

/// Assumed if the firmware did not set the counter's frequency: that of the architecture's example.
const USUAL_FREQUENCY: u64 = 62_500_000;

/// The present time, in ticks. A later reading is never less, here or on another CPU that has synchronised with this one
/// (Arm ARM D12.1.2: the counter may be read speculatively, but not before the barrier).
#[inline(always)]
pub fn now() -> u64 {
    let ticks;
    // SAFETY: a barrier, and reading a counter.
    unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags)) }
    ticks
}

/// Instructions, in an emulator that counts them: the clock of traces.
#[inline(always)]
pub fn instructions() -> u64 {
    processor::cycles()
}

/// Instructions that tracing adds unseen by that clock. First, those of a trace record before its first and after its second
/// reading of the clock, with those of a free lock. Second, those that a call or return takes more on the slow path, where
/// it is recorded.
pub const UNSEEN: [u64; 2] = [32, 110];

/// Reads the counter's frequency.
pub fn init() -> Rate {
    let frequency = match read!("cntfrq_el0") {
        0 => USUAL_FREQUENCY,
        frequency => frequency,
    };
    Rate { nanoseconds: (1_000_000_000u64 << 32) / frequency, microsecond: (frequency << 32) / 1_000_000 }
}

/// Enabled, not masked.
const CNTV_CTL_ENABLE: u64 = 1;

/// Arms the timer for this moment (ticks); its interrupt comes at once if that has passed.
pub fn set(moment: u64) {
    // SAFETY: only causes an interrupt, for which there is a handler.
    unsafe {
        asm!("msr cntv_cval_el0, {}", "msr cntv_ctl_el0, {}", "isb", in(reg) moment, in(reg) CNTV_CTL_ENABLE, options(nostack))
    }
}

/// Stops the timer after its interrupt, which is level-triggered and ends with that.
pub fn stop() {
    // SAFETY: only stops the timer.
    unsafe { asm!("msr cntv_ctl_el0, xzr", "isb", options(nostack)) }
}
