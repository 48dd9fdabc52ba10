//! The reader. It stops at the first mistake, and says where that is and what it is.

use core::fmt;

use crate::{BYTES, Kind, MARK, MAX_TIME, Record, VERSION};
use abi::MAX_CPUS;

/// The mistake in a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// There is nothing.
    Empty,
    /// The last record has only so many bytes.
    CutOff(usize),
    /// A record begins with this byte.
    NoMark(u8),
    /// There is no kind with this number.
    UnknownKind(u8),
    /// The first record is of another kind.
    NoBegin(Kind),
    /// The nucleus begins again.
    BeginsAgain,
    /// The trace has this version.
    OtherVersion(u64),
    /// There is no CPU with this number.
    UnknownCpu(u8),
    /// The record before of the same CPU was made later, at this tick.
    Backwards(u64),
}

/// A mistake and where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damage {
    /// Byte of the trace where the bad record begins.
    pub at: usize,
    /// The kind of mistake.
    pub mistake: Mistake,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} of the trace (byte {}): ", self.at / BYTES, self.at)?;
        match self.mistake {
            Mistake::Empty => write!(f, "there is none: was the nucleus built to trace?"),
            Mistake::CutOff(bytes) => write!(f, "it is cut off after {bytes} of {BYTES} bytes"),
            Mistake::NoMark(byte) => write!(f, "it begins with {byte:#04x}, not with {MARK:#04x}"),
            Mistake::UnknownKind(number) => write!(f, "there is no kind {number}"),
            Mistake::NoBegin(kind) => write!(f, "a trace begins with Begin, not with {kind:?}"),
            Mistake::BeginsAgain => write!(f, "the nucleus begins again: the machine was reset"),
            Mistake::OtherVersion(version) => write!(f, "the format has version {version}, not {VERSION}"),
            Mistake::UnknownCpu(number) => write!(f, "there is no CPU {number}"),
            Mistake::Backwards(before) => {
                write!(f, "its time lies before tick {before}, when the one before of the same CPU was made")
            }
        }
    }
}

impl core::error::Error for Damage {}

/// The records of a trace, as they stand. After a mistake nothing more comes.
pub struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    /// By CPU: the time of its last record.
    last: [u64; MAX_CPUS],
    over: bool,
}

impl<'a> Records<'a> {
    /// Those in these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, last: [0; MAX_CPUS], over: false }
    }

    /// Byte where the next record begins.
    pub fn position(&self) -> usize {
        self.at
    }

    fn read(&self, rest: &[u8]) -> Result<Record, Mistake> {
        if let Some(&mark) = rest.first().filter(|mark| **mark != MARK) {
            return Err(Mistake::NoMark(mark));
        }
        let bytes: &[u8; BYTES] = rest.first_chunk().ok_or(Mistake::CutOff(rest.len()))?;
        let word = |at: usize| bytes[at..at + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let cpu = bytes[15];
        let record = Record {
            kind: Kind::from_number(bytes[1]).ok_or(Mistake::UnknownKind(bytes[1]))?,
            cpu,
            thread: u16::from_le_bytes([bytes[2], bytes[3]]),
            domain: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            time: word(8) % MAX_TIME,
            operands: [word(16), word(24)],
        };
        match (record.kind, self.at) {
            (Kind::Begin, 0) if record.operands[0] != VERSION => Err(Mistake::OtherVersion(record.operands[0])),
            (Kind::Begin, 0) => Ok(record),
            (kind, 0) => Err(Mistake::NoBegin(kind)),
            (Kind::Begin, _) => Err(Mistake::BeginsAgain),
            _ => match self.last.get(usize::from(cpu)) {
                None => Err(Mistake::UnknownCpu(cpu)),
                Some(last) if record.time < *last => Err(Mistake::Backwards(*last)),
                Some(_) => Ok(record),
            },
        }
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if self.over || rest.is_empty() && self.at != 0 {
            return None;
        }
        let read = if rest.is_empty() { Err(Mistake::Empty) } else { self.read(rest) };
        match read {
            Ok(record) => {
                self.at += BYTES;
                if let Some(last) = self.last.get_mut(usize::from(record.cpu)) {
                    *last = record.time;
                }
                Some(Ok(record))
            }
            Err(mistake) => {
                self.over = true;
                Some(Err(Damage { at: self.at, mistake }))
            }
        }
    }
}
