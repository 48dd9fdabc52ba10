//! The priorities that threads have because of what was lent to their activations; see `lending`.

use super::numbers::by_number;
use super::ready;
use crate::objects::{Activation, Domain, SLOW_LENT, State, Thread};
use crate::pointer::{Link, Ref, look};

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
    [raised, now].into_iter().flatten().for_each(recompute);
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
    domain.set_slow(SLOW_LENT, domain.lent.get() != 0);
}

/// The thread in whose chain an activation is. Of one in the pool, what it says is no longer so. Another CPU may take it out of
/// the pool or put it back meanwhile: it writes the thread before the state, and here the state is read before the thread.
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

/// Recomputes a thread's priority: the highest of its own and those of its chain. Its share of time is its own.
#[inline(never)]
pub fn recompute(thread: Ref<Thread>) {
    let (before, word) = (thread.priority.get(), thread.word());
    // An orphan thread has no lower one than the orphan whose turn is next.
    let next = Some(thread).filter(|thread| thread.carries_orphans).and_then(|thread| thread.home.orphans.head());
    let waits = next.map_or(0, |next| next.amount.get());
    set_effective(thread, look(&thread.top).map_or(0, priority_of).max(waits));
    if thread.word() != word {
        ready::rank_again(thread, before);
    }
}

/// As [`recompute`], for a chain whose highest priority is known.
pub fn set_effective(thread: Ref<Thread>, priority: u8) {
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
