//! The nucleus's side of the `sched` protocol (`abi::sched`). No queue of ready threads is here.
//!
//! Invariant: a thread that is `Ready` was posted to the active seat's ring since it last ran, or given
//! to `sched` as operand of an event; `sched` has it in its queue once it has read the ring. A number
//! whose last post is still unread is not posted again: so it is in the ring at most once, and the ring
//! has a slot for each.

use crate::activation::{self, Activation, State};
use crate::arch::{entry, timer};
use crate::chain;
use crate::cpu;
use crate::domain::Domain;
use crate::log::{self, Part};
use crate::pointer::{Link, Nucleus, Ref};
use crate::semaphore::Reply;
use crate::thread::{self, Runs, Thread};
use crate::{deadline, frames, info, slab, trace};
use abi::sched::{Event, IDLE, RING_SLOTS, Ring, ThreadWord};
use abi::{Error, MAX_THREADS};

/// Microseconds that `sched` may take between being entered and dispatching.
const PATIENCE_MICROSECONDS: u64 = 10_000;

#[derive(Clone, Copy)]
struct Seat {
    activation: Ref<Activation>,
    thread: Ref<Thread>,
    domain: Ref<Domain>,
    ring: *mut Ring,
}

struct Seats {
    active: Option<Seat>,
    standby: Option<Seat>,
    /// How long `sched` may take, in ticks, and when this time is over.
    patience: u64,
    patience_ends: u64,
    /// Runs when the first boot thread ends.
    boot_successor: Link<Thread>,
    /// By thread number: the counter of the ring after its last post.
    posted: [u32; MAX_THREADS],
}

static SEATS: Nucleus<Seats> = Nucleus::new(Seats {
    active: None,
    standby: None,
    patience: 0,
    patience_ends: u64::MAX,
    boot_successor: None,
    posted: [0; MAX_THREADS],
});

/// Whether this is the pseudo-thread of a scheduler's seat.
pub fn is_seat(thread: Ref<Thread>) -> bool {
    thread.number == 0
}

/// The thread that runs after the first boot thread, before there is a scheduler.
pub fn set_boot_successor(thread: Ref<Thread>) {
    SEATS.get().boot_successor = Some(thread);
}

fn post(thread: Ref<Thread>) {
    let seats = SEATS.get();
    let Some(seat) = seats.active else { return };
    let posted = &mut seats.posted[thread.number as usize];
    // SAFETY: the ring is a page of the nucleus that the seat's activation owns.
    unsafe {
        let ring = seat.ring;
        let written = (*ring).written;
        let unread = written.wrapping_sub((&raw const (*ring).read).read_volatile());
        let ago = written.wrapping_sub(*posted);
        // The slot is checked, too: the user may have written anything to `read`.
        let slot = &mut (*ring).slots[posted.wrapping_sub(1) as usize % RING_SLOTS];
        if ago < unread && ThreadWord(*slot).number() == thread.number as usize {
            *slot = thread.word() as u32;
            return;
        }
        *posted = written.wrapping_add(1);
        (*ring).slots[written as usize % RING_SLOTS] = thread.word() as u32;
        (&raw mut (*ring).written).write_volatile(written.wrapping_add(1));
    }
}

/// A thread that is ready has another priority now.
pub fn post_again(thread: Ref<Thread>) {
    post(thread);
}

fn ring_is_unread(seat: &Seat) -> bool {
    // SAFETY: as in `post`; the user may write anything into `read`, which only harms itself.
    unsafe { (*seat.ring).written != (&raw const (*seat.ring).read).read_volatile() }
}

/// The thread can run: hands it to `sched`. True if it precedes the running one.
pub fn make_ready(mut thread: Ref<Thread>) -> bool {
    if thread.runs != Runs::Blocked || thread.ended {
        return false;
    }
    trace::wake(thread);
    thread.runs = Runs::Ready;
    if SEATS.get().active.is_none() {
        // The scheduler is told when it takes its seat.
        return false;
    }
    post(thread);
    let mut cpu = cpu::this();
    let precedes =
        cpu.idle || cpu.thread.is_some_and(|current| !is_seat(current) && thread.priority > current.priority);
    cpu.preempt |= precedes;
    precedes
}

