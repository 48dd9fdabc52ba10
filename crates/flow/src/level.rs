//! Levels, and the handles that they are of.

/// How tainted something is by a compartment, or how much taint of it is accepted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[repr(u8)]
pub enum Level {
    /// ★: ownership.
    Star,
    /// 0.
    Zero,
    /// 1: what a send label has by default.
    One,
    /// 2: what a receive label has by default.
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
    pub(crate) const fn of(level: Level) -> Self {
        Self(1 << level as u8)
    }

    /// Of the entries of a leaf.
    pub(crate) fn of_entries(entries: &[u64]) -> Self {
        Self(entries.iter().fold(0, |levels, entry| levels | 1 << (entry & 7)))
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The lowest and the highest; there is one.
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

    /// With a level, in a word: sorted by handle.
    #[inline]
    pub(crate) const fn with(self, level: Level) -> u64 {
        self.0 << 3 | level as u64
    }

    /// The handle of such a word.
    #[inline]
    pub(crate) const fn of(word: u64) -> Self {
        Self(word >> 3)
    }

    /// Which of the four parts below a node of this depth it belongs to: two of its bits, the lowest first. Handles that were
    /// given out in a row, or chosen by hand, differ there.
    #[inline]
    pub(crate) const fn part(self, depth: u32) -> usize {
        (self.0 >> (2 * depth)) as usize & 3
    }
}
