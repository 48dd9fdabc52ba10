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
use crate::pointer::{Link, Nucleus, Ref};
use crate::semaphore::Reply;
use crate::thread::{self, Runs, Thread};
use crate::{deadline, frames, info, slab, trace};
use abi::sched::{Event, IDLE, RUN, Ring as SharedRing, ThreadWord, hand_to};
use abi::{Error, MAX_DEPTH, MAX_THREADS};
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
    standby: Option<Seat>,
    /// CPUs with a scheduler.
    taken: usize,
    /// How long `sched` may take, in ticks.
    patience: u64,
    /// Runs when the first boot thread ends.
    boot_successor: Link<Thread>,
}

static SEATS: Nucleus<Seats> = Nucleus::new(Seats { standby: None, taken: 0, patience: 0, boot_successor: None });

/// Whether this is the pseudo-thread of a scheduler's seat.
pub fn is_seat(thread: Ref<Thread>) -> bool {
    thread.number == 0
}

/// The thread that runs after the first boot thread, before there is a scheduler.
pub fn set_boot_successor(thread: Ref<Thread>) {
    SEATS.get().boot_successor = Some(thread);
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
    // SAFETY: as above, of the first two words.
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
    let mut home = thread.cpu;
    if let Some(seat) = &thread.cpu.seat {
        let number = thread.number as usize % MAX_THREADS;
        let same = |word| ThreadWord(word).number() == number;
        home.posted[number] = seat.ring().post(thread.word() as u32, home.posted[number] as u32, same) as u16;
    }
}

/// A thread that is ready has another priority now.
pub fn post_again(thread: Ref<Thread>) {
    post(thread);
}

/// The thread can run: hands it to the scheduler of its CPU. True if it precedes what runs here.
#[inline]
pub fn make_ready(mut thread: Ref<Thread>) -> bool {
    if thread.runs != Runs::Blocked || thread.ended {
        return false;
    }
    trace::wake(thread);
    thread.runs = Runs::Ready;
    hand_in(thread)
}

/// Posts a ready thread and interrupts what it precedes on its CPU; true if that is here.
fn hand_in(thread: Ref<Thread>) -> bool {
    let home = thread.cpu;
    if home.seat.is_none() {
        // Its CPU has no scheduler, or lost it while the thread waited.
        return SEATS.get().taken != 0 && move_away(thread);
    }
    post(thread);
    let precedes =
        home.idle || home.thread.is_some_and(|current| !is_seat(current) && thread.priority > current.priority);
    if precedes {
        interrupt(home);
    }
    precedes && home == cpu::this()
}

/// What runs on a CPU gives way to `sched`, here when the running operation ends.
pub fn interrupt(mut cpu: Ref<Cpu>) {
    cpu.preempt = true;
    if cpu != cpu::this() {
        cpu::this().counts.wakes += 1;
        cpu::kick(cpu);
    }
}

/// A light operation that ends with success gives way to what precedes it now.
pub fn precede_from_operation() {
    if let Some(activation) = cpu::this().activation {
        activation.set_result(Ok(0));
    }
    give_way(Event::Preempted);
}

/// The running thread, whose frame is complete, goes back to `sched` with `event`.
pub fn give_way(event: Event) -> ! {
    let mut cpu = cpu::this();
    cpu.preempt = false;
    let Some(seat) = &cpu.seat else { give_way_to_nobody(cpu) };
    let now = timer::now();
    match cpu.thread.filter(|thread| !is_seat(*thread)) {
        Some(mut thread) => {
            trace::stop(thread, event as u64);
            stop(thread, Runs::Ready, now);
            thread.left =
                if event == Event::Preempted { thread.slice_end.saturating_sub(now).max(1) } else { thread.slice };
            enter_seat(seat, event, thread.word(), now)
        }
        None => enter_seat(seat, Event::Choose, 0, now),
    }
}

/// There is no scheduler on this CPU: before the first took its seat the running thread goes on; afterwards it goes to
/// another CPU.
#[cold]
fn give_way_to_nobody(cpu: Ref<Cpu>) -> ! {
    if SEATS.get().taken == 0 {
        match cpu.activation {
            Some(activation) => activation.leave(),
            None => boot_next(),
        }
    }
    if let Some(thread) = cpu.thread.filter(|thread| !is_seat(*thread)) {
        stop(thread, Runs::Ready, timer::now());
        move_away(thread);
    }
    idle()
}

