//! The kernel log, for `dmesg`: the last 12 KiB of lines of nucleus and components, another 12 KiB about programs, and 4 KiB of what
//! labels forbade. So lines of programs, and of their deaths, displace no others.

use crate::cpus::timer;
use crate::objects::{Domain, Semaphore};
use crate::pointer::{Held, Link, Nucleus, Ref};
use abi::info::{LOG_BYTES, LOG_PARTS, LOG_PROGRAMS, LOG_REFUSED};
use core::cell::Cell;

const BYTES: usize = LOG_PARTS[0] + LOG_PARTS[1] + LOG_PARTS[2];

/// The part of the log for nucleus and components.
pub const SYSTEM: usize = 0;
/// The part for programs.
pub const PROGRAMS: usize = 1;
/// The part for what labels forbade.
pub const REFUSED: usize = 2;

/// The part that a list of [`abi::info`] gives.
pub fn part_of_list(list: u64) -> usize {
    match list {
        LOG_PROGRAMS => PROGRAMS,
        LOG_REFUSED => REFUSED,
        _ => SYSTEM,
    }
}

/// The part for lines about a domain.
pub fn part_of(domain: Ref<Domain>) -> usize {
    if domain.is_program() { PROGRAMS } else { SYSTEM }
}

/// Debuggers read the log: [`LOG_PARTS`] documents the order of the fields.
#[repr(C)]
struct Log {
    bytes: Cell<[u8; BYTES]>,
    /// Bytes written to each part since boot.
    written: [Cell<u64>; LOG_PARTS.len()],
    /// V on it whenever a line is appended.
    semaphore: Cell<Link<Semaphore>>,
}

static LOG: Nucleus<Log> = Nucleus::new(Log {
    bytes: Cell::new([0; BYTES]),
    written: [const { Cell::new(0) }; LOG_PARTS.len()],
    semaphore: Cell::new(None),
});

/// A part of the log.
struct Ring<'a> {
    bytes: &'a [Cell<u8>],
    written: &'a Cell<u64>,
}

impl Log {
    fn ring(&self, part: usize) -> Ring<'_> {
        let start = LOG_PARTS[..part].iter().sum();
        Ring { bytes: &self.bytes.as_array_of_cells()[start..][..LOG_PARTS[part]], written: &self.written[part] }
    }
}

/// Copies the text to the start of `bytes`.
fn write(bytes: &[Cell<u8>], text: &[u8]) {
    let bytes = &bytes[..text.len()];
    // SAFETY: `bytes` has as many cells as the text has bytes. Source and destination may overlap.
    unsafe { bytes.as_ptr().cast::<u8>().cast_mut().copy_from(text.as_ptr(), text.len()) }
}

