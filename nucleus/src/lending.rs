//! Priority lending: a thread that waits for what others hold lends them its priority.
//!
//! - A lock is the runtime's; the nucleus only learns, with P, which activation of the waiter's own domain holds it.
//! - A caller that waits for an activation of a domain lends to one that is in use there and could go on.
//! - The ceiling of a portal is lent to the activation that is called, for the length of the call.
//!
//! An activation has the highest priority lent to it until the lender stops waiting or it returns, and its thread runs with
//! the highest of its own and those of its chain. A lender without a share of time lifts that of the thread. What waits itself
//! passes it on. While anything is lent in a domain,
//! returns from there take the slow path, which takes back what was lent to those that leave.

use crate::activation::{Activation, State, Wait};
use crate::chain;
use crate::domain::{Domain, SLOW_LENT};
use crate::pointer::{Link, Ref};
use crate::schedule;
use crate::thread::{Runs, Thread, by_number};
use core::sync::atomic::{Ordering, fence};

/// Waits that are followed from one waiter.
const MAX_FOLLOWED: usize = 8;

/// Activations in use that one waiter looks at: of a pool, the newest first, and of the chains of orphans.
const MAX_LOOKED_AT: u32 = 32;

/// The running activation begins to wait for what activation `holder` (from 1) of its domain has.
pub fn begin(mut waiter: Ref<Activation>, thread: Ref<Thread>, holder: u64) {
    waiter.amount = thread.priority;
    let mut found = waiter.domain.activations;
    while let Some(activation) = found.filter(|activation| activation.number as u64 != holder) {
        found = activation.domain_next;
    }
    waiter.holder = found;
    if let Some(mut holder) = found {
        holder.is_holder = true;
        lend(waiter, holder, thread.priority, !thread.has_share(), MAX_LOOKED_AT);
    }
}

/// The running activation begins to wait for one of `callee`, whose CPUs are stopped. One that is free is enough: it lends to the
/// first that could go on with this priority, or whose wait can be followed.
pub fn begin_at_pool(mut waiter: Ref<Activation>, callee: Ref<Domain>) {
    let Some(thread) = waiter.thread else { return };
    let lifts = !thread.has_share();
    waiter.amount = thread.priority;
    let (mut next, mut steps) = (callee.activations, MAX_LOOKED_AT);
    while let Some(activation) = next.filter(|_| steps > 0) {
        next = activation.domain_next;
        if activation.state == State::Free || activation.bottom {
            continue;
        }
        steps -= 1;
        let top = match activation.thread {
            Some(thread) if thread.priority >= waiter.amount && !(lifts && thread.has_share()) => continue,
            Some(thread) => thread.top,
            None => top_of(activation, &mut steps),
        };
        if top.is_some_and(|top| top.wait != Wait::Semaphore || top.holder.is_some()) {
            return lend(waiter, activation, waiter.amount, lifts, MAX_LOOKED_AT);
        }
    }
}

/// Lends `priority` to an activation, and to what its chain waits for in turn; `lifts` their shares of time, too.
fn lend(mut lender: Ref<Activation>, mut holder: Ref<Activation>, priority: u8, lifts: bool, mut steps: u32) {
    for _ in 0..MAX_FOLLOWED {
        let (thread, state) = (thread_of(holder), holder.state);
        if state == State::Free {
            return;
        }
        set_lent(holder, holder.lent.max(priority));
        let top = match thread {
            Some(mut thread) if thread.priority < priority || lifts && thread.has_share() => {
                thread.priority = thread.priority.max(priority);
                if lifts {
                    thread.set_share(true);
                }
                lender.raised = thread.number;
                if thread.runs == Runs::Ready {
                    return schedule::post_again(thread);
                }
                thread.top
            }
            Some(_) => return,
            None => top_of(holder, &mut steps),
        };
        let Some(mut top) = top else { return };
        let next = match top.wait {
            Wait::Orphans => return chain::hasten(top, priority),
            Wait::Semaphore => top.holder,
            Wait::Pool => top.awaited_domain().activations.filter(|first| !first.bottom),
            Wait::No => return,
        };
        top.amount = top.amount.max(priority);
        let Some(next) = next else { return };
        (lender, holder) = (top, next);
    }
}

