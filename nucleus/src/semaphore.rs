//! Counting semaphores. The fast paths of P and V are in `entry.s`; here is what happens when somebody
//! waits. A count below zero is the number of waiters.

use crate::activation::{Activation, Wait};
use crate::pointer::Ref;
use crate::queue::Queue;
use crate::{cpu, deadline, lending, schedule, slab};
use abi::{Error, NEVER};

/// See the module.
#[repr(C)]
pub struct Semaphore {
    /// Tokens, or minus the number of waiters.
    pub count: i64,
    /// Who waits.
    pub waiters: Queue,
    /// Uses by the nucleus itself (interrupt lines, death notices).
    pub uses: u32,
    /// Its original entry is gone.
    pub gone: bool,
}

/// What a light operation gives back to `entry.s`: status and word 0.
#[repr(C)]
pub struct Reply {
    status: u64,
    value: u64,
}

impl From<Result<u64, Error>> for Reply {
    fn from(result: Result<u64, Error>) -> Self {
        match result {
            Ok(value) => Self { status: 0, value },
            Err(error) => Self { status: error as u64, value: 0 },
        }
    }
}

/// P found no token (and took one that is not there). Word 1 is the deadline in nanoseconds, word 2 the
/// activation of the caller's domain, from 1, that holds what is waited for; 0 = unknown.
#[unsafe(no_mangle)]
extern "C" fn semaphore_wait(mut semaphore: Ref<Semaphore>, deadline: u64, holder: u64) -> Reply {
    if deadline == 0 {
        semaphore.count += 1;
        return Err(Error::Timeout).into();
    }
    let (Some(mut activation), Some(thread)) = (cpu::this().activation, cpu::this().thread) else {
        return Err(Error::NotRunnable).into();
    };
    if schedule::is_seat(thread) {
        semaphore.count += 1;
        return Err(Error::NotRunnable).into();
    }
    if deadline != NEVER {
        if crate::arch::timer::nanoseconds() >= deadline {
            semaphore.count += 1;
            return Err(Error::Timeout).into();
        }
        deadline::set(activation, crate::arch::timer::ticks(deadline));
    }
    activation.wait = Wait::Semaphore;
    activation.waits_on = semaphore.address();
    semaphore.waiters.append(activation);
    if holder != 0 {
        lending::begin(activation, thread, holder);
    }
    schedule::block_current()
}

/// V found waiters.
#[unsafe(no_mangle)]
extern "C" fn semaphore_wake(semaphore: Ref<Semaphore>) -> Reply {
    if let Some(thread) = semaphore.release_one() {
        schedule::ready_from_operation(thread);
    }
    Ok(0).into()
}

impl Ref<Semaphore> {
    /// Takes the first waiter out and gives it the token; its thread is to be made ready.
    fn release_one(mut self) -> crate::pointer::Link<crate::thread::Thread> {
        let activation = self.waiters.take()?;
        activation.end_wait(Ok(0))
    }

    /// V from inside the nucleus (an interrupt, a death): the woken thread goes to the ring; true if it
    /// precedes the running one.
    pub fn signal(mut self) -> bool {
        if self.gone {
            return false;
        }
        self.count += 1;
        if self.count > 0 {
            return false;
        }
        match self.release_one() {
            Some(thread) => schedule::make_ready(thread),
            None => false,
        }
    }

    /// `activation` stops waiting without a token.
    pub fn give_up(mut self, activation: Ref<Activation>) {
        self.waiters.remove(activation);
        self.count += 1;
    }

    /// Wakes one waiter because the semaphore goes; false if there is none.
    pub fn dismiss_one(self) -> bool {
        let Some(activation) = self.waiters.head else { return false };
        self.give_up(activation);
        if let Some(thread) = activation.end_wait(Err(Error::PeerDied)) {
            schedule::make_ready(thread);
        }
        true
    }

    /// The nucleus uses it, too.
    pub fn hold(mut self) {
        self.uses += 1;
    }

    /// The nucleus uses it no more.
    pub fn drop_hold(mut self) {
        self.uses -= 1;
        self.free_if_unused();
    }

    /// The original entry is gone and nobody waits any more.
    pub fn retire(mut self) {
        self.gone = true;
        self.free_if_unused();
    }

    fn free_if_unused(self) {
        if self.gone && self.uses == 0 {
            slab::free(self);
        }
    }
}

impl Ref<Activation> {
    /// The wait is over with this result; gives the thread that can go on, if the chain has one.
    pub fn end_wait(mut self, result: Result<u64, Error>) -> crate::pointer::Link<crate::thread::Thread> {
        self.wait = Wait::No;
        self.set_result(result);
        if self.lends != 0 {
            lending::end(self);
        }
        deadline::clear(self);
        if self.thread.is_none() {
            crate::chain::unpark(self);
        }
        self.thread
    }
}
