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
use crate::pointer::{Link, Ref, look};
use crate::schedule;
use crate::thread::{Runs, Thread, by_number};

/// Waits that are followed from one waiter.
const MAX_FOLLOWED: usize = 8;

/// Activations in use that one waiter looks at: of a pool, the newest first, and of the chains of orphans.
const MAX_LOOKED_AT: u32 = 32;

/// The running activation begins to wait for what activation `holder` (from 1) of its domain has.
pub fn begin(waiter: Ref<Activation>, thread: Ref<Thread>, holder: u64) {
    waiter.amount.set(thread.priority.get());
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

/// The running activation begins to wait for one of `callee`, whose CPUs are stopped. One that is free is enough: it lends to the
/// first that could go on with this priority, or whose wait can be followed.
pub fn begin_at_pool(waiter: Ref<Activation>, callee: Ref<Domain>) {
    let Some(thread) = waiter.thread.get() else { return };
    let lifts = !thread.has_share();
    waiter.amount.set(thread.priority.get());
    let (mut next, mut steps) = (callee.activations.get(), MAX_LOOKED_AT);
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
            return lend(waiter, activation, waiter.amount.get(), lifts, MAX_LOOKED_AT);
        }
    }
}

/// Lends `priority` to an activation, and to what its chain waits for in turn; `lifts` their shares of time, too.
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
                    return schedule::post_again(thread);
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
            Wait::No => return,
        };
        top.amount.set(top.amount.get().max(priority));
        let Some(next) = next else { return };
        (lender, holder) = (top, next);
    }
}

/// A call by a portal with a ceiling begins: its thread has at least that priority until it returns.
#[cold]
pub fn raise(thread: Ref<Thread>, called: Ref<Activation>, ceiling: u8) {
    called.base.set(ceiling);
    set_lent(called, ceiling);
    thread.priority.set(thread.priority.get().max(ceiling));
}

/// `waiter`, which lends, waits no more.
pub fn end(waiter: Ref<Activation>) {
    // It may be out of the holder's activation by now, by a fast path on another CPU.
    let raised = by_number(waiter.held(), waiter.raised.take() as usize);
    let changed = waiter.holder.take().filter(|holder| {
        // As many as a domain has activations.
        let (mut lent, mut next) = (holder.base.get(), waiter.domain.activations.get());
        while let Some(activation) = next {
            if activation.holder.get() == Some(*holder) {
                lent = lent.max(activation.amount.get());
            }
            next = activation.domain_next.get();
        }
        let changed = holder.lent.get() != lent;
        if changed {
            set_lent(*holder, lent);
        }
        changed
    });
    let now = changed.and_then(thread_of);
    [raised, now].into_iter().flatten().for_each(settle);
}

/// Sets what is lent to an activation. A domain in which anything is lent has `SLOW_LENT`.
#[inline(always)]
pub fn set_lent(activation: Ref<Activation>, priority: u8) {
    let before = activation.lent.replace(priority);
    if (before == 0) != (priority == 0) {
        count_lent(activation.domain, priority != 0);
    }
}

#[cold]
fn count_lent(domain: Ref<Domain>, more: bool) {
    domain.lent.set(if more { domain.lent.get() + 1 } else { domain.lent.get() - 1 });
    if domain.lent.get() == 0 {
        domain.slow.update(|value| value & !SLOW_LENT);
    } else {
        domain.slow.update(|value| value | SLOW_LENT);
    }
}

/// The thread in whose chain an activation is. Of one in the pool, what it says is no longer so. Another CPU may take it out of
/// the pool or put it back meanwhile: it writes the thread before the state, and here the state is read before the thread.
fn thread_of(activation: Ref<Activation>) -> Link<Thread> {
    let held = activation.held();
    if activation.state_there() == State::Free {
        return None;
    }
    let thread = look(&activation.thread);
    if cfg!(feature = "checked") && thread.is_some_and(|thread| by_number(held, thread.number as usize) != Some(thread))
    {
        panic!("an activation is in the chain of a thread that is gone");
    }
    thread
}

/// The top of the chain of an activation, if it is no more than `steps` away; they count down.
fn top_of(activation: Ref<Activation>, steps: &mut u32) -> Link<Activation> {
    let mut top = activation;
    while let (State::Calling, Some(callee)) = (top.state.get(), top.callee.get()) {
        *steps = steps.checked_sub(1)?;
        top = callee;
    }
    Some(top)
}

/// A thread's priority is the highest of its own and those of its chain; its share of time is its own.
pub fn settle(thread: Ref<Thread>) {
    settle_at(thread, look(&thread.top).map_or(0, priority_of));
}

/// As [`settle`], if the highest priority of the chain is this.
pub fn settle_at(thread: Ref<Thread>, priority: u8) {
    thread.set_share(false);
    thread.priority.set(thread.own_priority.get().max(priority));
}

/// The highest of this priority and those that an activation has.
#[inline(always)]
pub fn higher(activation: Ref<Activation>, priority: u8) -> u8 {
    priority.max(activation.lent.get()).max(activation.base.get())
}

/// The highest priority of a chain, which `MAX_DEPTH` bounds.
pub fn priority_of(top: Ref<Activation>) -> u8 {
    let (mut priority, mut next) = (0, Some(top));
    while let Some(activation) = next {
        priority = higher(activation, priority);
        next = look(&activation.caller);
    }
    priority
}

/// An activation is to go, and holds nothing any more that others wait for. False if it did not before.
pub fn forget(holder: Ref<Activation>) -> bool {
    let mut next = holder.domain.activations.get().filter(|_| holder.is_holder.get());
    while let Some(activation) = next {
        activation.holder.set(activation.holder.get().filter(|held_by| *held_by != holder));
        next = activation.domain_next.get();
    }
    holder.is_holder.take()
}
