//! Levels, and the handles that they are of.

/// How tainted something is by a compartment, or how much taint of it is accepted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[repr(u8)]
pub enum Level {
    /// ★: ownership.
    Star,
    /// 0.
    Zero,
    /// 1: the default of a send label.
    One,
    /// 2: the default of a receive label.
    Two,
    /// 3.
    Three,
}

impl Level {
    /// All, the lowest first.
    pub const ALL: [Self; 5] = [Self::Star, Self::Zero, Self::One, Self::Two, Self::Three];

    /// From three bits.
    #[inline]
    pub(crate) const fn from_bits(bits: u64) -> Self {
        match bits & 7 {
            0 => Self::Star,
            1 => Self::Zero,
            2 => Self::One,
            3 => Self::Two,
            _ => Self::Three,
        }
    }

    /// ★ is -1.
    pub const fn number(self) -> i8 {
        self as i8 - 1
    }

    /// From a [number](Self::number).
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|level| i64::from(level.number()) == number)
    }
}

/// Some levels, a bit for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Levels(u8);

impl Levels {
    pub(crate) const NONE: Self = Self(0);

    pub(crate) const fn of(level: Level) -> Self {
        Self(1 << level as u8)
    }

    /// Of the entries of a leaf.
    pub(crate) fn of_entries(entries: &[u64]) -> Self {
        Self::of_first(entries, u64::MAX).1
    }

    /// How many entries there are before one that is higher than this, and their levels.
    #[inline(never)]
    pub(crate) fn of_first(entries: &[u64], end: u64) -> (usize, Self) {
        // The lowest six bits of an entry are its level and three of its handle.
        let (mut count, mut all) = (0, 0);
        while let Some(entry) = entries.get(count).filter(|entry| **entry <= end) {
            all |= 1_u64 << (entry & 63);
            count += 1;
        }
        let all = all | all >> 32;
        let all = all | all >> 16;
        (count, Self((all | all >> 8) as u8))
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Each pair of one of these and one of others: a bit each, at 8 · the first + the second.
    #[inline]
    pub(crate) const fn pairs(self, others: Self) -> u64 {
        // A bit of each product stands where a byte begins: that of the level which has the byte's number.
        let bytes = (self.0 as u64 * 0x1020_4081) & 0x01_0101_0101;
        bytes * others.0 as u64
    }

    /// Whether all of them are among these bits.
    pub(crate) const fn are_among(self, bits: u8) -> bool {
        self.0 & !bits == 0
    }

    /// The lowest and the highest, of one at least.
    pub(crate) const fn bounds(self) -> Bounds {
        let (least, most) = (self.0.trailing_zeros(), 7 - self.0.leading_zeros());
        Bounds { least: Level::from_bits(least as u64), most: Level::from_bits(most as u64) }
    }
}

/// The lowest and the highest of some levels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The lowest.
    pub least: Level,
    /// The highest.
    pub most: Level,
}

/// A number of 61 bits that names a compartment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Handle(u64);

impl Handle {
    /// Bits of a handle.
    pub const BITS: u32 = 61;

    /// `None` if the number has more bits.
    pub const fn new(number: u64) -> Option<Self> {
        if number >> Self::BITS == 0 { Some(Self(number)) } else { None }
    }

    /// Its number.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Its number in entries, which has 61 bits, too. This permutation spreads handles that differ in few bits, unless somebody chose them
    /// with it in mind.
    #[inline]
    pub(crate) const fn spread(self) -> u64 {
        mixed(mixed(self.0))
    }

    /// With a level, in an entry.
    #[inline]
    pub(crate) const fn with(self, level: Level) -> u64 {
        self.spread() << 3 | level as u64
    }

    /// The handle of an entry.
    pub(crate) const fn of(entry: u64) -> Self {
        Self(unmixed(unmixed(entry >> 3)))
    }
}

const MASK: u64 = (1 << Handle::BITS) - 1;
/// The golden ratio, and what undoes the product.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const INVERSE: u64 = 0xf1de_83e1_9937_733d;
const _: () = assert!(FACTOR.wrapping_mul(INVERSE) == 1);
/// More than half of the bits, so that the second shift undoes the first.
const SHIFT: u32 = Handle::BITS / 2 + 1;

const fn mixed(number: u64) -> u64 {
    let product = number.wrapping_mul(FACTOR) & MASK;
    product ^ product >> SHIFT
}

const fn unmixed(number: u64) -> u64 {
    (number ^ number >> SHIFT).wrapping_mul(INVERSE) & MASK
}

/// The part below a node of this depth to which an entry belongs: two of its bits, the highest first. So the entries of a part stand together.
#[inline]
pub(crate) const fn part_of(entry: u64, depth: u32) -> usize {
    (entry >> (u64::BITS - 2 - 2 * depth)) as usize & 3
}

/// The highest entry that can belong to a part, where all belong to the same node as this one.
pub(crate) const fn end_of(entry: u64, depth: u32, part: usize) -> u64 {
    let shift = u64::BITS - 2 - 2 * depth;
    let below = (1 << shift) - 1;
    entry & !(3 << shift) | (part as u64) << shift | below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_levels() {
        for (one, other) in (0..32).flat_map(|one| (0..32).map(move |other| (Levels(one), Levels(other)))) {
            let has = |levels: Levels, level: Level| !levels.are_among(!(1 << level as u8));
            let mut pairs = 0;
            for (first, second) in Level::ALL.into_iter().flat_map(|first| Level::ALL.map(|second| (first, second))) {
                let both = has(one, first) && has(other, second);
                pairs |= u64::from(both) << (8 * first as u32 + second as u32);
            }
            assert_eq!(one.pairs(other), pairs);
        }
    }

    #[test]
    fn entries_are_counted_up_to_the_end_of_a_part() {
        for depth in [0, 1, 9, 30] {
            let shift = 62 - 2 * depth;
            // Of each part the lowest and the highest entry, but for the level.
            let above = if depth == 0 { 0 } else { 5 << (shift + 2) };
            let entries = [0, 1, 3]
                .map(|part: u64| [above | part << shift | 1, above | ((part + 1) << shift).wrapping_sub(1) & !3]);
            let entries = entries.as_flattened();
            for (part, count) in [2, 4, 4, 6].into_iter().enumerate() {
                let found = Levels::of_first(entries, end_of(entries[0], depth, part));
                assert_eq!(found, (count, Levels::of_entries(&entries[..count])));
            }
        }
        let entries: [u64; 64] = core::array::from_fn(|bits| bits as u64);
        for entry in entries.into_iter().filter(|entry| entry & 7 < 5) {
            assert_eq!(Levels::of_entries(&[entry]), Levels::of(Level::from_bits(entry)));
        }
    }

    #[test]
    fn spreading_is_invertible() {
        for number in
            (0..64).flat_map(|bit| [0, 1, u64::MAX, 0x1234_5678_9abc_def0].map(|word: u64| word.rotate_left(bit)))
        {
            let handle = Handle::new(number & MASK).expect("61 bits");
            assert!(handle.spread() <= MASK);
            assert_eq!(Handle::of(handle.with(Level::Two)), handle);
        }
    }
}
