//! Counting semaphores.

use super::Ranked;
use core::cell::Cell;
use nucleus_sync::tokens::Tokens;

/// See the module.
#[repr(C)]
pub struct Semaphore {
    /// Tokens, or the negative number of waiters.
    pub count: Tokens,
    /// Waiting activations.
    pub waiters: Ranked,
    /// Number of waiting activations.
    pub waiting: Cell<u32>,
    /// Number of uses by the nucleus itself (interrupt lines, deaths, the log).
    pub uses: Cell<u32>,
    /// Its original entry is being removed.
    pub is_going: Cell<bool>,
    /// Its original entry was removed.
    pub gone: Cell<bool>,
    /// Its entry was copied, or sent in a message: other domains may have it. Ports: only with the right to receive.
    pub is_shared: Cell<bool>,
}
