//! The nucleus's side of the `sched` protocol (`abi::sched`). No queue of ready threads is here.
//!
//! Invariant: a thread that is `Ready` was posted to the active seat's ring since it last ran, or given
//! to `sched` as operand of an event; `sched` has it in its queue once it has read the ring. A number
//! whose last post is still unread is not posted again: so it is in the ring at most once, and the ring
//! has a slot for each.

use crate::activation::{self, Activation, State};
use crate::arch::paging;
use crate::arch::{entry, special, timer};
use crate::chain;
use crate::cpu::{self, Cpu};
use crate::domain::Domain;
use crate::lock;
use crate::log::{self, Part};
use crate::pointer::{Fresh, Held, Link, Nucleus, Ref};
use crate::semaphore::Reply;
use crate::thread::{self, Runs, Thread};
use crate::{deadline, frames, info, slab, trace};
use abi::sched::{Event, IDLE, RUN, Ring as SharedRing, ThreadWord, hand_to};
use abi::{Error, MAX_DEPTH, MAX_THREADS};
use core::cell::Cell;
use core::sync::atomic::AtomicU32;
use parallel::ring::{self, Ring};

/// Microseconds that `sched` may take between being entered and dispatching.
const PATIENCE_MICROSECONDS: u64 = 10_000;

/// How often it may take half as long again.
const CHANCES: u8 = 3;

/// Where a scheduler is entered.
#[derive(Clone, Copy)]
pub struct Seat {
    activation: Ref<Activation>,
    thread: Ref<Thread>,
    /// Whose it is.
    pub domain: Ref<Domain>,
    ring: *mut SharedRing,
}

struct Seats {
    standby: Cell<Option<Seat>>,
    /// CPUs with a scheduler.
    taken: Cell<usize>,
    /// How long `sched` may take, in ticks.
    patience: Cell<u64>,
    /// Runs when the first boot thread ends.
    boot_successor: Cell<Link<Thread>>,
}

static SEATS: Nucleus<Seats> = Nucleus::new(Seats {
    standby: Cell::new(None),
    taken: Cell::new(0),
    patience: Cell::new(0),
    boot_successor: Cell::new(None),
});

/// Whether this is the pseudo-thread of a scheduler's seat.
pub fn is_seat(thread: Ref<Thread>) -> bool {
    thread.number == 0
}

/// The thread that runs after the first boot thread, before there is a scheduler.
pub fn set_boot_successor(thread: Ref<Thread>) {
    let held = thread.held();
    SEATS.get(held).boot_successor.set(Some(thread));
}

/// The words of a ring.
#[inline(always)]
fn words_of(ring: *mut SharedRing) -> Ring<'static> {
    // SAFETY: a ring is a page of the nucleus that its seat's activation owns; whoever touches its words does it
    // atomically.
    unsafe {
        Ring {
            written: AtomicU32::from_ptr(&raw mut (*ring).written),
            read: AtomicU32::from_ptr(&raw mut (*ring).read),
            slots: &*(&raw const (*ring).slots).cast::<[AtomicU32; abi::sched::RING_SLOTS]>(),
        }
    }
}

/// Whether a ring holds what its scheduler has not read.
#[inline(always)]
fn is_unread(ring: *mut SharedRing) -> bool {
    // SAFETY: a ring is a page of the nucleus that its seat's activation owns; whoever touches these two words does it
    // atomically.
    unsafe {
        let [written, read] = [&raw mut (*ring).written, &raw mut (*ring).read].map(|word| AtomicU32::from_ptr(word));
        ring::is_unread(written, read)
    }
}

/// `Cpu::ring` while threads are still to be handed over: never read to the end.
static UNREAD: [AtomicU32; 2] = [AtomicU32::new(1), AtomicU32::new(0)];

impl Seat {
    fn ring(&self) -> Ring<'static> {
        words_of(self.ring)
    }
}

/// Tells the thread's scheduler that it is ready; without one it is told when it takes its seat.
#[inline(always)]
fn post(thread: Ref<Thread>) {
    let home = thread.cpu.get();
    if let Some(seat) = thread.cpu.get().seat.get() {
        let number = thread.number as usize % MAX_THREADS;
        let same = |word| ThreadWord(word).number() == number;
        let posted = &home.posted[number];
        posted.set(seat.ring().post(thread.word() as u32, posted.get() as u32, same) as u16);
    }
}

/// A thread that is ready has another priority now.
pub fn post_again(thread: Ref<Thread>) {
    post(thread);
}

