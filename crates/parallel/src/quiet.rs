//! Holding a CPU up: whoever has the nucleus lock makes another CPU stay where it is, and changes what runs there.
//!
//! A CPU is *quiet* while it waits for the lock or sleeps: it is then in no fast path, holds nothing of the state that CPUs
//! change without the lock half changed, and runs no user code. It says so before it waits, and takes it back
//! only when it has the lock; so what whoever has the lock sees as quiet stays so until that one releases the lock. Who is
//! not quiet gets an interrupt, which it takes as soon as it is in user mode, and then waits for the lock: interrupts are
//! off in the nucleus, in fast paths too.
//!
//! What a CPU is to do before it goes on (forget translations, look again at what it runs) is left with it while it is held
//! up. It looks there when it got the lock after having waited, or slept. Who got the lock at once has nothing to look for:
//! it was not quiet, and only to quiet CPUs anything is left.

use crate::atomic::{AtomicBool, Ordering};
use crate::lock::Lock;

/// Whether one CPU is quiet; see the module.
#[repr(transparent)]
pub struct Quiet(AtomicBool);

impl Quiet {
    crate::constant! {
        /// Of a CPU that runs. For one that is yet to start it says when it has come: it then waits for the lock.
        pub fn new() -> Self {
            Self(AtomicBool::new(false))
        }
    }

    /// This CPU announced itself for the lock and is about to wait; or it has the lock and is about to release it and
    /// to sleep.
    ///
    /// Release: who sees it sees all that this CPU did without the lock.
    pub fn begin(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// This CPU waited or slept, and has the lock again. Next it looks for what was left to it.
    pub fn end(&self) {
        // Whoever asks next has the lock after us: the lock tells it.
        self.0.store(false, Ordering::Relaxed);
    }

    /// Waits, announced and quiet, until the lock is ours; `relax` is called meanwhile.
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

    /// Whether the CPU is quiet. Asked by whoever has the lock: a yes holds until the lock is released.
    pub fn is_quiet(&self) -> bool {
        // Acquire: pairs with `begin`.
        self.0.load(Ordering::Acquire)
    }

    /// Holds the CPU up, for whoever has the lock: if it is not quiet, `send` sends it an interrupt, and `relax` is called
    /// until it is. It stays so until the lock is released.
    ///
    /// To hold up several, send to all that are not quiet first; then wait for each.
    pub fn hold_up(&self, send: impl FnOnce(), mut relax: impl FnMut()) {
        if self.is_quiet() {
            return;
        }
        send();
        while !self.is_quiet() {
            relax();
        }
    }
}

impl Default for Quiet {
    fn default() -> Self {
        Self::new()
    }
}
