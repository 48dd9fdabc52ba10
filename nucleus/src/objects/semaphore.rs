//! Counting semaphores.

use super::Ranked;
use core::cell::Cell;
use nucleus_sync::tokens::Tokens;

/// See the module.
#[repr(C)]
pub struct Semaphore {
    /// Tokens, or minus the number of waiters.
    pub count: Tokens,
    /// Who waits.
    pub waiters: Ranked,
    /// How many.
    pub waiting: Cell<u32>,
    /// Uses by the nucleus itself (interrupt lines, death notices).
    pub uses: Cell<u32>,
    /// Its original entry is being removed.
    pub is_going: Cell<bool>,
    /// That is gone.
    pub gone: Cell<bool>,
    /// It had a copy of its entry at some time: others may have it.
    pub is_shared: Cell<bool>,
}
