//! The time-stamp counter (ticks), assumed to be the same on all CPUs, and the one-shot timer of each CPU's local APIC.

use super::interrupts;
use super::memory::{port_read, port_write};
use crate::objects::Rate;
use crate::pointer::Boot;
use timer_calibration::Measurement;

/// Timer counts per tick, in 2^-32.
static COUNTS: Boot<u64> = Boot::new(1 << 32);

/// The present time, in ticks.
pub fn now() -> u64 {
    // SAFETY: only reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Instructions, in an emulator that counts them: the clock of traces.
#[inline(always)]
pub fn instructions() -> u64 {
    now()
}

/// Instructions that tracing adds unseen by that clock. First, those of a trace record before its first and after its second
/// reading of the clock, with those of a free lock. Second, those that a call or return takes more on the slow path, where
/// it is recorded.
pub const UNSEEN: [u64; 2] = [27, 130];

/// Measurements, at most.
const MEASURED: usize = 32;

/// Measures ticks (inner) and timer counts (outer) of a millisecond of the interval timer (8254, channel 2). They are too
/// many if an emulated machine stood still meanwhile.
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

/// Calibrates both counters.
pub fn init() -> Rate {
    let Measurement { inner: ticks, outer: counts } = timer_calibration::undisturbed::<MEASURED>(measure);
    interrupts::start_timer(0);
    let ticks = ticks.max(1000);
    // SAFETY: the first CPU runs alone, and does not arm the timer meanwhile.
    unsafe { *COUNTS.write() = (counts.max(1) << 32) / ticks };
    Rate { nanoseconds: (1_000_000u64 << 32) / ticks, microsecond: (ticks << 32) / 1000 }
}

/// Arms the timer for this moment (ticks); its interrupt comes at once if that has passed.
pub fn set(moment: u64) {
    let ticks = moment.saturating_sub(now());
    let counts = (ticks as u128 * *COUNTS.get() as u128) >> 32;
    interrupts::start_timer(counts.clamp(1, u32::MAX as u128) as u32);
}

/// Stops the timer after its interrupt: a one-shot timer needs nothing.
pub fn stop() {}
