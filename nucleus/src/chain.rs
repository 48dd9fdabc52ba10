//! Chains of activations: the long way of call and return, delegation, and the split.
//!
//! A split cuts a chain between a lower and an upper share. The lower part gets an error and goes on
//! with the thread; the upper part is an orphan: it goes on on the orphan thread of its lowest domain, and
//! ends at its return. The orphans of a domain take turns on that thread, slice by slice, and one that waits leaves it
//! to the others: else an orphan that waits for a lock would keep the one that holds the lock from running. Nothing is allocated.
//!
//! Invariant: an orphan without a thread waits for something, `Wait::Orphans` if that is its turn. The chain of an orphan thread
//! never waits.

use crate::activation::{Activation, Frame, State, Wait};
use crate::arch::{memory, timer};
use crate::cpu;
use crate::domain::Domain;
use crate::operation::STEPS;
use crate::pointer::{Link, Ref, look};
use crate::table::{Content, Entry};
use crate::thread::{Runs, Thread};
use crate::{deadline, info, lending, removal, schedule, trace};
use abi::info::status;
use abi::rights::{self, Kind};
use abi::sched::Event;
use abi::{Control, Error, MAX_DEPTH, MESSAGE_BYTES, NEVER, op};

/// The call did not take the fast path of `entry.s`: words and control are in the caller's frame.
#[unsafe(no_mangle)]
extern "C" fn call_slowly(caller: Ref<Activation>, entry: Ref<Entry>) -> ! {
    let control = Control(caller.registers.control());
    let refused = match deadline_of(caller, entry, control) {
        Ok(deadline) => {
            let frame = if deadline == 0 { Frame::Call } else { Frame::Bounded };
            match call(caller, entry, frame, control, caller.words(), deadline) {
                Err(Error::Again) => wait_for_activation(caller, entry, deadline),
                Err(error) => error,
            }
        }
        Err(error) => error,
    };
    trace::refused(caller, entry, refused);
    caller.set_result(Err(refused));
    caller.registers.set_control(0);
    caller.leave()
}

/// The deadline that a call has, in ticks; 0 = none.
fn deadline_of(caller: Ref<Activation>, entry: Ref<Entry>, control: Control) -> Result<u64, Error> {
    if control.0 & Control::DEADLINE == 0 {
        return Ok(0);
    }
    if entry.node.flags.get() as u64 & op::SERVICE_DEADLINE == 0 {
        return Err(Error::NoRight);
    }
    if control.0 & Control::MINT != 0 {
        // Word 4 cannot be badge and deadline.
        return Err(Error::BadArgument);
    }
    if caller.thread.get().is_none_or(schedule::is_seat) {
        return Err(Error::NotRunnable);
    }
    let nanoseconds = caller.words()[4];
    if nanoseconds == NEVER {
        return Ok(0);
    }
    if timer::nanoseconds() >= nanoseconds { Err(Error::Timeout) } else { Ok(timer::ticks(nanoseconds)) }
}

/// All activations of the callee are in use: the call is made again when one is free.
fn wait_for_activation(caller: Ref<Activation>, entry: Ref<Entry>, deadline: u64) -> Error {
    let held = caller.held();
    if cpu::this(held).thread.get().is_some_and(schedule::is_seat) {
        return Error::Busy;
    }
    let Some(callee) = entry.callee() else { return Error::Revoked };
    if caller.frame.get() != Frame::Full {
        caller.repeat_system_call();
    }
    caller.wait.set(Wait::Pool);
    caller.waits_on.set(callee.address());
    callee.waiters.append(caller);
    // Who is on the short way back from there may not have seen that somebody waits now; afterwards they all see it.
    cpu::hold_up_where(held, |other| other.domain_there() == Some(callee));
    if cpu::several(held) && callee.shares().any(|share| look(&share.pool).is_some()) {
        callee.waiters.remove(caller);
        caller.wait.set(Wait::No);
        caller.leave()
    }
    deadline::set(caller, deadline);
    lending::begin_at_pool(caller, callee);
    schedule::block_current(held)
}

