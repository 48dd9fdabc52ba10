//! Time: the virtual counter (ticks), which is the same on all CPUs, and each CPU's virtual timer (Arm ARM D12.1, D12.2).
//!
//! There is no periodic tick. The timer is armed for the earliest moment that somebody asked for; a
//! moment that is no longer wanted costs one early interrupt.

use super::processor::{self, read};
use crate::cpu;
use crate::pointer::{Boot, Held};
use core::arch::asm;

struct Clock {
    start: u64,
    /// Nanoseconds per tick, in 2^-32.
    nanoseconds: u64,
    /// Ticks per second.
    frequency: u64,
}

static CLOCK: Boot<Clock> = Boot::new(Clock { start: 0, nanoseconds: 1 << 32, frequency: 1_000_000_000 });

/// Of a counter whose frequency the firmware did not tell: that of the architecture's example.
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
/// that is free included; and those that a crossing on the short way takes besides, with the registers that it keeps.
pub const UNSEEN: [u64; 2] = [32, 52];

/// Learns how fast the counter is.
pub fn init() {
    // SAFETY: the first CPU runs alone, and looks at no clock meanwhile.
    let clock = unsafe { CLOCK.write() };
    clock.frequency = match read!("cntfrq_el0") {
        0 => USUAL_FREQUENCY,
        frequency => frequency,
    };
    clock.start = now();
    clock.nanoseconds = (1_000_000_000u64 << 32) / clock.frequency;
}

/// Nanoseconds since boot.
pub fn nanoseconds() -> u64 {
    let clock = CLOCK.get();
    (((now() - clock.start) as u128 * clock.nanoseconds as u128) >> 32) as u64
}

/// The tick of a moment in nanoseconds since boot, rounded up; a moment out of range is never.
pub fn ticks(nanoseconds: u64) -> u64 {
    let clock = CLOCK.get();
    let ticks = ((nanoseconds as u128) << 32) / clock.nanoseconds as u128 + 1;
    u64::try_from(ticks).map_or(u64::MAX, |ticks| ticks.saturating_add(clock.start))
}

/// Ticks as nanoseconds.
pub fn to_nanoseconds(ticks: u64) -> u64 {
    ((ticks as u128 * CLOCK.get().nanoseconds as u128) >> 32) as u64
}

/// Microseconds as ticks.
pub fn from_microseconds(microseconds: u64) -> u64 {
    let ticks = microseconds as u128 * CLOCK.get().frequency as u128 / 1_000_000;
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// An interrupt comes to this CPU at `moment` (ticks) or before.
#[inline(always)]
pub fn arm_no_later_than(held: Held, moment: u64) {
    if moment < cpu::this(held).armed.get() {
        arm(held, moment);
    }
}

/// Enabled, not masked.
const ON: u64 = 1;

#[cold]
fn arm(held: Held, moment: u64) {
    cpu::this(held).armed.set(moment);
    // SAFETY: only makes an interrupt come, for which there is a handler.
    unsafe {
        asm!("msr cntv_cval_el0, {}", "msr cntv_ctl_el0, {}", "isb", in(reg) moment, in(reg) ON, options(nostack))
    }
}

/// Asks for an interrupt now.
pub(super) fn ask(held: Held) {
    arm(held, 0);
}

/// The timer's interrupt came: it is level-triggered, and ends when the timer is off.
pub fn fired(held: Held) {
    // SAFETY: only stops the timer.
    unsafe { asm!("msr cntv_ctl_el0, xzr", "isb", options(nostack)) }
    cpu::this(held).armed.set(u64::MAX);
}
