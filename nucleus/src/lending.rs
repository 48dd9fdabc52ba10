//! Priority lending: who waits for a lock lends its priority to the thread that holds it.
//!
//! A lock is the runtime's; the nucleus only hears, with P, which activation of the waiter's own domain holds
//! it. An activation has the highest priority lent to it until the lender stops waiting, and its thread
//! runs with the highest of its own and those of its chain. A thread that waits itself passes it on. While
//! anybody waits so, returns from the domain take the long way, which takes back what was lent to those that leave.

use crate::activation::{Activation, State, Wait};
use crate::domain::SLOW_LENT;
use crate::pointer::{Link, Ref};
use crate::schedule;
use crate::thread::{Runs, Thread, by_number};
use core::sync::atomic::{Ordering, fence};

/// Locks whose holders wait for each other, followed from one waiter.
const MAX_FOLLOWED: usize = 8;

/// The running activation begins to wait for what activation `holder` (from 1) of its domain has.
pub fn begin(mut waiter: Ref<Activation>, thread: Ref<Thread>, holder: u64) {
    let priority = thread.priority;
    waiter.lends = u8::try_from(holder).unwrap_or(0);
    if waiter.lends != 0 {
        let mut domain = waiter.domain;
        domain.slow |= SLOW_LENT;
    }
    let mut lender = waiter;
    for _ in 0..MAX_FOLLOWED {
        let Some(mut holder) = held_by(lender) else { return };
        holder.lent = holder.lent.max(priority);
        let Some(mut thread) = thread_of(holder).filter(|thread| thread.priority < priority) else { return };
        thread.priority = priority;
        lender.raised = thread.number;
        if thread.runs == Runs::Ready {
            return schedule::post_again(thread);
        }
        let Some(top) = thread.top.filter(|top| top.wait == Wait::Semaphore && top.lends != 0) else { return };
        lender = top;
    }
}

/// `waiter` waits no more.
pub fn end(mut waiter: Ref<Activation>) {
    let number = core::mem::take(&mut waiter.lends);
    // It may be out of the holder's activation by now, by a short way on another CPU.
    let raised = by_number(core::mem::take(&mut waiter.raised) as usize);
    let mut domain = waiter.domain;
    let (mut holder, mut lent, mut others) = (None, 0, false);
    // As many as a domain has activations.
    let mut next = domain.activations;
    while let Some(activation) = next {
        if activation.number() == number {
            holder = Some(activation);
        }
        if activation.lends != 0 {
            others = true;
            if activation.lends == number {
                lent = lent.max(activation.thread.map_or(0, |thread| thread.priority));
            }
        }
        next = activation.domain_next;
    }
    if !others {
        domain.slow &= !SLOW_LENT;
    }
    let changed = holder.filter(|holder| holder.lent != lent);
    if let Some(mut holder) = changed {
        holder.lent = lent;
    }
    let now = changed.and_then(thread_of);
    [raised, now].into_iter().flatten().for_each(settle);
}

/// The thread in whose chain an activation is. Of one in the pool, what it says is no longer so. Another CPU may take it out of
/// the pool or put it back meanwhile: it writes the thread before the state, and here the state is read before the thread.
fn thread_of(activation: Ref<Activation>) -> Link<Thread> {
    if activation.state == State::Free {
        return None;
    }
    fence(Ordering::Acquire);
    let thread = activation.thread;
    if cfg!(feature = "checked") && thread.is_some_and(|thread| by_number(thread.number as usize) != Some(thread)) {
        panic!("an activation is in the chain of a thread that is gone");
    }
    thread
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

/// The activation that holds what `lender` waits for.
fn held_by(lender: Ref<Activation>) -> Link<Activation> {
    let mut next = lender.domain.activations.filter(|_| lender.lends != 0);
    while let Some(activation) = next.filter(|activation| activation.number() != lender.lends) {
        next = activation.domain_next;
    }
    next
}