/// Calls an upcall portal on behalf of a faulting activation. Returns only if that cannot be done.
#[inline(always)]
pub fn upcall(caller: Ref<Activation>, entry: Ref<Entry>, words: [u64; 5], control: Control) -> Error {
    match call(caller, entry, Frame::Full, control, words, 0) {
        Err(Error::Again) => wait_for_activation(caller, entry, 0),
        Err(error) => error,
    }
}

/// Calls `entry`; `frame` is how the caller's frame is to be kept. Returns only refusals; `Again` = no
/// activation is free and the caller may wait.
#[inline(always)]
fn call(
    caller: Ref<Activation>,
    entry: Ref<Entry>,
    frame: Frame,
    control: Control,
    words: [u64; 5],
    deadline: u64,
) -> Result<core::convert::Infallible, Error> {
    let callee = entry.callee().ok_or(Error::Revoked)?;
    if control.0 & !Control::VALID != 0 || control.length() > MESSAGE_BYTES {
        return Err(Error::BadArgument);
    }
    if callee.is_dead() {
        // Not carried, as through an entry of a domain that is gone: `PeerDied` is for a call that was inside.
        return Err(Error::Revoked);
    }
    if entry.allowed_pairs() != caller.domain.pair as u64 | (callee.pair as u64) << 32 {
        return Err(Error::Flow);
    }
    if caller.depth.get() as usize + 1 >= MAX_DEPTH {
        return Err(Error::TooDeep);
    }
    let Some(activation) = callee.share().pool.get().or_else(|| fetch(callee)) else {
        return Err(if control.0 & Control::NO_WAIT != 0 { Error::Busy } else { Error::Again });
    };
    let received = if control.delegated() != 0 {
        let to = (callee, activation.receive.get() as usize);
        delegate(caller.domain, control, words[4], to)?
    } else {
        0
    };
    trace::call(caller, entry, words[0], frame == Frame::Full);
    callee.share().pool.set(activation.next.get());
    caller.domain.share().crossings.update(|value| value + 1);
    caller.frame.set(frame);
    caller.state.set(State::Calling);
    caller.callee.set(Some(activation));
    activation.state.set(State::Top);
    activation.caller.set(Some(caller));
    activation.depth.set(caller.depth.get() + 1);
    copy_message(caller, activation, control.length());
    let thread = caller.thread.get().ok_or(Error::NotRunnable)?;
    thread.top.set(Some(activation));
    activation.thread.set(Some(thread));
    let ceiling = entry.ceiling();
    if ceiling != 0 {
        lending::raise(thread, activation, ceiling);
    }
    if deadline != 0 {
        deadline::set(caller, deadline);
    }
    if activation.is_special() {
        activation.reset_fpu();
        activation.make_current();
    } else {
        activation.make_current_plainly();
    }
    let control = Control::bytes(control.length()).delegate(received, 0);
    activation.leave_to_service(entry.word0.get(), entry.word1.get(), &words, control.0)
}

/// Brings a free activation of `domain` here from another CPU's pool.
#[cold]
fn fetch(domain: Ref<Domain>) -> Link<Activation> {
    let held = domain.held();
    for other in cpu::others(held) {
        let share = domain.share_on(other.number as usize);
        if look(&share.pool).is_some() {
            cpu::hold_up(other);
            if let Some(activation) = share.pool.get() {
                share.pool.set(activation.next.get());
                activation.next.set(None);
                domain.share().pool.set(Some(activation));
                return Some(activation);
            }
        }
    }
    None
}

