//! Time: the time-stamp counter (ticks), which is taken to be the same on all CPUs, and the one-shot timer of each
//! CPU's local APIC.
//!
//! There is no periodic tick. The timer is armed for the earliest moment that somebody asked for; a
//! moment that is no longer wanted costs one early interrupt.

use super::interrupts;
use super::memory::{port_read, port_write};
use crate::cpu;
use crate::pointer::{Boot, Held};
use clockrate::Measurement;

struct Clock {
    start: u64,
    /// Nanoseconds per tick and timer counts per tick, in 2^-32.
    nanoseconds: u64,
    counts: u64,
    ticks_per_microsecond: u64,
}

static CLOCK: Boot<Clock> =
    Boot::new(Clock { start: 0, nanoseconds: 1 << 32, counts: 1 << 32, ticks_per_microsecond: 1000 });

/// Ticks.
pub fn now() -> u64 {
    // SAFETY: only reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Instructions, in an emulator that counts them: the clock of traces.
#[inline(always)]
pub fn instructions() -> u64 {
    now()
}

/// Instructions of a record in a trace that come before the first and after the second look at that clock, those of a lock
/// that is free included; and those that a crossing on the short way takes besides, with the registers that it keeps.
pub const UNSEEN: [u64; 2] = [27, 41];

/// Measurements at most.
const MEASURED: usize = 32;

/// Ticks (inner) and timer counts (outer) of a millisecond of the interval timer (8254, channel 2), or of more if the
/// machine, when it is an emulated one, stood still meanwhile.
fn measure() -> Measurement {
    const COUNTS: u32 = 1_193_182 / 1000;
    // SAFETY: the ports of the 8254 and its gate; nothing else uses them.
    unsafe {
        port_write(0x61, port_read(0x61) & !2 | 1);
        port_write(0x43, 0b1011_0000);
        port_write(0x42, COUNTS as u8);
        port_write(0x42, (COUNTS >> 8) as u8);
        interrupts::start_timer(u32::MAX);
        let start = now();
        while port_read(0x61) & 0x20 == 0 {}
        let inner = now() - start;
        Measurement { inner, outer: (u32::MAX - interrupts::timer_left()) as u64 }
    }
}

/// Measures both counters.
pub fn init() {
    let Measurement { inner: ticks, outer: counts } = clockrate::undisturbed::<MEASURED>(measure);
    interrupts::start_timer(0);
    // SAFETY: the first CPU runs alone, and looks at no clock meanwhile.
    let clock = unsafe { CLOCK.write() };
    let ticks = ticks.max(1000);
    clock.start = now();
    clock.nanoseconds = (1_000_000u64 << 32) / ticks;
    clock.counts = (counts.max(1) << 32) / ticks;
    clock.ticks_per_microsecond = (ticks / 1000).max(1);
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
    microseconds.saturating_mul(CLOCK.get().ticks_per_microsecond)
}

/// An interrupt comes to this CPU at `moment` (ticks) or before.
#[inline(always)]
pub fn arm_no_later_than(held: Held, moment: u64) {
    if moment < cpu::this(held).armed.get() {
        arm(held, moment);
    }
}

#[cold]
fn arm(held: Held, moment: u64) {
    cpu::this(held).armed.set(moment);
    let clock = CLOCK.get();
    let ticks = moment.saturating_sub(now());
    let counts = (ticks as u128 * clock.counts as u128) >> 32;
    interrupts::start_timer(counts.clamp(1, u32::MAX as u128) as u32);
}

/// The timer's interrupt came.
pub fn fired(held: Held) {
    cpu::this(held).armed.set(u64::MAX);
}
