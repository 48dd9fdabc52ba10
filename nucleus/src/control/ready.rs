//! The nucleus's side of the `sched` protocol (`abi::sched`). The nucleus itself has no ready queue.
//!
//! Invariant: since it last ran, a `Ready` thread was posted to the ring of its CPU's scheduler, or passed to it as operand
//! of an event, or marked in `Cpu::unposted`. The scheduler queues it once it has read the ring. (A new scheduler gets
//! threads that were ready before by a hand-over: [`hand_over`].)
//!
//! A thread whose last post is still unread is not posted again, unless it migrated meanwhile. There can be more threads
//! than slots. A thread that finds the ring full is marked, and posted once the scheduler has read the ring. Until then the
//! scheduler cannot dispatch.

use super::numbers;
use crate::cpus::cpu;
use crate::memory::lend;
use crate::objects::{Cpu, Runs, Seat, Thread, is_seat};
use crate::pointer::{Held, Link, Nucleus, Ref};
use crate::report::trace;
use abi::Error;
use abi::sched::{Ring as SharedRing, ThreadWord, hand_to};
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};
use nucleus_sync::ring::{self, Ring};

/// State that the schedulers of all CPUs share.
pub struct Seats {
    /// The standby scheduler.
    pub standby: Cell<Option<Seat>>,
    /// CPUs with a scheduler.
    pub taken: Cell<usize>,
    /// Time from an entry of `sched` within which it must dispatch, in ticks.
    pub patience: Cell<u64>,
    /// Runs when the first boot thread ends.
    pub boot_successor: Cell<Link<Thread>>,
}

static SEATS: Nucleus<Seats> = Nucleus::new(Seats {
    standby: Cell::new(None),
    taken: Cell::new(0),
    patience: Cell::new(0),
    boot_successor: Cell::new(None),
});

/// The one [`Seats`].
pub fn seats(held: Held) -> &'static Seats {
    SEATS.get(held)
}

/// Whether a scheduler has a seat, or stands by.
pub fn has_scheduler(held: Held) -> bool {
    seats(held).taken.get() != 0 || seats(held).standby.get().is_some()
}

/// Sets the thread that runs after the first boot thread, before there is a scheduler.
pub fn set_boot_successor(thread: Ref<Thread>) {
    let held = thread.held();
    SEATS.get(held).boot_successor.set(Some(thread));
}

/// The words of a ring.
#[inline(always)]
fn words_of(ring: *mut SharedRing) -> Ring<'static> {
    // SAFETY: a ring is a page of the nucleus that its seat's activation owns; all accesses to these words are atomic.
    unsafe {
        Ring {
            written: AtomicU32::from_ptr(&raw mut (*ring).written),
            read: AtomicU32::from_ptr(&raw mut (*ring).read),
            slots: &*(&raw const (*ring).slots).cast::<[AtomicU32; abi::sched::RING_SLOTS]>(),
        }
    }
}

/// Whether a ring has words that its scheduler has not read.
#[inline(always)]
pub fn is_unread(ring: *mut SharedRing) -> bool {
    // SAFETY: a ring is a page of the nucleus that its seat's activation owns, or `UNREAD`, which has both words; all
    // accesses to them are atomic.
    unsafe {
        let [written, read] = [&raw mut (*ring).written, &raw mut (*ring).read].map(|word| AtomicU32::from_ptr(word));
        ring::is_unread(written, read)
    }
}

/// How many words its scheduler has read from a ring.
pub fn words_read(ring: *mut SharedRing) -> u32 {
    // SAFETY: a ring is a page of the nucleus that its seat's activation owns; all accesses to this word are atomic.
    unsafe { AtomicU32::from_ptr(&raw mut (*ring).read) }.load(Ordering::Relaxed)
}

/// `Cpu::ring` points here while threads are still to be handed over: the start of a ring that always has an unread word.
static UNREAD: [AtomicU32; UNREAD_WORDS] = {
    let mut words = [const { AtomicU32::new(0) }; UNREAD_WORDS];
    words[0] = AtomicU32::new(1);
    words
};

/// Words of a ring up to both of its counters.
const UNREAD_WORDS: usize = core::mem::offset_of!(SharedRing, read) / 4 + 1;

