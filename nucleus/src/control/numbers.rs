//! Numbers of threads.

use crate::objects::{Numbers, Thread};
use crate::pointer::{Held, Link, Nucleus, Ref};
use abi::MAX_THREADS;
use core::cell::Cell;

struct Threads {
    numbers: Numbers<{ MAX_THREADS / 64 }>,
    /// All numbers that were ever taken are below this.
    used: Cell<usize>,
    with: [Cell<Link<Thread>>; MAX_THREADS],
}

static THREADS: Nucleus<Threads> = Nucleus::new(Threads {
    numbers: Numbers::new(),
    used: Cell::new(0),
    with: [const { Cell::new(None) }; MAX_THREADS],
});

/// 0 is no thread's.
#[unsafe(link_section = ".init")]
pub fn init(held: Held) {
    take(held);
}

/// The thread with this number.
pub fn by_number(held: Held, number: usize) -> Link<Thread> {
    THREADS.get(held).with.get(number)?.get()
}

/// All numbers that were ever used are below this.
pub fn used(held: Held) -> usize {
    THREADS.get(held).used.get()
}

/// A number that is free.
pub fn take(held: Held) -> Option<u16> {
    let threads = THREADS.get(held);
    let number = threads.numbers.take(MAX_THREADS)?;
    threads.used.update(|used| used.max(number + 1));
    Some(number as u16)
}

/// A thread has its number from now on.
pub fn set(thread: Ref<Thread>) {
    THREADS.get(thread.held()).with[thread.number as usize].set(Some(thread));
}

/// The thread with this number is gone.
pub fn give(held: Held, number: u16) {
    let threads = THREADS.get(held);
    threads.with[number as usize].set(None);
    threads.numbers.give_back(number as usize);
}