/// A thread goes to a CPU that has a scheduler, if possible one on which it may run; true if it precedes what runs here.
pub fn move_away(thread: Ref<Thread>) -> bool {
    let seated = |cpu: &Ref<Cpu>| cpu.seat.is_some();
    let allowed = |cpu: &Ref<Cpu>| thread.may_run_on(*cpu);
    let found = cpu::all().find(|cpu| seated(cpu) && allowed(cpu)).or_else(|| cpu::all().find(seated));
    let Some(cpu) = found else { return false };
    thread.go_to(cpu);
    thread.runs == Runs::Ready && hand_in(thread)
}

/// `op::YIELD`.
pub extern "C" fn yield_(_: u64, _: u64) -> Reply {
    let cpu = cpu::this();
    let (Some(thread), Some(seat)) = (cpu.thread.filter(|thread| !is_seat(*thread)), &cpu.seat) else {
        return Err(Error::NotRunnable).into();
    };
    if let Some(mut activation) = cpu.activation {
        // Its frame is light: it made an operation that is.
        activation.registers.set_result(0, 0);
    }
    let now = timer::now();
    trace::stop(thread, Event::Yielded as u64);
    stop(thread, Runs::Ready, now);
    enter_seat(seat, Event::Yielded, thread.word(), now)
}

/// The running thread waits; its frame is complete.
#[inline(always)]
pub fn block_current() -> ! {
    let now = timer::now();
    if let Some(thread) = cpu::this().thread.filter(|thread| !is_seat(*thread)) {
        trace::stop(thread, 0);
        stop(thread, Runs::Blocked, now);
        if thread.carries_orphans {
            chain::leave_waiting(thread);
        }
    }
    match &cpu::this().seat {
        Some(seat) => enter_seat(seat, Event::Choose, 0, now),
        None => without_seat(),
    }
}

#[cold]
fn without_seat() -> ! {
    if SEATS.get().taken == 0 && cpu::this().number == 0 { boot_next() } else { idle() }
}

#[inline(always)]
fn stop(mut thread: Ref<Thread>, runs: Runs, now: u64) {
    thread.runs = runs;
    thread.used += now - thread.started;
}

/// Enters `sched` at its entry.
pub fn enter(event: Event, word: u64) -> ! {
    match &cpu::this().seat {
        Some(seat) => enter_seat(seat, event, word, timer::now()),
        None => without_seat(),
    }
}

