//! Time, and the timer of each CPU.
//!
//! There is no periodic tick. The timer is armed for the earliest time requested. A request that is obsolete by then costs
//! one early interrupt.

use super::cpu;
use crate::arch::timer as machine;
use crate::objects::Rate;
use crate::pointer::{Boot, Held};

pub use machine::now;

struct Clock {
    start: u64,
    rate: Rate,
}

static CLOCK: Boot<Clock> = Boot::new(Clock { start: 0, rate: Rate { nanoseconds: 1 << 32, microsecond: 1000 << 32 } });

/// Calibrates the clock.
#[unsafe(link_section = ".init")]
#[inline(never)]
pub fn init() {
    let rate = machine::init();
    // SAFETY: the boot CPU runs alone, and nothing borrows the clock meanwhile.
    unsafe { *CLOCK.write() = Clock { start: now(), rate } };
}

/// Nanoseconds since boot.
pub fn nanoseconds() -> u64 {
    to_nanoseconds(now() - CLOCK.get().start)
}

/// The first tick after a time in nanoseconds since boot. A time out of range gives `u64::MAX`: never.
pub fn ticks(nanoseconds: u64) -> u64 {
    let clock = CLOCK.get();
    let rate = clock.rate.nanoseconds;
    let (mut ticks, mut rest) = (nanoseconds / rate, nanoseconds % rate);
    if ticks >> 32 != 0 {
        return u64::MAX;
    }
    // The rate has 32 fraction bits and fewer than 24 integer bits, so each step can compute eight more bits of the
    // quotient.
    for _ in 0..4 {
        rest <<= 8;
        ticks = (ticks << 8) | (rest / rate);
        rest %= rate;
    }
    ticks.saturating_add(1).saturating_add(clock.start)
}

/// Converts ticks to nanoseconds.
pub fn to_nanoseconds(ticks: u64) -> u64 {
    ((ticks as u128 * CLOCK.get().rate.nanoseconds as u128) >> 32) as u64
}

/// Converts microseconds to ticks.
pub fn from_microseconds(microseconds: u64) -> u64 {
    let ticks = (microseconds as u128 * CLOCK.get().rate.microsecond as u128) >> 32;
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// Arms this CPU's timer for `moment` (ticks), unless it is armed for an earlier time.
#[inline(always)]
pub fn arm_no_later_than(held: Held, moment: u64) {
    if moment < cpu::this(held).armed.get() {
        arm(held, moment);
    }
}

#[cold]
fn arm(held: Held, moment: u64) {
    cpu::this(held).armed.set(moment);
    machine::set(moment);
}

/// Handles the timer's interrupt.
pub fn fired(held: Held) {
    machine::stop();
    cpu::this(held).armed.set(u64::MAX);
}
