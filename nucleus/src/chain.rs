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
use crate::pointer::{Link, Ref};
use crate::table::{CEILING_SHIFT, Content, Entry};
use crate::thread::{Runs, Thread};
use crate::{deadline, info, lending, removal, schedule, trace};
use abi::info::status;
use abi::rights::{self, Kind};
use abi::sched::Event;
use abi::{Control, Error, MAX_DEPTH, MESSAGE_BYTES, NEVER, op};

/// The call did not take the fast path of `entry.s`: words and control are in the caller's frame.
#[unsafe(no_mangle)]
extern "C" fn call_slowly(mut caller: Ref<Activation>, entry: Ref<Entry>) -> ! {
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
    if entry.node.flags as u64 & op::SERVICE_DEADLINE == 0 {
        return Err(Error::NoRight);
    }
    if control.0 & Control::MINT != 0 {
        // Word 4 cannot be badge and deadline.
        return Err(Error::BadArgument);
    }
    if caller.thread.is_none_or(schedule::is_seat) {
        return Err(Error::NotRunnable);
    }
    let nanoseconds = caller.words()[4];
    if nanoseconds == NEVER {
        return Ok(0);
    }
    if timer::nanoseconds() >= nanoseconds { Err(Error::Timeout) } else { Ok(timer::ticks(nanoseconds)) }
}

/// All activations of the callee are in use: the call is made again when one is free.
fn wait_for_activation(mut caller: Ref<Activation>, entry: Ref<Entry>, deadline: u64) -> Error {
    if cpu::this().thread.is_some_and(schedule::is_seat) {
        return Error::Busy;
    }
    // SAFETY: a call entry's object is a domain.
    let mut callee: Ref<Domain> = unsafe { entry.object_as() };
    if caller.frame != Frame::Full {
        caller.repeat_system_call();
    }
    (caller.wait, caller.waits_on) = (Wait::Pool, callee.address());
    callee.waiters.append(caller);
    // Who is on the short way back from there may not have seen that somebody waits now; afterwards they all see it.
    cpu::hold_up_where(|other| other.domain_there() == Some(callee));
    if cpu::several() && callee.shares().any(|share| share.pool.is_some()) {
        callee.waiters.remove(caller);
        caller.wait = Wait::No;
        caller.leave()
    }
    deadline::set(caller, deadline);
    lending::begin_at_pool(caller, callee);
    schedule::block_current()
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
    mut caller: Ref<Activation>,
    entry: Ref<Entry>,
    frame: Frame,
    control: Control,
    words: [u64; 5],
    deadline: u64,
) -> Result<core::convert::Infallible, Error> {
    // SAFETY: a call entry's object is a domain.
    let callee: Ref<Domain> = unsafe { entry.object_as() };
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
    if caller.depth as usize + 1 >= MAX_DEPTH {
        return Err(Error::TooDeep);
    }
    let Some(mut activation) = callee.share().pool.or_else(|| fetch(callee)) else {
        return Err(if control.0 & Control::NO_WAIT != 0 { Error::Busy } else { Error::Again });
    };
    let received = if control.delegated() != 0 {
        let to = (callee, activation.receive as usize);
        delegate(caller.domain, control, words[4], to)?
    } else {
        0
    };
    trace::call(caller, entry, words[0], frame == Frame::Full);
    callee.share().pool = activation.next;
    caller.domain.share().crossings += 1;
    (caller.frame, caller.state, caller.callee) = (frame, State::Calling, Some(activation));
    (activation.state, activation.caller, activation.depth) = (State::Top, Some(caller), caller.depth + 1);
    copy_message(caller, activation, control.length());
    let mut thread = caller.thread.ok_or(Error::NotRunnable)?;
    (thread.top, activation.thread) = (Some(activation), Some(thread));
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
    activation.leave_to_service(entry.word0, entry.word1, &words, control.0)
}

/// Brings a free activation of `domain` here from another CPU's pool.
#[cold]
fn fetch(domain: Ref<Domain>) -> Link<Activation> {
    for other in cpu::others() {
        let mut share = domain.share_on(other.number as usize);
        if share.pool.is_some() {
            cpu::hold_up(other);
            if let Some(mut activation) = share.pool {
                share.pool = activation.next;
                activation.next = None;
                domain.share().pool = Some(activation);
                return Some(activation);
            }
        }
    }
    None
}

