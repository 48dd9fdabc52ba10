//! Chains of activations: how they change, and the split.
//!
//! A split cuts a chain into a lower and an upper part. The lower part gets an error and keeps the thread. The upper part
//! becomes an orphan: it continues on the orphan thread of its lowest domain, and ends at its return. The orphans of a domain
//! share that thread, slice by slice. A blocked orphan leaves it to the others: else an orphan that blocks on a lock would
//! starve the holder of the lock. Nothing is allocated.
//!
//! Invariant: an orphan without a thread waits for something, with `Wait::Orphans` for its turn. The chain of an orphan thread
//! never waits.

use super::{deadline, numbers, priorities, ready};
use crate::arch::memory;
use crate::cpus::{counters, cpu, timer};
use crate::memory::lend;
use crate::objects::{Activation, Domain, Entry, Port, Runs, SavedFrame, State, Thread, Wait, is_seat};
use crate::pointer::{Held, Link, Ref, look};
use crate::report::trace;
use abi::Error;
use abi::info::status;
use abi::layout::ENTRY_BYTES;

/// Unlinks the top of a chain, which continues at `caller`, and frees it to its pool.
#[inline(always)]
pub fn unlink_top(thread: Ref<Thread>, top: Ref<Activation>, caller: Ref<Activation>) {
    trace::back(Some(thread), top, caller);
    lend::close(top);
    top.caller.set(None);
    top.thread.set(None);
    caller.callee.set(None);
    caller.state.set(State::Top);
    thread.top.set(Some(caller));
    if caller.deadline.get() != 0 {
        deadline::clear(caller);
    }
    if top.lent.get() != 0 {
        // Before waiters are compared with it.
        priorities::recompute(thread);
    }
    release(top);
}

/// Frees an activation to its domain's pool, and wakes a caller that waits for one.
#[inline(always)]
fn release(activation: Ref<Activation>) {
    let domain = activation.domain;
    let per_cpu = domain.per_cpu();
    activation.base.set(0);
    priorities::set_lent(activation, 0);
    activation.state.set(State::Free);
    activation.next.set(per_cpu.pool.get());
    per_cpu.pool.set(Some(activation));
    if domain.waiters.head().is_some() {
        wake_waiter(domain);
    }
}

/// As [`wake_waiter`], after the running operation, by a preemption of this CPU.
pub fn wake_waiter_soon(domain: Ref<Domain>) {
    if domain.waiters.head().is_some() {
        remember(domain);
        cpu::this(domain.held()).preempt.set(true);
        timer::arm_no_later_than(domain.held(), timer::now());
    }
}

/// Wakes the first caller that waits for an activation of `domain`, to restart its call; false if none waits. If that caller is an
/// orphan that must wait for its turn, this CPU checks the waiters again when something stops here.
#[inline(never)]
pub fn wake_waiter(domain: Ref<Domain>) -> bool {
    let Some(waiter) = domain.waiters.take() else { return false };
    domain.note_waiters();
    waiter.wait.set(Wait::No);
    deadline::clear(waiter);
    resume(waiter);
    if waiter.wait.get() == Wait::No {
        waiter.wait.set(Wait::Called);
        waiter.frame.set(if waiter.frame.get() == SavedFrame::Full {
            SavedFrame::FullAgain
        } else {
            SavedFrame::WordsAgain
        });
        waiter.waits_on.set(domain.address());
        domain.called.append(waiter);
    } else {
        remember(domain);
    }
    true
}

/// Has this CPU check the waiters of `domain` when something stops here.
fn remember(domain: Ref<Domain>) {
    let Some(thread) = domain.orphan_thread.get() else { return };
    let cpu = cpu::this(domain.held());
    cpu.again.mark(thread.number as usize);
    cpu.special.set(1);
}

/// If this activation was woken to restart its call and has not run since, wakes the next waiter in its place.
#[inline(always)]
pub fn end_called(activation: Ref<Activation>) {
    if activation.wait.get() == Wait::Called {
        let domain = leave_called(activation);
        wake_waiter(domain);
    }
}

/// Resumes an activation woken to restart its call. The CPU remembers the callee until it stops or makes a call: see
/// [`called_or_not`].
#[cold]
#[inline(never)]
pub fn go_on_called(activation: Ref<Activation>) -> ! {
    remember(leave_called(activation));
    activation.leave()
}

