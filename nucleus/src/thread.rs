//! Threads: a scheduling context (number, priority, slice) and a chain of activations.

use crate::activation::{self, Activation, State};
use crate::cpu::{self, Cpu};
use crate::domain::Domain;
use crate::pointer::{Fresh, Held, Link, Nucleus, Ref};
use crate::table::Entry;
use crate::{slab, trace};
use abi::sched::ThreadWord;
use abi::{Error, MAX_THREADS};
use core::cell::Cell;
use core::mem::offset_of;

/// Whether a thread can run.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Runs {
    /// It is the CPU's thread.
    Running = 0,
    /// In `sched`'s queue or in the ring.
    Ready = 1,
    /// It waits, or has ended.
    Blocked = 3,
}

/// See the module.
#[repr(C)]
pub struct Thread {
    /// The end of its chain. It comes first for `entry.s`.
    pub top: Cell<Link<Activation>>,
    /// Its number: what `sched` names. 0 for the seat of a scheduler.
    pub number: u16,
    /// 0 (lowest) to 63, what was lent to it included.
    pub priority: Cell<u8>,
    /// Bit 0: it may run on one CPU only. Above: its share of time, in percent; 0 = all, or it is lifted.
    pub limits: Cell<u8>,
    /// Whether it can run.
    pub runs: Cell<Runs>,
    /// The nucleus has more to do when it is dispatched next: it runs where it may not run any more, and goes to another CPU; or it
    /// carries an orphan while others wait for their turn.
    pub moves: Cell<bool>,
    /// It carries the orphans of its domain.
    pub carries_orphans: bool,
    /// It has ended and waits for removal.
    pub ended: Cell<bool>,
    /// It is being removed.
    pub is_going: Cell<bool>,
    /// When it ends, its home domain does.
    pub is_first: bool,
    /// The orphan that it carries has not run since it has its turn.
    pub fresh: Cell<bool>,
    /// The CPU on which it runs, or whose scheduler has it or gets it.
    pub cpu: Cell<Ref<Cpu>>,
    /// The begin of its chain.
    pub bottom: Cell<Link<Activation>>,
    /// Slice in ticks.
    pub slice: Cell<u64>,
    /// What it has of its slice when it runs next: all, or what was left when it was preempted.
    pub left: Cell<u64>,
    /// Its priority without what was lent to it.
    pub own_priority: Cell<u8>,
    /// When its slice ends.
    pub slice_end: Cell<u64>,
    /// When it was dispatched.
    pub started: Cell<u64>,
    /// Ticks used before that.
    pub used: Cell<u64>,
    /// Where it started.
    pub home: Ref<Domain>,
    /// The home domain's list of threads.
    pub home_next: Cell<Link<Thread>>,
    /// Its original entry.
    pub entry: Cell<Link<Entry>>,
    /// A bit for each CPU on which it may run.
    pub cpus: Cell<u64>,
}

struct Numbers {
    threads: [Cell<Link<Thread>>; MAX_THREADS],
    free: [Cell<u16>; MAX_THREADS],
    count: Cell<usize>,
    unused: Cell<u16>,
}

static NUMBERS: Nucleus<Numbers> = Nucleus::new(Numbers {
    threads: [const { Cell::new(None) }; MAX_THREADS],
    free: [const { Cell::new(0) }; MAX_THREADS],
    count: Cell::new(0),
    unused: Cell::new(1),
});

/// The thread with this number.
pub fn by_number(held: Held, number: usize) -> Link<Thread> {
    NUMBERS.get(held).threads.get(number)?.get()
}

/// All numbers that were ever used are below this.
pub fn numbers_used(held: Held) -> usize {
    NUMBERS.get(held).unused.get() as usize
}

fn take_number(held: Held) -> Option<u16> {
    let numbers = NUMBERS.get(held);
    if let Some(count) = numbers.count.get().checked_sub(1) {
        numbers.count.set(count);
        return Some(numbers.free[count].get());
    }
    let next = numbers.unused.get();
    ((next as usize) < MAX_THREADS).then(|| numbers.unused.replace(next + 1))
}

/// A thread with nothing to run yet, charged to `home`.
pub fn new_empty(home: Ref<Domain>, priority: u8, slice: u64, carries_orphans: bool) -> Result<Ref<Thread>, Error> {
    let held = home.held();
    let mut thread: Fresh<Thread> = slab::allocate(home.account)?;
    let taken = home.account.take_number();
    let number = taken.and_then(|()| {
        take_number(held).ok_or_else(|| {
            home.account.release_number();
            Error::LimitReached
        })
    });
    let number = match number {
        Ok(number) => number,
        Err(error) => {
            slab::free(thread.share());
            return Err(error);
        }
    };
    (thread.number, thread.home, thread.carries_orphans) = (number, home, carries_orphans);
    // The orphan thread was the first.
    thread.is_first = home.thread_count.get() == 1;
    let thread = thread.share();
    NUMBERS.get(held).threads[number as usize].set(Some(thread));
    thread.priority.set(priority);
    thread.runs.set(Runs::Blocked);
    thread.slice.set(slice);
    thread.left.set(slice);
    thread.own_priority.set(priority);
    thread.set_cpus(home.cpus.get());
    thread.cpu.set(thread.nearest_cpu());
    thread.set_share(false);
    thread.home_next.set(home.threads.get());
    home.threads.set(Some(thread));
    home.thread_count.update(|value| value + 1);
    trace::thread(thread);
    Ok(thread)
}

