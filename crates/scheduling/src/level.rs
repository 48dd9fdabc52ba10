//! Levels of queues.

use abi::PRIORITIES;

/// The queue of a priority: the highest is taken first.
#[inline(always)]
pub const fn level_of(priority: u8) -> usize {
    let level = priority as usize % PRIORITIES;
    if cfg!(feature = "reversed") { PRIORITIES - 1 - level } else { level }
}
