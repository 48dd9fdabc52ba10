//! Priority inheritance: a waiter lends its priority to the activation that holds what it waits for.
//!
//! - Locks belong to the runtime. In P, word 2 names the holder: an activation of the waiter's domain.
//! - A caller that waits for a free activation of a domain lends to one in use there that could continue.
//! - The ceiling of a portal is lent to the called activation, for the length of the call.
//!
//! An activation keeps the highest priority lent to it until it returns. The loan of a waiter for a lock ends earlier if that
//! waiter stops waiting. The thread runs with the highest of its own priority and those lent to its chain. A lender
//! whose time is not limited by a share lifts that limit from the holder's thread, too. A holder that waits itself passes the
//! priority on. While anything is lent in a domain, returns from it take the slow path, which takes back what was lent to the
//! returning activation.

use super::priorities::{set_lent, thread_of};
use super::{chain, ready};
use crate::objects::{Activation, Domain, Runs, State, Thread, Wait};
use crate::pointer::{Link, Ref, look};

/// The most holders that one loan reaches.
const MAX_FOLLOWED: usize = 8;

/// The most activations of the callee in use that a waiter checks, newest first, those on chains of orphans included. Passing the
/// loan on checks at most as many again.
const MAX_LOOKED_AT: u32 = 22;

/// Lends for the running activation, which begins to wait for a lock that activation `holder` (from 1) of its domain holds.
pub fn begin(waiter: Ref<Activation>, thread: Ref<Thread>, holder: u64) {
    let mut found = waiter.domain.activations.get();
    while let Some(activation) = found.filter(|activation| activation.number as u64 != holder) {
        found = activation.domain_next.get();
    }
    waiter.holder.set(found);
    if let Some(holder) = found {
        holder.is_holder.set(true);
        lend(waiter, holder, thread.priority.get(), !thread.has_share(), MAX_LOOKED_AT);
    }
}

/// Lends for the running activation, which begins to wait for a free activation of `callee`, whose CPUs are stopped. It lends
/// to the first one in use whose thread is lower, and which could continue with this priority or waits in a way that can be
/// followed. If there is none, it lends to the first whose thread is lower, which uses it when its wait ends.
pub fn begin_at_pool(waiter: Ref<Activation>, callee: Ref<Domain>) {
    let Some(thread) = waiter.thread.get() else { return };
    let lifts = !thread.has_share();
    let (mut next, mut steps) = (callee.activations.get(), MAX_LOOKED_AT);
    let mut chosen = None;
    while let Some(activation) = next.filter(|_| steps > 0) {
        next = activation.domain_next.get();
        if activation.state_there() == State::Free || activation.bottom.get() {
            continue;
        }
        steps -= 1;
        let top = match activation.thread.get() {
            Some(thread) if thread.priority.get() >= waiter.amount.get() && !(lifts && thread.has_share()) => continue,
            Some(thread) => look(&thread.top),
            None => top_of(activation, &mut steps),
        };
        if top.is_some_and(|top| top.wait.get() != Wait::Semaphore || top.holder.get().is_some()) {
            chosen = Some(activation);
            break;
        }
        chosen = chosen.or(Some(activation));
    }
    if let Some(activation) = chosen {
        lend(waiter, activation, waiter.amount.get(), lifts, MAX_LOOKED_AT);
    }
}

/// Lends `priority` to an activation, and to the holder for which its chain waits in turn. With `lifts`, lifts their
/// threads.
fn lend(mut lender: Ref<Activation>, mut holder: Ref<Activation>, priority: u8, lifts: bool, mut steps: u32) {
    for _ in 0..MAX_FOLLOWED {
        let (thread, state) = (thread_of(holder), holder.state_there());
        if state == State::Free {
            return;
        }
        set_lent(holder, holder.lent.get().max(priority));
        let top = match thread {
            Some(thread) if thread.priority.get() < priority || lifts && thread.has_share() => {
                thread.priority.set(thread.priority.get().max(priority));
                if lifts {
                    thread.set_share(true);
                }
                lender.raised.set(thread.number);
                if thread.runs.get() == Runs::Ready {
                    return ready::rank_again(thread, 0);
                }
                look(&thread.top)
            }
            Some(_) => return,
            None => top_of(holder, &mut steps),
        };
        let Some(top) = top else { return };
        let next = match top.wait.get() {
            Wait::Orphans => return chain::hasten(top, priority),
            Wait::Semaphore => top.holder.get(),
            Wait::Pool => top.awaited_domain().activations.get().filter(|first| !first.bottom.get()),
            Wait::No | Wait::Called => return,
        };
        chain::requeue_with_priority(top, priority);
        let Some(next) = next else { return };
        lender = top;
        holder = next;
    }
}

/// The top of an activation's chain, if that is at most `steps` away; counts them down.
fn top_of(activation: Ref<Activation>, steps: &mut u32) -> Link<Activation> {
    let mut top = activation;
    while let (State::Calling, Some(callee)) = (top.state.get(), top.callee.get()) {
        *steps = steps.checked_sub(1)?;
        top = callee;
    }
    Some(top)
}
