//! A condition variable: a queue of waiters, each with its activation's own semaphore, woken in order.
//!
//! A waiter is a record on its own stack. It leaves the wait only when it is off the queue and has
//! consumed the V that was sent to it, if any, so its semaphore has no surplus and the record outlives
//! every use.

use core::cell::{Cell, UnsafeCell};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use abi::{Error, NEVER};

use super::{Kernel, MutexGuard, Nucleus, RawMutex};

struct Waiter {
    semaphore: u32,
    next: Cell<*const Waiter>,
    /// On the queue.
    waiting: Cell<bool>,
}

/// A condition variable.
pub struct Condvar<K: Kernel = Nucleus> {
    lock: RawMutex<K>,
    /// First waiter; also read without the lock, to see that there is none.
    head: AtomicPtr<Waiter>,
    tail: UnsafeCell<*const Waiter>,
}

// SAFETY: the queue and the records on it are used under `lock` only.
unsafe impl<K: Kernel> Sync for Condvar<K> {}
// SAFETY: while somebody waits it is borrowed and cannot move.
unsafe impl<K: Kernel> Send for Condvar<K> {}

impl<K: Kernel> Condvar<K> {
    /// Nobody waits.
    pub const fn new() -> Self {
        Self { lock: RawMutex::new(), head: AtomicPtr::new(ptr::null_mut()), tail: UnsafeCell::new(ptr::null()) }
    }

    /// Frees the mutex, waits to be woken, takes the mutex again. May wake without cause: ask for the
    /// condition in a loop.
    pub fn wait<'a, T: ?Sized>(&self, guard: MutexGuard<'a, T, K>) -> MutexGuard<'a, T, K> {
        self.wait_until(guard, NEVER).0
    }

    /// As `wait`, at most until an absolute time; false if it passed.
    pub fn wait_until<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T, K>,
        deadline: u64,
    ) -> (MutexGuard<'a, T, K>, bool) {
        let mutex = guard.mutex();
        let Ok(semaphore) = K::own() else {
            // No semaphore to be had: a wake-up without cause.
            drop(guard);
            K::relax();
            return (mutex.lock(), true);
        };
        let waiter = Waiter { semaphore, next: Cell::new(ptr::null()), waiting: Cell::new(true) };
        self.append(&waiter);
        drop(guard);
        let result = K::p(semaphore, deadline);
        if result.is_err() && !self.leave(&waiter) {
            // Woken at the same moment: the V is on its way or here. It must not be left behind.
            while K::p(semaphore, NEVER) == Err(Error::Cancelled) {}
        }
        (mutex.lock(), result != Err(Error::Timeout))
    }

    /// Wakes the longest waiter.
    pub fn notify_one(&self) {
        if !self.head.load(Ordering::Relaxed).is_null() {
            self.wake(1);
        }
    }

    /// Wakes all threads that wait now.
    pub fn notify_all(&self) {
        if !self.head.load(Ordering::Relaxed).is_null() {
            self.wake(usize::MAX);
        }
    }

    fn append(&self, waiter: &Waiter) {
        self.lock.lock();
        // SAFETY: under the lock; records on the queue are alive, see `leave`.
        unsafe {
            let tail = self.tail.get();
            match (*tail).as_ref() {
                Some(last) => last.next.set(waiter),
                None => self.head.store(ptr::from_ref(waiter).cast_mut(), Ordering::Relaxed),
            }
            *tail = waiter;
        }
        self.lock.unlock();
    }

    /// Takes a waiter off the queue; false if it is off already.
    fn leave(&self, waiter: &Waiter) -> bool {
        self.lock.lock();
        let waiting = waiter.waiting.replace(false);
        if waiting {
            let mut before: *const Waiter = ptr::null();
            let mut at: *const Waiter = self.head.load(Ordering::Relaxed);
            // SAFETY: under the lock; every record on the queue is alive, because its wait ends only
            // after it is off, and this one is on it.
            unsafe {
                while !ptr::eq(at, waiter) {
                    before = at;
                    at = (*at).next.get();
                }
                match before.as_ref() {
                    Some(before) => before.next.set(waiter.next.get()),
                    None => self.head.store(waiter.next.get().cast_mut(), Ordering::Relaxed),
                }
                if ptr::eq(*self.tail.get(), waiter) {
                    *self.tail.get() = before;
                }
            }
        }
        self.lock.unlock();
        waiting
    }

    fn wake(&self, count: usize) {
        self.lock.lock();
        for _ in 0..count {
            let first: *const Waiter = self.head.load(Ordering::Relaxed);
            // SAFETY: under the lock; see `leave`.
            let Some(waiter) = (unsafe { first.as_ref() }) else { break };
            let semaphore = waiter.semaphore;
            self.head.store(waiter.next.get().cast_mut(), Ordering::Relaxed);
            if waiter.next.get().is_null() {
                // SAFETY: under the lock.
                unsafe { *self.tail.get() = ptr::null() };
            }
            waiter.waiting.set(false);
            // From here on the record may vanish.
            K::v(semaphore);
        }
        self.lock.unlock();
    }
}

impl<K: Kernel> Default for Condvar<K> {
    fn default() -> Self {
        Self::new()
    }
}
