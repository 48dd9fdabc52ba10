//! The nucleus's side of the `sched` protocol (`abi::sched`). No queue of ready threads is here.
//!
//! Invariant: a thread that is `Ready` was posted to the active seat's ring since it last ran, or given to `sched` as
//! operand of an event, or it is marked in `Cpu::unposted`. `sched` has it in its queue once it has read the ring. A thread
//! whose last post is still unread is not posted again, unless it moved meanwhile. The ring has fewer slots than there can be threads: a
//! thread that finds it full is marked, and posted when `sched` has read what is there. Until then `sched` cannot dispatch.

use super::numbers;
use crate::cpus::cpu;
use crate::memory::lend;
use crate::objects::{Cpu, Runs, Seat, Thread, is_seat};
use crate::pointer::{Held, Link, Nucleus, Ref};
use crate::report::trace;
use abi::Error;
use abi::sched::{Ring as SharedRing, ThreadWord, hand_to};
use core::cell::Cell;
use core::sync::atomic::AtomicU32;
use nucleus_sync::ring::{self, Ring};

/// What is known of schedulers.
pub struct Seats {
    /// Who stands by.
    pub standby: Cell<Option<Seat>>,
    /// CPUs with a scheduler.
    pub taken: Cell<usize>,
    /// How long `sched` may take, in ticks.
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

/// The seats of schedulers.
pub fn seats(held: Held) -> &'static Seats {
    SEATS.get(held)
}

/// Whether a scheduler has a seat, or stands by.
pub fn has_scheduler(held: Held) -> bool {
    seats(held).taken.get() != 0 || seats(held).standby.get().is_some()
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
pub fn is_unread(ring: *mut SharedRing) -> bool {
    // SAFETY: a ring is a page of the nucleus that its seat's activation owns; whoever touches these two words does it
    // atomically.
    unsafe {
        let [written, read] = [&raw mut (*ring).written, &raw mut (*ring).read].map(|word| AtomicU32::from_ptr(word));
        ring::is_unread(written, read)
    }
}

/// `Cpu::ring` while threads are still to be handed over: the begin of a ring that is never read to the end.
static UNREAD: [AtomicU32; UNREAD_WORDS] = {
    let mut words = [const { AtomicU32::new(0) }; UNREAD_WORDS];
    words[0] = AtomicU32::new(1);
    words
};

/// Up to both counters of a ring.
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

/// Posts the thread to its scheduler now or, if this is false, later; one that takes its seat later gets it then.
#[inline(never)]
fn post_or_mark(thread: Ref<Thread>) -> bool {
    let is_full = thread.cpu.get().seat.get().is_some_and(|seat| !post(thread, seat));
    if is_full {
        mark(thread);
    }
    !is_full
}

/// The ring of the thread's scheduler is full: that cannot dispatch before it got this thread, too.
fn mark(thread: Ref<Thread>) {
    let cpu = thread.cpu.get();
    cpu.unposted.mark(thread.number as usize);
    cpu.ring.set((&raw const UNREAD).cast_mut().cast());
}

/// A thread that is ready, or runs, has another priority now than this one.
pub fn rank_again(thread: Ref<Thread>, before: u8) {
    match thread.runs.get() {
        Runs::Ready => drop(hand_in(thread)),
        // Others may precede it now.
        Runs::Running if thread.priority.get() < before && SEATS.get(thread.held()).taken.get() != 0 => {
            interrupt(thread.cpu.get());
        }
        _ => {}
    }
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
    let Some(seat) = thread.cpu.get().seat.get() else {
        // Its CPU has no scheduler, or lost it while the thread waited.
        return SEATS.get(held).taken.get() != 0 && move_away(thread);
    };
    if post(thread, seat) { gives_way(thread) } else { mark_in(thread) }
}

/// As [`hand_in`], of a thread for which the ring has no room.
#[cold]
#[inline(never)]
fn mark_in(thread: Ref<Thread>) -> bool {
    mark(thread);
    gives_way(thread)
}

/// Interrupts what a thread that is ready precedes on its CPU; true if that is here.
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

/// What runs on a CPU gives way to `sched`, here when the running operation ends.
pub fn interrupt(cpu: Ref<Cpu>) {
    let held = cpu.held();
    cpu.preempt.set(true);
    if cpu != cpu::this(held) {
        cpu::this(held).counts.wakes.update(|count| count + 1);
        cpu::send_ipi(cpu);
    }
}

/// A thread that does not run belongs to another CPU from now on.
pub fn go_to(thread: Ref<Thread>, cpu: Ref<Cpu>) {
    lend::leave_behind(thread.top.get());
    thread.go_to(cpu);
}

/// A thread goes to a CPU that has a scheduler, if possible one on which it may run; true if it precedes what runs here.
pub fn move_away(thread: Ref<Thread>) -> bool {
    let held = thread.held();
    let seated = |cpu: &Ref<Cpu>| cpu.seat.get().is_some();
    let allowed = |cpu: &Ref<Cpu>| thread.may_run_on(*cpu);
    let found = cpu::all(held).find(|cpu| seated(cpu) && allowed(cpu)).or_else(|| cpu::all(held).find(seated));
    let Some(cpu) = found else { return false };
    go_to(thread, cpu);
    thread.runs.get() == Runs::Ready && hand_in(thread)
}

/// A scheduler hands a ready thread that was taken out of its ring to another one, or takes it.
#[cold]
pub fn hand_over_to(held: Held, what: u64, number: u64) -> Result<u64, Error> {
    let target = (what as usize).wrapping_sub(hand_to(0) as usize);
    let target = cpu::of(held, target).filter(|cpu| cpu.seat.get().is_some()).ok_or(Error::BadArgument)?;
    let found = numbers::by_number(held, number as usize).filter(|thread| thread.runs.get() == Runs::Ready);
    let thread = found.ok_or(Error::NotRunnable)?;
    if !thread.may_run_on(target) {
        return Err(Error::BadArgument);
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

/// The new scheduler of a CPU is to get every thread of that CPU that is ready, and those of CPUs that have no scheduler: a
/// few whenever it dispatches, before it may.
pub fn hand_over(target: Ref<Cpu>) {
    let held = target.held();
    target.hands_over.set(1);
    target.ring.set((&raw const UNREAD).cast_mut().cast());
    if target != cpu::this(held) {
        cpu::send_ipi(target);
    }
}

/// Numbers of threads that one step of a hand-over looks at.
const HANDED_OVER: usize = 16;
/// Threads that one step posts which found the ring full.
const POSTED_LATE: usize = 8;

/// One step towards a scheduler that has all threads of its CPU that are ready: those that were there before it, then those
/// that found its ring full.
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

/// Posts threads that are marked, until one finds the ring full again, which stays marked.
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
