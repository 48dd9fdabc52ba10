//! The PL031 clock chip (Arm PrimeCell Real Time Clock, DDI 0224, chapter 3): a counter of seconds, with an interrupt when it
//! reaches a number.

use alloc::format;
use alloc::string::String;

use runtime::device::{read, write};
use runtime::{Entry, op};

/// The seconds since 1970.
const RTCDR: usize = 0;
/// The second at which there is an interrupt.
const RTCMR: usize = 4;
const RTCIMSC: usize = 0x10;
const RTCICR: usize = 0x1c;
/// How long the interrupt at the next second is waited for, in nanoseconds.
const PATIENCE: u64 = 2_500_000_000;
const SECOND: u64 = 1_000_000_000;

/// The time since 1970 in nanoseconds, whole seconds, and the time since boot at which the chip said so.
pub fn now() -> (u64, u64) {
    let seconds = u64::from(read(RTCDR));
    (seconds * SECOND, op::clock())
}

/// As [`now`], at the moment at which the next second begins.
pub fn next_second() -> Result<(u64, u64), String> {
    let text = |error: abi::Error| format!("its interrupt: {error}");
    let semaphore = op::semaphore_new(Entry::OWN, 0).map_err(text)?;
    op::interrupt_bind(Entry::INTERRUPT, semaphore).map_err(text)?;
    write(RTCICR, 1);
    write(RTCMR, read(RTCDR).wrapping_add(1));
    write(RTCIMSC, 1);
    let waited = op::p(semaphore, op::clock() + PATIENCE);
    let at = op::clock();
    write(RTCIMSC, 0);
    write(RTCICR, 1);
    waited.map_err(text)?;
    Ok((now().0, at))
}