/// The return did not take the fast path of `entry.s`.
#[unsafe(no_mangle)]
extern "C" fn return_slowly(callee: Ref<Activation>) -> ! {
    let held = callee.held();
    let control = Control(callee.registers.control());
    let Some(caller) = callee.caller.get() else {
        match callee.thread.get() {
            Some(thread) if thread.carries_orphans => end_orphan(thread, callee),
            _ => refuse_return(callee, Error::NoCaller),
        }
    };
    if control.0 & !(Control::VALID & !Control::NO_WAIT & !Control::DEADLINE) != 0 || control.length() > MESSAGE_BYTES {
        refuse_return(callee, Error::BadArgument)
    }
    let words = callee.words();
    let mut received = 0;
    if control.delegated() != 0 && !caller.domain.is_dead() {
        let to = (caller.domain, caller.receive.get() as usize);
        match delegate(callee.domain, control, words[4], to) {
            Ok(index) => received = index,
            Err(error) => refuse_return(callee, error),
        }
    }
    copy_message(callee, caller, control.length());
    let Some(thread) = callee.thread.get() else { schedule::enter(held, Event::Choose, 0) };
    unlink_top(thread, callee, caller);
    if caller.frame.get() == Frame::Full {
        // An upcall: word 0 says whether to go on.
        if words[0] != 0 {
            caller.condemn(if words[0] < status::KILLED { status::PAGE_FAULT } else { words[0] }, [0; 3]);
        }
    } else {
        caller.set_words(words, Control::bytes(control.length()).delegate(received, 0).0);
        caller.registers.set_status(0);
        caller.frame.set(Frame::Words);
    }
    resume_top(thread)
}

fn refuse_return(callee: Ref<Activation>, error: Error) -> ! {
    callee.set_result(Err(error));
    callee.leave()
}

#[inline(always)]
fn copy_message(from: Ref<Activation>, to: Ref<Activation>, bytes: usize) {
    if bytes == 0 {
        return;
    }
    // SAFETY: both areas are pages of the nucleus, and `bytes` is at most a page.
    unsafe {
        let words = bytes.div_ceil(8);
        core::ptr::copy_nonoverlapping(from.message_kernel as *const u64, to.message_kernel as *mut u64, words);
    }
}

/// Takes the top off its chain, which goes on at `caller`, and puts it back into its pool.
#[inline(always)]
fn unlink_top(thread: Ref<Thread>, top: Ref<Activation>, caller: Ref<Activation>) {
    trace::back(Some(thread), top, caller);
    top.caller.set(None);
    top.thread.set(None);
    caller.callee.set(None);
    caller.state.set(State::Top);
    thread.top.set(Some(caller));
    if caller.deadline.get() != 0 {
        deadline::clear(caller);
    }
    let lent = top.lent.get();
    release(top);
    if lent != 0 {
        lending::settle(thread);
    }
}

/// Puts an activation back into its domain's pool; who waits for one makes the call again.
#[inline(always)]
fn release(activation: Ref<Activation>) {
    let domain = activation.domain;
    let share = domain.share();
    activation.base.set(0);
    lending::set_lent(activation, 0);
    activation.state.set(State::Free);
    activation.next.set(share.pool.get());
    share.pool.set(Some(activation));
    if domain.waiters.head.get().is_some() {
        wake_waiter(domain);
    }
}

/// Lets the first who waits for an activation of `domain` call again; false if nobody does.
pub fn wake_waiter(domain: Ref<Domain>) -> bool {
    let Some(waiter) = domain.waiters.take() else { return false };
    waiter.wait.set(Wait::No);
    deadline::clear(waiter);
    resume(waiter);
    true
}

/// The top of a chain waits no more; true if it precedes what runs here.
#[inline(always)]
pub fn resume(top: Ref<Activation>) -> bool {
    match top.thread.get() {
        Some(thread) => schedule::make_ready(thread),
        None => resume_orphan(top),
    }
}