/// The thread can run: hands it to the scheduler of its CPU. True if it precedes what runs here.
#[inline]
pub fn make_ready(thread: Ref<Thread>) -> bool {
    if thread.runs.get() != Runs::Blocked || thread.ended.get() {
        return false;
    }
    trace::wake(thread);
    thread.runs.set(Runs::Ready);
    hand_in(thread)
}

/// Posts a ready thread and interrupts what it precedes on its CPU; true if that is here.
fn hand_in(thread: Ref<Thread>) -> bool {
    let held = thread.held();
    let home = thread.cpu.get();
    if home.seat.get().is_none() {
        // Its CPU has no scheduler, or lost it while the thread waited.
        return SEATS.get(held).taken.get() != 0 && move_away(thread);
    }
    post(thread);
    let precedes = home.idle.get()
        || home.thread.get().is_some_and(|current| !is_seat(current) && thread.priority.get() > current.priority.get());
    if precedes {
        interrupt(home);
    }
    precedes && home == cpu::this(held)
}

/// What runs on a CPU gives way to `sched`, here when the running operation ends.
pub fn interrupt(cpu: Ref<Cpu>) {
    let held = cpu.held();
    cpu.preempt.set(true);
    if cpu != cpu::this(held) {
        cpu::this(held).counts.wakes.update(|count| count + 1);
        cpu::kick(cpu);
    }
}

/// A light operation that ends with success gives way to what precedes it now.
pub fn precede_from_operation(held: Held) {
    if let Some(activation) = cpu::this(held).activation.get() {
        activation.set_result(Ok(0));
    }
    give_way(held, Event::Preempted);
}

/// The running thread, whose frame is complete, goes back to `sched` with `event`.
pub fn give_way(held: Held, event: Event) -> ! {
    let cpu = cpu::this(held);
    cpu.preempt.set(false);
    let Some(seat) = cpu.seat.get() else { give_way_to_nobody(cpu) };
    let now = timer::now();
    match cpu.thread.get().filter(|thread| !is_seat(*thread)) {
        Some(thread) => {
            trace::stop(thread, event as u64);
            stop(thread, Runs::Ready, now);
            thread.left.set(if event == Event::Preempted {
                thread.slice_end.get().saturating_sub(now).max(1)
            } else {
                thread.slice.get()
            });
            enter_seat(held, seat, event, thread.word(), now)
        }
        None => enter_seat(held, seat, Event::Choose, 0, now),
    }
}

/// There is no scheduler on this CPU: before the first took its seat the running thread goes on; afterwards it goes to
/// another CPU.
#[cold]
fn give_way_to_nobody(cpu: Ref<Cpu>) -> ! {
    let held = cpu.held();
    if SEATS.get(held).taken.get() == 0 {
        match cpu.activation.get() {
            Some(activation) => activation.leave(),
            None => boot_next(held),
        }
    }
    if let Some(thread) = cpu.thread.get().filter(|thread| !is_seat(*thread)) {
        stop(thread, Runs::Ready, timer::now());
        move_away(thread);
    }
    idle(held)
}

/// A thread goes to a CPU that has a scheduler, if possible one on which it may run; true if it precedes what runs here.
pub fn move_away(thread: Ref<Thread>) -> bool {
    let held = thread.held();
    let seated = |cpu: &Ref<Cpu>| cpu.seat.get().is_some();
    let allowed = |cpu: &Ref<Cpu>| thread.may_run_on(*cpu);
    let found = cpu::all(held).find(|cpu| seated(cpu) && allowed(cpu)).or_else(|| cpu::all(held).find(seated));
    let Some(cpu) = found else { return false };
    thread.go_to(cpu);
    thread.runs.get() == Runs::Ready && hand_in(thread)
}

/// `op::YIELD`.
pub fn yield_(held: Held, _: u64, _: u64) -> Reply {
    let cpu = cpu::this(held);
    let (Some(thread), Some(seat)) = (cpu.thread.get().filter(|thread| !is_seat(*thread)), cpu.seat.get()) else {
        return Err(Error::NotRunnable).into();
    };
    if let Some(activation) = cpu.activation.get() {
        // Its frame is light: it made an operation that is.
        activation.registers.set_result(0, 0);
    }
    let now = timer::now();
    trace::stop(thread, Event::Yielded as u64);
    stop(thread, Runs::Ready, now);
    enter_seat(held, seat, Event::Yielded, thread.word(), now)
}

