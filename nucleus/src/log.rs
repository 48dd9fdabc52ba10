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

    /// `count` bytes of the log in a row, if they do not go round its end.
    fn room(&mut self, count: usize) -> Option<&mut [u8]> {
        let start = self.written as usize % BYTES;
        let room = self.bytes.get_mut(start..start + count)?;
        self.written += count as u64;
        Some(room)
    }

    fn put_hex(&mut self, mut number: u64) {
        let digits = (67 - (number | 1).leading_zeros() as usize) / 4;
        let mut other = [0; 18];
        let room = match self.room(digits + 2) {
            Some(room) => room,
            None => &mut other[..digits + 2],
        };
        for place in room.iter_mut().rev() {
            *place = b"0123456789abcdef"[(number & 15) as usize];
            number >>= 4;
        }
        room[1] = b'x';
        if other[1] == b'x' {
            self.put(&other[..digits + 2]);
        }
    }

    fn put_number(&mut self, number: u64) {
        let mut text = Backwards { bytes: [0; 32], first: 32 };
        text.number(number);
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
    fn number(&mut self, mut number: u64) {
        loop {
            self.put(b'0' + (number % 10) as u8);
            number /= 10;
            if number == 0 {
                return;
            }
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
    // The seventh digit from the end becomes the point.
    time.number(microseconds % 1_000_000 + 1_000_000);
    time.bytes[time.first % 32] = b'.';
    time.number(microseconds / 1_000_000);
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
            Part::Number(number) => log.put_number(*number),
            Part::Hex(number) => {
                log.put_hex(*number);
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