/// A part of a line.
#[derive(Clone, Copy)]
pub enum Part<'a> {
    /// Text of the nucleus.
    Text(&'a str),
    /// Bytes composed of parts before.
    Ready(&'a [u8]),
    /// Untrusted bytes; characters other than printable ASCII become dots.
    Foreign(&'a [u8]),
    /// Decimal.
    Number(u64),
    /// Hexadecimal, after 0x.
    Hex(u64),
    /// A character, and an entry of a label: handle and level.
    Entry(u8, u64),
}

/// The levels of labels, by the low three bits of an entry.
const LEVELS: [[u8; 2]; 5] = [*b":*", *b":0", *b":1", *b":2", *b":3"];

/// Bytes of a [`Part::Foreign`] that are filtered and written at once.
const PIECE: usize = 64;

/// The lowest bit of each byte of a word, and the highest.
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = ONES << 7;

/// Replaces by dots, in eight bytes at once, what is not printable ASCII.
fn printable(bytes: [u8; 8]) -> [u8; 8] {
    let word = u64::from_le_bytes(bytes);
    let control = !((word | HIGH) - ONES * b' ' as u64);
    let delete = (word & !HIGH) + ONES;
    let dots = ((word | control | delete) & HIGH) >> 7;
    ((word & !(dots * 0xff)) | (dots * b'.' as u64)).to_le_bytes()
}

/// Replaces by dots, in eight bytes of a domain's name, what is not graphic ASCII, and `:` and `#`, which end a name in the
/// log. Zeros stay.
pub fn name(word: u64) -> u64 {
    let low = word & !HIGH;
    // The highest bit of each byte: whether the byte differs from `byte`.
    let is_not = |byte: u8| ((low ^ (ONES * byte as u64)) + !HIGH) | word;
    let graphic = (low + ONES * (0x7f - b' ' as u64)) & is_not(b':') & is_not(b'#') & is_not(0x7f);
    let dots = ((word | !graphic) & is_not(0) & HIGH) >> 7;
    (word & !(dots * 0xff)) | (dots * b'.' as u64)
}

impl Ring<'_> {
    fn put(&self, text: &[u8]) {
        let start = self.written.get() as usize % self.bytes.len();
        self.written.update(|written| written + text.len() as u64);
        // Wraps round the end: no text is longer than the ring.
        let (text, rest) = text.split_at(text.len().min(self.bytes.len() - start));
        write(&self.bytes[start..], text);
        if !rest.is_empty() {
            write(self.bytes, rest);
        }
    }

    fn put_part(&self, part: &Part) {
        match part {
            Part::Text(text) => self.put(text.as_bytes()),
            Part::Ready(bytes) => self.put(bytes),
            Part::Foreign(bytes) => {
                for bytes in bytes.chunks(PIECE) {
                    let mut text = [0; PIECE];
                    text[..bytes.len()].copy_from_slice(bytes);
                    let groups = text.as_chunks_mut().0.iter_mut().take(bytes.len().div_ceil(8));
                    groups.for_each(|group| *group = printable(*group));
                    self.put(&text[..bytes.len()]);
                }
            }
            Part::Number(number) => self.put_number(*number),
            Part::Hex(number) => {
                let (text, first) = hex(*number);
                self.put(&text[first..19]);
            }
            Part::Entry(before, entry) => {
                let (mut text, first) = hex(*entry >> 3);
                text[first - 1] = *before;
                text[19..].copy_from_slice(&LEVELS.get((*entry & 7) as usize).copied().unwrap_or_default());
                self.put(&text[first - 1..]);
            }
        }
    }

    fn put_number(&self, number: u64) {
        if number >= EIGHT_DIGITS {
            self.put_number(number / EIGHT_DIGITS);
            return self.put(&digits((number % EIGHT_DIGITS) as u32));
        }
        let text = digits(number as u32);
        self.put(&text[first_of(text)..]);
    }
}

/// 0x and hexadecimal digits, which end at byte 19, and where they begin: not at byte 0.
fn hex(number: u64) -> ([u8; 21], usize) {
    let mut text = [0; 21];
    text[3..11].copy_from_slice(&hex_digits((number >> 32) as u32));
    text[11..19].copy_from_slice(&hex_digits(number as u32));
    let first = 1 + (number | 1).leading_zeros() as usize / 4;
    text[first..first + 2].copy_from_slice(b"0x");
    (text, first)
}

/// Eight hexadecimal digits, computed at once: the nibbles are spread over the bytes of a word.
fn hex_digits(number: u32) -> [u8; 8] {
    let mut word = number as u64;
    word = (word | word << 16) & 0x0000_ffff_0000_ffff;
    word = (word | word << 8) & 0x00ff_00ff_00ff_00ff;
    word = (word | word << 4) & (ONES * 0xf);
    let letters = (word + ONES * 6) >> 4 & ONES;
    (word + ONES * b'0' as u64 + letters * (b'a' - b'0' - 10) as u64).to_be_bytes()
}

/// A number has more than eight digits from here on.
const EIGHT_DIGITS: u64 = 100_000_000;

/// Where a number without its leading zeros begins.
fn first_of(digits: [u8; 8]) -> usize {
    ((u64::from_le_bytes(digits) & 0x0f0f_0f0f_0f0f_0f0f).trailing_zeros() as usize / 8).min(7)
}

/// Eight decimal digits of a number below 10^8, computed at once: the number is split into halves of its digits three times,
/// each in a part of a word of its own. Multiplications replace the divisions.
fn digits(number: u32) -> [u8; 8] {
    let mut word = (number % 10_000) as u64 * (1 << 32) + (number / 10_000) as u64;
    let hundreds = (word * 10_486) >> 20 & 0x0000_007f_0000_007f;
    word = (word - hundreds * 100) << 16 | hundreds;
    let tens = (word * 103) >> 10 & 0x000f_000f_000f_000f;
    word = (word - tens * 10) << 8 | tens;
    (word + 0x3030_3030_3030_3030).to_le_bytes()
}

const LINE_BYTES: usize = 448;
/// Most bytes that [`go_on`] adds to a line at once.
const ADDED_BYTES: u64 = 160;

/// A line that is composed in several steps, in memory that no user can write.
struct Line {
    /// Address of the activation that composes the line; 0 = none. Another one that begins a line meanwhile replaces it.
    owner: Cell<usize>,
    written: Cell<u64>,
    bytes: Cell<[u8; LINE_BYTES]>,
}

static LINE: Nucleus<Line> =
    Nucleus::new(Line { owner: Cell::new(0), written: Cell::new(0), bytes: Cell::new([0; LINE_BYTES]) });

/// Begins the owner's line.
pub fn begin(held: Held, owner: usize, parts: &[Part]) {
    let line = LINE.get(held);
    line.owner.set(owner);
    line.written.set(0);
    go_on(held, owner, parts);
}

/// Adds to the owner's line, if it was not replaced and has room for [`ADDED_BYTES`].
#[inline(never)]
pub fn go_on(held: Held, owner: usize, parts: &[Part]) {
    let line = LINE.get(held);
    if line.owner.get() == owner && line.written.get() + ADDED_BYTES <= LINE_BYTES as u64 {
        let ring = Ring { bytes: line.bytes.as_array_of_cells(), written: &line.written };
        parts.iter().for_each(|part| ring.put_part(part));
    }
}

/// Appends the owner's line to a part of the log; false if it was replaced.
#[inline(never)]
pub fn finish(held: Held, part: usize, owner: usize) -> bool {
    let line = LINE.get(held);
    let is_there = line.owner.replace(0) == owner && owner != 0;
    if is_there {
        let bytes = line.bytes.get();
        line_in(held, part, &[Part::Ready(&bytes[..bytes.len().min(line.written.get() as usize)])], &[]);
    }
    is_there
}

/// Appends a line to the part for nucleus and components.
pub fn line(held: Held, parts: &[Part]) {
    line_in(held, SYSTEM, parts, &[]);
}

/// Appends a line, after the time, to a part of the log. It avoids `core::fmt`, which takes long: interrupts are off.
pub fn line_in(held: Held, part: usize, parts: &[Part], more: &[Part]) {
    let ring = LOG.get(held).ring(part);
    let microseconds = timer::nanoseconds() / 1000;
    let seconds = microseconds / 1_000_000;
    let (whole, fraction) = (digits((seconds % EIGHT_DIGITS) as u32), digits((microseconds % 1_000_000) as u32));
    let mut time = *b"[________.______] ";
    time[1..9].copy_from_slice(&whole);
    time[10..16].copy_from_slice(&fraction[2..]);
    let mut first = first_of(whole);
    if seconds < EIGHT_DIGITS {
        time[first] = b'[';
    } else {
        ring.put(b"[");
        ring.put_number(seconds / EIGHT_DIGITS);
        first = 1;
    }
    ring.put(&time[first..]);
    parts.iter().for_each(|part| ring.put_part(part));
    more.iter().for_each(|part| ring.put_part(part));
    ring.put(b"\n");
    // A domain that waits for lines may not learn what a tainted one was refused.
    if let Some(semaphore) = LOG.get(held).semaphore.get().filter(|_| part != REFUSED) {
        semaphore.signal();
    }
}

/// Sets the semaphore that gets a V whenever the log grows.
pub fn set_semaphore(semaphore: Ref<Semaphore>) {
    let held = semaphore.held();
    semaphore.hold();
    if let Some(old) = LOG.get(held).semaphore.replace(Some(semaphore)) {
        old.drop_hold();
    }
}

/// Copies bytes of a part of the log from `position` on, which counts bytes since boot. Gives the position after them; if
/// the position was overwritten, see `abi::info::LOG`.
pub fn read(held: Held, part: usize, position: u64, into: &mut [u8]) -> u64 {
    let ring = LOG.get(held).ring(part);
    let (written, bytes) = (ring.written.get(), ring.bytes.len());
    let oldest = written.saturating_sub(bytes as u64);
    if position < oldest {
        return oldest.max(position + LOG_BYTES as u64 + 1);
    }
    let at = position.min(written);
    let start = at as usize % bytes;
    let count = into.len().min((written - at) as usize).min(bytes - start);
    let from = &ring.bytes[start..start + count];
    // SAFETY: both have `count` bytes, and `into` is no part of the log.
    unsafe { into[..count].as_mut_ptr().copy_from(from.as_ptr().cast(), count) }
    at + count as u64
}