/// The running thread waits; its frame is complete.
#[inline(always)]
pub fn block_current(held: Held) -> ! {
    let now = timer::now();
    if let Some(thread) = cpu::this(held).thread.get().filter(|thread| !is_seat(*thread)) {
        trace::stop(thread, 0);
        stop(thread, Runs::Blocked, now);
        if thread.carries_orphans {
            chain::leave_waiting(thread);
        }
    }
    match cpu::this(held).seat.get() {
        Some(seat) => enter_seat(held, seat, Event::Choose, 0, now),
        None => without_seat(held),
    }
}

#[cold]
fn without_seat(held: Held) -> ! {
    if SEATS.get(held).taken.get() == 0 && cpu::this(held).number == 0 { boot_next(held) } else { idle(held) }
}

#[inline(always)]
fn stop(thread: Ref<Thread>, runs: Runs, now: u64) {
    thread.runs.set(runs);
    thread.used.update(|value| value + (now - thread.started.get()));
}

/// Enters `sched` at its entry.
pub fn enter(held: Held, event: Event, word: u64) -> ! {
    match cpu::this(held).seat.get() {
        Some(seat) => enter_seat(held, seat, event, word, timer::now()),
        None => without_seat(held),
    }
}

#[inline(always)]
fn enter_seat(held: Held, seat: Seat, event: Event, word: u64, now: u64) -> ! {
    trace::schedule(seat.domain, event as u64);
    let cpu = cpu::this(held);
    cpu.patience_ends.set(now + SEATS.get(held).patience.get());
    timer::arm_no_later_than(held, cpu.patience_ends.get());
    cpu.thread.set(Some(seat.thread));
    if seat.activation.is_special() {
        enter_specially(event as u64, word, seat.activation)
    }
    seat.activation.make_current_plainly();
    seat.activation.leave_to_entry(event as u64, word)
}

#[inline(never)]
fn enter_specially(event: u64, word: u64, seat: Ref<Activation>) -> ! {
    seat.make_current();
    seat.leave_to_entry(event, word)
}

/// Before a scheduler took its seat only one thread runs; when it ends, its successor does.
fn boot_next(held: Held) -> ! {
    match SEATS.get(held).boot_successor.take() {
        Some(thread) => run(thread),
        None => panic!("the last boot thread stopped before a scheduler took its seat"),
    }
}

/// Lets a thread, which is ready, run now.
#[inline(always)]
pub fn run(thread: Ref<Thread>) -> ! {
    let held = thread.held();
    cpu::this(held).preempt.set(false);
    let now = timer::now();
    thread.runs.set(Runs::Running);
    thread.started.set(now);
    thread.slice_end.set(now + thread.left.get());
    timer::arm_no_later_than(held, thread.slice_end.get());
    cpu::this(held).thread.set(Some(thread));
    trace::run(thread);
    chain::resume_top(thread)
}

/// `op::DISPATCH`.
pub fn dispatch(held: Held, what: u64, number: u64) -> Reply {
    let cpu = cpu::this(held);
    // Who runs as a seat's thread has the seat of this CPU, and a ring.
    if !cpu.thread.get().is_some_and(is_seat) {
        return Err(Error::NoRight).into();
    }
    if what != RUN {
        return hand_over_to(held, what, number).into();
    }
    if is_unread(cpu.ring.get()) {
        if cpu.hands_over.get() != 0 {
            hand_over_step(cpu);
        }
        info::counters(held).again.up();
        return Err(Error::Again).into();
    }
    if number as usize == IDLE {
        cpu.counts.dispatches.update(|value| value + 1);
        idle(held);
    }
    match thread::by_number(held, number as usize) {
        Some(thread) if thread.can_run() && thread.cpu.get() == cpu => {
            cpu.counts.dispatches.update(|value| value + 1);
            run(thread)
        }
        Some(thread) if thread.moves.get() && thread.runs.get() == Runs::Ready && thread.cpu.get() == cpu => {
            if thread.carries_orphans {
                cpu.counts.dispatches.update(|value| value + 1);
                run_orphan(thread)
            }
            move_away(thread);
        }
        _ => {}
    }
    info::counters(held).not_runnable.up();
    Err(Error::NotRunnable).into()
}

