//! A value that is made once, by the first thread that needs it.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use super::{Kernel, Nucleus, RawMutex};

/// A value that is made once.
pub struct Once<T, K: Kernel = Nucleus> {
    lock: RawMutex<K>,
    made: AtomicBool,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is written under the lock, before `made` says so, and only read afterwards.
unsafe impl<T: Send + Sync, K: Kernel> Sync for Once<T, K> {}

impl<T, K: Kernel> Once<T, K> {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self { lock: RawMutex::new(), made: AtomicBool::new(false), value: UnsafeCell::new(None) }
    }

    /// The value, if it was made.
    pub fn get(&self) -> Option<&T> {
        // SAFETY: `made` is set after the value was written, which happens once.
        if self.made.load(Ordering::Acquire) { unsafe { (*self.value.get()).as_ref() } } else { None }
    }

    /// The value, made if this is the first time. Panics if `make` asks for it again.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.get() {
            return value;
        }
        self.lock.lock();
        if !self.made.load(Ordering::Relaxed) {
            let value = make();
            // SAFETY: under the lock, and nobody reads before `made` is set.
            unsafe { *self.value.get() = Some(value) };
            self.made.store(true, Ordering::Release);
        }
        self.lock.unlock();
        // SAFETY: `made` is set, by us or before us: the value was written, and is only read from now on.
        match unsafe { (*self.value.get()).as_ref() } {
            Some(value) => value,
            None => unreachable!("made above"),
        }
    }
}

impl<T, K: Kernel> Default for Once<T, K> {
    fn default() -> Self {
        Self::new()
    }
}
