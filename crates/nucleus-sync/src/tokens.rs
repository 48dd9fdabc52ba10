//! The count of a semaphore: tokens minus waiters.
//!
//! [`Tokens::take`] and [`Tokens::give`] need no lock. If they return false, the caller *settles* the semaphore under the
//! lock: it gives the first waiter a token as long as [`Tokens::owes_token`]. A `take` that finds no token undoes its
//! subtraction, so nothing is pending while its CPU waits for the lock. Between the two steps it hides a token from other
//! CPUs. That does no harm: the CPU that hid a token settles later, or the CPU that stops it does so in its place.

use crate::atomic::{AtomicI64, Ordering};

/// See the module.
#[repr(transparent)]
pub struct Tokens(AtomicI64);

impl Tokens {
    crate::constant! {
        /// With `count` tokens; nobody waits.
        pub fn new(count: i64) -> Self {
            Self(AtomicI64::new(count))
        }
    }

    /// P without the lock: takes a token if there is one. If not, the caller settles under the lock, whatever else it does.
    ///
    /// Acquire: writes before each V that gave a token are seen.
    pub fn take(&self) -> bool {
        if self.0.fetch_sub(1, Ordering::Acquire) > 0 {
            return true;
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        false
    }

    /// V without the lock: false if somebody may wait; then the caller settles under the lock.
    ///
    /// Release: pairs with [`Tokens::take`].
    pub fn give(&self) -> bool {
        self.0.fetch_add(1, Ordering::Release) >= 0
    }

    /// Under the lock: one more waits.
    pub fn enlist(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Under the lock: one waits no more, without a token.
    pub fn delist(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Under the lock, with `waiting` in the queue: whether the first of them gets a token. The caller asks again after each
    /// that does.
    pub fn owes_token(&self, waiting: usize) -> bool {
        // An old value does no harm. If it hides a token, the CPU that gave that settles later; and as long as somebody waits, nobody
        // takes the last token without the lock.
        waiting > 0 && self.0.load(Ordering::Relaxed) + waiting as i64 > 0
    }

    /// Tokens, or minus the number of waiters, as far as can be seen from outside.
    pub fn count(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}
