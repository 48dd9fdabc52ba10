//! Stopping a CPU: the holder of the nucleus lock keeps another CPU where it is, and changes what runs there.
//!
//! A CPU is *quiescent* while it waits for the lock or sleeps. It is then on no fast path, has no lock-free state half
//! changed, and runs no user code. It sets its flag before it waits and clears it once it has the lock. So a CPU that
//! the lock holder sees quiescent stays so until the lock is released. A CPU that is not quiescent gets an interrupt. It takes
//! that as soon as it is in user mode, and then waits for the lock: interrupts are off in the nucleus, fast paths included.
//!
//! The lock holder leaves work for a stopped CPU: invalidate translations, recheck what runs. The CPU looks for it when it gets the
//! lock after having waited or slept. A CPU that got the lock at once was not quiescent, and work is left only for
//! quiescent ones.

use crate::atomic::{AtomicBool, Ordering};
use crate::lock::Lock;

/// Whether one CPU is quiescent: see the module.
#[repr(transparent)]
pub struct Quiescent(AtomicBool);

impl Quiescent {
    crate::constant! {
        /// Of a CPU that runs. For one that is yet to start it says when it has come: it then waits for the lock.
        pub fn new() -> Self {
            Self(AtomicBool::new(false))
        }
    }

    /// This CPU announced itself for the lock and is about to wait; or it has the lock and is about to release it and
    /// to sleep.
    ///
    /// Release: a CPU that sees it sees all that this CPU did without the lock.
    pub fn begin(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// This CPU waited or slept, and has the lock again. Next it looks for what was left to it.
    pub fn end(&self) {
        // The next to ask takes the lock after us, and its release publishes this.
        self.0.store(false, Ordering::Relaxed);
    }

    /// Waits, announced and quiescent, until the lock is ours; `relax` is called meanwhile.
    pub fn wait(&self, lock: &Lock, relax: impl FnMut()) {
        self.begin();
        lock.wait(relax);
        self.end();
    }

    /// Takes the lock after sleep; `relax` is called while another has it.
    pub fn wake(&self, lock: &Lock, relax: impl FnMut()) {
        if !lock.announce() {
            lock.wait(relax);
        }
        self.end();
    }

    /// Whether the CPU is quiescent. Only the lock holder asks: a yes holds until the lock is released.
    pub fn is_quiescent(&self) -> bool {
        // Acquire: pairs with `begin`.
        self.0.load(Ordering::Acquire)
    }

    /// The lock holder stops the CPU: if it is not quiescent, `send` sends it an interrupt, and `relax` is called
    /// until it is. It stays so until the lock is released.
    ///
    /// To stop several, send to all that are not quiescent first; then wait for each.
    pub fn stop(&self, send: impl FnOnce(), mut relax: impl FnMut()) {
        if self.is_quiescent() {
            return;
        }
        send();
        while !self.is_quiescent() {
            relax();
        }
    }
}

impl Default for Quiescent {
    fn default() -> Self {
        Self::new()
    }
}
