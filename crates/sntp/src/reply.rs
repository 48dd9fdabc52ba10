//! A request, and the content of its reply.

use core::fmt;

use crate::PACKET_BYTES;

/// Where fields stand (RFC 5905, figure 8).
mod field {
    pub const STRATUM: usize = 1;
    pub const PRECISION: usize = 3;
    pub const ROOT_DELAY: usize = 4;
    pub const ROOT_DISPERSION: usize = 8;
    pub const REFERENCE: usize = 12;
    pub const ORIGINATE: usize = 24;
    pub const RECEIVE: usize = 32;
    pub const TRANSMIT: usize = 40;
}

const CLIENT: u8 = 3;
const SERVER: u8 = 4;
const VERSION: u8 = 4;
/// Leap indicator: the server's clock is not set.
const NOT_SET: u8 = 3;
/// From this stratum on nobody is synchronised.
const MAX_STRATUM: u8 = 15;
const SECOND: u64 = 1_000_000_000;
/// A reply that was longer under way is too imprecise.
const MAX_DELAY: u64 = 2 * SECOND;
/// A server that is itself further off is too imprecise (RFC 5905, MAXDISP is sixteen times as much).
const MAX_ROOT_ERROR: u64 = SECOND;
/// Seconds from 1900, where NTP's first era begins, to 1970.
const FROM_1900: u64 = 2_208_988_800;

/// Why a reply is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bad {
    /// Too few bytes.
    Short,
    /// Of another version, or not of a server.
    NotAReply,
    /// To another request, or made up.
    NotOurs,
    /// The server refuses (kiss-o'-death): four letters.
    Kiss([u8; 4]),
    /// The server itself does not know the time.
    NotSet,
    /// Its times contradict each other or ours.
    Impossible,
    /// It was too long under way, or the server is too far off.
    Vague,
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("the reply is too short"),
            Self::NotAReply => f.write_str("not a reply of a server"),
            Self::NotOurs => f.write_str("a reply to something else"),
            Self::Kiss(code) => {
                f.write_str("the server refuses: ")?;
                // Bytes from the wire are not printed as they are.
                code.iter()
                    .try_for_each(|byte| write!(f, "{}", if byte.is_ascii_graphic() { *byte as char } else { '.' }))
            }
            Self::NotSet => f.write_str("the server does not know the time"),
            Self::Impossible => f.write_str("the times in the reply contradict each other"),
            Self::Vague => f.write_str("the reply took too long, or the server is too far off"),
        }
    }
}

/// The content of a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The time since 1970-01-01 minus the time of our clock, in nanoseconds.
    pub offset: u64,
    /// How far off that may be at most, if the server is right about itself, in nanoseconds.
    pub error: u64,
    /// How long request and reply were under way, in nanoseconds.
    pub delay: u64,
    /// Steps to a clock of reference: 1 = the server has one.
    pub stratum: u8,
}

/// A request that was sent and not answered yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    nonce: u64,
    /// By our clock, in nanoseconds.
    sent: u64,
}

impl Request {
    /// One with a random number, which nobody may be able to guess, sent now by our clock (nanoseconds).
    pub fn new(nonce: u64, now: u64) -> Self {
        // Zero means that there is no timestamp.
        Self { nonce: nonce.max(1), sent: now }
    }

    /// Its bytes.
    pub fn bytes(&self) -> [u8; PACKET_BYTES] {
        let mut bytes = [0; PACKET_BYTES];
        bytes[0] = VERSION << 3 | CLIENT;
        bytes[field::TRANSMIT..].copy_from_slice(&self.nonce.to_be_bytes());
        bytes
    }

    /// Reads a reply that came now (by our clock, in nanoseconds).
    pub fn check(&self, reply: &[u8], now: u64) -> Result<Sample, Bad> {
        let reply = reply.first_chunk::<PACKET_BYTES>().ok_or(Bad::Short)?;
        let word = |at: usize| u32::from_be_bytes([reply[at], reply[at + 1], reply[at + 2], reply[at + 3]]);
        let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
        let (leap, version, mode) = (reply[0] >> 6, reply[0] >> 3 & 7, reply[0] & 7);
        if mode != SERVER || version != VERSION {
            return Err(Bad::NotAReply);
        }
        // Before anything else is accepted, a refusal above all.
        if long(field::ORIGINATE) != self.nonce {
            return Err(Bad::NotOurs);
        }
        let stratum = reply[field::STRATUM];
        if stratum == 0 {
            return Err(Bad::Kiss(word(field::REFERENCE).to_be_bytes()));
        }
        if leap == NOT_SET || stratum > MAX_STRATUM {
            return Err(Bad::NotSet);
        }
        let (received, transmitted) = (long(field::RECEIVE), long(field::TRANSMIT));
        let served = span(received, transmitted).filter(|_| received != 0 && transmitted != 0);
        let away = now.checked_sub(self.sent);
        let (Some(served), Some(away)) = (served, away) else { return Err(Bad::Impossible) };
        // How long it was under way both ways. Clocks run at slightly different speeds.
        let delay = match away.checked_sub(served) {
            Some(delay) => delay,
            None if served - away <= SECOND / 1_000 => 0,
            None => return Err(Bad::Impossible),
        };
        let root = short(word(field::ROOT_DELAY)) / 2 + short(word(field::ROOT_DISPERSION));
        if delay > MAX_DELAY || root > MAX_ROOT_ERROR {
            return Err(Bad::Vague);
        }
        // Half of it passed before the server's first time, by assumption; the other half is the error.
        let at_server = nanoseconds(received).ok_or(Bad::Impossible)?;
        let offset = at_server.checked_sub(self.sent + delay / 2).ok_or(Bad::Impossible)?;
        let error = delay / 2 + root + precision(reply[field::PRECISION]);
        Ok(Sample { offset, error, delay, stratum })
    }
}

/// Nanoseconds since 1970 of a timestamp. Its era follows from its highest bit (RFC 4330, section 3): set means 1968
/// to 2036, clear 2036 to 2104. `None` before 1970.
fn nanoseconds(timestamp: u64) -> Option<u64> {
    let seconds = (timestamp >> 32) + if timestamp >> 63 == 0 { 1 << 32 } else { 0 };
    let fraction = ((timestamp & 0xffff_ffff) * SECOND) >> 32;
    Some(seconds.checked_sub(FROM_1900)? * SECOND + fraction)
}

/// Nanoseconds from one timestamp to another, over the end of an era too; `None` if it is not later, or by hours.
fn span(from: u64, to: u64) -> Option<u64> {
    let difference = to.wrapping_sub(from);
    (difference >> 32 < 3_600).then(|| (difference >> 32) * SECOND + (((difference & 0xffff_ffff) * SECOND) >> 32))
}

/// Nanoseconds of NTP's short form: seconds in 16 bits, parts of 2^16 of one.
fn short(word: u32) -> u64 {
    (u64::from(word) * SECOND) >> 16
}

/// Nanoseconds of a power of two of seconds.
fn precision(exponent: u8) -> u64 {
    match exponent as i8 {
        0.. => SECOND,
        exponent => SECOND >> exponent.unsigned_abs().min(63),
    }
}

#[cfg(test)]
mod tests;
