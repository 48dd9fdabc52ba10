//! A mutex: one word that names its owner, to which waiters lend their priority.
//!
//! The word is 0 when free, else the name of the activation that owns it, with [`CONTENDED`] set once
//! somebody waits. The semaphore exists from the first contention on. A surplus V only makes a waiter
//! look again, so counts never have to be exact.
//!
//! A woken thread may find that another was faster. Then it claims the mutex: the next unlock hands it over to it. So threads that
//! take it again and again keep nobody waiting.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering, fence};

use super::{Kernel, Nucleus};

/// Somebody waits, or may.
const CONTENDED: u32 = 1 << 31;
/// Somebody claims it: `next`.
const CLAIMED: u32 = 1 << 30;
/// The rest of the word.
const OWNER: u32 = CLAIMED - 1;
/// Looks at a mutex that is not free before a wait. An owner on another CPU has often freed it by then, and a wait and its V cost more.
const SPINS: u32 = 8;

/// The lock without the data.
pub struct RawMutex<K: Kernel = Nucleus> {
    word: AtomicU32,
    semaphore: AtomicU32,
    /// The name of its claimer; 0 = nobody.
    next: AtomicU32,
    kernel: PhantomData<fn() -> K>,
}

impl<K: Kernel> RawMutex<K> {
    /// A free mutex.
    pub const fn new() -> Self {
        Self { word: AtomicU32::new(0), semaphore: AtomicU32::new(0), next: AtomicU32::new(0), kernel: PhantomData }
    }

    /// Waits until the mutex is ours. Panics if it is already: that would wait for ever.
    #[inline]
    pub fn lock(&self) {
        let me = K::me();
        if self.word.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.lock_contended(me);
        }
    }

    /// Takes the mutex if it is free.
    #[inline]
    pub fn try_lock(&self) -> bool {
        self.word.compare_exchange(0, K::me(), Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn lock_contended(&self, me: u32) {
        let mut waited = false;
        loop {
            self.spin();
            let word = self.word.load(Ordering::Relaxed);
            assert!(word & OWNER != me, "mutex locked again by the activation that holds it");
            if waited && word != 0 && self.claim(me) {
                return;
            }
            // A thread that waited leaves the mark: there may be others.
            let next = match (word, waited) {
                (0, false) => me,
                (0, true) => me | CONTENDED,
                _ => word | CONTENDED,
            };
            let Some(semaphore) = self.semaphore() else {
                // No semaphore to be had: look again later.
                if word == 0 && self.try_lock() {
                    return;
                }
                K::relax();
                continue;
            };
            if self.word.compare_exchange(word, next, Ordering::Acquire, Ordering::Relaxed).is_err() {
                continue;
            }
            if word == 0 {
                return;
            }
            waited = true;
            // An error (the wait was cancelled) is a reason to look again, like a surplus V.
            let _ = K::p_lending(semaphore, word & OWNER);
        }
    }

    /// Waits a little, without the nucleus, until the mutex is free. One that is claimed will not be.
    fn spin(&self) {
        for _ in 0..SPINS {
            let word = self.word.load(Ordering::Relaxed);
            if word == 0 || word & CLAIMED != 0 {
                return;
            }
            K::pause();
        }
    }

    /// Has the mutex handed over, and waits for that. False if somebody else claims it, or we have no semaphore of our own.
    #[cold]
    fn claim(&self, me: u32) -> bool {
        let Ok(semaphore) = K::own() else { return false };
        if self.next.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return false;
        }
        if self.take_or_mark(me) {
            self.next.store(0, Ordering::Release);
            return true;
        }
        // V's of a condition variable that came instead of the one that hands over: somebody still waits for them.
        let mut others = 0;
        loop {
            let owner = self.word.load(Ordering::Relaxed) & OWNER;
            if K::p_lending(semaphore, owner).is_err() {
                // The wait was cancelled.
                continue;
            }
            // Only the word says that the mutex is ours.
            if self.word.load(Ordering::Acquire) & OWNER == me {
                break;
            }
            others += 1;
        }
        (0..others).for_each(|_| K::v(semaphore));
        true
    }

    /// Takes a free mutex; one that is not is marked as claimed. True if it was free.
    fn take_or_mark(&self, me: u32) -> bool {
        loop {
            let word = self.word.load(Ordering::Relaxed);
            let marked = if word == 0 { me | CONTENDED } else { word | CONTENDED | CLAIMED };
            if self.word.compare_exchange(word, marked, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return word == 0;
            }
        }
    }

    /// Frees the mutex. Only its owner may.
    #[inline]
    pub fn unlock(&self) {
        let word = self.word.load(Ordering::Relaxed);
        if word & CLAIMED != 0 || self.word.compare_exchange(word, 0, Ordering::Release, Ordering::Relaxed).is_err() {
            self.unlock_marked()
        } else if word & CONTENDED != 0 {
            self.wake();
        }
    }

    /// As [`Self::unlock`], of one that is claimed, or was marked just now. A claim is never lost: a thread that takes a claimed mutex
    /// would not be lent what that one has.
    #[cold]
    fn unlock_marked(&self) {
        loop {
            let word = self.word.load(Ordering::Relaxed);
            if word & CLAIMED != 0 {
                return self.hand_over();
            }
            if self.word.compare_exchange(word, 0, Ordering::Release, Ordering::Relaxed).is_ok() {
                return self.wake();
            }
        }
    }

    /// Frees the mutex for its claimer.
    #[cold]
    fn hand_over(&self) {
        // The claimer set `next` before it set the mark, which stays until the mutex is handed over.
        fence(Ordering::Acquire);
        let next = self.next.load(Ordering::Relaxed);
        self.word.store(next | CONTENDED, Ordering::Release);
        self.next.store(0, Ordering::Release);
        K::v_own(next);
        // Those that wait lend to the new owner from now on.
        self.wake();
    }

    #[cold]
    fn wake(&self) {
        // The thread that set the mark published the semaphore before.
        match self.semaphore.load(Ordering::Acquire) {
            0 => {}
            semaphore => K::v(semaphore),
        }
    }

    /// The semaphore, made if there is none.
    fn semaphore(&self) -> Option<u32> {
        match self.semaphore.load(Ordering::Acquire) {
            0 => {
                let made = K::make().ok()?;
                match self.semaphore.compare_exchange(0, made, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => Some(made),
                    Err(other) => {
                        K::remove(made);
                        Some(other)
                    }
                }
            }
            semaphore => Some(semaphore),
        }
    }

    /// The name of the activation that holds the mutex.
    pub fn owner(&self) -> Option<u32> {
        Some(self.word.load(Ordering::Relaxed) & OWNER).filter(|owner| *owner != 0)
    }
}

