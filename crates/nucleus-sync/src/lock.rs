//! The nucleus lock: first come, first served.
//!
//! `count` is the number of CPUs that have the lock or want it, minus one: the CPU that counts it up to 0 has the lock at once,
//! with two instructions; one that counts it down to less than 0 gives it back with two. All others draw a ticket and wait
//! until so many were handed the lock. Nobody who comes later gets in between: the count of a lock that somebody
//! waits for never reaches -1.

use crate::atomic::{AtomicI32, AtomicU32, Ordering};
use core::mem::offset_of;

/// See the module. Zeros are not a free lock: see [`Lock::new`].
#[repr(C)]
pub struct Lock {
    count: AtomicI32,
    /// Times that the lock was handed to a waiter.
    served: AtomicU32,
    tickets: AtomicU32,
}

impl Lock {
    /// Where the number of hand-overs is, after the count: for assembly.
    pub const BYTES_BEFORE_SERVED: usize = offset_of!(Self, served);

    crate::constant! {
        /// A free lock.
        pub fn new() -> Self {
            Self { count: AtomicI32::new(-1), served: AtomicU32::new(0), tickets: AtomicU32::new(0) }
        }
    }

    /// Takes the lock if it is free. Otherwise the caller has announced itself and must [`Self::wait`].
    ///
    /// Acquire: the writes of the holder before are seen. Nothing counts on more, though on x86-64 every locked
    /// instruction is a full fence.
    pub fn announce(&self) -> bool {
        self.count.fetch_add(1, Ordering::Acquire) < 0
    }

    /// Waits, announced, until the lock is ours; `relax` is called meanwhile.
    pub fn wait(&self, mut relax: impl FnMut()) {
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        // Acquire: pairs with the release of the CPU that hands over.
        while (self.served.load(Ordering::Acquire).wrapping_sub(ticket) as i32) <= 0 {
            relax();
        }
    }

    /// Whether somebody waits for the lock, which is ours.
    pub fn is_wanted(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Gives the lock back, or hands it to the first waiter.
    ///
    /// Release: writes under the lock are seen by the next holder. A plain counter suffices for `served`: only the holder of the
    /// lock changes it.
    pub fn release(&self) {
        if self.count.fetch_sub(1, Ordering::Release) > 0 {
            let served = self.served.load(Ordering::Relaxed);
            self.served.store(served.wrapping_add(1), Ordering::Release);
        }
    }
}

impl Default for Lock {
    fn default() -> Self {
        Self::new()
    }
}
