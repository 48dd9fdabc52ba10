//! Making and freeing threads.

use super::{activation, numbers};
use crate::cpus::cpu;
use crate::memory::slab;
use crate::objects::{Cpu, Domain, Runs, SavedFrame, State, Thread};
use crate::pointer::{Fresh, Ref};
use crate::report::trace;
use abi::Error;
use structures::quota::Paying;

/// Makes a thread without a chain, charged to the account of `home`.
pub fn new_empty(home: Ref<Domain>, priority: u8, slice: u64, carries_orphans: bool) -> Result<Ref<Thread>, Error> {
    let held = home.held();
    let mut thread: Fresh<Thread> = slab::allocate(home.account)?;
    let taken = home.account.take_number();
    let number = taken.and_then(|()| {
        numbers::take(held).ok_or_else(|| {
            home.account.release_number();
            Error::NoThreads
        })
    });
    let number = match number {
        Ok(number) => number,
        Err(error) => {
            slab::free(thread.share());
            return Err(error);
        }
    };
    thread.number = number;
    thread.home = home;
    thread.carries_orphans = carries_orphans;
    // The orphan thread was made before it.
    thread.is_first = home.thread_count.get() == 1;
    let thread = thread.share();
    numbers::set(thread);
    thread.priority.set(priority);
    thread.runs.set(Runs::Blocked);
    thread.slice.set(slice);
    thread.left.set(slice);
    thread.own_priority.set(priority);
    thread.set_cpus(home.cpus.get());
    thread.cpu.set(thread.nearest_cpu());
    thread.set_share(false);
    thread.home_next.set(home.threads.get());
    home.threads.set(Some(thread));
    home.thread_count.update(|value| value + 1);
    trace::thread(thread);
    Ok(thread)
}

/// Makes a thread that starts at `pc` in `home`; it is not yet ready.
pub fn new(
    home: Ref<Domain>,
    pc: u64,
    stack: u64,
    argument: u64,
    priority: u8,
    slice: u64,
) -> Result<Ref<Thread>, Error> {
    activation::check_address(pc)?;
    let thread = new_empty(home, priority, slice, false)?;
    let activation = match activation::new(home, stack) {
        Ok(activation) => activation,
        Err(error) => {
            free_first(home);
            return Err(error);
        }
    };
    activation.bottom.set(true);
    activation.state.set(State::Top);
    activation.thread.set(Some(thread));
    let message = activation.message;
    activation.registers.set_start(pc, stack, message);
    activation.set_words([argument, 0, 0, 0, 0], 0);
    activation.frame.set(SavedFrame::Words);
    thread.top.set(Some(activation));
    thread.bottom.set(Some(activation));
    Ok(thread)
}

/// Frees the first thread of `home`, which has no chain.
#[inline(never)]
pub fn free_first(home: Ref<Domain>) {
    let Some(thread) = home.threads.get() else { return };
    home.threads.set(thread.home_next.get());
    free_delisted(thread);
}

/// Frees a thread that its home does not list any more, with its number.
#[inline(never)]
fn free_delisted(thread: Ref<Thread>) {
    let (held, home) = (thread.held(), thread.home);
    home.account.release_number();
    trace::thread_gone(held, thread.number);
    numbers::give(held, thread.number);
    home.thread_count.update(|value| value - 1);
    slab::free(thread);
}

/// Frees a thread that has no chain, anywhere in the list of its home.
pub fn free(thread: Ref<Thread>) {
    let home = thread.home;
    if home.threads.get() == Some(thread) {
        return free_first(home);
    }
    let mut previous = home.threads.get();
    // At most 112 threads with an activation, and those whose removal was abandoned.
    while let Some(candidate) = previous {
        if candidate.home_next.get() == Some(thread) {
            candidate.home_next.set(thread.home_next.get());
            break;
        }
        previous = candidate.home_next.get();
    }
    free_delisted(thread);
}

impl Ref<Thread> {
    /// This CPU if the thread may run here, or else the first on which it may.
    pub fn nearest_cpu(self) -> Ref<Cpu> {
        let held = self.held();
        let (own, allowed) = (cpu::this(held), self.cpus.get() & cpu::mask(held));
        let other = cpu::of(held, allowed.trailing_zeros() as usize).filter(|_| allowed >> own.number & 1 == 0);
        other.unwrap_or(own)
    }
}