/// Called after a woken caller has restarted its call on this CPU, or has done something else. If an activation of the domain is
/// still free, and no other caller was woken for it, wakes the next waiter. A step checks one domain: if more are marked, preempts
/// this CPU again at once.
pub fn called_or_not(held: Held) {
    let cpu = cpu::this(held);
    let Some(number) = cpu.again.take() else { return };
    if let Some(domain) = numbers::by_number(held, number).map(|thread| thread.home)
        && domain.called.head.get().is_none()
        && domain.per_cpus().any(|per_cpu| look(&per_cpu.pool).is_some())
    {
        wake_waiter(domain);
    }
    if !cpu.again.is_empty() {
        cpu.preempt.set(true);
    }
    if cpu.preempt.get() {
        timer::arm_no_later_than(held, timer::now());
    }
}

#[inline(never)]
fn leave_called(activation: Ref<Activation>) -> Ref<Domain> {
    let domain = activation.awaited_domain();
    domain.called.remove(activation);
    activation.wait.set(Wait::No);
    activation.frame.set(if activation.frame.get() == SavedFrame::FullAgain {
        SavedFrame::Full
    } else {
        SavedFrame::Words
    });
    domain
}

/// Raises the priority with which `top` waits for a semaphore or an activation, and requeues it.
pub fn requeue_with_priority(top: Ref<Activation>, priority: u8) {
    if top.amount.get() >= priority {
        return;
    }
    let queue = match top.wait.get() {
        Wait::Semaphore => &top.semaphore().waiters,
        _ => &top.awaited_domain().waiters,
    };
    queue.remove(top);
    top.amount.set(priority);
    queue.append(top);
}

/// Wakes the first receiver at a port to take a message; true if it preempts the running thread.
#[inline(always)]
pub fn wake_receiver(port: Ref<Port>) -> bool {
    if port.semaphore.is_shared.get() {
        dismiss_gone(port);
    }
    let Some(activation) = port.semaphore.waiters.take_soon() else { return false };
    port.semaphore.waiting.update(|value| value - 1);
    port.semaphore.count.delist();
    activation.wait.set(Wait::No);
    activation.frame.set(SavedFrame::Receives);
    if activation.deadline.get() != 0 {
        deadline::clear(activation);
    }
    resume(activation)
}

/// Receivers that one message dismisses.
const MOST_GONE: usize = 8;

/// Ends the waits of the first receivers whose entry has gone: they cannot take the message that others wait for.
#[inline(never)]
fn dismiss_gone(port: Ref<Port>) {
    let semaphore = port.semaphore();
    for _ in 0..MOST_GONE {
        if semaphore.waiters.head().is_none_or(|first| entered_port(first).is_some()) {
            return;
        }
        semaphore.dismiss_one();
    }
}

/// The port by whose entry an activation made its saved system call, at which it waited, and the entry; none if that has gone.
#[inline(always)]
pub fn entered_port(by: Ref<Activation>) -> Option<(Ref<Entry>, Ref<Port>)> {
    let entry = by.domain.place(by.registers.status() as usize / ENTRY_BYTES).ok()?;
    let port: Ref<Port> = entry.object()?;
    (port.address() == by.receives_at.get()).then_some((entry, port))
}

/// If this activation was woken to take a message and has not taken it, wakes the next receiver, if messages wait.
#[inline(never)]
pub fn pass_message_on(by: Ref<Activation>) {
    if by.frame.get() != SavedFrame::Receives {
        return;
    }
    by.frame.set(SavedFrame::Words);
    if let Some((_, port)) = entered_port(by)
        && port.pending.get() != 0
    {
        wake_receiver(port);
    }
}

/// Unblocks the top of a chain; true if it preempts what runs here.
#[inline(always)]
pub fn resume(top: Ref<Activation>) -> bool {
    match top.thread.get() {
        Some(thread) => ready::make_ready(thread),
        None => resume_orphan(top),
    }
}

/// Ends the call of `caller` with an error; a failed upcall kills the domain once `caller` resumes.
pub fn fail_call(caller: Ref<Activation>, error: Error) {
    if caller.frame.get() == SavedFrame::Full {
        // No page fault of a user has code 0.
        caller.condemn(status::PAGE_FAULT, [caller.entry.get(), 0, error as u64]);
    } else {
        caller.set_result(Err(error));
    }
}

/// The last activation of an orphan returned: its thread stops.
pub fn take_off_orphan(thread: Ref<Thread>, last: Ref<Activation>) {
    lend::close(last);
    last.thread.set(None);
    release(last);
    trace::cut(thread, None);
    thread.top.set(None);
    thread.bottom.set(None);
}

/// Gives the orphan thread, which has no chain, the next orphan of its domain's queue, if any.
fn adopt_next(thread: Ref<Thread>) {
    let Some(top) = thread.home.orphans.take() else { return };
    top.wait.set(Wait::No);
    let mut priority = 0;
    thread.bottom.set(set_thread(top, Some(thread), |activation| priority = priorities::higher(activation, priority)));
    thread.top.set(Some(top));
    thread.fresh.set(true);
    thread.left.set(thread.slice.get());
    priorities::set_effective(thread, priority);
}

