//! Which granules of a page of small objects are free: one bit for each of 64. An object is a run of granules.

use core::cell::Cell;

#[cfg(test)]
mod tests;

/// Granules of the largest object: a domain on a machine with 64 CPUs.
pub const MOST: u32 = 38;
/// Granules of half a page: the record of a page table.
pub const HALF: u32 = 32;
/// All but the first.
const ALL_FREE: u64 = !1;

/// One bit for each granule: set if it is free.
#[repr(transparent)]
pub struct Granules(Cell<u64>);

impl Granules {
    /// Of a page that has one object of `count` granules, right after the first.
    pub fn begin(&self, count: u32) {
        self.0.set(ALL_FREE & !(mask(count) << 1));
    }
    /// Takes the first run of `COUNT` free granules; gives its place.
    #[inline(always)]
    pub fn take<const COUNT: u32>(&self) -> Option<u32> {
        let runs = runs::<COUNT>(self.0.get());
        if runs == 0 {
            return None;
        }
        let first = runs.trailing_zeros();
        self.0.update(|free| free & !(mask(COUNT) << first));
        Some(first)
    }
    /// Gives the granules of an object back.
    #[inline(always)]
    pub fn give(&self, bits: u64) {
        self.0.update(|free| free | bits);
    }
    /// Whether some of these granules are free.
    pub fn has_any(&self, bits: u64) -> bool {
        self.0.get() & bits != 0
    }
    /// Whether no granule is free.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.0.get() == 0
    }
    /// Whether all are free but the first.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.get() == ALL_FREE
    }
}

/// Bits of an object of `count` granules, if it is at the start; others are so many bits higher.
pub const fn mask(count: u32) -> u64 {
    (1 << count) - 1
}

/// Granules taken for an object of `count`: sizes that are near to each other are one.
pub const fn taken(count: u32) -> u32 {
    match count {
        1..=4 => count,
        5..=8 => 8,
        9..=12 => 12,
        13..=HALF => HALF,
        _ => MOST,
    }
}

/// The granules at which a run of `COUNT` free ones begins.
const fn runs<const COUNT: u32>(free: u64) -> u64 {
    let (mut runs, mut have) = (free, 1);
    while have < COUNT {
        let step = if have < COUNT - have { have } else { COUNT - have };
        runs &= runs >> step;
        have += step;
    }
    runs
}
