//! Numbered places. A number that was given back never leads to what has its place later.

use alloc::vec::Vec;

/// A number: place in the lower half, how often the place was used before above it.
pub type Number = u64;

/// Bits of a number; those above are free for others.
pub const NUMBER_BITS: u32 = 56;
const GENERATIONS: u32 = 1 << (NUMBER_BITS - 32);

/// Bytes of a place.
pub const fn bytes<T>() -> usize {
    size_of::<(u32, Option<T>)>() + size_of::<u32>()
}

/// See the module.
pub struct Slots<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
    used: usize,
    most: usize,
}

impl<T> Slots<T> {
    /// At most `most` at the same time.
    pub const fn new(most: usize) -> Self {
        Self { places: Vec::new(), free: Vec::new(), used: 0, most }
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.used
    }

    /// Puts something in; gives it back if there is no room, or no memory for more places.
    pub fn insert(&mut self, value: T) -> Result<Number, T> {
        let is_stuck = self.free.is_empty() && self.places.try_reserve(1).is_err();
        if self.used == self.most || is_stuck {
            return Err(value);
        }
        self.used += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() as u32 - 1
        });
        let (generation, slot) = &mut self.places[place as usize];
        *slot = Some(value);
        Ok(u64::from(*generation) << 32 | u64::from(place))
    }

    /// The item with this number.
    #[inline]
    pub fn get_mut(&mut self, number: Number) -> Option<&mut T> {
        let (generation, slot) = self.places.get_mut(number as u32 as usize)?;
        if u64::from(*generation) == number >> 32 { slot.as_mut() } else { None }
    }

    /// The item with this number.
    #[inline]
    pub fn get(&self, number: Number) -> Option<&T> {
        let (generation, slot) = self.places.get(number as u32 as usize)?;
        if u64::from(*generation) == number >> 32 { slot.as_ref() } else { None }
    }

    /// Takes it out.
    pub fn remove(&mut self, number: Number) -> Option<T> {
        let place = number as u32;
        let (generation, slot) = self.places.get_mut(place as usize)?;
        if u64::from(*generation) != number >> 32 {
            return None;
        }
        let value = slot.take()?;
        *generation = (*generation + 1) % GENERATIONS;
        self.free.push(place);
        self.used -= 1;
        Some(value)
    }

    /// All, from a place on.
    pub fn from(&self, place: usize) -> impl Iterator<Item = (Number, &T)> {
        self.places.iter().enumerate().skip(place).filter_map(|(place, (generation, slot))| {
            slot.as_ref().map(|value| (u64::from(*generation) << 32 | place as u64, value))
        })
    }
}