/// Copies or mints the entry that goes along with a message. Gives the receiver's index.
fn delegate(from: Ref<Domain>, control: Control, badge: u64, to: (Ref<Domain>, usize)) -> Result<usize, Error> {
    let (domain, index) = to;
    if index == 0 {
        return Err(Error::NotAccepted);
    }
    let (place, index) = domain.vacancy(index)?;
    let source = from.place(control.delegated())?;
    if control.0 & Control::MINT != 0 {
        let source = from.entry(control.delegated(), Kind::Service, rights::USE)?;
        make_call_entry(source, badge, 0, domain, place)?;
    } else {
        copy_entry(from.entry(control.delegated(), source.kind(), 0)?, control.delegated_rights(), place)?;
    }
    Ok(index)
}

/// Copies an object entry with reduced rights into a vacant place.
pub fn copy_entry(source: Ref<Entry>, mask: u8, place: Ref<Entry>) -> Result<(), Error> {
    match source.kind() {
        Kind::Empty => return Err(Error::Empty),
        Kind::Revoked => return Err(Error::Revoked),
        Kind::Call | Kind::Operation => return Err(Error::NoRight),
        _ if source.node.rights.get() & rights::COPY == 0 => return Err(Error::NoRight),
        _ if removal::is_going(source) => return Err(Error::Revoked),
        _ => {}
    }
    place.fill(Content::copy(source, mask), Some(source))
}

/// Makes a call entry for `domain` from a service; calls through it have at least the priority `ceiling`.
pub fn make_call_entry(
    service: Ref<Entry>,
    badge: u64,
    ceiling: u8,
    domain: Ref<Domain>,
    place: Ref<Entry>,
) -> Result<(), Error> {
    let callee = service.server().ok_or(Error::WrongKind)?;
    place.fill(Content::call(service, callee, badge, ceiling, domain), Some(service))
}

/// Goes on with the chain of the running thread, past domains that died.
#[inline(always)]
pub fn resume_top(thread: Ref<Thread>) -> ! {
    match thread.top.get() {
        Some(top) if !top.is_special() => {
            top.make_current_plainly();
            top.leave_lightly()
        }
        _ => unwind(thread),
    }
}

/// As [`resume_top`], whose top is dead or gone, or has special state.
fn unwind(thread: Ref<Thread>) -> ! {
    let held = thread.held();
    let mut steps = STEPS / 2;
    while let Some(top) = thread.top.get() {
        if !top.domain.is_dead() {
            top.make_current();
            top.leave()
        }
        if steps == 0 {
            schedule::give_way(held, Event::Preempted)
        }
        steps -= 1;
        match top.caller.get() {
            Some(caller) => {
                unlink_top(thread, top, caller);
                fail_call(caller, Error::PeerDied);
            }
            None if thread.carries_orphans => take_off_orphan(thread, top),
            None => break,
        }
    }
    thread.ended.set(!thread.carries_orphans);
    schedule::block_current(held)
}

/// The call that `caller` made ends with an error; an upcall that fails is the end of its domain, once `caller` goes on.
fn fail_call(caller: Ref<Activation>, error: Error) {
    if caller.frame.get() == Frame::Full {
        // No page fault of a user has a code of 0.
        caller.condemn(status::PAGE_FAULT, [0, 0, error as u64]);
    } else {
        caller.set_result(Err(error));
    }
}

/// The last activation of an orphaned chain returned: the next orphan's turn.
fn end_orphan(thread: Ref<Thread>, last: Ref<Activation>) -> ! {
    take_off_orphan(thread, last);
    resume_top(thread)
}

fn take_off_orphan(thread: Ref<Thread>, last: Ref<Activation>) {
    last.thread.set(None);
    release(last);
    trace::cut(thread, None);
    thread.top.set(None);
    thread.bottom.set(None);
    adopt_next(thread);
}

/// The orphan thread, which has no chain, takes the next one of its domain's queue.
fn adopt_next(thread: Ref<Thread>) -> bool {
    let home = thread.home;
    let Some(top) = home.orphans.take() else { return false };
    top.wait.set(Wait::No);
    adopt(thread, top);
    true
}