/// As [`make_ready`] from a light operation that ends with success: gives way if the thread precedes.
pub fn ready_from_operation(thread: Ref<Thread>) {
    if make_ready(thread) {
        if let Some(activation) = cpu::this().activation {
            activation.set_result(Ok(0));
        }
        give_way(Event::Preempted);
    }
}

/// The running thread, whose frame is complete, goes back to `sched` with `event`.
pub fn give_way(event: Event) -> ! {
    let mut cpu = cpu::this();
    cpu.preempt = false;
    let Some(seat) = &SEATS.get().active else {
        match cpu.activation {
            Some(activation) => activation.leave(),
            None => boot_next(),
        }
    };
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

/// `op::YIELD`.
pub extern "C" fn yield_(_: u64, _: u64) -> Reply {
    let cpu = cpu::this();
    let (Some(thread), Some(seat)) = (cpu.thread.filter(|thread| !is_seat(*thread)), &SEATS.get().active) else {
        return Err(Error::NotRunnable).into();
    };
    if let Some(activation) = cpu.activation {
        activation.set_result(Ok(0));
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
    }
    match &SEATS.get().active {
        Some(seat) => enter_seat(seat, Event::Choose, 0, now),
        None => boot_next(),
    }
}

#[inline(always)]
fn stop(mut thread: Ref<Thread>, runs: Runs, now: u64) {
    thread.runs = runs;
    thread.used += now - thread.started;
}

/// Enters `sched` at its entry.
pub fn enter(event: Event, word: u64) -> ! {
    match &SEATS.get().active {
        Some(seat) => enter_seat(seat, event, word, timer::now()),
        None => boot_next(),
    }
}

#[inline(always)]
fn enter_seat(seat: &Seat, event: Event, word: u64, now: u64) -> ! {
    trace::schedule(seat.domain, event as u64);
    let seats = SEATS.get();
    seats.patience_ends = now + seats.patience;
    timer::arm_no_later_than(seats.patience_ends);
    cpu::this().thread = Some(seat.thread);
    if seat.activation.is_special() {
        enter_specially(seat.activation, event, word)
    }
    seat.activation.make_current_plainly();
    seat.activation.leave_to_entry(event as u64, word)
}

#[inline(never)]
fn enter_specially(seat: Ref<Activation>, event: Event, word: u64) -> ! {
    seat.make_current();
    seat.leave_to_entry(event as u64, word)
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
pub extern "C" fn dispatch(_seat: u64, number: u64) -> Reply {
    let seats = SEATS.get();
    let Some(seat) = &seats.active else { return Err(Error::NoRight).into() };
    if cpu::this().thread != Some(seat.thread) {
        return Err(Error::NoRight).into();
    }
    if ring_is_unread(seat) {
        info::counters().again += 1;
        return Err(Error::Again).into();
    }
    info::counters().dispatches += 1;
    seats.patience_ends = u64::MAX;
    if number as usize == IDLE {
        idle();
    }
    match thread::by_number(number as usize) {
        Some(thread) if thread.runs == Runs::Ready => run(thread),
        _ => {
            info::counters().not_runnable += 1;
            Err(Error::NotRunnable).into()
        }
    }
}

/// Nothing can run: clears frames ahead, then sleeps until an interrupt.
fn idle() -> ! {
    cpu::this().idle = true;
    trace::idle();
    if cfg!(feature = "checked") {
        let lost = |number: &usize| thread::by_number(*number).is_some_and(|thread| thread.runs == Runs::Running);
        if let Some(number) = (1..thread::numbers_used()).find(lost) {
            panic!("thread {number} runs while the CPU is idle");
        }
    }
    timer::arm_no_later_than(deadline::earliest());
    while frames::clear_one_ahead() {
        // SAFETY: as below.
        unsafe { entry::interrupt_window() }
    }
    // SAFETY: the idle CPU has nothing on its stack; the next interrupt begins anew.
    unsafe { entry::idle_wait() }
}

/// Lets interrupts in. If one comes this does not return: the running activation goes on later with what
/// it has saved, so that must be whole.
pub fn preemption_point() {
    cpu::this().window = true;
    // SAFETY: by contract of the callers.
    unsafe { entry::interrupt_window() }
    cpu::this().window = false;
}

/// After an interrupt: goes on with what was interrupted, or with `sched` if something precedes it.
pub fn after_interrupt() -> ! {
    let mut cpu = cpu::this();
    let seats = SEATS.get();
    if cpu.idle {
        match &seats.active {
            Some(seat) if ring_is_unread(seat) => {
                cpu.idle = false;
                enter(Event::Choose, 0)
            }
            _ => idle(),
        }
    }
    let now = timer::now();
    timer::arm_no_later_than(deadline::earliest());
    let Some(thread) = cpu.thread else { enter(Event::Choose, 0) };
    if is_seat(thread) {
        if now >= seats.patience_ends {
            let patience = Part::Number(PATIENCE_MICROSECONDS);
            log::line(&[Part::Text("the scheduler did not dispatch for microseconds: "), patience]);
            let domain = thread.home;
            crate::domain::die(domain, abi::info::status::KILLED);
            enter(Event::Choose, 0)
        }
        timer::arm_no_later_than(seats.patience_ends);
    } else if seats.active.is_none() {
        // Before a scheduler took its seat one thread runs until it ends.
    } else if cpu.preempt {
        give_way(Event::Preempted)
    } else if now >= thread.slice_end {
        give_way(Event::SliceEnded)
    } else {
        timer::arm_no_later_than(thread.slice_end);
    }
    match cpu.activation {
        Some(activation) => activation.leave(),
        None => enter(Event::Choose, 0),
    }
}

/// `DOMAIN_SET`, `SET_SCHEDULER`: `domain` takes the seat, or stands by.
pub fn take_seat(domain: Ref<Domain>, entry: u64, stack: u64, standby: bool) -> Result<u64, Error> {
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
    (thread.top, thread.bottom, thread.home) = (Some(activation), Some(activation), domain);
    (thread.priority, thread.runs) = (u8::MAX, Runs::Blocked);
    let ring = activation.message_kernel as *mut Ring;
    let seat = Seat { activation, thread, domain, ring };
    let seats = SEATS.get();
    seats.patience = timer::from_microseconds(PATIENCE_MICROSECONDS);
    if standby {
        if let Some(old) = seats.standby.replace(seat) {
            retire(old);
        }
    } else {
        let old = seats.active.replace(seat);
        match (old, seats.standby) {
            (Some(old), None) => seats.standby = Some(old),
            (Some(old), Some(_)) => retire(old),
            _ => {}
        }
        hand_over();
    }
    Ok(activation.message)
}

fn retire(mut seat: Seat) {
    // Its activation goes with its domain.
    (seat.activation.thread, seat.activation.state) = (None, State::Free);
    slab::free(seat.thread);
}

/// Tells the new active seat every thread that is ready.
fn hand_over() {
    for number in 1..thread::numbers_used() {
        if let Some(thread) = thread::by_number(number)
            && thread.runs == Runs::Ready
        {
            post(thread);
        }
    }
}

/// A domain died: if it held a seat, the standby takes over. True if the active seat changed.
pub fn domain_died(domain: Ref<Domain>) {
    let seats = SEATS.get();
    if let Some(seat) = seats.standby.filter(|seat| seat.domain == domain) {
        seats.standby = None;
        retire(seat);
    }
    if let Some(seat) = seats.active.filter(|seat| seat.domain == domain) {
        let running = cpu::this().thread == Some(seat.thread);
        seats.active = seats.standby.take();
        seats.patience_ends = u64::MAX;
        info::counters().standby += 1;
        if seats.active.is_none() {
            panic!("the scheduler died and no standby is there");
        }
        log::line(&[Part::Text("the standby scheduler takes over")]);
        hand_over();
        if running {
            cpu::this().thread = seats.active.map(|seat| seat.thread);
        }
        retire(seat);
    }
}

/// Deadlines served per interrupt; more come with the next one at once.
const DEADLINES_AT_ONCE: usize = 2;

/// Ends waits and calls whose deadline has passed.
pub fn deadlines_passed() {
    let now = timer::now();
    for _ in 0..DEADLINES_AT_ONCE {
        let Some(activation) = deadline::due(now) else { return };
        chain::time_out(activation);
    }
}