const _: () = assert!(core::mem::offset_of!(SharedRing, written) == 0);

/// Whether threads of a CPU are still to be handed to its scheduler.
pub fn has_more(cpu: Ref<Cpu>) -> bool {
    cpu.ring.get().cast_const().cast() == &raw const UNREAD
}

/// Posts the thread to its scheduler, which has a seat; false if the ring is full.
#[inline(always)]
fn post(thread: Ref<Thread>, seat: Seat) -> bool {
    let same = |word| ThreadWord(word).number() == thread.number as usize;
    let posted = words_of(seat.ring).post(thread.word() as u32, thread.posted.get() as u32, same);
    if let Some(posted) = posted {
        thread.posted.set(posted as u16);
    }
    posted.is_some()
}

/// Posts the thread to its scheduler, or marks it if the ring is full: then this is false. If there is no scheduler, the
/// next one gets the thread by the hand-over.
#[inline(never)]
fn post_or_mark(thread: Ref<Thread>) -> bool {
    let is_full = thread.cpu.get().seat.get().is_some_and(|seat| !post(thread, seat));
    if is_full {
        mark(thread);
    }
    !is_full
}

/// Marks a thread that found the ring full. Its scheduler cannot dispatch until the thread is posted.
fn mark(thread: Ref<Thread>) {
    let cpu = thread.cpu.get();
    cpu.unposted.mark(thread.number as usize);
    cpu.ring.set((&raw const UNREAD).cast_mut().cast());
}

/// After a change of a thread's word: posts it again if it is ready; interrupts it if it runs with less priority than
/// `before`.
pub fn rank_again(thread: Ref<Thread>, before: u8) {
    match thread.runs.get() {
        Runs::Ready => drop(hand_in(thread)),
        // A ready thread may precede it now.
        Runs::Running if thread.priority.get() < before && SEATS.get(thread.held()).taken.get() != 0 => {
            interrupt(thread.cpu.get());
        }
        _ => {}
    }
}

/// Makes a blocked thread ready and hands it to the scheduler of its CPU. True if it preempts what runs here.
#[inline]
pub fn make_ready(thread: Ref<Thread>) -> bool {
    if thread.runs.get() != Runs::Blocked || thread.ended.get() {
        return false;
    }
    trace::wake(thread);
    thread.runs.set(Runs::Ready);
    hand_in(thread)
}

/// Posts a ready thread, and interrupts its CPU if it precedes what runs there; true if that is this CPU.
fn hand_in(thread: Ref<Thread>) -> bool {
    let held = thread.held();
    let Some(seat) = thread.cpu.get().seat.get() else {
        // Its CPU has no scheduler, or lost it while the thread waited.
        return SEATS.get(held).taken.get() != 0 && move_away(thread);
    };
    if post(thread, seat) { gives_way(thread) } else { mark_in(thread) }
}

/// As [`hand_in`], if the ring is full.
#[cold]
#[inline(never)]
fn mark_in(thread: Ref<Thread>) -> bool {
    mark(thread);
    gives_way(thread)
}

/// Interrupts the CPU of a ready thread if the thread precedes what runs there; true if that is this CPU.
#[inline(always)]
fn gives_way(thread: Ref<Thread>) -> bool {
    let held = thread.held();
    let home = thread.cpu.get();
    let precedes = home.idle.get()
        || home.thread.get().is_some_and(|current| !is_seat(current) && thread.priority.get() > current.priority.get());
    if precedes {
        interrupt(home);
    }
    precedes && home == cpu::this(held)
}

/// Has a CPU preempt what it runs and enter `sched`; this CPU does so when the running operation ends.
pub fn interrupt(cpu: Ref<Cpu>) {
    let held = cpu.held();
    cpu.preempt.set(true);
    if cpu != cpu::this(held) {
        cpu::this(held).counts.wakes.update(|count| count + 1);
        cpu::send_ipi(cpu);
    }
}

/// Migrates a thread, which does not run, to another CPU.
pub fn go_to(thread: Ref<Thread>, cpu: Ref<Cpu>) {
    lend::leave_behind(thread.top.get());
    thread.go_to(cpu);
}