fn adopt(thread: Ref<Thread>, top: Ref<Activation>) {
    let mut priority = 0;
    thread.bottom.set(set_thread(top, Some(thread), |activation| priority = lending::higher(activation, priority)));
    thread.top.set(Some(top));
    thread.fresh.set(true);
    thread.left.set(thread.slice.get());
    lending::settle_at(thread, priority);
}

/// The orphan thread lets go of its chain.
fn put_down(thread: Ref<Thread>, top: Ref<Activation>) {
    trace::cut(thread, None);
    set_thread(top, None, |_| ());
    thread.top.set(None);
    thread.bottom.set(None);
}

/// The chain of an orphan thread, which has stopped, waits: the next orphan has its turn.
pub fn leave_waiting(thread: Ref<Thread>) {
    if let Some(top) = thread.top.get() {
        put_down(thread, top);
    }
    if adopt_next(thread) {
        schedule::make_ready(thread);
    }
}

/// The chain of an orphan thread, which does not run, waits for its next turn if an orphan of its domain waits that ranks no lower:
/// that has its turn now.
pub fn take_turns(thread: Ref<Thread>) {
    let next = thread.home.orphans.head.get().filter(|next| next.amount.get() >= thread.priority.get());
    if let (Some(top), true) = (thread.top.get(), next.is_some()) {
        put_down(thread, top);
        park(top, thread.home);
        adopt_next(thread);
    }
}

/// An orphan that waits for its turn has what somebody of this priority waits for: it ranks so, before others that do, and has
/// its turn at once if the orphan that has one now does not rank higher.
pub fn hasten(top: Ref<Activation>, priority: u8) {
    let home = top.awaited_domain();
    home.orphans.remove(top);
    top.amount.set(top.amount.get().max(priority));
    home.orphans.insert(top, |other| other.amount.get() <= top.amount.get());
    let Some(thread) = home.orphan_thread.get().filter(|thread| thread.priority.get() <= priority) else { return };
    if thread.runs.get() == Runs::Ready {
        take_turns(thread);
        schedule::post_again(thread);
    } else {
        thread.priority.set(priority);
        schedule::interrupt(thread.cpu.get());
    }
}

/// Sets the thread of a whole chain, from its top down, and does something else with each; gives the bottom.
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

/// An orphan without a thread can go on: its domain's orphan thread takes it now or later. True if it precedes what runs
/// here.
#[cold]
fn resume_orphan(top: Ref<Activation>) -> bool {
    let mut bottom = top;
    while let Some(caller) = bottom.caller.get() {
        bottom = caller;
    }
    let domain = bottom.domain;
    match domain.orphan_thread.get() {
        Some(thread) if thread.top.get().is_none() => {
            adopt(thread, top);
            schedule::make_ready(thread)
        }
        _ => {
            park(top, domain);
            false
        }
    }
}

/// An orphan waits for its turn on the orphan thread of `domain`, which looks at its queue when it is dispatched: the highest
/// first, those that rank the same in turn.
fn park(top: Ref<Activation>, domain: Ref<Domain>) {
    top.wait.set(Wait::Orphans);
    top.waits_on.set(domain.address());
    top.amount.set(lending::priority_of(top));
    domain.orphans.insert(top, |other| other.amount.get() < top.amount.get());
    if let Some(thread) = domain.orphan_thread.get() {
        thread.moves.set(true);
    }
}