/// As [`run`], of an orphan thread: whoever had its turn goes behind the orphans that wait for theirs.
#[cold]
fn run_orphan(thread: Ref<Thread>) -> ! {
    if !thread.fresh.get() {
        chain::take_turns(thread);
    }
    thread.fresh.set(false);
    thread.moves.set(thread.home.orphans.head.get().is_some());
    run(thread)
}

/// A scheduler hands a ready thread that was taken out of its ring to another one, or takes it.
#[cold]
fn hand_over_to(held: Held, what: u64, number: u64) -> Result<u64, Error> {
    let target = (what as usize).wrapping_sub(hand_to(0) as usize);
    let target = cpu::of(held, target).filter(|cpu| cpu.seat.get().is_some()).ok_or(Error::BadArgument)?;
    let found = thread::by_number(held, number as usize).filter(|thread| thread.runs.get() == Runs::Ready);
    let thread = found.ok_or(Error::NotRunnable)?;
    if !thread.may_run_on(target) {
        return Err(Error::BadArgument);
    }
    let is_same = |word| ThreadWord(word).number() == number as usize;
    let posted = thread.cpu.get().posted[number as usize % MAX_THREADS].get();
    if thread.cpu.get().seat.get().is_some_and(|seat| seat.ring().holds(posted as u32, is_same)) {
        return Err(Error::NotRunnable);
    }
    thread.go_to(target);
    target.counts.received.update(|value| value + 1);
    hand_in(thread);
    Ok(0)
}

/// Nothing can run: clears frames ahead, then sleeps until an interrupt.
fn idle(held: Held) -> ! {
    let cpu = cpu::this(held);
    cpu::rest(held, true);
    trace::idle(held);
    if cfg!(feature = "checked") {
        let runs_here = |thread: Ref<Thread>| thread.runs.get() == Runs::Running && thread.cpu.get() == cpu;
        if let Some(number) =
            (1..thread::numbers_used(held)).find(|number| thread::by_number(held, *number).is_some_and(runs_here))
        {
            panic!("thread {number} runs while its CPU is idle");
        }
    }
    if cpu.domain.get().is_some_and(|domain| domain.is_dead()) {
        paging::leave_space(held);
    }
    special::save(held);
    timer::arm_no_later_than(held, deadline::earliest(held));
    while !lock::is_wanted() {
        // SAFETY: the idle CPU has nothing on its stack that is needed: an interrupt that comes now begins anew.
        unsafe { entry::interrupt_window() }
        if !frames::clear_one_ahead(held) {
            break;
        }
    }
    if cpu.seat.get().is_some() && is_unread(cpu.ring.get()) {
        wake_up(held)
    }
    cpu.disturbed.set(false);
    // SAFETY: the idle CPU has nothing on its stack; the next interrupt begins anew.
    unsafe { entry::idle_wait() }
}

fn wake_up(held: Held) -> ! {
    cpu::rest(held, false);
    // What was changed while it slept is seen now.
    cpu::this(held).disturbed.set(false);
    enter(held, Event::Choose, 0)
}

/// A CPU that just joined, with the lock, waits until it gets a scheduler.
pub fn begin(held: Held) -> ! {
    idle(held)
}

/// From `entry.s`, with an empty stack.
#[unsafe(export_name = "go_on")]
extern "C" fn go_on_from_entry() -> ! {
    // SAFETY: the way here took the lock.
    go_on(unsafe { Held::new() })
}

/// Goes on with whatever runs on this CPU, which others may have changed.
pub fn go_on(held: Held) -> ! {
    let cpu = cpu::this(held);
    let is_new = cpu.disturbed.take() || cpu.activation.get().is_none();
    if let Some(thread) = cpu.thread.get().filter(|thread| !is_seat(*thread)) {
        if cpu.preempt.get() {
            give_way(held, Event::Preempted)
        }
        if is_new {
            // It may be that the timer's interrupt was taken just now.
            timer::arm_no_later_than(held, thread.slice_end.get());
            chain::resume_top(thread)
        }
    } else if is_new {
        enter(held, Event::Choose, 0)
    }
    match cpu.activation.get() {
        Some(activation) => activation.leave(),
        None => enter(held, Event::Choose, 0),
    }
}

/// Lets interrupts and other CPUs in. If there are any this does not return: the running activation goes on later with what
/// it has saved, so that must be whole.
pub fn preemption_point(held: Held) {
    if lock::is_wanted() {
        lock::pass();
        // SAFETY: nothing is borrowed, and nothing on the stack is needed any more.
        unsafe { entry::go_on_afresh() }
    }
    window(held);
}

