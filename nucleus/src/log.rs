//! The kernel log: the last 16 KiB of lines, for `dmesg`.

use crate::arch::timer;
use crate::pointer::{Link, Nucleus, Ref};
use crate::semaphore::Semaphore;
use abi::info::LOG_BYTES;

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

/// Foreign bytes that are looked at before they are put together.
const PIECE: usize = 64;

/// A byte of 1, and one of the highest bit, in each byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = ONES << 7;

/// Eight bytes, all at once, each a dot if it is not printable ASCII.
fn printable(bytes: [u8; 8]) -> [u8; 8] {
    let word = u64::from_le_bytes(bytes);
    let control = !((word | HIGH) - ONES * b' ' as u64);
    let delete = (word & !HIGH) + ONES;
    let dots = ((word | control | delete) & HIGH) >> 7;
    ((word & !(dots * 0xff)) | (dots * b'.' as u64)).to_le_bytes()
}

/// Where the parts of a line go.
trait Sink {
    fn put(&mut self, text: &[u8]);

    fn put_part(&mut self, part: &Part) {
        match part {
            Part::Text(text) => self.put(text.as_bytes()),
            Part::Foreign(bytes) => {
                for bytes in bytes.chunks(PIECE) {
                    let mut text = [0; PIECE];
                    text[..bytes.len()].copy_from_slice(bytes);
                    text.as_chunks_mut().0.iter_mut().for_each(|group| *group = printable(*group));
                    self.put(&text[..bytes.len()]);
                }
            }
            Part::Number(number) => self.put_number(*number),
            Part::Hex(number) => self.put_hex(*number),
        }
    }

    fn put_hex(&mut self, number: u64) {
        let mut text = [0; 18];
        text[2..10].copy_from_slice(&hex_digits((number >> 32) as u32));
        text[10..].copy_from_slice(&hex_digits(number as u32));
        let first = (number | 1).leading_zeros() as usize / 4;
        text[first..first + 2].copy_from_slice(b"0x");
        self.put(&text[first..]);
    }

    fn put_number(&mut self, number: u64) {
        if number >= 100_000_000 {
            self.put_number(number / 100_000_000);
            return self.put(&digits((number % 100_000_000) as u32));
        }
        let text = digits(number as u32);
        let first = ((u64::from_le_bytes(text) & 0x0f0f_0f0f_0f0f_0f0f).trailing_zeros() as usize / 8).min(7);
        self.put(&text[first..]);
    }
}

impl Sink for Log {
    fn put(&mut self, text: &[u8]) {
        let start = self.written as usize % BYTES;
        self.written += text.len() as u64;
        // Round the end, if it reaches so far: no line is as long as the log.
        let (text, rest) = text.split_at(text.len().min(BYTES - start));
        self.bytes[start..start + text.len()].copy_from_slice(text);
        if !rest.is_empty() {
            self.bytes[..rest.len()].copy_from_slice(rest);
        }
    }
}

/// A text in some page.
struct Page<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl Sink for Page<'_> {
    fn put(&mut self, text: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.length..self.length + text.len()) {
            place.copy_from_slice(text);
            self.length += text.len();
        }
    }
}

/// Writes parts of a line into a page, to be told later as [`Part::Foreign`]; gives their length. What does not fit is
/// left out.
pub fn compose(parts: &[Part], bytes: &mut [u8]) -> usize {
    let mut page = Page { bytes, length: 0 };
    parts.iter().for_each(|part| page.put_part(part));
    page.length
}

/// Eight hexadecimal digits, all at once: the nibbles are spread over the bytes of a word.
fn hex_digits(number: u32) -> [u8; 8] {
    let mut word = number as u64;
    word = (word | word << 16) & 0x0000_ffff_0000_ffff;
    word = (word | word << 8) & 0x00ff_00ff_00ff_00ff;
    word = (word | word << 4) & (ONES * 0xf);
    let letters = (word + ONES * 6) >> 4 & ONES;
    (word + ONES * b'0' as u64 + letters * (b'a' - b'0' - 10) as u64).to_be_bytes()
}

/// Eight decimal digits of a number below 10^8, all at once: halves, their halves, and theirs again, each in a part
/// of a word of its own, divided by multiplying.
fn digits(number: u32) -> [u8; 8] {
    let mut word = (number % 10_000) as u64 * (1 << 32) + (number / 10_000) as u64;
    let hundreds = (word * 10_486) >> 20 & 0x0000_007f_0000_007f;
    word = (word - hundreds * 100) << 16 | hundreds;
    let tens = (word * 103) >> 10 & 0x000f_000f_000f_000f;
    word = (word - tens * 10) << 8 | tens;
    (word + 0x3030_3030_3030_3030).to_le_bytes()
}

/// Appends a line with the time before it. No formatting machinery: this happens with interrupts off.
pub fn line(parts: &[Part]) {
    let log = LOG.get();
    let microseconds = timer::nanoseconds() / 1000;
    let mut fraction = *b".______] ";
    fraction[1..7].copy_from_slice(&digits((microseconds % 1_000_000) as u32)[2..]);
    log.put(b"[");
    log.put_number(microseconds / 1_000_000);
    log.put(&fraction);
    parts.iter().for_each(|part| log.put_part(part));
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

/// Copies from byte `position` since boot on and gives the position after; see `abi::info::LOG`.
pub fn read(position: u64, into: &mut [u8]) -> u64 {
    let log = LOG.get();
    let oldest = log.written.saturating_sub(BYTES as u64);
    if position < oldest {
        return oldest.max(position + LOG_BYTES as u64 + 1);
    }
    let at = position.min(log.written);
    let start = at as usize % BYTES;
    let count = into.len().min((log.written - at) as usize).min(BYTES - start);
    into[..count].copy_from_slice(&log.bytes[start..start + count]);
    at + count as u64
}
