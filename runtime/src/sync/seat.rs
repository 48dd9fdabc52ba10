//! A place for one activation that waits for what a mutex guards. The place stands in the data of that mutex, and so needs neither a queue
//! nor a lock of its own: see [`super::Condvar`] for several that wait.
//!
//! Whoever has the mutex and finds somebody there takes that one out of the place, and wakes it when the mutex is free again. It may give
//! bytes to one that waits for some: these are copied to where they are wanted, so one that is given bytes need not have the mutex again.
//!
//! The record of a wait is on the stack of whoever waits. The wait ends only when the place does not lead there any more and the V that was
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

/// A place where one activation waits, or none. Whoever is there when it is dropped is woken.
#[derive(Debug)]
pub struct Seat<K: Kernel = Nucleus> {
    record: *const Record,
    kernel: PhantomData<fn() -> K>,
}

// SAFETY: the record is used only by whoever has the seat alone, until the V of its wait was sent; the wait does not end before.
unsafe impl<K: Kernel> Send for Seat<K> {}

/// How a wait for bytes ended.
pub enum Received<'a, T: ?Sized, K: Kernel = Nucleus> {
    /// So many bytes were given.
    Bytes(usize),
    /// None were: what was waited for may be there. May come without cause.
    Nothing(MutexGuard<'a, T, K>),
}

impl<K: Kernel> Seat<K> {
    /// Nobody waits.
    pub const fn new() -> Self {
        Self { record: ptr::null(), kernel: PhantomData }
    }

    /// Whether somebody waits.
    #[inline]
    pub const fn is_taken(&self) -> bool {
        !self.record.is_null()
    }

    /// Takes whoever waits out of the place: it is woken when what this gives is dropped, best when the mutex is free again.
    #[inline]
    #[must_use]
    pub fn take(&mut self) -> Self {
        core::mem::take(self)
    }

    /// Gives bytes to whoever waits for some, and takes it out of the place: how many of `bytes` it has room for, 0 if nobody waits. It
    /// is woken when the seat is dropped that this gives.
    #[inline]
    #[must_use]
    pub fn give(&mut self, bytes: &[u8]) -> (usize, Self) {
        let taken = self.take();
        // SAFETY: the record is there until it is woken.
        let Some(record) = (unsafe { taken.record.as_ref() }) else { return (0, taken) };
        let count = bytes.len().min(record.length);
        // SAFETY: whoever waits has lent this room, of which nobody else knows, and looks there only when it is woken.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), record.room, count) };
        if count > 0 {
            record.given.store(count, Ordering::Release);
        }
        (count, taken)
    }

    /// Frees the mutex, waits to be woken in the place that `seat` finds in the data, and takes the mutex again. May wake without cause: ask
    /// for the condition in a loop. If the place is gone or taken this does not wait.
    pub fn wait<'a, T: ?Sized>(
        guard: MutexGuard<'a, T, K>,
        seat: impl Fn(&mut T) -> Option<&mut Self>,
    ) -> MutexGuard<'a, T, K> {
        let mutex = guard.mutex();
        match Self::receive(guard, &mut [], seat) {
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
        seat: impl Fn(&mut T) -> Option<&mut Self>,
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
        match seat(&mut guard) {
            Some(seat) if !seat.is_taken() => seat.record = &raw const record,
            _ => return Received::Nothing(guard),
        }
        drop(guard);
        if K::p(semaphore, NEVER).is_err() {
            let mut guard = mutex.lock();
            // The wait was cancelled.
            if let Some(seat) = seat(&mut guard).filter(|seat| ptr::eq(seat.record, &raw const record)) {
                seat.record = ptr::null();
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

impl<K: Kernel> Drop for Seat<K> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the record is there until it is woken.
        if let Some(semaphore) = unsafe { self.record.as_ref() }.map(|record| record.semaphore) {
            K::v(semaphore);
        }
    }
}

impl<K: Kernel> Default for Seat<K> {
    fn default() -> Self {
        Self::new()
    }
}