/// Detaches the orphan thread's chain.
fn put_down(thread: Ref<Thread>, top: Ref<Activation>) {
    trace::cut(thread, None);
    lend::leave_behind(Some(top));
    set_thread(top, None, |_| ());
    thread.top.set(None);
    thread.bottom.set(None);
}

/// An orphan thread stopped; its chain, if it has one, blocks. The next orphan has its turn when the thread is dispatched.
pub fn leave_waiting(thread: Ref<Thread>) {
    if let Some(top) = thread.top.get() {
        put_down(thread, top);
    }
    if turn_to_next(thread) {
        ready::make_ready(thread);
    }
}

/// Gives the next queued orphan its turn, at the next dispatch of this thread, which has no chain. False if none waits.
pub fn turn_to_next(thread: Ref<Thread>) -> bool {
    let next = thread.home.orphans.head();
    if let Some(next) = next {
        thread.moves.set(true);
        thread.fresh.set(false);
        priorities::set_effective(thread, next.amount.get());
    }
    next.is_some()
}

/// An orphan thread, which does not run, takes the next orphan if it has none. If it has one and an orphan of no lower priority
/// waits, requeues its own: then this is false, and the thread must be dispatched again.
pub fn take_turns(thread: Ref<Thread>) -> bool {
    let Some(top) = thread.top.get() else {
        adopt_next(thread);
        return true;
    };
    end_called(top);
    let is_over = thread.home.orphans.head().is_some_and(|next| next.amount.get() >= thread.priority.get());
    if is_over {
        put_down(thread, top);
        park(top, thread.home);
        turn_to_next(thread);
    }
    !is_over
}

/// Priority inheritance: a queued orphan holds what a thread of this priority waits for. Moves it ahead of others of that
/// priority, and gives it its turn at once unless the present orphan ranks higher.
pub fn hasten(top: Ref<Activation>, priority: u8) {
    let home = top.awaited_domain();
    home.orphans.remove(top);
    top.amount.set(top.amount.get().max(priority));
    home.orphans.prepend(top);
    if let Some(thread) = home.orphan_thread.get().filter(|thread| thread.priority.get() <= priority) {
        end_turn(thread, priority);
    }
}

/// Gives an orphan of this priority its turn at the next dispatch of the thread, which runs or is ready.
fn end_turn(thread: Ref<Thread>, priority: u8) {
    thread.fresh.set(false);
    thread.priority.set(priority);
    match thread.runs.get() {
        Runs::Running => ready::interrupt(thread.cpu.get()),
        _ => ready::rank_again(thread, 0),
    }
}

/// Sets the thread of each activation of a chain, from the top down, and calls `each`; gives the bottom.
#[inline(always)]
fn set_thread(top: Ref<Activation>, thread: Link<Thread>, mut each: impl FnMut(Ref<Activation>)) -> Link<Activation> {
    let mut activation = top;
    loop {
        activation.thread.set(thread);
        trace::adopt(thread, activation, activation == top);
        each(activation);
        match activation.caller.get() {
            Some(caller) => activation = caller,
            None => return Some(activation),
        }
    }
}

/// Queues an unblocked orphan for its turn. True if it preempts what runs here.
#[cold]
fn resume_orphan(top: Ref<Activation>) -> bool {
    let mut bottom = top;
    while let Some(caller) = bottom.caller.get() {
        bottom = caller;
    }
    park(top, bottom.domain);
    let cpu = cpu::this(top.held());
    cpu.preempt.get() && !cpu.thread.get().is_some_and(is_seat)
}

/// Queues an orphan for its turn on the orphan thread of `domain`, which checks its queue when dispatched: highest priority
/// first, FIFO within one.
fn park(top: Ref<Activation>, domain: Ref<Domain>) {
    let priority = priorities::priority_of(top);
    top.wait.set(Wait::Orphans);
    top.waits_on.set(domain.address());
    top.amount.set(priority);
    domain.orphans.append(top);
    let Some(thread) = domain.orphan_thread.get() else { return };
    if thread.runs.get() == Runs::Blocked {
        turn_to_next(thread);
        ready::make_ready(thread);
        return;
    }
    thread.moves.set(true);
    if thread.priority.get() < priority {
        end_turn(thread, priority);
    }
}

