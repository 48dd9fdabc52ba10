//! Threads of this program, their stacks, and waiting for time to pass.
//!
//! Stacks lie in slots ([`abi::layout`]) that are paged on demand; a slot is used again after its
//! thread ended. A thread says that it ended by V on a semaphore, and touches its stack no more.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use abi::layout::{MAIN_STACK_START, MORE_STACKS_START, NEAR_STACKS, STACK_BYTES, STACKS_START};
use abi::{Error, NEVER, PAGE_BYTES};

use crate::area::{STACK_TOP_BYTES, StackTop, top};
use crate::entry::Owned;
use crate::op::{self, Schedule};
use crate::sync::private_semaphore;
use crate::{Entry, arch, startup, table};

/// Stack slots that are used: more than a domain can have activations.
const SLOTS: usize = 128;
const WORDS: usize = SLOTS / 64;
const PAGE: u64 = PAGE_BYTES as u64;

/// Slots in use.
static USED: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
/// Slots whose thread nobody will join.
static DETACHED: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
/// Of each slot: its thread's entry, and the semaphore that is raised at the thread's end. The semaphore is made for
/// the slot's first thread and stays for the next ones; nobody has raised it when one starts.
static THREADS: [(AtomicU32, AtomicU32); SLOTS] = [const { (AtomicU32::new(0), AtomicU32::new(0)) }; SLOTS];

/// A stack slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot(usize);

impl Slot {
    /// A free slot, now ours.
    pub(crate) fn allocate() -> Result<Self, Error> {
        for (number, word) in USED.iter().enumerate() {
            let mut used = word.load(Ordering::Relaxed);
            while used != u64::MAX {
                let bit = used.trailing_ones();
                match word.compare_exchange_weak(used, used | 1 << bit, Ordering::Acquire, Ordering::Relaxed) {
                    Ok(_) => return Ok(Self(number * 64 + bit as usize)),
                    Err(now) => used = now,
                }
            }
        }
        Err(Error::TooManyActivations)
    }

    /// Gives the slot back; nothing runs on it any more.
    pub(crate) fn free(self) {
        USED[self.0 / 64].fetch_and(!(1 << (self.0 % 64)), Ordering::Release);
    }

    /// The stack's top.
    pub(crate) const fn top(self) -> u64 {
        let base = if self.0 < NEAR_STACKS {
            STACKS_START + self.0 as u64 * STACK_BYTES
        } else {
            MORE_STACKS_START + (self.0 - NEAR_STACKS) as u64 * STACK_BYTES
        };
        base + STACK_BYTES
    }

    /// The record at the top of a stack on which nothing runs yet.
    pub(crate) fn record(self) -> &'static StackTop {
        let address = self.top() - STACK_TOP_BYTES;
        // SAFETY: the slot is ours, its pages come on demand, and any bytes are a valid record.
        unsafe { &*(address as *const StackTop) }
    }

    /// Brings the uppermost pages of a stack on which nothing runs yet.
    pub(crate) fn bring(self, pages: u64) {
        // SAFETY: the slot is ours, and nothing runs on it.
        unsafe { bring(self.top(), pages.min(STACK_BYTES / PAGE - 1)) }
    }
}

/// Brings the uppermost pages below an address.
///
/// # Safety
/// They are of a stack, come on demand, and nothing is on them: no stack is read before it is written.
unsafe fn bring(top: u64, pages: u64) {
    for page in 1..=pages {
        // SAFETY: as the caller says.
        unsafe { ((top - page * PAGE) as *mut u8).write_volatile(0) }
    }
}

/// Brings the pages of the main thread's stack below the one in use: for a main thread that goes on working while memory is short.
/// Only that thread calls this.
pub fn bring_main_stack(pages: u64) {
    let top = arch::stack_pointer() / PAGE * PAGE;
    let room = top.saturating_sub(MAIN_STACK_START + PAGE) / PAGE;
    // SAFETY: below the stack pointer, above the page that is never mapped.
    unsafe { bring(top, pages.min(room)) }
}

/// First Rust code of a thread: the record's spare word says which function runs.
pub(crate) extern "C" fn start(argument: u64) -> ! {
    let record = top();
    // SAFETY: `spawn` wrote a function of this type there.
    let function: fn(usize) = unsafe { core::mem::transmute(record.spare.get() as *const ()) };
    function(argument as usize);
    // It goes with the activation.
    if let receive @ 1.. = record.receive.take() {
        table::free(Entry(receive as usize));
    }
    let slot = record.slot();
    // SAFETY: nothing on this stack is needed any more.
    unsafe { arch::thread_exit_after_v(THREADS[slot].1.load(Ordering::Relaxed) as usize) }
}

