//! The kernel log: the last 16 KiB of lines, for `dmesg`.

use crate::arch::timer;
use crate::pointer::{Link, Nucleus, Ref};
use crate::semaphore::Semaphore;

const BYTES: usize = 16384;

struct Log {
    bytes: [u8; BYTES],
    written: u64,
    semaphore: Link<Semaphore>,
}

static LOG: Nucleus<Log> = Nucleus::new(Log { bytes: [0; BYTES], written: 0, semaphore: None });

/// A part of a line.
#[derive(Clone, Copy)]
pub enum Part<'a> {
    /// As it is.
    Text(&'a str),
    /// Bytes that should be text; what is not printable ASCII becomes a dot.
    Foreign(&'a [u8]),
    /// Decimal.
    Number(u64),
    /// Hexadecimal, with 0x.
    Hex(u64),
}

impl Log {
    fn put(&mut self, text: &[u8]) {
        let start = self.written as usize % BYTES;
        self.written += text.len() as u64;
        match self.bytes.get_mut(start..start + text.len()) {
            Some(place) => place.copy_from_slice(text),
            None => {
                for (offset, byte) in text.iter().enumerate() {
                    self.bytes[(start + offset) % BYTES] = *byte;
                }
            }
        }
    }

    fn put_number<const BASE: u64>(&mut self, number: u64) {
        let mut text = Backwards { bytes: [0; 32], first: 32 };
        text.number::<BASE>(number, 1);
        if BASE == 16 {
            text.put(b'x');
            text.put(b'0');
        }
        self.put(&text.bytes[text.first..]);
    }
}

/// A short text written from its end to its begin.
struct Backwards {
    bytes: [u8; 32],
    first: usize,
}

impl Backwards {
    fn put(&mut self, byte: u8) {
        self.first -= 1;
        // The mask changes nothing; it spares a check.
        self.bytes[self.first % 32] = byte;
    }
    fn number<const BASE: u64>(&mut self, mut number: u64, mut width: usize) {
        while number != 0 || width > 0 {
            self.put(b"0123456789abcdef"[(number % BASE) as usize]);
            number /= BASE;
            width = width.saturating_sub(1);
        }
    }
}

/// Appends a line with the time before it. No formatting machinery: this happens with interrupts off.
pub fn line(parts: &[Part]) {
    line_of(&[parts]);
}

/// As [`line`], of several pieces.
pub fn line_of(pieces: &[&[Part]]) {
    let log = LOG.get();
    let microseconds = timer::nanoseconds() / 1000;
    let mut time = Backwards { bytes: [0; 32], first: 32 };
    time.put(b' ');
    time.put(b']');
    time.number::<10>(microseconds % 1_000_000, 6);
    time.put(b'.');
    time.number::<10>(microseconds / 1_000_000, 1);
    time.put(b'[');
    log.put(&time.bytes[time.first..]);
    for part in pieces.iter().copied().flatten() {
        match part {
            Part::Text(text) => log.put(text.as_bytes()),
            Part::Foreign(bytes) => {
                let start = log.written as usize;
                log.put(bytes);
                for at in start..start + bytes.len() {
                    let byte = &mut log.bytes[at % BYTES];
                    if !(b' '..=b'~').contains(byte) {
                        *byte = b'.';
                    }
                }
            }
            Part::Number(number) => log.put_number::<10>(*number),
            Part::Hex(number) => {
                log.put_number::<16>(*number);
            }
        }
    }
    log.put(b"\n");
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
    let at = position.clamp(oldest, log.written);
    let start = at as usize % BYTES;
    let count = into.len().min((log.written - at) as usize).min(BYTES - start);
    into[..count].copy_from_slice(&log.bytes[start..start + count]);
    at + count as u64
}