/// As [`preemption_point`], when nothing is known but what the running activation has saved: if only other CPUs want
/// the lock this returns when they had it.
pub fn pause(held: Held) {
    if lock::is_wanted() {
        lock::pass();
        if cpu::this(held).disturbed.get() {
            // SAFETY: nothing is borrowed, and nothing on the stack is needed: what goes on later is saved in the activation.
            unsafe { entry::go_on_afresh() }
        }
    }
    window(held);
}

fn window(held: Held) {
    cpu::this(held).window.set(true);
    // SAFETY: by contract of the callers.
    unsafe { entry::interrupt_window() }
    cpu::this(held).window.set(false);
}

/// After an interrupt: goes on with what was interrupted, or with `sched` if something precedes it.
pub fn after_interrupt(held: Held) -> ! {
    let cpu = cpu::this(held);
    if cpu.idle.get() {
        if cpu.seat.get().is_some() && is_unread(cpu.ring.get()) {
            wake_up(held)
        }
        cpu::rest(held, false);
        idle(held)
    }
    let now = timer::now();
    let Some(thread) = cpu.thread.get() else { enter(held, Event::Choose, 0) };
    if is_seat(thread) {
        if now >= cpu.patience_ends.get() && cpu.chances_of.get() != cpu.counts.dispatches.get() {
            cpu.chances.set(0);
            cpu.chances_of.set(cpu.counts.dispatches.get());
        }
        if now >= cpu.patience_ends.get() && cpu.chances.get() < CHANCES {
            // Once more: it may be that the CPU itself did not run, if it is one of an emulator.
            cpu.patience_ends.set(now + SEATS.get(held).patience.get() / 2);
            cpu.chances.update(|value| value + 1);
        }
        if now >= cpu.patience_ends.get() {
            let patience = Part::Number(PATIENCE_MICROSECONDS);
            log::line(held, &[Part::Text("the scheduler did not dispatch for microseconds: "), patience]);
            let domain = thread.home;
            crate::domain::die(domain, abi::info::status::KILLED);
            enter(held, Event::Choose, 0)
        }
        timer::arm_no_later_than(held, cpu.patience_ends.get());
    } else if SEATS.get(held).taken.get() == 0 {
        // Before a scheduler took its seat one thread runs until it ends.
    } else if cpu.preempt.get() || cpu.seat.get().is_none() {
        give_way(held, Event::Preempted)
    } else if now >= thread.slice_end.get() {
        give_way(held, Event::SliceEnded)
    } else {
        timer::arm_no_later_than(held, thread.slice_end.get());
    }
    go_on(held)
}

/// `DOMAIN_SET`, `SET_SCHEDULER`: `domain` takes the seat of a CPU, or stands by for all; `which` is the operation's operand.
pub fn take_seat(domain: Ref<Domain>, entry: u64, stack: u64, which: u64) -> Result<u64, Error> {
    let held = domain.held();
    const STANDBY: u64 = 1;
    let target = usize::try_from(which >> 8).ok().and_then(|number| cpu::of(held, number));
    let target = target.filter(|_| which & 0xff & !STANDBY == 0).ok_or(Error::BadArgument)?;
    activation::check_address(entry)?;
    let activation = activation::new(domain, stack)?;
    let mut thread: Fresh<Thread> = match slab::allocate(domain.account) {
        Ok(thread) => thread,
        Err(error) => {
            activation::free_first(domain);
            return Err(error);
        }
    };
    thread.home = domain;
    let thread = thread.share();
    activation.bottom.set(true);
    activation.state.set(State::Top);
    activation.thread.set(Some(thread));
    activation.entry.set(entry);
    // It is entered anew at any time, so it calls nobody: it is as deep as a chain may be.
    activation.depth.set(MAX_DEPTH as u16 - 1);
    thread.top.set(Some(activation));
    thread.bottom.set(Some(activation));
    thread.priority.set(u8::MAX);
    thread.runs.set(Runs::Blocked);
    thread.cpu.set(target);
    let ring = activation.message_kernel as *mut SharedRing;
    let seat = Seat { activation, thread, domain, ring };
    let seats = SEATS.get(held);
    seats.patience.set(timer::from_microseconds(PATIENCE_MICROSECONDS));
    // SAFETY: the nucleus writes this word once, and nobody has seen the ring.
    unsafe { (*ring).ticks = seats.patience.get() as u32 }
    if which & STANDBY != 0 {
        if let Some(old) = seats.standby.replace(Some(seat)) {
            retire(old);
        }
        return Ok(activation.message);
    }
    if target != cpu::this(held) {
        cpu::hold_up(target);
    }
    match target.seat.replace(Some(seat)) {
        Some(old) if target.thread.get() == Some(old.thread) => {
            // It runs there; what it chooses comes to nothing.
            target.leave_thread();
            retire_or_keep(held, old);
        }
        Some(old) => retire_or_keep(held, old),
        None => seats.taken.update(|taken| taken + 1),
    }
    hand_over(target);
    Ok(activation.message)
}