/// A call by a portal with a ceiling begins: its thread has at least that priority until it returns.
#[cold]
pub fn raise(mut thread: Ref<Thread>, mut called: Ref<Activation>, ceiling: u8) {
    called.base = ceiling;
    set_lent(called, ceiling);
    thread.priority = thread.priority.max(ceiling);
}

/// `waiter`, which lends, waits no more.
pub fn end(mut waiter: Ref<Activation>) {
    let holder = waiter.holder.take();
    // It may be out of the holder's activation by now, by a fast path on another CPU.
    let raised = by_number(core::mem::take(&mut waiter.raised) as usize);
    // As many as a domain has activations.
    let (mut lent, mut next) = (0, waiter.domain.activations);
    while let Some(activation) = next {
        if activation.holder == holder {
            lent = lent.max(activation.amount);
        }
        next = activation.domain_next;
    }
    let changed = holder.filter(|holder| holder.lent != lent.max(holder.base));
    if let Some(holder) = changed {
        set_lent(holder, lent.max(holder.base));
    }
    let now = changed.and_then(thread_of);
    [raised, now].into_iter().flatten().for_each(settle);
}

/// Sets what is lent to an activation. A domain in which anything is lent has `SLOW_LENT`.
#[inline(always)]
pub fn set_lent(mut activation: Ref<Activation>, priority: u8) {
    let before = core::mem::replace(&mut activation.lent, priority);
    if (before == 0) != (priority == 0) {
        count_lent(activation.domain, priority != 0);
    }
}

#[cold]
fn count_lent(mut domain: Ref<Domain>, more: bool) {
    domain.lent = if more { domain.lent + 1 } else { domain.lent - 1 };
    if domain.lent == 0 {
        domain.slow &= !SLOW_LENT;
    } else {
        domain.slow |= SLOW_LENT;
    }
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

/// The top of the chain of an activation, if it is no more than `steps` away; they count down.
fn top_of(activation: Ref<Activation>, steps: &mut u32) -> Link<Activation> {
    let mut top = activation;
    while let (State::Calling, Some(callee)) = (top.state, top.callee) {
        *steps = steps.checked_sub(1)?;
        top = callee;
    }
    Some(top)
}

/// A thread's priority is the highest of its own and those of its chain; its share of time is its own.
pub fn settle(thread: Ref<Thread>) {
    settle_at(thread, thread.top.map_or(0, priority_of));
}

/// As [`settle`], if the highest priority of the chain is this.
pub fn settle_at(mut thread: Ref<Thread>, priority: u8) {
    thread.set_share(false);
    thread.priority = thread.own_priority.max(priority);
}

/// The highest of this priority and those that an activation has.
#[inline(always)]
pub fn higher(activation: Ref<Activation>, priority: u8) -> u8 {
    priority.max(activation.lent).max(activation.base)
}

/// The highest priority of a chain, which `MAX_DEPTH` bounds.
pub fn priority_of(top: Ref<Activation>) -> u8 {
    let (mut priority, mut next) = (0, Some(top));
    while let Some(activation) = next {
        priority = higher(activation, priority);
        next = activation.caller;
    }
    priority
}

/// An activation is to go, and holds nothing any more that others wait for. False if it did not before.
pub fn forget(mut holder: Ref<Activation>) -> bool {
    let mut next = holder.domain.activations.filter(|_| holder.is_holder);
    while let Some(mut activation) = next {
        activation.holder = activation.holder.filter(|held_by| *held_by != holder);
        next = activation.domain_next;
    }
    core::mem::take(&mut holder.is_holder)
}