#[inline(always)]
fn enter_seat(seat: &Seat, event: Event, word: u64, now: u64) -> ! {
    trace::schedule(seat.domain, event as u64);
    let mut cpu = cpu::this();
    cpu.patience_ends = now + SEATS.get().patience;
    timer::arm_no_later_than(cpu.patience_ends);
    cpu.thread = Some(seat.thread);
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
fn boot_next() -> ! {
    match SEATS.get().boot_successor.take() {
        Some(thread) => run(thread),
        None => panic!("the last boot thread stopped before a scheduler took its seat"),
    }
}

/// Lets a thread, which is ready, run now.
#[inline(always)]
pub fn run(mut thread: Ref<Thread>) -> ! {
    cpu::this().preempt = false;
    let now = timer::now();
    thread.runs = Runs::Running;
    thread.started = now;
    thread.slice_end = now + thread.left;
    timer::arm_no_later_than(thread.slice_end);
    cpu::this().thread = Some(thread);
    trace::run(thread);
    chain::resume_top(thread)
}

/// `op::DISPATCH`.
pub extern "C" fn dispatch(what: u64, number: u64) -> Reply {
    let mut cpu = cpu::this();
    // Who runs as a seat's thread has the seat of this CPU, and a ring.
    if !cpu.thread.is_some_and(is_seat) {
        return Err(Error::NoRight).into();
    }
    if what != RUN {
        return hand_over_to(what, number).into();
    }
    if is_unread(cpu.ring) {
        if cpu.hands_over != 0 {
            hand_over_step(cpu);
        }
        info::counters().again += 1;
        return Err(Error::Again).into();
    }
    if number as usize == IDLE {
        cpu.counts.dispatches += 1;
        idle();
    }
    match thread::by_number(number as usize) {
        Some(thread) if thread.can_run() && thread.cpu == cpu => {
            cpu.counts.dispatches += 1;
            run(thread)
        }
        Some(thread) if thread.moves && thread.runs == Runs::Ready && thread.cpu == cpu => {
            if thread.carries_orphans {
                cpu.counts.dispatches += 1;
                run_orphan(thread)
            }
            move_away(thread);
        }
        _ => {}
    }
    info::counters().not_runnable += 1;
    Err(Error::NotRunnable).into()
}

/// As [`run`], of an orphan thread: whoever had its turn goes behind the orphans that wait for theirs.
#[cold]
fn run_orphan(mut thread: Ref<Thread>) -> ! {
    if !thread.fresh {
        chain::take_turns(thread);
    }
    thread.fresh = false;
    thread.moves = thread.home.orphans.head.is_some();
    run(thread)
}

/// A scheduler hands a ready thread that was taken out of its ring to another one, or takes it.
#[cold]
fn hand_over_to(what: u64, number: u64) -> Result<u64, Error> {
    let target = (what as usize).wrapping_sub(hand_to(0) as usize);
    let mut target = cpu::of(target).filter(|cpu| cpu.seat.is_some()).ok_or(Error::BadArgument)?;
    let found = thread::by_number(number as usize).filter(|thread| thread.runs == Runs::Ready);
    let thread = found.ok_or(Error::NotRunnable)?;
    if !thread.may_run_on(target) {
        return Err(Error::BadArgument);
    }
    let is_same = |word| ThreadWord(word).number() == number as usize;
    let posted = thread.cpu.posted[number as usize % MAX_THREADS];
    if thread.cpu.seat.is_some_and(|seat| seat.ring().holds(posted as u32, is_same)) {
        return Err(Error::NotRunnable);
    }
    thread.go_to(target);
    target.counts.received += 1;
    hand_in(thread);
    Ok(0)
}

/// Nothing can run: clears frames ahead, then sleeps until an interrupt.
fn idle() -> ! {
    let mut cpu = cpu::this();
    cpu::rest(true);
    trace::idle();
    if cfg!(feature = "checked") {
        let runs_here = |thread: Ref<Thread>| thread.runs == Runs::Running && thread.cpu == cpu;
        if let Some(number) =
            (1..thread::numbers_used()).find(|number| thread::by_number(*number).is_some_and(runs_here))
        {
            panic!("thread {number} runs while its CPU is idle");
        }
    }
    if cpu.domain.is_some_and(|domain| domain.is_dead()) {
        paging::leave_space();
    }
    special::save();
    timer::arm_no_later_than(deadline::earliest());
    while !lock::is_wanted() {
        // SAFETY: as below.
        unsafe { entry::interrupt_window() }
        if !frames::clear_one_ahead() {
            break;
        }
    }
    if cpu.seat.is_some() && is_unread(cpu.ring) {
        wake_up()
    }
    cpu.disturbed = false;
    // SAFETY: the idle CPU has nothing on its stack; the next interrupt begins anew.
    unsafe { entry::idle_wait() }
}

fn wake_up() -> ! {
    cpu::rest(false);
    // What was changed while it slept is seen now.
    cpu::this().disturbed = false;
    enter(Event::Choose, 0)
}

/// A CPU that just joined, with the lock, waits until it gets a scheduler.
pub fn begin() -> ! {
    idle()
}

/// Goes on with whatever runs on this CPU, which others may have changed.
#[unsafe(no_mangle)]
pub extern "C" fn go_on() -> ! {
    let mut cpu = cpu::this();
    let is_new = core::mem::take(&mut cpu.disturbed) || cpu.activation.is_none();
    if let Some(thread) = cpu.thread.filter(|thread| !is_seat(*thread)) {
        if cpu.preempt {
            give_way(Event::Preempted)
        }
        if is_new {
            // It may be that the timer's interrupt was taken just now.
            timer::arm_no_later_than(thread.slice_end);
            chain::resume_top(thread)
        }
    } else if is_new {
        enter(Event::Choose, 0)
    }
    match cpu.activation {
        Some(activation) => activation.leave(),
        None => enter(Event::Choose, 0),
    }
}

/// Lets interrupts and other CPUs in. If there are any this does not return: the running activation goes on later with what
/// it has saved, so that must be whole.
pub fn preemption_point() {
    if lock::is_wanted() {
        lock::pass();
        // SAFETY: nothing is borrowed, and nothing on the stack is needed any more.
        unsafe { entry::go_on_afresh() }
    }
    window();
}

/// As [`preemption_point`], when nothing is known but what the running activation has saved: if only other CPUs want
/// the lock this returns when they had it.
pub fn pause() {
    if lock::is_wanted() {
        lock::pass();
        if cpu::this().disturbed {
            // SAFETY: as above.
            unsafe { entry::go_on_afresh() }
        }
    }
    window();
}

fn window() {
    cpu::this().window = true;
    // SAFETY: by contract of the callers.
    unsafe { entry::interrupt_window() }
    cpu::this().window = false;
}

/// After an interrupt: goes on with what was interrupted, or with `sched` if something precedes it.
pub fn after_interrupt() -> ! {
    let mut cpu = cpu::this();
    if cpu.idle {
        if cpu.seat.is_some() && is_unread(cpu.ring) {
            wake_up()
        }
        cpu::rest(false);
        idle()
    }
    let now = timer::now();
    let Some(thread) = cpu.thread else { enter(Event::Choose, 0) };
    if is_seat(thread) {
        if now >= cpu.patience_ends && cpu.chances_of != cpu.counts.dispatches {
            (cpu.chances, cpu.chances_of) = (0, cpu.counts.dispatches);
        }
        if now >= cpu.patience_ends && cpu.chances < CHANCES {
            // Once more: it may be that the CPU itself did not run, if it is one of an emulator.
            cpu.patience_ends = now + SEATS.get().patience / 2;
            cpu.chances += 1;
        }
        if now >= cpu.patience_ends {
            let patience = Part::Number(PATIENCE_MICROSECONDS);
            log::line(&[Part::Text("the scheduler did not dispatch for microseconds: "), patience]);
            let domain = thread.home;
            crate::domain::die(domain, abi::info::status::KILLED);
            enter(Event::Choose, 0)
        }
        timer::arm_no_later_than(cpu.patience_ends);
    } else if SEATS.get().taken == 0 {
        // Before a scheduler took its seat one thread runs until it ends.
    } else if cpu.preempt || cpu.seat.is_none() {
        give_way(Event::Preempted)
    } else if now >= thread.slice_end {
        give_way(Event::SliceEnded)
    } else {
        timer::arm_no_later_than(thread.slice_end);
    }
    go_on()
}

/// `DOMAIN_SET`, `SET_SCHEDULER`: `domain` takes the seat of a CPU, or stands by for all; `which` is the operation's operand.
pub fn take_seat(domain: Ref<Domain>, entry: u64, stack: u64, which: u64) -> Result<u64, Error> {
    const STANDBY: u64 = 1;
    let target = usize::try_from(which >> 8).ok().and_then(cpu::of);
    let mut target = target.filter(|_| which & 0xff & !STANDBY == 0).ok_or(Error::BadArgument)?;
    activation::check_address(entry)?;
    let mut activation = activation::new(domain, stack)?;
    let mut thread: Ref<Thread> = match slab::allocate(domain.account) {
        Ok(thread) => thread,
        Err(error) => {
            activation::free_first(domain);
            return Err(error);
        }
    };
    (activation.bottom, activation.state, activation.thread) = (true, State::Top, Some(thread));
    activation.entry = entry;
    // It is entered anew at any time, so it calls nobody: it is as deep as a chain may be.
    activation.depth = MAX_DEPTH as u16 - 1;
    (thread.top, thread.bottom, thread.home) = (Some(activation), Some(activation), domain);
    (thread.priority, thread.runs, thread.cpu) = (u8::MAX, Runs::Blocked, target);
    let ring = activation.message_kernel as *mut SharedRing;
    let seat = Seat { activation, thread, domain, ring };
    let seats = SEATS.get();
    seats.patience = timer::from_microseconds(PATIENCE_MICROSECONDS);
    // SAFETY: the nucleus writes this word once, and nobody has seen the ring.
    unsafe { (*ring).ticks = seats.patience as u32 }
    if which & STANDBY != 0 {
        if let Some(old) = seats.standby.replace(seat) {
            retire(old);
        }
        return Ok(activation.message);
    }
    if target != cpu::this() {
        cpu::hold_up(target);
    }
    match target.seat.replace(seat) {
        Some(old) if target.thread == Some(old.thread) => {
            // It runs there; what it chooses comes to nothing.
            target.leave_thread();
            retire_or_keep(old);
        }
        Some(old) => retire_or_keep(old),
        None => seats.taken += 1,
    }
    hand_over(target);
    Ok(activation.message)
}

/// Who lost its seat stands by if nobody else does.
fn retire_or_keep(old: Seat) {
    let standby = &mut SEATS.get().standby;
    if standby.is_none() {
        *standby = Some(old);
    } else {
        retire(old);
    }
}

fn retire(mut seat: Seat) {
    // Its activation goes with its domain.
    (seat.activation.thread, seat.activation.state) = (None, State::Free);
    slab::free(seat.thread);
}

/// The new scheduler of a CPU is to get every thread of that CPU that is ready, and those of CPUs that have no scheduler: a
/// few whenever it dispatches, before it may.
fn hand_over(mut target: Ref<Cpu>) {
    target.hands_over = 1;
    target.ring = (&raw const UNREAD).cast_mut().cast();
    if target != cpu::this() {
        cpu::kick(target);
    }
}

/// Numbers of threads that one step of a hand-over looks at.
const HANDED_OVER: usize = 16;

#[cold]
fn hand_over_step(mut cpu: Ref<Cpu>) {
    let first = cpu.hands_over as usize;
    let end = thread::numbers_used().min(first + HANDED_OVER);
    for number in first..end {
        match thread::by_number(number).filter(|thread| thread.runs == Runs::Ready) {
            Some(thread) if thread.cpu == cpu => post(thread),
            Some(thread) if thread.cpu.seat.is_none() => drop(move_away(thread)),
            _ => {}
        }
    }
    cpu.hands_over = end as u16;
    if end == thread::numbers_used() {
        cpu.hands_over = 0;
        cpu.ring = cpu.seat.map_or(core::ptr::null_mut(), |seat| seat.ring);
    }
}

/// A domain died: if it held seats, the standby takes over one, and the threads of the others go to other CPUs.
pub fn domain_died(domain: Ref<Domain>) {
    let seats = SEATS.get();
    if let Some(seat) = seats.standby.filter(|seat| seat.domain == domain) {
        seats.standby = None;
        retire(seat);
    }
    for mut cpu in cpu::all() {
        let Some(seat) = cpu.seat.filter(|seat| seat.domain == domain) else { continue };
        cpu.seat = seats.standby.take();
        cpu.patience_ends = u64::MAX;
        info::counters().standby += 1;
        if cpu.thread == Some(seat.thread) {
            cpu.thread = cpu.seat.map(|seat| seat.thread);
            if cpu != cpu::this() && !cpu.idle {
                cpu.leave_thread();
            }
        }
        if cpu.seat.is_some() {
            log::line(&[Part::Text("the standby scheduler takes over")]);
            hand_over(cpu);
        } else {
            seats.taken -= 1;
            if seats.taken == 0 {
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
    let number = Part::Number(cpu.number as u64);
    log::line(&[Part::Text("the scheduler died and no standby is there: nothing runs any more on CPU "), number]);
    if let Some(heir) = cpu::all().find(|cpu| cpu.seat.is_some()) {
        hand_over(heir);
    }
    if cpu != cpu::this() {
        cpu::kick(cpu);
    }
}

/// Ends the wait or call whose deadline is the earliest, if that has passed. If another has, too, the timer's next
/// interrupt comes at once.
pub fn deadline_passed() {
    if let Some(activation) = deadline::due(timer::now()) {
        chain::time_out(activation);
    }
}
