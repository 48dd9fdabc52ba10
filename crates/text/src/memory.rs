//! Vectors that refuse instead of panicking, and grow by a part of what they hold: there may be no room for twice as much.

use alloc::vec::Vec;
use core::fmt;

/// There is no memory for something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMemory;

impl fmt::Display for NoMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("there is no memory for so much")
    }
}

/// Elements by which a vector grows at least.
const LEAST: usize = 64;

/// Makes room for `more` elements: for a quarter more than there are, or for a 32nd if there is not so much memory. Less would mean that
/// all of it is moved for each block.
pub fn reserve<T>(vector: &mut Vec<T>, more: usize) -> Result<(), NoMemory> {
    if vector.capacity() - vector.len() >= more {
        return Ok(());
    }
    let [much, little] = [4, 32].map(|part| more.max(vector.len() / part).max(LEAST));
    vector.try_reserve_exact(much).or_else(|_| vector.try_reserve_exact(little)).map_err(|_| NoMemory)
}

/// Appends an element.
pub fn push<T>(vector: &mut Vec<T>, element: T) -> Result<(), NoMemory> {
    reserve(vector, 1)?;
    vector.push(element);
    Ok(())
}

/// Appends copies of elements.
pub fn extend<T: Copy>(vector: &mut Vec<T>, elements: &[T]) -> Result<(), NoMemory> {
    reserve(vector, elements.len())?;
    vector.extend_from_slice(elements);
    Ok(())
}

/// Refuses lengths from which on the places in a text do not fit 32 bits.
pub fn place(at: usize) -> Result<u32, NoMemory> {
    u32::try_from(at).map_err(|_| NoMemory)
}
