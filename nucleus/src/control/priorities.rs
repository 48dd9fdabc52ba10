//! The effective priorities of threads: their own and those lent to their activations; see `lending`.

use super::numbers::by_number;
use super::ready;
use crate::objects::{Activation, Domain, SLOW_LENT, State, Thread};
use crate::pointer::{Link, Ref, look};

/// Begins a call through a portal with a ceiling: the thread has at least that priority until the call returns.
#[cold]
pub fn raise(thread: Ref<Thread>, called: Ref<Activation>, ceiling: u8) {
    called.base.set(ceiling);
    set_lent(called, ceiling);
    thread.priority.set(thread.priority.get().max(ceiling));
}

/// Ends the loan of `waiter`, which waits no more.
pub fn end(waiter: Ref<Activation>) {
    // The raised thread may have left the holder meanwhile, by a return on the fast path of another CPU.
    let raised = by_number(waiter.held(), waiter.raised.take() as usize);
    let changed = waiter.holder.take().filter(|holder| {
        // At most one step for each activation of the domain.
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
    [raised, now].into_iter().flatten().for_each(recompute);
}

/// Sets the priority lent to an activation; 0 = none. A domain in which anything is lent has `SLOW_LENT`.
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
    domain.set_slow(SLOW_LENT, domain.lent.get() != 0);
}

/// The thread in whose chain an activation is. None if the activation is free: then its `thread` is stale. Another CPU may
/// take it out of the pool or put it back meanwhile. That CPU writes the thread before the state; this one reads the state
/// before the thread.
pub fn thread_of(activation: Ref<Activation>) -> Link<Thread> {
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

/// Recomputes a thread's priority: the highest of its own and those of its chain. Ends a lift of its share.
#[inline(never)]
pub fn recompute(thread: Ref<Thread>) {
    let (before, word) = (thread.priority.get(), thread.word());
    // An orphan thread has at least the priority of the orphan whose turn is next.
    let next = Some(thread).filter(|thread| thread.carries_orphans).and_then(|thread| thread.home.orphans.head());
    let waits = next.map_or(0, |next| next.amount.get());
    set_effective(thread, look(&thread.top).map_or(0, priority_of).max(waits));
    if thread.word() != word {
        ready::rank_again(thread, before);
    }
}

/// Sets a thread's priority from its own and that of its chain, and ends a lift of its share.
pub fn set_effective(thread: Ref<Thread>, priority: u8) {
    thread.set_share(false);
    thread.priority.set(thread.own_priority.get().max(priority));
}

/// The highest of `priority`, what was lent to an activation, and its base.
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

/// Clears all references to an activation as the holder of a lock, before it is freed. False if it was never a holder.
pub fn forget(holder: Ref<Activation>) -> bool {
    let mut next = holder.domain.activations.get().filter(|_| holder.is_holder.get());
    while let Some(activation) = next {
        activation.holder.set(activation.holder.get().filter(|held_by| *held_by != holder));
        next = activation.domain_next.get();
    }
    holder.is_holder.take()
}