/// Splits the chain above `lower`, which is calling. Afterwards `lower` is the top of its thread, which does not run; the upper
/// part is an orphan.
pub fn split_above(lower: Ref<Activation>) {
    let held = lower.held();
    if let Some(thread) = lower.thread.get() {
        cpu::stop_cpu_of(thread);
    }
    let (Some(upper), thread) = (lower.callee.get(), lower.thread.get()) else { return };
    counters::all(held).splits.up();
    upper.caller.set(None);
    upper.set_back();
    lower.callee.set(None);
    lower.state.set(State::Top);
    lend::cut(upper);
    let mut top = upper;
    lend::stay_behind(top);
    // After a fast return `callee` is stale.
    while let (State::Calling, Some(callee)) = (top.state.get(), top.callee.get()) {
        top = callee;
        lend::stay_behind(top);
    }
    end_called(top);
    if top.wait.get() == Wait::Orphans {
        stop_waiting(top);
    }
    let waiting = top.wait.get() != Wait::No;
    deadline::clear(lower);
    if let Some(thread) = thread {
        trace::cut(thread, Some(lower));
        thread.top.set(Some(lower));
        priorities::recompute(thread);
    }
    // The orphan keeps its priority.
    let base = thread
        .map_or(0, |thread| thread.bottom.get().map_or(0, |bottom| bottom.base.get()).max(thread.own_priority.get()));
    upper.base.set(upper.base.get().max(base.min(upper.domain.max_priority.get())));
    let runs = thread.map_or(Runs::Blocked, |thread| thread.runs.get());
    set_thread(top, None, |_| ());
    if let Some(thread) = thread.filter(|thread| thread.runs.get() == Runs::Running) {
        thread.cpu.get().leave_thread();
    }
    if !waiting {
        park(top, upper.domain);
    }
    if runs != Runs::Ready
        && let Some(thread) = thread
    {
        thread.runs.set(Runs::Blocked);
    }
}

/// Unlinks an activation, whose domain is dead or whose thread is removed, from its chain and queues. Its callee continues as
/// an orphan; its caller gets `PeerDied`.
pub fn cut_out(activation: Ref<Activation>) {
    if activation.state.get() == State::Free {
        activation.domain.per_cpus().for_each(|per_cpu| per_cpu.pool.set(None));
        return;
    }
    if let Some(thread) = activation.thread.get() {
        cpu::stop_cpu_of(thread);
    }
    if activation.state.get() == State::Calling {
        split_above(activation);
    }
    stop_waiting(activation);
    pass_message_on(activation);
    lend::close(activation);
    let thread = activation.thread.get();
    let caller = activation.caller.take();
    activation.thread.set(None);
    activation.state.set(State::Free);
    if let Some(caller) = caller {
        caller.callee.set(None);
        caller.state.set(State::Top);
        deadline::clear(caller);
        fail_call(caller, Error::PeerDied);
        if let Some(thread) = thread {
            trace::cut(thread, Some(caller));
            thread.top.set(Some(caller));
            if priorities::higher(activation, 0) != 0 {
                priorities::recompute(thread);
            }
            recheck_top(thread);
        }
        resume(caller);
    } else if let Some(thread) = thread {
        trace::cut(thread, None);
        thread.top.set(None);
        thread.bottom.set(None);
        if thread.runs.get() == Runs::Running {
            thread.cpu.get().leave_thread();
        }
        thread.runs.set(Runs::Blocked);
        if thread.carries_orphans {
            leave_waiting(thread);
        } else {
            thread.ended.set(true);
        }
    }
}

/// The top of a thread has changed. If the thread runs on another CPU, which is stopped, that CPU rechecks it.
pub fn recheck_top(thread: Ref<Thread>) {
    let held = thread.held();
    if thread.runs.get() == Runs::Running {
        let home = thread.cpu.get();
        if home != cpu::this(held) {
            home.needs_recheck.set(true);
        }
    }
}

/// Removes the top of a chain from its wait queue, if any.
pub fn stop_waiting(activation: Ref<Activation>) {
    deadline::clear(activation);
    match activation.wait.get() {
        Wait::Semaphore => {
            activation.semaphore().give_up(activation);
            if activation.holder.get().is_some() {
                priorities::end(activation);
            }
        }
        Wait::Pool | Wait::Called => {
            let domain = activation.awaited_domain();
            if activation.wait.get() == Wait::Called {
                end_called(activation);
            } else {
                domain.waiters.remove(activation);
                domain.note_waiters();
            }
            if activation.frame.get() == SavedFrame::Words {
                // The call is not restarted.
                activation.registers.pc.update(|pc| pc + memory::SYSTEM_CALL_BYTES);
            }
        }
        Wait::Orphans => {
            let domain = activation.awaited_domain();
            domain.orphans.remove(activation);
        }
        Wait::No => {}
    }
    activation.wait.set(Wait::No);
}

/// The deadline of `activation` has passed: ends its wait or call with `Timeout`.
pub fn time_out(activation: Ref<Activation>) {
    if activation.state.get() == State::Calling {
        split_above(activation);
    } else {
        stop_waiting(activation);
    }
    fail_call(activation, Error::Timeout);
    resume(activation);
}