/// Who lost its seat stands by if nobody else does.
fn retire_or_keep(held: Held, old: Seat) {
    let standby = &SEATS.get(held).standby;
    if standby.get().is_none() {
        standby.set(Some(old));
    } else {
        retire(old);
    }
}

fn retire(seat: Seat) {
    // Its activation goes with its domain.
    seat.activation.thread.set(None);
    seat.activation.state.set(State::Free);
    slab::free(seat.thread);
}

/// The new scheduler of a CPU is to get every thread of that CPU that is ready, and those of CPUs that have no scheduler: a
/// few whenever it dispatches, before it may.
fn hand_over(target: Ref<Cpu>) {
    let held = target.held();
    target.hands_over.set(1);
    target.ring.set((&raw const UNREAD).cast_mut().cast());
    if target != cpu::this(held) {
        cpu::kick(target);
    }
}

/// Numbers of threads that one step of a hand-over looks at.
const HANDED_OVER: usize = 16;

#[cold]
fn hand_over_step(cpu: Ref<Cpu>) {
    let held = cpu.held();
    let first = cpu.hands_over.get() as usize;
    let end = thread::numbers_used(held).min(first + HANDED_OVER);
    for number in first..end {
        match thread::by_number(held, number).filter(|thread| thread.runs.get() == Runs::Ready) {
            Some(thread) if thread.cpu.get() == cpu => post(thread),
            Some(thread) if thread.cpu.get().seat.get().is_none() => drop(move_away(thread)),
            _ => {}
        }
    }
    cpu.hands_over.set(end as u16);
    if end == thread::numbers_used(held) {
        cpu.hands_over.set(0);
        cpu.ring.set(cpu.seat.get().map_or(core::ptr::null_mut(), |seat| seat.ring));
    }
}

/// A domain died: if it held seats, the standby takes over one, and the threads of the others go to other CPUs.
pub fn domain_died(domain: Ref<Domain>) {
    let held = domain.held();
    let seats = SEATS.get(held);
    if let Some(seat) = seats.standby.get().filter(|seat| seat.domain == domain) {
        seats.standby.set(None);
        retire(seat);
    }
    for cpu in cpu::all(held) {
        let Some(seat) = cpu.seat.get().filter(|seat| seat.domain == domain) else { continue };
        cpu.seat.set(seats.standby.take());
        cpu.patience_ends.set(u64::MAX);
        info::counters(held).standby.up();
        if cpu.thread.get() == Some(seat.thread) {
            cpu.thread.set(cpu.seat.get().map(|seat| seat.thread));
            if cpu != cpu::this(held) && !cpu.idle.get() {
                cpu.leave_thread();
            }
        }
        if cpu.seat.get().is_some() {
            log::line(held, &[Part::Text("the standby scheduler takes over")]);
            hand_over(cpu);
        } else {
            seats.taken.update(|taken| taken - 1);
            if seats.taken.get() == 0 {
                panic!("the scheduler died and no standby is there");
            }
            leave_to_others(cpu);
        }
        retire(seat);
    }
}

/// The threads of a CPU that lost its scheduler go to other CPUs.
#[cold]
fn leave_to_others(cpu: Ref<Cpu>) {
    let held = cpu.held();
    let number = Part::Number(cpu.number as u64);
    log::line(held, &[Part::Text("the scheduler died and no standby is there: nothing runs any more on CPU "), number]);
    if let Some(heir) = cpu::all(held).find(|cpu| cpu.seat.get().is_some()) {
        hand_over(heir);
    }
    if cpu != cpu::this(held) {
        cpu::kick(cpu);
    }
}

/// Ends the wait or call whose deadline is the earliest, if that has passed. If another has, too, the timer's next
/// interrupt comes at once.
pub fn deadline_passed(held: Held) {
    if let Some(activation) = deadline::due(held, timer::now()) {
        chain::time_out(activation);
    }
}
