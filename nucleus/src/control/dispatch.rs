//! The choice of what runs next on a CPU: entering `sched`, running and blocking threads, idling, leaving the nucleus.
//!
//! All of this holds the nucleus lock, except the entries that wait for it (`lock_wait_with`, `lock_wait_given`). Leaving for
//! user mode and sleeping release it. A function with the result `!` drops the kernel stack, and what ran resumes later from
//! its activation alone. So its caller has saved the registers that [`SavedFrame`] names, and borrows nothing. The same holds
//! for functions that may not return, such as [`preemption_point`].

use super::chain::{self, fail_call, take_off_orphan, unlink_top};
use super::ready::{hand_over_step, hand_over_to, has_more, is_unread, move_away, rank_again, seats, words_read};
use super::{deadline, fault, numbers, port};
use crate::cpus::assembly;
use crate::cpus::{counters, cpu, lock, root, special, timer, translations};
use crate::memory::{frames, shapes};
use crate::objects::{Activation, Cpu, Entry, Reply, Runs, STEPS, SavedFrame, Seat, Thread, is_seat};
use crate::pointer::{Held, Link, Ref};
use crate::report::trace;
use abi::Error;
use abi::rights::Kind;
use abi::sched::{Event, IDLE, MOST_READ, RUN};

/// Ends a light operation with success, then preempts its thread.
pub fn preempt_after_operation(held: Held) {
    if let Some(activation) = cpu::this(held).activation.get() {
        activation.set_result(Ok(0));
    }
    give_way(held, Event::Preempted);
}

/// Preempts the running thread, whose frame is complete: enters `sched` with `event`.
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