/// The return did not take the fast path of `entry.s`.
#[unsafe(no_mangle)]
extern "C" fn return_slowly(callee: Ref<Activation>) -> ! {
    let control = Control(callee.registers.control());
    let Some(mut caller) = callee.caller else {
        match callee.thread {
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
        let to = (caller.domain, caller.receive as usize);
        match delegate(callee.domain, control, words[4], to) {
            Ok(index) => received = index,
            Err(error) => refuse_return(callee, error),
        }
    }
    copy_message(callee, caller, control.length());
    let Some(thread) = callee.thread else { schedule::enter(Event::Choose, 0) };
    unlink_top(thread, callee, caller);
    if caller.frame == Frame::Full {
        // An upcall: word 0 says whether to go on.
        if words[0] != 0 {
            caller.condemn(if words[0] < status::KILLED { status::PAGE_FAULT } else { words[0] }, [0; 3]);
        }
    } else {
        caller.set_words(words, Control::bytes(control.length()).delegate(received, 0).0);
        caller.registers.set_status(0);
        caller.frame = Frame::Words;
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
fn unlink_top(mut thread: Ref<Thread>, mut top: Ref<Activation>, mut caller: Ref<Activation>) {
    trace::back(Some(thread), top, caller);
    (top.caller, top.thread) = (None, None);
    (caller.callee, caller.state) = (None, State::Top);
    thread.top = Some(caller);
    if caller.deadline != 0 {
        deadline::clear(caller);
    }
    let lent = top.lent;
    release(top);
    if lent != 0 {
        lending::settle(thread);
    }
}

/// Puts an activation back into its domain's pool; who waits for one makes the call again.
#[inline(always)]
fn release(mut activation: Ref<Activation>) {
    let domain = activation.domain;
    let mut share = domain.share();
    activation.base = 0;
    lending::set_lent(activation, 0);
    (activation.state, activation.next) = (State::Free, share.pool);
    share.pool = Some(activation);
    if domain.waiters.head.is_some() {
        wake_waiter(domain);
    }
}

/// Lets the first who waits for an activation of `domain` call again; false if nobody does.
pub fn wake_waiter(mut domain: Ref<Domain>) -> bool {
    let Some(mut waiter) = domain.waiters.take() else { return false };
    waiter.wait = Wait::No;
    deadline::clear(waiter);
    resume(waiter);
    true
}

/// The top of a chain waits no more; true if it precedes what runs here.
#[inline(always)]
pub fn resume(top: Ref<Activation>) -> bool {
    match top.thread {
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
        _ if source.node.rights & rights::COPY == 0 => return Err(Error::NoRight),
        _ if removal::is_going(source) => return Err(Error::Revoked),
        _ => {}
    }
    let content = Content {
        kind: source.kind(),
        rights: source.node.rights & mask,
        object: source.object,
        word0: source.word0,
        word1: source.word1,
        flags: source.node.flags,
        pairs: 0,
    };
    place.fill(content, Some(source))
}

/// Makes a call entry for `domain` from a service; calls through it have at least the priority `ceiling`.
pub fn make_call_entry(
    service: Ref<Entry>,
    badge: u64,
    ceiling: u8,
    domain: Ref<Domain>,
    place: Ref<Entry>,
) -> Result<(), Error> {
    // SAFETY: a service's object is its domain.
    let callee: Ref<Domain> = unsafe { service.object_as() };
    let content = Content {
        kind: Kind::Call,
        rights: rights::USE,
        object: service.object,
        word0: service.word0,
        word1: badge,
        flags: service.node.flags | (ceiling as u32) << CEILING_SHIFT,
        pairs: domain.pair as u64 | (callee.pair as u64) << 32,
    };
    place.fill(content, Some(service))
}

/// Goes on with the chain of the running thread, past domains that died.
#[inline(always)]
pub fn resume_top(thread: Ref<Thread>) -> ! {
    match thread.top {
        Some(top) if !top.is_special() => {
            top.make_current_plainly();
            top.leave_lightly()
        }
        _ => unwind(thread),
    }
}

/// As [`resume_top`], whose top is dead or gone, or has special state.
fn unwind(mut thread: Ref<Thread>) -> ! {
    let mut steps = STEPS / 2;
    while let Some(top) = thread.top {
        if !top.domain.is_dead() {
            top.make_current();
            top.leave()
        }
        if steps == 0 {
            schedule::give_way(Event::Preempted)
        }
        steps -= 1;
        match top.caller {
            Some(caller) => {
                unlink_top(thread, top, caller);
                fail_call(caller, Error::PeerDied);
            }
            None if thread.carries_orphans => take_off_orphan(thread, top),
            None => break,
        }
    }
    thread.ended = !thread.carries_orphans;
    schedule::block_current()
}

/// The call that `caller` made ends with an error; an upcall that fails is the end of its domain, once `caller` goes on.
fn fail_call(caller: Ref<Activation>, error: Error) {
    if caller.frame == Frame::Full {
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

fn take_off_orphan(mut thread: Ref<Thread>, mut last: Ref<Activation>) {
    last.thread = None;
    release(last);
    trace::cut(thread, None);
    (thread.top, thread.bottom) = (None, None);
    adopt_next(thread);
}

/// The orphan thread, which has no chain, takes the next one of its domain's queue.
fn adopt_next(thread: Ref<Thread>) -> bool {
    let mut home = thread.home;
    let Some(mut top) = home.orphans.take() else { return false };
    top.wait = Wait::No;
    adopt(thread, top);
    true
}

fn adopt(mut thread: Ref<Thread>, top: Ref<Activation>) {
    let mut priority = 0;
    thread.bottom = set_thread(top, Some(thread), |activation| priority = lending::higher(activation, priority));
    (thread.top, thread.fresh, thread.left) = (Some(top), true, thread.slice);
    lending::settle_at(thread, priority);
}

/// The orphan thread lets go of its chain.
fn put_down(mut thread: Ref<Thread>, top: Ref<Activation>) {
    trace::cut(thread, None);
    set_thread(top, None, |_| ());
    (thread.top, thread.bottom) = (None, None);
}

/// The chain of an orphan thread, which has stopped, waits: the next orphan has its turn.
pub fn leave_waiting(thread: Ref<Thread>) {
    if let Some(top) = thread.top {
        put_down(thread, top);
    }
    if adopt_next(thread) {
        schedule::make_ready(thread);
    }
}

/// The chain of an orphan thread, which does not run, waits for its next turn if an orphan of its domain waits that ranks no lower:
/// that has its turn now.
pub fn take_turns(thread: Ref<Thread>) {
    let next = thread.home.orphans.head.filter(|next| next.amount >= thread.priority);
    if let (Some(top), true) = (thread.top, next.is_some()) {
        put_down(thread, top);
        park(top, thread.home);
        adopt_next(thread);
    }
}

/// An orphan that waits for its turn has what somebody of this priority waits for: it ranks so, before others that do, and has
/// its turn at once if the orphan that has one now does not rank higher.
pub fn hasten(mut top: Ref<Activation>, priority: u8) {
    let mut home = top.awaited_domain();
    home.orphans.remove(top);
    top.amount = top.amount.max(priority);
    home.orphans.insert(top, |other| other.amount <= top.amount);
    let Some(mut thread) = home.orphan_thread.filter(|thread| thread.priority <= priority) else { return };
    if thread.runs == Runs::Ready {
        take_turns(thread);
        schedule::post_again(thread);
    } else {
        thread.priority = priority;
        schedule::interrupt(thread.cpu);
    }
}

/// Sets the thread of a whole chain, from its top down, and does something else with each; gives the bottom.
#[inline(always)]
fn set_thread(top: Ref<Activation>, thread: Link<Thread>, mut each: impl FnMut(Ref<Activation>)) -> Link<Activation> {
    let mut activation = top;
    loop {
        activation.thread = thread;
        trace::adopt(thread, activation, activation == top);
        each(activation);
        match activation.caller {
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
    while let Some(caller) = bottom.caller {
        bottom = caller;
    }
    let domain = bottom.domain;
    match domain.orphan_thread {
        Some(thread) if thread.top.is_none() => {
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
fn park(mut top: Ref<Activation>, mut domain: Ref<Domain>) {
    (top.wait, top.waits_on) = (Wait::Orphans, domain.address());
    top.amount = lending::priority_of(top);
    domain.orphans.insert(top, |other| other.amount < top.amount);
    if let Some(mut thread) = domain.orphan_thread {
        thread.moves = true;
    }
}

/// Cuts the chain above `lower`, which is calling. Afterwards `lower` is the top of its thread, which
/// does not run; the upper part is an orphan.
pub fn split_above(mut lower: Ref<Activation>) {
    if let Some(thread) = lower.thread {
        cpu::hold_up_thread(thread);
    }
    let (Some(mut upper), thread) = (lower.callee, lower.thread) else { return };
    info::counters().splits += 1;
    (upper.caller, lower.callee, lower.state) = (None, None, State::Top);
    let mut top = upper;
    // Who was returned to keeps its last callee.
    while let (State::Calling, Some(callee)) = (top.state, top.callee) {
        top = callee;
    }
    if top.wait == Wait::Orphans {
        stop_waiting(top);
    }
    let waiting = top.wait != Wait::No;
    deadline::clear(lower);
    if let Some(mut thread) = thread {
        trace::cut(thread, Some(lower));
        thread.top = Some(lower);
        lending::settle(thread);
    }
    // It goes on as urgently as before.
    let base = thread.map_or(0, |thread| thread.bottom.map_or(0, |bottom| bottom.base).max(thread.own_priority));
    upper.base = upper.base.max(base.min(upper.domain.max_priority));
    let runs = thread.map_or(Runs::Blocked, |thread| thread.runs);
    let runs_on = thread.filter(|thread| thread.runs == Runs::Running).map(|thread| thread.cpu);
    match upper.domain.orphan_thread.filter(|orphan| orphan.top.is_none() && !waiting) {
        Some(mut orphan) => {
            adopt(orphan, top);
            if let Some(mut cpu) = runs_on {
                let now = timer::now();
                (orphan.runs, orphan.started, orphan.cpu) = (Runs::Running, now, cpu);
                orphan.slice_end = now + orphan.slice;
                cpu.thread = Some(orphan);
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
        && let Some(mut thread) = thread
    {
        thread.runs = Runs::Blocked;
    }
}

/// Takes an activation, whose domain is dead or whose thread is removed, out of its chain and queues.
/// What it called goes on as an orphan; who called it gets `PeerDied`.
pub fn cut_out(mut activation: Ref<Activation>) {
    if activation.state == State::Free {
        activation.domain.shares().for_each(|mut share| share.pool = None);
        return;
    }
    if let Some(thread) = activation.thread {
        cpu::hold_up_thread(thread);
    }
    if activation.state == State::Calling {
        split_above(activation);
    }
    stop_waiting(activation);
    let thread = activation.thread;
    let caller = activation.caller.take();
    (activation.thread, activation.state) = (None, State::Free);
    if let Some(mut caller) = caller {
        (caller.callee, caller.state) = (None, State::Top);
        deadline::clear(caller);
        fail_call(caller, Error::PeerDied);
        if let Some(mut thread) = thread {
            trace::cut(thread, Some(caller));
            thread.top = Some(caller);
            look_anew(thread);
        }
        resume(caller);
    } else if let Some(mut thread) = thread {
        trace::cut(thread, None);
        (thread.top, thread.bottom) = (None, None);
        if thread.runs == Runs::Running {
            thread.cpu.leave_thread();
        }
        thread.runs = Runs::Blocked;
        if thread.carries_orphans {
            leave_waiting(thread);
        } else {
            thread.ended = true;
        }
    }
}

/// What the top of a thread was is so no more: if it runs on another CPU, which is held up, that finds out.
pub fn look_anew(thread: Ref<Thread>) {
    if thread.runs == Runs::Running {
        let mut home = thread.cpu;
        home.disturbed |= home != cpu::this();
    }
}

/// Takes the top of a chain out of whatever queue it is in.
pub fn stop_waiting(mut activation: Ref<Activation>) {
    deadline::clear(activation);
    match activation.wait {
        Wait::Semaphore => {
            activation.semaphore().give_up(activation);
            if activation.holder.is_some() {
                lending::end(activation);
            }
        }
        Wait::Pool => {
            let mut domain = activation.awaited_domain();
            domain.waiters.remove(activation);
            if activation.frame == Frame::Words {
                // The call is not made again.
                activation.registers.pc += memory::SYSTEM_CALL_BYTES;
            }
        }
        Wait::Orphans => {
            let mut domain = activation.awaited_domain();
            domain.orphans.remove(activation);
        }
        Wait::No => {}
    }
    activation.wait = Wait::No;
}

/// The deadline of `activation` has passed: what it waits for or called ends with `Timeout`.
pub fn time_out(activation: Ref<Activation>) {
    if activation.state == State::Calling {
        split_above(activation);
    } else {
        stop_waiting(activation);
    }
    fail_call(activation, Error::Timeout);
    resume(activation);
}

/// A called activation ends without returning: its caller gets `PeerDied`.
pub fn abandon_call(thread: Ref<Thread>, top: Ref<Activation>) -> ! {
    match top.caller {
        Some(caller) => {
            unlink_top(thread, top, caller);
            fail_call(caller, Error::PeerDied);
            resume_top(thread)
        }
        None => end_orphan(thread, top),
    }
}
