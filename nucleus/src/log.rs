//! The kernel log, for `dmesg`: the last 12 KiB of lines of nucleus and components, and 4 KiB about programs. So what
//! programs say and die of pushes out nothing else.

use crate::arch::timer;
use crate::pointer::{Link, Nucleus, Ref};
use crate::semaphore::Semaphore;
use abi::info::LOG_BYTES;

const BYTES: usize = 16384;
/// Bytes of the part for nucleus and components.
const SYSTEM_BYTES: usize = 12288;

/// The part of the log for nucleus and components.
pub const SYSTEM: usize = 0;
/// The part for programs.
pub const PROGRAMS: usize = 1;

struct Log {
    bytes: [u8; BYTES],
    /// Bytes ever written to each part.
    written: [u64; 2],
    semaphore: Link<Semaphore>,
}

static LOG: Nucleus<Log> = Nucleus::new(Log { bytes: [0; BYTES], written: [0; 2], semaphore: None });

/// A part of the log.
struct Ring<'a> {
    bytes: &'a mut [u8],
    written: &'a mut u64,
}

impl Log {
    fn ring(&mut self, part: usize) -> Ring<'_> {
        let (system, programs) = self.bytes.split_at_mut(SYSTEM_BYTES);
        Ring { bytes: if part == SYSTEM { system } else { programs }, written: &mut self.written[part] }
    }
}

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

/// Eight bytes of a domain's name: what is not graphic ASCII, and what could end a signature, becomes a dot; zeros stay.
pub fn name(word: u64) -> u64 {
    let low = word & !HIGH;
    // The highest bit of each byte: whether it is another one than this.
    let is_not = |byte: u8| ((low ^ (ONES * byte as u64)) + !HIGH) | word;
    let graphic = (low + ONES * (0x7f - b' ' as u64)) & is_not(b':') & is_not(b'#') & is_not(0x7f);
    let dots = ((word | !graphic) & is_not(0) & HIGH) >> 7;
    (word & !(dots * 0xff)) | (dots * b'.' as u64)
}

impl Ring<'_> {
    fn put(&mut self, text: &[u8]) {
        let start = *self.written as usize % self.bytes.len();
        *self.written += text.len() as u64;
        // Round the end, if it reaches so far: no line is as long as a part.
        let (text, rest) = text.split_at(text.len().min(self.bytes.len() - start));
        self.bytes[start..start + text.len()].copy_from_slice(text);
        if !rest.is_empty() {
            self.bytes[..rest.len()].copy_from_slice(rest);
        }
    }

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

/// A line that is put together in several steps, where no user can write.
struct Line {
    /// Whose it is: who begins another one meanwhile takes its place.
    owner: usize,
    written: u64,
    bytes: [u8; 256],
}

static LINE: Nucleus<Line> = Nucleus::new(Line { owner: 0, written: 0, bytes: [0; 256] });

/// Begins a line of the owner.
pub fn begin(owner: usize, parts: &[Part]) {
    let line = LINE.get();
    (line.owner, line.written) = (owner, 0);
    go_on(owner, parts);
}

/// Adds to the owner's line, if it is still there.
pub fn go_on(owner: usize, parts: &[Part]) {
    let line = LINE.get();
    if line.owner == owner {
        let mut ring = Ring { bytes: &mut line.bytes, written: &mut line.written };
        parts.iter().for_each(|part| ring.put_part(part));
    }
}

/// Appends the owner's line to a part of the log; false if it is not there any more.
pub fn finish(part: usize, owner: usize) -> bool {
    let line = LINE.get();
    let is_there = core::mem::replace(&mut line.owner, 0) == owner && owner != 0;
    if is_there {
        line_in(part, &[Part::Foreign(&line.bytes[..line.bytes.len().min(line.written as usize)])], &[]);
    }
    is_there
}

/// Appends a line to the part for nucleus and components.
pub fn line(parts: &[Part]) {
    line_in(SYSTEM, parts, &[]);
}

/// Appends a line with the time before it to a part of the log. No formatting machinery: this happens with interrupts off.
pub fn line_in(part: usize, parts: &[Part], more: &[Part]) {
    let mut ring = LOG.get().ring(part);
    let microseconds = timer::nanoseconds() / 1000;
    let mut fraction = *b".______] ";
    fraction[1..7].copy_from_slice(&digits((microseconds % 1_000_000) as u32)[2..]);
    ring.put(b"[");
    ring.put_number(microseconds / 1_000_000);
    ring.put(&fraction);
    parts.iter().for_each(|part| ring.put_part(part));
    more.iter().for_each(|part| ring.put_part(part));
    ring.put(b"\n");
    if let Some(semaphore) = LOG.get().semaphore {
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

/// Copies from byte `position` since boot on of a part of the log and gives the position after; see `abi::info::LOG`.
pub fn read(part: usize, position: u64, into: &mut [u8]) -> u64 {
    let ring = LOG.get().ring(part);
    let (written, bytes) = (*ring.written, ring.bytes.len());
    let oldest = written.saturating_sub(bytes as u64);
    if position < oldest {
        return oldest.max(position + LOG_BYTES as u64 + 1);
    }
    let at = position.min(written);
    let start = at as usize % bytes;
    let count = into.len().min((written - at) as usize).min(bytes - start);
    into[..count].copy_from_slice(&ring.bytes[start..start + count]);
    at + count as u64
}
