//! The kernel log: the last 16 KiB of lines, for `dmesg`.

use crate::arch::timer;
use crate::pointer::{Link, Nucleus, Ref};
use crate::semaphore::Semaphore;
use core::fmt::{Arguments, Write};

const BYTES: usize = 16384;

struct Log {
    bytes: [u8; BYTES],
    written: u64,
    semaphore: Link<Semaphore>,
}

static LOG: Nucleus<Log> = Nucleus::new(Log { bytes: [0; BYTES], written: 0, semaphore: None });

impl Write for Log {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for byte in text.bytes() {
            self.bytes[self.written as usize % BYTES] = byte;
            self.written += 1;
        }
        Ok(())
    }
}

/// Appends a line with the time before it.
pub fn line(text: Arguments) {
    let log = LOG.get();
    let microseconds = timer::nanoseconds() / 1000;
    // Writing to the log cannot fail.
    let _ = writeln!(log, "[{:5}.{:06}] {text}", microseconds / 1_000_000, microseconds % 1_000_000);
    if let Some(semaphore) = log.semaphore {
        semaphore.signal();
    }
}

/// V on this semaphore whenever the log grows.
pub fn set_semaphore(semaphore: Ref<Semaphore>) {
    semaphore.hold();
    if let Some(old) = LOG.get().semaphore.replace(semaphore) {
        old.drop_hold();
    }
}

/// Copies from byte `position` since boot on; what was overwritten is skipped. Gives the position after.
pub fn read(position: u64, into: &mut [u8]) -> u64 {
    let log = LOG.get();
    let oldest = log.written.saturating_sub(BYTES as u64);
    let mut at = position.clamp(oldest, log.written);
    for byte in into.iter_mut() {
        if at == log.written {
            break;
        }
        *byte = log.bytes[at as usize % BYTES];
        at += 1;
    }
    at
}
