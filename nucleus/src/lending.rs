//! Priority lending: who waits for a lock lends its priority to the thread that holds it.
//!
//! A lock is the runtime's; the nucleus only hears, with P, which activation of the waiter's own domain holds
//! it. An activation has the highest priority lent to it until the lender stops waiting, and its thread
//! runs with the highest of its own and those of its chain. A thread that waits itself passes it on.

use crate::activation::{Activation, Wait};
use crate::domain::Domain;
use crate::pointer::{Link, Ref};
use crate::schedule;
use crate::thread::{Runs, Thread};

/// Locks whose holders wait for each other, followed from one waiter.
const MAX_FOLLOWED: usize = 8;

/// The running activation begins to wait for what activation `holder` (from 1) of its domain has.
pub fn begin(mut waiter: Ref<Activation>, thread: Ref<Thread>, holder: u64) {
    let priority = thread.priority;
    waiter.lends = u8::try_from(holder).unwrap_or(0);
    let mut lender = waiter;
    for _ in 0..MAX_FOLLOWED {
        let Some(mut holder) = lender.domain.activation(lender.lends) else { return };
        holder.lent = holder.lent.max(priority);
        let Some(mut thread) = holder.thread.filter(|thread| thread.priority < priority) else { return };
        thread.priority = priority;
        if thread.runs == Runs::Ready {
            return schedule::post_again(thread);
        }
        let Some(top) = thread.top.filter(|top| top.wait == Wait::Semaphore && top.lends != 0) else { return };
        lender = top;
    }
}

/// `waiter` waits no more.
pub fn end(mut waiter: Ref<Activation>) {
    let holder = waiter.domain.activation(core::mem::take(&mut waiter.lends));
    let Some(mut holder) = holder.filter(|holder| holder.lent != 0) else { return };
    // As many as a domain has activations.
    let mut lent = 0;
    let mut next = holder.domain.activations;
    while let Some(activation) = next {
        if activation.lends != 0 && activation.lends == holder.number() {
            lent = lent.max(activation.thread.map_or(0, |thread| thread.priority));
        }
        next = activation.domain_next;
    }
    holder.lent = lent;
    if let Some(thread) = holder.thread {
        settle(thread);
    }
}

/// A thread's priority is the highest of its own and what was lent to its chain, which `MAX_DEPTH` bounds.
pub fn settle(mut thread: Ref<Thread>) {
    let mut priority = thread.own_priority;
    let mut next = thread.top;
    while let Some(activation) = next {
        priority = priority.max(activation.lent);
        next = activation.caller;
    }
    thread.priority = priority;
}

impl Ref<Domain> {
    /// The activation with this number, from 1.
    fn activation(self, number: u8) -> Link<Activation> {
        let mut next = self.activations.filter(|_| number != 0);
        while let Some(activation) = next {
            if activation.number() == number {
                return Some(activation);
            }
            next = activation.domain_next;
        }
        None
    }
}
