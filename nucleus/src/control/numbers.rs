//! Numbers of threads, and the table in which a number leads to its thread. Half a thousand of them are there at first;
//! `roottask` adds pages to the table before the first scheduler sits.

use crate::memory::frames::Use;
use crate::memory::own::{self, THREADS as TABLE};
use crate::objects::{Account, FRAME, Numbers, Thread};
use crate::pointer::{Held, Link, Nucleus, Ref};
use abi::{Error, MAX_THREADS, THREADS_OF_A_PAGE};
use core::cell::Cell;

struct Threads {
    numbers: Numbers<{ MAX_THREADS / 64 }>,
    /// All numbers that were ever taken are below this.
    used: Cell<usize>,
    /// Pages that were added to the table.
    added: Cell<usize>,
}

static THREADS: Nucleus<Threads> =
    Nucleus::new(Threads { numbers: Numbers::new(), used: Cell::new(0), added: Cell::new(0) });

/// Makes the first page of the table. 0 is no thread's.
#[unsafe(link_section = ".init")]
pub fn init(held: Held) -> Result<(), &'static str> {
    own::begin_threads(held)?;
    take(held);
    Ok(())
}

/// Adds a page to the table, which the account pays for; gives how many numbers there are now. No scheduler may have a seat:
/// those have room for a number of threads that does not change.
pub fn add_page(account: Ref<Account>) -> Result<usize, Error> {
    let held = account.held();
    let count = count(held);
    if count == MAX_THREADS {
        return Err(Error::NoThreads);
    }
    own::show_threads(held, TABLE + count * 8, account.allocate_clear_apart(Use::Kernel)?);
    THREADS.get(held).added.update(|added| added + 1);
    Ok(count + THREADS_OF_A_PAGE)
}

/// All numbers that can be taken are below this: those for which the table has pages.
fn count(held: Held) -> usize {
    (1 + THREADS.get(held).added.get()) * THREADS_OF_A_PAGE
}

/// The place of a number in the table. Where that has no page yet, one with zeros stands.
#[inline(always)]
fn place(_: Held, number: usize) -> Option<&'static Cell<Link<Thread>>> {
    // SAFETY: all of the table is mapped, for good; it is touched with the nucleus lock only.
    (number < MAX_THREADS).then(|| unsafe { &*((TABLE + number * 8) as *const Cell<Link<Thread>>) })
}

/// The thread with this number.
#[inline(always)]
pub fn by_number(held: Held, number: usize) -> Link<Thread> {
    place(held, number)?.get()
}

/// All numbers that were ever used are below this.
pub fn used(held: Held) -> usize {
    THREADS.get(held).used.get()
}

/// A number that is free.
pub fn take(held: Held) -> Option<u16> {
    let threads = THREADS.get(held);
    let number = threads.numbers.take(count(held))?;
    threads.used.update(|used| used.max(number + 1));
    Some(number as u16)
}

/// A thread has its number from now on.
pub fn set(thread: Ref<Thread>) {
    if let Some(place) = place(thread.held(), thread.number as usize) {
        place.set(Some(thread));
    }
}

/// The thread with this number is gone.
pub fn give(held: Held, number: u16) {
    if let Some(place) = place(held, number as usize) {
        place.set(None);
    }
    THREADS.get(held).numbers.give_back(number as usize);
}

const _: () = assert!(size_of::<Link<Thread>>() == 8 && THREADS_OF_A_PAGE == FRAME / 8);
const _: () = assert!(MAX_THREADS * 8 == own::THREADS_BYTES);