/// A thread at `pc` in `home`, not yet ready.
pub fn new(
    home: Ref<Domain>,
    pc: u64,
    stack: u64,
    argument: u64,
    priority: u8,
    slice: u64,
) -> Result<Ref<Thread>, Error> {
    activation::check_address(pc)?;
    let activation = activation::new(home, stack)?;
    let thread = match new_empty(home, priority, slice, false) {
        Ok(thread) => thread,
        Err(error) => {
            activation::free_first(home);
            return Err(error);
        }
    };
    activation.bottom.set(true);
    activation.state.set(State::Top);
    activation.thread.set(Some(thread));
    let message = activation.message;
    activation.registers.set_start(pc, stack, message);
    activation.set_words([argument, 0, 0, 0, 0], 0);
    activation.frame.set(activation::Frame::Words);
    thread.top.set(Some(activation));
    thread.bottom.set(Some(activation));
    Ok(thread)
}

/// Frees the thread, which is first in its home's list and has no chain.
pub fn free_first(home: Ref<Domain>) {
    let Some(thread) = home.threads.get() else { return };
    home.threads.set(thread.home_next.get());
    free_number(thread);
    home.thread_count.update(|value| value - 1);
    slab::free(thread);
}

fn free_number(thread: Ref<Thread>) {
    let held = thread.held();
    let number = thread.number;
    thread.home.account.release_number();
    trace::thread_gone(held, number);
    let numbers = NUMBERS.get(held);
    numbers.threads[number as usize].set(None);
    numbers.free[numbers.count.get()].set(number);
    numbers.count.update(|count| count + 1);
}

/// Frees a thread that has no chain, wherever in its home's list.
pub fn free(thread: Ref<Thread>) {
    let home = thread.home;
    if home.threads.get() == Some(thread) {
        return free_first(home);
    }
    let mut previous = home.threads.get();
    // As long as the domain has threads, which its account bounds.
    while let Some(candidate) = previous {
        if candidate.home_next.get() == Some(thread) {
            candidate.home_next.set(thread.home_next.get());
            break;
        }
        previous = candidate.home_next.get();
    }
    free_number(thread);
    home.thread_count.update(|value| value - 1);
    slab::free(thread);
}

impl Ref<Thread> {
    /// As `sched` sees it.
    pub fn word(self) -> u64 {
        // SAFETY: number, priority and `limits` are four bytes in a row, aligned as such.
        unsafe { (&raw const (*self.pointer()).number).cast::<u32>().read() as u64 }
    }
    /// It may run on these CPUs, of which at least one is there.
    pub fn set_cpus(self, cpus: u64) {
        self.cpus.set(cpus);
        self.limits.update(|value| value & !1 | cpus.is_power_of_two() as u8);
    }
    /// Its share of time is that of its home, or `lifted`: who has none waits for it, and not for the end of a period.
    pub fn set_share(self, lifted: bool) {
        self.limits.update(|value| value & 1 | if lifted { 0 } else { self.home.time_share.get() << 1 });
    }
    /// Whether it has only a share of time ahead of others.
    pub fn has_share(self) -> bool {
        self.limits.get() > 1
    }
    /// This CPU if the thread may run here, or else the first on which it may.
    pub fn nearest_cpu(self) -> Ref<Cpu> {
        let held = self.held();
        let (own, allowed) = (cpu::this(held), self.cpus.get() & cpu::mask(held));
        let other = cpu::of(held, allowed.trailing_zeros() as usize).filter(|_| allowed >> own.number & 1 == 0);
        other.unwrap_or(own)
    }
    /// Whether it may run on this CPU.
    pub fn may_run_on(self, cpu: Ref<Cpu>) -> bool {
        self.cpus.get() >> cpu.number & 1 != 0
    }
    /// It belongs to this CPU from now on.
    pub fn go_to(self, cpu: Ref<Cpu>) {
        self.cpu.set(cpu);
        self.moves.update(|value| value & self.carries_orphans);
    }
    /// Whether it is ready and may run on its CPU. One comparison.
    #[inline(always)]
    pub fn can_run(self) -> bool {
        // SAFETY: both are bytes, side by side and aligned as such.
        let both = unsafe { (&raw const (*self.pointer()).runs).cast::<u16>().read() };
        both == Runs::Ready as u16
    }
}

/// What [`Ref::word`] and [`Ref::can_run`] count on.
const _: () = assert!(
    offset_of!(Thread, runs).is_multiple_of(2)
        && offset_of!(Thread, moves) == offset_of!(Thread, runs) + 1
        && cfg!(target_endian = "little")
);
const _: () = assert!(
    offset_of!(Thread, number).is_multiple_of(4)
        && offset_of!(Thread, priority) == offset_of!(Thread, number) + 2
        && offset_of!(Thread, limits) == offset_of!(Thread, number) + 3
        && ThreadWord::new(1, 2).pinned().with_share(3).0 == 0x0702_0001
);
