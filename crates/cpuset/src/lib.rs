//! Sets of CPUs, a bit for each, as people write them: `0`, `0,2`, `1-3,7`.
//!
//! Numbers are below 64; from a number to a higher one with `-`; in any order, twice or not.
#![no_std]
#![forbid(unsafe_code)]

use core::fmt;

/// CPUs have numbers below this.
const MAX_CPUS: u32 = abi::MAX_CPUS as u32;

/// Why a text is no set of CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadSet {
    /// Something that is no number, or nothing, where one should be.
    NoNumber,
    /// A number that no CPU can have.
    TooLarge,
    /// From a number to one below it.
    Backwards,
}

impl fmt::Display for BadSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoNumber => "CPUs are numbers, as 0,2 or 1-3",
            Self::TooLarge => "CPUs have numbers below 64",
            Self::Backwards => "the first of several CPUs comes first, as in 1-3",
        })
    }
}

impl core::error::Error for BadSet {}

/// The set that a text means; never an empty one.
pub fn parse(text: &str) -> Result<u64, BadSet> {
    let mut set = 0;
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(BadSet::Backwards);
        }
        set |= (u64::MAX >> (MAX_CPUS - 1 - last)) & (u64::MAX << first);
    }
    Ok(set)
}

fn number(digits: &str) -> Result<u32, BadSet> {
    // `parse` would take a sign, too.
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(BadSet::NoNumber);
    }
    digits.parse().ok().filter(|number| *number < MAX_CPUS).ok_or(BadSet::TooLarge)
}

/// Writes a set as [`parse`] reads it, as short as it can be; an empty one as `none`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuSet(pub u64);

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        if rest == 0 {
            return f.write_str("none");
        }
        let mut at = 0;
        while rest != 0 {
            let first = at + rest.trailing_zeros();
            rest >>= rest.trailing_zeros();
            let count = rest.trailing_ones();
            // All 64: a shift by as much has no meaning.
            rest = rest.checked_shr(count).unwrap_or(0);
            if at != 0 {
                f.write_str(",")?;
            }
            at = first + count;
            match count {
                1 => write!(f, "{first}")?,
                2 => write!(f, "{first},{}", at - 1)?,
                _ => write!(f, "{first}-{}", at - 1)?,
            }
        }
        Ok(())
    }
}