/// Cuts the chain above `lower`, which is calling. Afterwards `lower` is the top of its thread, which
/// does not run; the upper part is an orphan.
pub fn split_above(lower: Ref<Activation>) {
    let held = lower.held();
    if let Some(thread) = lower.thread.get() {
        cpu::hold_up_thread(thread);
    }
    let (Some(upper), thread) = (lower.callee.get(), lower.thread.get()) else { return };
    info::counters(held).splits.up();
    upper.caller.set(None);
    lower.callee.set(None);
    lower.state.set(State::Top);
    let mut top = upper;
    // Who was returned to keeps its last callee.
    while let (State::Calling, Some(callee)) = (top.state.get(), top.callee.get()) {
        top = callee;
    }
    if top.wait.get() == Wait::Orphans {
        stop_waiting(top);
    }
    let waiting = top.wait.get() != Wait::No;
    deadline::clear(lower);
    if let Some(thread) = thread {
        trace::cut(thread, Some(lower));
        thread.top.set(Some(lower));
        lending::settle(thread);
    }
    // It goes on as urgently as before.
    let base = thread
        .map_or(0, |thread| thread.bottom.get().map_or(0, |bottom| bottom.base.get()).max(thread.own_priority.get()));
    upper.base.set(upper.base.get().max(base.min(upper.domain.max_priority.get())));
    let runs = thread.map_or(Runs::Blocked, |thread| thread.runs.get());
    let runs_on = thread.filter(|thread| thread.runs.get() == Runs::Running).map(|thread| thread.cpu.get());
    match upper.domain.orphan_thread.get().filter(|orphan| orphan.top.get().is_none() && !waiting) {
        Some(orphan) => {
            adopt(orphan, top);
            if let Some(cpu) = runs_on {
                let now = timer::now();
                orphan.runs.set(Runs::Running);
                orphan.started.set(now);
                orphan.cpu.set(cpu);
                orphan.slice_end.set(now + orphan.slice.get());
                cpu.thread.set(Some(orphan));
                trace::run(orphan);
            } else {
                schedule::make_ready(orphan);
            }
        }
        None => {
            set_thread(top, None, |_| ());
            if let Some(cpu) = runs_on {
                cpu.leave_thread();
            }
            if !waiting {
                park(top, upper.domain);
            }
        }
    }
    if runs != Runs::Ready
        && let Some(thread) = thread
    {
        thread.runs.set(Runs::Blocked);
    }
}

/// Takes an activation, whose domain is dead or whose thread is removed, out of its chain and queues.
/// What it called goes on as an orphan; who called it gets `PeerDied`.
pub fn cut_out(activation: Ref<Activation>) {
    if activation.state.get() == State::Free {
        activation.domain.shares().for_each(|share| share.pool.set(None));
        return;
    }
    if let Some(thread) = activation.thread.get() {
        cpu::hold_up_thread(thread);
    }
    if activation.state.get() == State::Calling {
        split_above(activation);
    }
    stop_waiting(activation);
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
            look_anew(thread);
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

/// What the top of a thread was is so no more: if it runs on another CPU, which is held up, that finds out.
pub fn look_anew(thread: Ref<Thread>) {
    let held = thread.held();
    if thread.runs.get() == Runs::Running {
        let home = thread.cpu.get();
        if home != cpu::this(held) {
            home.disturbed.set(true);
        }
    }
}

/// Takes the top of a chain out of whatever queue it is in.
pub fn stop_waiting(activation: Ref<Activation>) {
    deadline::clear(activation);
    match activation.wait.get() {
        Wait::Semaphore => {
            activation.semaphore().give_up(activation);
            if activation.holder.get().is_some() {
                lending::end(activation);
            }
        }
        Wait::Pool => {
            let domain = activation.awaited_domain();
            domain.waiters.remove(activation);
            if activation.frame.get() == Frame::Words {
                // The call is not made again.
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

/// The deadline of `activation` has passed: what it waits for or called ends with `Timeout`.
pub fn time_out(activation: Ref<Activation>) {
    if activation.state.get() == State::Calling {
        split_above(activation);
    } else {
        stop_waiting(activation);
    }
    fail_call(activation, Error::Timeout);
    resume(activation);
}

/// A called activation ends without returning: its caller gets `PeerDied`.
pub fn abandon_call(thread: Ref<Thread>, top: Ref<Activation>) -> ! {
    match top.caller.get() {
        Some(caller) => {
            unlink_top(thread, top, caller);
            fail_call(caller, Error::PeerDied);
            resume_top(thread)
        }
        None => end_orphan(thread, top),
    }
}
