//! Thread numbers, and the table from number to thread. The first page has room for 512; `roottask` adds pages before the
//! first scheduler takes its seat.

use crate::memory::frames::Use;
use crate::memory::own::{self, THREADS as TABLE};
use crate::objects::{Account, FRAME, Numbers, Thread};
use crate::pointer::{Held, Link, Nucleus, Ref};
use abi::{Error, MAX_THREADS, THREADS_OF_A_PAGE};
use core::cell::Cell;

struct Threads {
    numbers: Numbers<{ MAX_THREADS / 64 }>,
    /// All numbers ever taken are below this.
    used: Cell<usize>,
    /// Pages added to the table.
    added: Cell<usize>,
}

static THREADS: Nucleus<Threads> =
    Nucleus::new(Threads { numbers: Numbers::new(), used: Cell::new(0), added: Cell::new(0) });

/// Makes the first page of the table, and reserves number 0.
#[unsafe(link_section = ".init")]
pub fn init(held: Held) -> Result<(), &'static str> {
    own::begin_threads(held)?;
    take(held);
    Ok(())
}

/// Adds a page to the table, charged to `account`; gives the new count of numbers. No scheduler may have a seat yet:
/// schedulers have room for a fixed number of threads.
pub fn add_page(account: Ref<Account>) -> Result<usize, Error> {
    let held = account.held();
    let count = count(held);
    if count == MAX_THREADS {
        return Err(Error::AllThreads);
    }
    own::show_threads(held, TABLE + count * 8, account.allocate_clear_apart(Use::Kernel)?);
    THREADS.get(held).added.update(|added| added + 1);
    Ok(count + THREADS_OF_A_PAGE)
}

/// Numbers for which the table has pages; only these can be taken.
fn count(held: Held) -> usize {
    (1 + THREADS.get(held).added.get()) * THREADS_OF_A_PAGE
}

/// The place of a number in the table. Where the table has no page yet, a page of zeros is mapped.
#[inline(always)]
fn place(_: Held, number: usize) -> Option<&'static Cell<Link<Thread>>> {
    // SAFETY: the whole table stays mapped, and is accessed with the nucleus lock only.
    (number < MAX_THREADS).then(|| unsafe { &*((TABLE + number * 8) as *const Cell<Link<Thread>>) })
}

/// The thread with this number.
#[inline(always)]
pub fn by_number(held: Held, number: usize) -> Link<Thread> {
    place(held, number)?.get()
}

/// All numbers ever taken are below this.
pub fn used(held: Held) -> usize {
    THREADS.get(held).used.get()
}

/// Takes a free number.
pub fn take(held: Held) -> Option<u16> {
    let threads = THREADS.get(held);
    let number = threads.numbers.take(count(held))?;
    threads.used.update(|used| used.max(number + 1));
    Some(number as u16)
}

/// Enters a thread in the table, at its number.
pub fn set(thread: Ref<Thread>) {
    if let Some(place) = place(thread.held(), thread.number as usize) {
        place.set(Some(thread));
    }
}

/// Frees the number of a thread that is gone.
pub fn give(held: Held, number: u16) {
    if let Some(place) = place(held, number as usize) {
        place.set(None);
    }
    THREADS.get(held).numbers.give_back(number as usize);
}

const _: () = assert!(size_of::<Link<Thread>>() == 8 && THREADS_OF_A_PAGE == FRAME / 8);
const _: () = assert!(MAX_THREADS * 8 == own::THREADS_BYTES);