impl<K: Kernel> Default for RawMutex<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Kernel> Drop for RawMutex<K> {
    fn drop(&mut self) {
        match *self.semaphore.get_mut() {
            0 => {}
            semaphore => K::remove(semaphore),
        }
    }
}

/// Data that one activation at a time may use.
pub struct Mutex<T: ?Sized, K: Kernel = Nucleus> {
    raw: RawMutex<K>,
    data: UnsafeCell<T>,
}

// SAFETY: the lock lets one activation at a time at the data.
unsafe impl<T: ?Sized + Send, K: Kernel> Sync for Mutex<T, K> {}
// SAFETY: owning the mutex is owning the data.
unsafe impl<T: ?Sized + Send, K: Kernel> Send for Mutex<T, K> {}

impl<T, K: Kernel> Mutex<T, K> {
    /// A free mutex.
    pub const fn new(data: T) -> Self {
        Self { raw: RawMutex::new(), data: UnsafeCell::new(data) }
    }
}

impl<T: ?Sized, K: Kernel> Mutex<T, K> {
    /// Waits until the data is ours.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T, K> {
        self.raw.lock();
        MutexGuard { mutex: self, local: PhantomData }
    }

    /// Takes the data if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T, K>> {
        self.raw.try_lock().then_some(MutexGuard { mutex: self, local: PhantomData })
    }

    /// The name of the activation that holds the mutex.
    pub fn owner(&self) -> Option<u32> {
        self.raw.owner()
    }
}

impl<T: ?Sized, K: Kernel> fmt::Debug for Mutex<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").field("owner", &self.owner()).finish_non_exhaustive()
    }
}

/// The right to use the data, until it goes out of scope.
pub struct MutexGuard<'a, T: ?Sized, K: Kernel = Nucleus> {
    mutex: &'a Mutex<T, K>,
    /// Not to be sent: the owner frees.
    local: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives shared data.
unsafe impl<T: ?Sized + Sync, K: Kernel> Sync for MutexGuard<'_, T, K> {}

impl<'a, T: ?Sized, K: Kernel> MutexGuard<'a, T, K> {
    /// The mutex that this guard holds.
    pub(super) fn mutex(&self) -> &'a Mutex<T, K> {
        self.mutex
    }
}

impl<T: ?Sized, K: Kernel> Deref for MutexGuard<'_, T, K> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.mutex.data.get() }
    }
}

impl<T: ?Sized, K: Kernel> DerefMut for MutexGuard<'_, T, K> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock.
        unsafe { &mut *self.mutex.data.get() }
    }
}

impl<T: ?Sized, K: Kernel> Drop for MutexGuard<'_, T, K> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.raw.unlock();
    }
}
