//! A slot for one activation that waits for what a mutex guards. The slot is part of the data of that mutex, and so needs neither a queue
//! nor a lock of its own: see [`super::Condvar`] for several that wait.
//!
//! A thread that has the mutex and finds a waiter takes that one out of the slot, and wakes it when the mutex is free again. It may give
//! bytes to one that waits for some: these are copied to where they are wanted, so one that is given bytes need not have the mutex again.
//!
//! The record of a wait is on the stack of the waiter. The wait ends only when the slot does not point there any more and the V that was
//! sent has been consumed. So the own semaphore of an activation has no surplus, and the record outlives every use.

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use abi::{Error, NEVER};

use super::{Kernel, MutexGuard, Nucleus};

/// Nothing was given.
const NOTHING: usize = usize::MAX;

/// A wait.
struct Record {
    semaphore: u32,
    /// Room for bytes, and how much.
    room: *mut u8,
    length: usize,
    /// How many bytes were put there.
    given: AtomicUsize,
}

/// One activation that waits, or none. Dropping the slot wakes the waiter.
#[derive(Debug)]
pub struct WaitSlot<K: Kernel = Nucleus> {
    record: *const Record,
    kernel: PhantomData<fn() -> K>,
}

// SAFETY: the record is used only by a thread with exclusive access to the slot, until the V of its wait was sent; the wait does not end
// before.
unsafe impl<K: Kernel> Send for WaitSlot<K> {}

/// How a wait for bytes ended.
pub enum Received<'a, T: ?Sized, K: Kernel = Nucleus> {
    /// So many bytes were given.
    Bytes(usize),
    /// None were: the awaited condition may hold. May come without cause.
    Nothing(MutexGuard<'a, T, K>),
}

impl<K: Kernel> WaitSlot<K> {
    /// Nobody waits.
    pub const fn new() -> Self {
        Self { record: ptr::null(), kernel: PhantomData }
    }

    /// Whether somebody waits.
    #[inline]
    pub const fn is_taken(&self) -> bool {
        !self.record.is_null()
    }

    /// Takes the waiter out of the slot: it is woken when what this gives is dropped, best when the mutex is free again.
    #[inline]
    #[must_use]
    pub fn take(&mut self) -> Self {
        core::mem::take(self)
    }

    /// Gives bytes to a waiter for some, and takes it out of the slot: how many of `bytes` it has room for, 0 if nobody waits. It
    /// is woken when the slot is dropped that this gives.
    #[inline]
    #[must_use]
    pub fn give(&mut self, bytes: &[u8]) -> (usize, Self) {
        let taken = self.take();
        // SAFETY: the record is there until it is woken.
        let Some(record) = (unsafe { taken.record.as_ref() }) else { return (0, taken) };
        let count = bytes.len().min(record.length);
        // SAFETY: the waiter has lent this room, of which nobody else knows, and looks there only when it is woken.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), record.room, count) };
        if count > 0 {
            record.given.store(count, Ordering::Release);
        }
        (count, taken)
    }

    /// Frees the mutex, waits in the slot that `slot` finds in the data, and takes the mutex again. May wake without cause: ask
    /// for the condition in a loop. If the slot is gone or taken this does not wait.
    pub fn wait<'a, T: ?Sized>(
        guard: MutexGuard<'a, T, K>,
        slot: impl Fn(&mut T) -> Option<&mut Self>,
    ) -> MutexGuard<'a, T, K> {
        let mutex = guard.mutex();
        match Self::receive(guard, &mut [], slot) {
            Received::Nothing(guard) => guard,
            // Nothing is given where there is no room.
            Received::Bytes(_) => mutex.lock(),
        }
    }

    /// As [`Self::wait`], for bytes that are put into `room`: if there are any the mutex is not taken again.
    #[inline]
    pub fn receive<'a, T: ?Sized>(
        mut guard: MutexGuard<'a, T, K>,
        room: &mut [u8],
        slot: impl Fn(&mut T) -> Option<&mut Self>,
    ) -> Received<'a, T, K> {
        let mutex = guard.mutex();
        let Ok(semaphore) = K::own() else {
            // No semaphore to be had: a wake-up without cause.
            drop(guard);
            K::relax();
            return Received::Nothing(mutex.lock());
        };
        let given = AtomicUsize::new(NOTHING);
        let record = Record { semaphore, room: room.as_mut_ptr(), length: room.len(), given };
        match slot(&mut guard) {
            Some(slot) if !slot.is_taken() => slot.record = &raw const record,
            _ => return Received::Nothing(guard),
        }
        drop(guard);
        if K::p(semaphore, NEVER).is_err() {
            let mut guard = mutex.lock();
            // The wait was cancelled.
            if let Some(slot) = slot(&mut guard).filter(|slot| ptr::eq(slot.record, &raw const record)) {
                slot.record = ptr::null();
                return Received::Nothing(guard);
            }
            // Woken at the same moment: the V is on its way or here. It must not be left behind.
            drop(guard);
            while K::p(semaphore, NEVER) == Err(Error::Cancelled) {}
        }
        match record.given.load(Ordering::Acquire) {
            NOTHING => Received::Nothing(mutex.lock()),
            count => Received::Bytes(count),
        }
    }
}

impl<K: Kernel> Drop for WaitSlot<K> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the record is there until it is woken.
        if let Some(semaphore) = unsafe { self.record.as_ref() }.map(|record| record.semaphore) {
            K::v(semaphore);
        }
    }
}

impl<K: Kernel> Default for WaitSlot<K> {
    fn default() -> Self {
        Self::new()
    }
}
