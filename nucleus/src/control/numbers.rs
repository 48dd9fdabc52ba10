//! Numbers of threads.

use crate::objects::Thread;
use crate::pointer::{Held, Link, Nucleus, Ref};
use abi::MAX_THREADS;
use core::cell::Cell;

struct Numbers {
    threads: [Cell<Link<Thread>>; MAX_THREADS],
    free: [Cell<u16>; MAX_THREADS],
    count: Cell<usize>,
    unused: Cell<u16>,
}

static NUMBERS: Nucleus<Numbers> = Nucleus::new(Numbers {
    threads: [const { Cell::new(None) }; MAX_THREADS],
    free: [const { Cell::new(0) }; MAX_THREADS],
    count: Cell::new(0),
    unused: Cell::new(1),
});

/// The thread with this number.
pub fn by_number(held: Held, number: usize) -> Link<Thread> {
    NUMBERS.get(held).threads.get(number)?.get()
}

/// All numbers that were ever used are below this.
pub fn used(held: Held) -> usize {
    NUMBERS.get(held).unused.get() as usize
}

/// A number that is free.
pub fn take(held: Held) -> Option<u16> {
    let numbers = NUMBERS.get(held);
    if let Some(count) = numbers.count.get().checked_sub(1) {
        numbers.count.set(count);
        return Some(numbers.free[count].get());
    }
    let next = numbers.unused.get();
    ((next as usize) < MAX_THREADS).then(|| numbers.unused.replace(next + 1))
}

/// A thread has its number from now on.
pub fn set(thread: Ref<Thread>) {
    NUMBERS.get(thread.held()).threads[thread.number as usize].set(Some(thread));
}

/// The thread with this number is gone.
pub fn give(held: Held, number: u16) {
    let numbers = NUMBERS.get(held);
    numbers.threads[number as usize].set(None);
    numbers.free[numbers.count.get()].set(number);
    numbers.count.update(|count| count + 1);
}
