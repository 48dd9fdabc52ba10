//! Counting semaphores: the slow paths of P and V, with waiters. The fast paths are in `entry.s`. `nucleus_sync::tokens`
//! says how several CPUs change the count.

use super::{chain, deadline, dispatch, lending, priorities};
use crate::cpus::cpu::{self, several};
use crate::cpus::timer;
use crate::memory::slab;
use crate::objects::{Activation, Reply, Semaphore, Thread, Wait, is_seat};
use crate::pointer::Ref;
use abi::{Error, NEVER};

/// P found no token. Word 1 is the deadline in nanoseconds. Word 2 is the number, from 1, of the activation of the caller's
/// domain that holds the lock; 0 = unknown.
#[unsafe(no_mangle)]
extern "C" fn semaphore_wait(semaphore: Ref<Semaphore>, deadline: u64, holder: u64) -> Reply {
    let held = semaphore.held();
    let (Some(activation), Some(thread)) = (cpu::this(held).activation.get(), cpu::this(held).thread.get()) else {
        return Err(Error::IsScheduler).into();
    };
    if several(held) || deadline != NEVER || holder != 0 || is_seat(thread) {
        return wait_with(semaphore, deadline, holder, activation, thread);
    }
    // With one CPU, no token can have come meanwhile.
    semaphore.count.enlist();
    semaphore.queue(activation, thread);
    dispatch::block_current(held)
}

/// As [`semaphore_wait`], in all cases: several CPUs, a deadline, a holder, a scheduler as the caller.
#[cold]
fn wait_with(
    semaphore: Ref<Semaphore>,
    deadline: u64,
    holder: u64,
    activation: Ref<Activation>,
    thread: Ref<Thread>,
) -> Reply {
    let held = semaphore.held();
    semaphore.hand_out_tokens();
    semaphore.count.enlist();
    if semaphore.waiting.get() == 0 && semaphore.count.owes_token(1) {
        // A token came meanwhile.
        return Ok(0).into();
    }
    let refused = match deadline {
        _ if is_seat(thread) => Some(Error::IsScheduler),
        NEVER => None,
        _ if deadline == 0 || timer::nanoseconds() >= deadline => Some(Error::Timeout),
        _ => None,
    };
    if let Some(error) = refused {
        semaphore.count.delist();
        return Err(error).into();
    }
    if deadline != NEVER {
        deadline::set(activation, timer::ticks(deadline));
    }
    semaphore.queue(activation, thread);
    if holder != 0 {
        lending::begin(activation, thread, holder);
    }
    dispatch::block_current(held)
}

/// V found waiters.
#[unsafe(no_mangle)]
extern "C" fn semaphore_wake(semaphore: Ref<Semaphore>) -> Reply {
    let held = semaphore.held();
    let mut precedes = false;
    if semaphore.count.owes_token(semaphore.waiting.get() as usize) {
        precedes = semaphore.serve_first();
        if several(held) {
            precedes |= semaphore.hand_out_tokens();
        }
    }
    if precedes {
        dispatch::preempt_after_operation(held);
    }
    Ok(0).into()
}

impl Ref<Semaphore> {
    /// Gives available tokens to waiters; true if one of these preempts the running thread.
    pub fn hand_out_tokens(self) -> bool {
        let mut precedes = false;
        while self.count.owes_token(self.waiting.get() as usize) {
            precedes |= self.serve_first();
        }
        precedes
    }

    /// Gives the first waiter a token; true if it preempts the running thread.
    #[inline(always)]
    fn serve_first(self) -> bool {
        let Some(activation) = self.waiters.take_soon() else { return false };
        self.waiting.update(|value| value - 1);
        activation.end_wait(Ok(0))
    }

    /// Queues `activation` as a waiter, with the priority of its thread.
    pub fn queue(self, activation: Ref<Activation>, thread: Ref<Thread>) {
        activation.wait.set(Wait::Semaphore);
        activation.amount.set(thread.priority.get());
        activation.waits_on.set(self.address());
        self.waiters.append_soon(activation);
        self.waiting.update(|value| value + 1);
    }

    /// V by the nucleus (an interrupt, a death); true if a woken thread preempts the running one.
    pub fn signal(self) -> bool {
        !self.gone.get() && !self.count.give() && self.hand_out_tokens()
    }

    /// Removes a waiter, which gets no token.
    pub fn give_up(self, activation: Ref<Activation>) {
        self.waiters.remove(activation);
        self.waiting.update(|value| value - 1);
        self.count.delist();
    }

    /// Ends the wait of an activation that may no longer use the semaphore.
    pub fn cut_off(self, activation: Ref<Activation>) {
        self.give_up(activation);
        activation.end_wait(Err(Error::Flow));
    }

    /// Wakes one waiter because the semaphore is being removed; false if there is none.
    pub fn dismiss_one(self) -> bool {
        let Some(activation) = self.waiters.head() else { return false };
        self.give_up(activation);
        activation.end_wait(Err(Error::Removed));
        true
    }

    /// Counts a use by the nucleus, for which the semaphore stays.
    pub fn hold(self) {
        self.uses.update(|value| value + 1);
    }

    /// Ends a use by the nucleus.
    pub fn drop_hold(self) {
        self.uses.update(|value| value - 1);
        self.free_if_unused();
    }

    /// Frees the semaphore, whose original entry and waiters are gone, as soon as the nucleus does not use it.
    pub fn retire(self) {
        self.gone.set(true);
        self.free_if_unused();
    }

    fn free_if_unused(self) {
        if self.gone.get() && self.uses.get() == 0 {
            slab::free(self);
        }
    }
}

impl Ref<Activation> {
    /// Ends the wait with this result; true if the waiter preempts what runs here.
    #[inline(always)]
    fn end_wait(self, result: Result<u64, Error>) -> bool {
        self.wait.set(Wait::No);
        self.set_result(result);
        if self.deadline.get() != 0 {
            deadline::clear(self);
        }
        if self.holder.get().is_some() {
            return self.end_lending();
        }
        chain::resume(self)
    }

    /// As [`chain::resume`], of a waiter that lent its priority. The running thread may have had it, and have a lower one
    /// now.
    #[cold]
    fn end_lending(self) -> bool {
        priorities::end(self);
        let cpu = cpu::this(self.held());
        let falls = cpu.preempt.get() && !cpu.thread.get().is_some_and(is_seat);
        chain::resume(self) || falls
    }
}