/// Migrates a thread to a CPU that has a scheduler, if possible one on which it may run; true if it preempts what runs here.
pub fn move_away(thread: Ref<Thread>) -> bool {
    let held = thread.held();
    let seated = |cpu: &Ref<Cpu>| cpu.seat.get().is_some();
    let allowed = |cpu: &Ref<Cpu>| thread.may_run_on(*cpu);
    let found = cpu::all(held).find(|cpu| seated(cpu) && allowed(cpu)).or_else(|| cpu::all(held).find(seated));
    let Some(cpu) = found else { return false };
    go_to(thread, cpu);
    thread.runs.get() == Runs::Ready && hand_in(thread)
}

/// `op::DISPATCH` of [`hand_to`]: migrates a ready thread whose word was taken out of its ring.
#[cold]
pub fn hand_over_to(held: Held, what: u64, number: u64) -> Result<u64, Error> {
    let target = (what as usize).wrapping_sub(hand_to(0) as usize);
    let target = cpu::of(held, target).ok_or(Error::NotThere)?;
    if target.seat.get().is_none() {
        return Err(Error::NoScheduler);
    }
    let found = numbers::by_number(held, number as usize).filter(|thread| thread.runs.get() == Runs::Ready);
    let thread = found.ok_or(Error::NotRunnable)?;
    if !thread.may_run_on(target) {
        return Err(Error::OtherCpu);
    }
    let is_same = |word| ThreadWord(word).number() == number as usize;
    let posted = thread.posted.get() as u32;
    if thread.cpu.get().seat.get().is_some_and(|seat| words_of(seat.ring).holds(posted, is_same)) {
        return Err(Error::NotRunnable);
    }
    go_to(thread, target);
    target.counts.received.update(|value| value + 1);
    hand_in(thread);
    Ok(0)
}

/// Begins the hand-over to a new scheduler: of the ready threads of its CPU, and of CPUs without a scheduler. Each of its
/// calls of `dispatch` does one step, and is refused until all are handed over.
pub fn hand_over(target: Ref<Cpu>) {
    let held = target.held();
    target.hands_over.set(1);
    target.ring.set((&raw const UNREAD).cast_mut().cast());
    if target != cpu::this(held) {
        cpu::send_ipi(target);
    }
}

/// Thread numbers that one step of a hand-over checks.
const HANDED_OVER: usize = 16;
/// Marked threads that one step posts, at most.
const POSTED_LATE: usize = 8;

/// One step of a hand-over: first of the threads that were ready before the scheduler, then of those that found its ring
/// full.
#[cold]
pub fn hand_over_step(cpu: Ref<Cpu>) {
    match cpu.hands_over.get() {
        0 => post_marked(cpu),
        first => hand_over_from(cpu, first as usize),
    }
    if cpu.hands_over.get() == 0 && cpu.unposted.is_empty() {
        cpu.ring.set(cpu.seat.get().map_or(core::ptr::null_mut(), |seat| seat.ring));
    }
}

/// Posts marked threads, until one finds the ring full again; that one is marked again.
fn post_marked(cpu: Ref<Cpu>) {
    for _ in 0..POSTED_LATE {
        let Some(number) = cpu.unposted.take() else { return };
        let is_ours = |thread: &Ref<Thread>| thread.runs.get() == Runs::Ready && thread.cpu.get() == cpu;
        if let Some(thread) = numbers::by_number(cpu.held(), number).filter(is_ours)
            && !post_or_mark(thread)
        {
            return;
        }
    }
}

fn hand_over_from(cpu: Ref<Cpu>, first: usize) {
    let held = cpu.held();
    let end = numbers::used(held).min(first + HANDED_OVER);
    for number in first..end {
        match numbers::by_number(held, number).filter(|thread| thread.runs.get() == Runs::Ready) {
            Some(thread) if thread.cpu.get() == cpu => drop(post_or_mark(thread)),
            Some(thread) if thread.cpu.get().seat.get().is_none() => drop(move_away(thread)),
            _ => {}
        }
    }
    cpu.hands_over.set(if end == numbers::used(held) { 0 } else { end as u16 });
}