/// This CPU has no scheduler. Before the first scheduler takes a seat, the running thread continues; afterwards it migrates.
#[cold]
fn give_way_to_nobody(cpu: Ref<Cpu>) -> ! {
    let held = cpu.held();
    if seats(held).taken.get() == 0 {
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

/// `op::YIELD`.
pub fn yield_(held: Held, _: u64, _: u64) -> Reply {
    let cpu = cpu::this(held);
    let Some(thread) = cpu.thread.get().filter(|thread| !is_seat(*thread)) else {
        return Err(Error::IsScheduler).into();
    };
    // There are no other threads before there are schedulers, nor on a CPU that lost its own.
    let Some(seat) = cpu.seat.get() else { return Ok(0).into() };
    if let Some(activation) = cpu.activation.get() {
        // The frame is light, as is the operation.
        activation.registers.set_result(0, 0);
    }
    let now = timer::now();
    trace::stop(thread, Event::Yielded as u64);
    stop(thread, Runs::Ready, now);
    thread.left.set(thread.slice.get());
    enter_seat(held, seat, Event::Yielded, thread.word(), now)
}

/// Blocks the running thread, whose frame is complete.
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
    if seats(held).taken.get() == 0 && cpu::this(held).number == 0 { boot_next(held) } else { idle(held) }
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
    cpu.patience_ends.set(now + seats(held).patience.get());
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

/// Before a scheduler takes a seat, only one thread runs; when it ends, its successor does.
fn boot_next(held: Held) -> ! {
    match seats(held).boot_successor.take() {
        Some(thread) => run_rarely(thread),
        None => panic!("the last boot thread ended before a scheduler took a seat"),
    }
}

/// Switches to a ready thread.
#[inline(always)]
fn run(thread: Ref<Thread>) -> ! {
    let held = thread.held();
    cpu::this(held).preempt.set(false);
    let now = timer::now();
    thread.runs.set(Runs::Running);
    thread.started.set(now);
    thread.slice_end.set(now + thread.left.get());
    timer::arm_no_later_than(held, thread.slice_end.get());
    cpu::this(held).thread.set(Some(thread));
    trace::run(thread);
    resume_top(thread)
}

/// As [`run`], where its speed does not count.
#[cold]
#[inline(never)]
pub fn run_rarely(thread: Ref<Thread>) -> ! {
    run(thread)
}

/// `op::DISPATCH`.
pub fn dispatch(held: Held, what: u64, number: u64) -> Reply {
    let cpu = cpu::this(held);
    // The thread of a seat holds this CPU's seat, and has a ring.
    if !cpu.thread.get().is_some_and(is_seat) {
        return Err(Error::NotScheduler).into();
    }
    if what != RUN {
        return hand_over_to(held, what, number).into();
    }
    if is_unread(cpu.ring.get()) {
        return dispatch_unread(cpu, number);
    }
    match chosen(cpu, number) {
        Some(thread) => run(thread),
        None => refuse(held),
    }
}

/// The thread with that number, if it can run on this CPU. Does not return for [`IDLE`], nor for an orphan thread that runs. Migrates a
/// thread that may not run on this CPU.
#[inline(always)]
fn chosen(cpu: Ref<Cpu>, number: u64) -> Link<Thread> {
    let held = cpu.held();
    match numbers::by_number(held, number as usize) {
        Some(thread) if thread.can_run() && thread.cpu.get() == cpu => {
            cpu.counts.dispatches.update(|value| value + 1);
            return Some(thread);
        }
        Some(thread) if thread.moves.get() => turn_or_move(cpu, thread),
        // No thread has this number.
        None if number as usize == IDLE => {
            cpu.counts.dispatches.update(|value| value + 1);
            idle(held)
        }
        _ => {}
    }
    None
}

/// If the thread carries orphans, runs the one whose turn it is. Otherwise migrates the thread: it may no longer run on this
/// CPU.
#[cold]
#[inline(never)]
fn turn_or_move(cpu: Ref<Cpu>, thread: Ref<Thread>) {
    if thread.runs.get() == Runs::Ready && thread.cpu.get() == cpu {
        if thread.carries_orphans {
            run_orphan(thread);
        } else {
            move_away(thread);
        }
    }
}

#[cold]
fn refuse(held: Held) -> Reply {
    counters::all(held).not_runnable.up();
    Err(Error::NotRunnable).into()
}

/// A thread that was dispatched although there were unread words runs for this part of a scheduler's patience: 78 µs. If it blocks
/// before, the next one is preempted instead, which loses nothing: it goes on with its slice.
const SHORT_SLICES: u64 = 128;

/// As [`dispatch`], if the scheduler's ring has unread words: refused with `Again`, so that the scheduler reads them first.
/// Other CPUs might post for ever, so after [`MOST_READ`] words it may run a thread anyway, for a short slice. A hand-over,
/// of which each call does a step, needs no such limit: it is finite.
#[cold]
fn dispatch_unread(cpu: Ref<Cpu>, number: u64) -> Reply {
    let held = cpu.held();
    let (dispatches, read) = (cpu.counts.dispatches.get() as u32, words_read(cpu.ring.get()));
    if has_more(cpu) {
        hand_over_step(cpu);
    } else if cpu.words_read_of.replace(dispatches) != dispatches {
        cpu.words_read.set(read);
    } else if read.wrapping_sub(cpu.words_read.get()) >= MOST_READ {
        cpu.short_slice_ends.set(timer::now() + seats(held).patience.get() / SHORT_SLICES);
        timer::arm_no_later_than(held, cpu.short_slice_ends.get());
        return chosen(cpu, number).map_or_else(|| refuse(held), |thread| run_rarely(thread));
    }
    counters::all(held).again.up();
    Err(Error::Again).into()
}

/// As [`run`], for an orphan thread. If the turn of its orphan is over, only requeues the orphan: `sched` must dispatch the
/// thread again.
#[cold]
fn run_orphan(thread: Ref<Thread>) {
    if !thread.fresh.get() && !chain::take_turns(thread) {
        return rank_again(thread, 0);
    }
    thread.fresh.set(false);
    thread.moves.set(thread.home.orphans.head().is_some());
    thread.cpu.get().counts.dispatches.update(|value| value + 1);
    run_rarely(thread)
}

/// As [`resume_top`] after a call ended: a thread that waited for it may preempt the running one.
#[inline(never)]
pub fn resume_or_give_way(thread: Ref<Thread>) -> ! {
    let held = thread.held();
    // An orphan thread without a chain stops anyway.
    if cpu::this(held).preempt.get() && thread.top.get().is_some() {
        give_way(held, Event::Preempted)
    }
    resume_top(thread)
}

/// Resumes the chain of the running thread, past dead domains.
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

/// As [`resume_top`], if the top is dead or gone, or has special state.
fn unwind(thread: Ref<Thread>) -> ! {
    let held = thread.held();
    let mut steps = STEPS / 2;
    while let Some(top) = thread.top.get() {
        let is_dead = top.domain.is_dead();
        if cpu::this(held).preempt.get() || is_dead && steps == 0 {
            give_way(held, Event::Preempted)
        }
        if !is_dead {
            top.make_current();
            top.leave()
        }
        steps -= 1;
        chain::end_called(top);
        chain::pass_message_on(top);
        match top.caller.get() {
            Some(caller) => {
                unlink_top(thread, top, caller);
                fail_call(caller, Error::PeerDied);
            }
            None if thread.carries_orphans => take_off_orphan(thread, top),
            None => break,
        }
    }
    if thread.carries_orphans && chain::turn_to_next(thread) {
        // `Preempted`: `sched` puts the thread at the head of its queue.
        give_way(held, Event::Preempted)
    }
    thread.ended.set(!thread.carries_orphans);
    block_current(held)
}

/// Idles: clears frames ahead, then sleeps until an interrupt.
pub fn idle(held: Held) -> ! {
    let cpu = cpu::this(held);
    chain::called_or_not(held);
    begin_idle(held);
    trace::idle(held);
    if cfg!(feature = "checked") {
        let runs_here = |thread: Ref<Thread>| thread.runs.get() == Runs::Running && thread.cpu.get() == cpu;
        if let Some(number) =
            (1..numbers::used(held)).find(|number| numbers::by_number(held, *number).is_some_and(runs_here))
        {
            panic!("thread {number} runs while its CPU is idle");
        }
    }
    if cpu.domain.get().is_some_and(|domain| domain.is_dead()) {
        root::leave(held);
    }
    special::save(held);
    timer::arm_no_later_than(held, deadline::earliest(held));
    while !lock::is_wanted() {
        // SAFETY: an interrupt here continues with an empty stack, and the idle CPU needs nothing on this one.
        unsafe { assembly::interrupt_window() }
        if !frames::clear_one_ahead(held) {
            break;
        }
    }
    if cpu.seat.get().is_some() && is_unread(cpu.ring.get()) {
        wake_up(held)
    }
    cpu.needs_recheck.set(false);
    // SAFETY: the next interrupt continues with an empty stack, and nothing on this one is needed.
    unsafe { assembly::idle_wait() }
}

/// Ends the idle time of the CPU.
pub fn wake_up(held: Held) -> ! {
    end_idle(held);
    // Entering `sched` rechecks everything.
    cpu::this(held).needs_recheck.set(false);
    enter(held, Event::Choose, 0)
}

/// Idles on a CPU that just joined, with the lock, until it gets a scheduler.
pub fn begin(held: Held) -> ! {
    idle(held)
}

/// Called by `entry.s`, on an empty stack.
#[unsafe(export_name = "go_on")]
extern "C" fn go_on_from_entry() -> ! {
    // SAFETY: every path to here took the lock.
    go_on(unsafe { Held::new() })
}

/// Resumes what runs on this CPU, which others may have changed.
pub fn go_on(held: Held) -> ! {
    let cpu = cpu::this(held);
    let is_new = cpu.needs_recheck.take() || cpu.activation.get().is_none();
    if let Some(thread) = cpu.thread.get().filter(|thread| !is_seat(*thread)) {
        if cpu.preempt.get() {
            give_way(held, Event::Preempted)
        }
        if is_new {
            // The timer's interrupt may have been taken just now.
            timer::arm_no_later_than(held, thread.slice_end.get());
            resume_top(thread)
        }
    } else if is_new {
        enter(held, Event::Choose, 0)
    }
    match cpu.activation.get() {
        Some(activation) => activation.leave(),
        None => enter(held, Event::Choose, 0),
    }
}

/// Releases the lock to CPUs that wait for it, and admits interrupts. Does not return if either was pending: the activation
/// resumes from its saved state, which must be complete.
pub fn preemption_point(held: Held) {
    if lock::is_wanted() {
        lock::pass();
        // SAFETY: nothing is borrowed, and nothing on the stack is needed any more.
        unsafe { assembly::go_on_with_empty_stack() }
    }
    window(held);
}

/// As [`preemption_point`], for a caller that relies on the saved state only: returns after other CPUs had the lock, unless
/// this CPU needs to recheck.
pub fn yield_lock(held: Held) {
    if lock::is_wanted() {
        lock::pass();
        if cpu::this(held).needs_recheck.get() {
            // SAFETY: nothing is borrowed, and nothing on the stack is needed: the activation has saved what resumes later.
            unsafe { assembly::go_on_with_empty_stack() }
        }
    }
    window(held);
}

fn window(held: Held) {
    cpu::this(held).at_preemption_point.set(true);
    // SAFETY: an interrupt here may drop the stack; callers borrow nothing and have saved all that resumes.
    unsafe { assembly::interrupt_window() }
    cpu::this(held).at_preemption_point.set(false);
}

/// Begins the idle time of this CPU.
fn begin_idle(held: Held) {
    let cpu = cpu::this(held);
    cpu.idle_since.set(timer::now());
    cpu.idle.set(true);
}

/// Ends the idle time of this CPU, and counts it.
pub fn end_idle(held: Held) {
    let cpu = cpu::this(held);
    let now = timer::now();
    cpu.counts.idle.update(|value| value + (now - cpu.idle_since.get()));
    cpu.idle.set(false);
}

/// As [`lock::wait`], for a system call through `entry`. `code` is the address of the entry's code; 0 means portal code, which
/// is compared by its shape. Returns if the entry is unchanged. Otherwise the call is restarted from the activation's saved
/// registers.
#[unsafe(no_mangle)]
extern "C" fn lock_wait_with(entry: Ref<Entry>, code: usize) {
    // Emptying the entry changes only its code until this CPU is stopped, which cannot happen before it waits.
    let shape = if code == 0 { keep_shape(entry) } else { 0 };
    let held = wait_in_call();
    let is_same = if code == 0 { entry.is_of(Kind::Call) && entry.shape() == shape } else { entry.code.get() == code };
    if !is_same {
        go_on(held)
    }
}

/// The shape whose code made the call.
fn keep_shape(entry: Ref<Entry>) -> usize {
    if let Some(caller) = cpu::this(entry.held()).activation.get() {
        shapes::keep_expected(caller, entry);
    }
    entry.shape()
}

/// As [`lock::wait`], for a V already counted on the fast path.
#[unsafe(no_mangle)]
extern "C" fn lock_wait_given() -> ! {
    go_on(wait_in_call())
}

fn wait_in_call() -> Held {
    // SAFETY: until it has the lock, this only reads the block of this CPU, which others change only once it is quiescent.
    let held = unsafe { Held::new() };
    let cpu = cpu::this(held);
    let published = cpu.unsettled.get().is_some();
    lock::wait();
    let kept = cpu.unsettled.take();
    if let Some(semaphore) = kept {
        semaphore.hand_out_tokens();
    }
    // This CPU was stopped: restarts, as the entry may have another semaphore, or other rights.
    if cpu.needs_recheck.get() || published && kept.is_none() {
        go_on(held)
    }
    held
}

impl Ref<Activation> {
    /// Enters a scheduler's seat, which is current, with two words.
    #[inline(always)]
    pub fn leave_to_entry(self, word0: u64, word1: u64) -> ! {
        let held = self.held();
        translations::check_before_leaving(held);
        // SAFETY: entry and stack were checked when the seat was taken; all other registers are cleared.
        unsafe { assembly::leave_to_entry(word0, word1, self.address()) }
    }
    /// Enters a service in this activation, which was just called and is current.
    #[inline(always)]
    pub fn leave_to_service(self, pc: u64, badge: u64, words: &[u64; 9], control: u64) -> ! {
        let held = self.held();
        translations::check_before_leaving(held);
        // SAFETY: entry address and stack were checked when they were given; all other registers are cleared.
        unsafe { assembly::leave_to_service(self.address(), pc, badge, words, control) }
    }
    /// Whether [`Self::make_current`] has more to do than [`Self::make_current_plainly`].
    #[inline(always)]
    pub fn is_special(self) -> bool {
        let held = self.held();
        self.domain.slow() | cpu::this(held).special.get() != 0
    }
    /// Makes this activation, of the running thread, the current one of the CPU.
    pub fn make_current(self) {
        if self.is_special() {
            chain::called_or_not(self.held());
            special::load(self);
        }
        self.make_current_plainly();
    }
    /// As [`Self::make_current`], if neither this nor the last activation has special state.
    #[inline(always)]
    pub fn make_current_plainly(self) {
        let held = self.held();
        let cpu = cpu::this(held);
        let domain = self.domain;
        if cpu.domain.get() != Some(domain) {
            let (table, limit) = (domain.table.get(), domain.limit.get());
            cpu.domain.set(Some(domain));
            cpu.table.set(table);
            cpu.limit.set(limit);
            root::load(held, domain.per_cpu().root.get());
        }
        cpu.activation.set(Some(self));
    }
    /// Returns to user mode in this activation, which is current.
    #[inline(always)]
    pub fn leave(self) -> ! {
        let held = self.held();
        translations::check_before_leaving(held);
        // SAFETY: `frame` says which registers are saved; all were user's or checked.
        unsafe {
            match self.frame.get() {
                SavedFrame::Light => assembly::leave_to_light(self.address()),
                SavedFrame::Words | SavedFrame::Call | SavedFrame::Bounded => assembly::leave_to_words(self.address()),
                SavedFrame::Full => assembly::leave_to_full(self.address()),
                SavedFrame::Condemned => fault::condemned(self),
                SavedFrame::WordsAgain | SavedFrame::FullAgain => chain::go_on_called(self),
                SavedFrame::Receives => port::receive_again(self),
            }
        }
    }
    /// As [`Self::leave`], with a fast path for a light frame, the usual case.
    #[inline(always)]
    pub fn leave_lightly(self) -> ! {
        let held = self.held();
        translations::check_before_leaving(held);
        if self.frame.get() != SavedFrame::Light {
            self.leave_with_more()
        }
        // SAFETY: the frame is light, so these registers were saved; all were user's or checked.
        unsafe { assembly::leave_to_light(self.address()) }
    }
    #[inline(never)]
    fn leave_with_more(self) -> ! {
        self.leave()
    }
}