impl StackTop {
    /// Number of the slot that this record is in.
    fn slot(&self) -> usize {
        let address = core::ptr::from_ref(self) as u64;
        let slot = if address < MORE_STACKS_START {
            (address - STACKS_START) / STACK_BYTES
        } else {
            (address - MORE_STACKS_START) / STACK_BYTES + NEAR_STACKS as u64
        };
        slot as usize % SLOTS
    }
}

/// A running thread. Letting it go does not end it.
#[derive(Debug)]
pub struct Thread {
    slot: Slot,
}

impl Thread {
    /// Starts a thread that runs `function(argument)`, with the program's own priority and slice.
    pub fn start(function: fn(usize), argument: usize) -> Result<Self, Error> {
        Self::start_with(function, argument, startup::schedule())
    }

    /// As [`Thread::start`], with a priority and a slice.
    pub fn start_with(function: fn(usize), argument: usize, schedule: Schedule) -> Result<Self, Error> {
        reap();
        let slot = Slot::allocate()?;
        let thread = Self::start_in(slot, function, argument, schedule);
        if thread.is_err() {
            slot.free();
        }
        thread
    }

    fn start_in(slot: Slot, function: fn(usize), argument: usize, schedule: Schedule) -> Result<Self, Error> {
        if THREADS[slot.0].1.load(Ordering::Relaxed) == 0 {
            THREADS[slot.0].1.store(op::semaphore_new(Entry::OWN, 0)?.0 as u32, Ordering::Relaxed);
        }
        slot.record().spare.set(function as *const () as u64);
        let entry = arch::thread_entry as *const () as u64;
        // SAFETY: the entry is made for this, and the slot is free.
        let thread = unsafe { op::thread_new(Entry::OWN, entry, slot.top(), argument as u64, schedule) }?;
        THREADS[slot.0].0.store(thread.0 as u32, Ordering::Relaxed);
        Ok(Self { slot })
    }

    /// The thread's entry.
    pub fn entry(&self) -> Entry {
        Entry(THREADS[self.slot.0].0.load(Ordering::Relaxed) as usize)
    }

    /// Waits until the thread ended, and clears it away.
    pub fn join(self) {
        let done = THREADS[self.slot.0].1.load(Ordering::Relaxed);
        while op::p(Entry(done as usize), NEVER) == Err(Error::Cancelled) {}
        clear(self.slot.0);
        core::mem::forget(self);
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        DETACHED[self.slot.0 / 64].fetch_or(1 << (self.slot.0 % 64), Ordering::Release);
    }
}

/// Clears away a thread that ended, when its V was taken.
fn clear(slot: usize) {
    drop(Owned::new(Entry(THREADS[slot].0.swap(0, Ordering::Relaxed) as usize)));
    Slot(slot).free();
}

/// Clears away threads that nobody joins and that ended.
fn reap() {
    for (number, word) in DETACHED.iter().enumerate() {
        let mut detached = word.load(Ordering::Acquire);
        while detached != 0 {
            let bit = detached.trailing_zeros();
            detached &= detached - 1;
            let slot = number * 64 + bit as usize;
            // The thread that takes the V clears the slot away; others find the bit gone or no V.
            if op::p(Entry(THREADS[slot].1.load(Ordering::Relaxed) as usize), 0).is_ok() {
                word.fetch_and(!(1 << bit), Ordering::Relaxed);
                clear(slot);
            }
        }
    }
}

/// Starts a thread that runs a closure. Only with the heap.
#[cfg(feature = "alloc")]
pub fn spawn(work: impl FnOnce() + Send + 'static) -> Result<Thread, Error> {
    extern crate alloc;
    use alloc::boxed::Box;

    type Work = Box<dyn FnOnce() + Send>;
    fn run(argument: usize) {
        // SAFETY: `spawn` made it so and gave it to this thread alone.
        let work = unsafe { Box::from_raw(argument as *mut Work) };
        work();
    }
    let work: *mut Work = Box::into_raw(Box::new(Box::new(work)));
    Thread::start(run, work as usize).inspect_err(|_| {
        // SAFETY: no thread has it.
        drop(unsafe { Box::from_raw(work) });
    })
}

/// Nanoseconds since boot.
#[inline(always)]
pub fn clock() -> u64 {
    op::clock()
}

/// Waits until an absolute time. `Cancelled` if another thread ended the wait.
pub fn sleep_until(time: u64) -> Result<(), Error> {
    match op::p(private_semaphore()?, time) {
        Err(Error::Timeout) => Ok(()),
        other => other,
    }
}

/// Waits for a number of nanoseconds. `Cancelled` if another thread ended the wait.
pub fn sleep(nanoseconds: u64) -> Result<(), Error> {
    sleep_until(clock().saturating_add(nanoseconds).min(NEVER - 1))
}
