//! Threads: a scheduling context (number, priority, slice) and a chain of activations.

use crate::activation::{self, Activation, State};
use crate::cpu::{self, Cpu};
use crate::domain::Domain;
use crate::pointer::{Link, Nucleus, Ref};
use crate::table::Entry;
use crate::{slab, trace};
use abi::sched::ThreadWord;
use abi::{Error, MAX_THREADS};
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
    pub top: Link<Activation>,
    /// Its number: what `sched` names. 0 for the seat of a scheduler.
    pub number: u16,
    /// 0 (lowest) to 63, what was lent to it included.
    pub priority: u8,
    /// Bit 0: it may run on one CPU only. Above: its share of time, in percent; 0 = all, or it is lifted.
    pub limits: u8,
    /// Whether it can run.
    pub runs: Runs,
    /// The nucleus has more to do when it is dispatched next: it runs where it may not run any more, and goes to another CPU; or it
    /// carries an orphan while others wait for their turn.
    pub moves: bool,
    /// It carries the orphans of its domain.
    pub carries_orphans: bool,
    /// It has ended and waits for removal.
    pub ended: bool,
    /// It is being removed.
    pub is_going: bool,
    /// When it ends, its home domain does.
    pub is_first: bool,
    /// The orphan that it carries has not run since it has its turn.
    pub fresh: bool,
    /// The CPU on which it runs, or whose scheduler has it or gets it.
    pub cpu: Ref<Cpu>,
    /// The begin of its chain.
    pub bottom: Link<Activation>,
    /// Slice in ticks.
    pub slice: u64,
    /// What it has of its slice when it runs next: all, or what was left when it was preempted.
    pub left: u64,
    /// Its priority without what was lent to it.
    pub own_priority: u8,
    /// When its slice ends.
    pub slice_end: u64,
    /// When it was dispatched.
    pub started: u64,
    /// Ticks used before that.
    pub used: u64,
    /// Where it started.
    pub home: Ref<Domain>,
    /// The home domain's list of threads.
    pub home_next: Link<Thread>,
    /// Its original entry.
    pub entry: Link<Entry>,
    /// A bit for each CPU on which it may run.
    pub cpus: u64,
}

struct Numbers {
    threads: [Link<Thread>; MAX_THREADS],
    free: [u16; MAX_THREADS],
    count: usize,
    unused: u16,
}

static NUMBERS: Nucleus<Numbers> =
    Nucleus::new(Numbers { threads: [None; MAX_THREADS], free: [0; MAX_THREADS], count: 0, unused: 1 });

/// The thread with this number.
pub fn by_number(number: usize) -> Link<Thread> {
    NUMBERS.get().threads.get(number).copied().flatten()
}

/// All numbers that were ever used are below this.
pub fn numbers_used() -> usize {
    NUMBERS.get().unused as usize
}

fn take_number() -> Option<u16> {
    let numbers = NUMBERS.get();
    if numbers.count > 0 {
        numbers.count -= 1;
        return Some(numbers.free[numbers.count]);
    }
    if (numbers.unused as usize) < MAX_THREADS {
        numbers.unused += 1;
        return Some(numbers.unused - 1);
    }
    None
}

/// A thread with nothing to run yet, charged to `home`.
pub fn new_empty(mut home: Ref<Domain>, priority: u8, slice: u64) -> Result<Ref<Thread>, Error> {
    let mut thread: Ref<Thread> = slab::allocate(home.account)?;
    let taken = home.account.take_number();
    let number = taken.and_then(|()| {
        take_number().ok_or_else(|| {
            home.account.release_number();
            Error::LimitReached
        })
    });
    let number = number.inspect_err(|_| slab::free(thread))?;
    NUMBERS.get().threads[number as usize] = Some(thread);
    (thread.number, thread.priority, thread.runs) = (number, priority, Runs::Blocked);
    (thread.slice, thread.left, thread.own_priority) = (slice, slice, priority);
    thread.set_cpus(home.cpus);
    thread.cpu = thread.nearest_cpu();
    thread.home = home;
    thread.set_share(false);
    thread.home_next = home.threads;
    home.threads = Some(thread);
    home.thread_count += 1;
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
    let mut activation = activation::new(home, stack)?;
    let mut thread = match new_empty(home, priority, slice) {
        Ok(thread) => thread,
        Err(error) => {
            activation::free_first(home);
            return Err(error);
        }
    };
    (activation.bottom, activation.state, activation.thread) = (true, State::Top, Some(thread));
    let message = activation.message;
    activation.registers.set_start(pc, stack, message);
    activation.set_words([argument, 0, 0, 0, 0], 0);
    activation.frame = activation::Frame::Words;
    (thread.top, thread.bottom) = (Some(activation), Some(activation));
    // The orphan thread and this one.
    thread.is_first = home.thread_count == 2;
    Ok(thread)
}

/// Frees the thread, which is first in its home's list and has no chain.
pub fn free_first(mut home: Ref<Domain>) {
    let Some(thread) = home.threads else { return };
    home.threads = thread.home_next;
    free_number(thread);
    home.thread_count -= 1;
    slab::free(thread);
}

fn free_number(thread: Ref<Thread>) {
    let number = thread.number;
    thread.home.account.release_number();
    trace::thread_gone(number);
    let numbers = NUMBERS.get();
    numbers.threads[number as usize] = None;
    numbers.free[numbers.count] = number;
    numbers.count += 1;
}

/// Frees a thread that has no chain, wherever in its home's list.
pub fn free(thread: Ref<Thread>) {
    let mut home = thread.home;
    if home.threads == Some(thread) {
        return free_first(home);
    }
    let mut previous = home.threads;
    // As long as the domain has threads, which its account bounds.
    while let Some(mut candidate) = previous {
        if candidate.home_next == Some(thread) {
            candidate.home_next = thread.home_next;
            break;
        }
        previous = candidate.home_next;
    }
    free_number(thread);
    home.thread_count -= 1;
    slab::free(thread);
}

impl Ref<Thread> {
    /// As `sched` sees it.
    pub fn word(self) -> u64 {
        // SAFETY: number, priority and `limits` are four bytes in a row, aligned as such.
        unsafe { (&raw const (*self.pointer()).number).cast::<u32>().read() as u64 }
    }
    /// It may run on these CPUs, of which at least one is there.
    pub fn set_cpus(mut self, cpus: u64) {
        self.cpus = cpus;
        self.limits = self.limits & !1 | cpus.is_power_of_two() as u8;
    }
    /// Its share of time is that of its home, or `lifted`: who has none waits for it, and not for the end of a period.
    pub fn set_share(mut self, lifted: bool) {
        self.limits = self.limits & 1 | if lifted { 0 } else { self.home.time_share << 1 };
    }
    /// Whether it has only a share of time ahead of others.
    pub fn has_share(self) -> bool {
        self.limits > 1
    }
    /// This CPU if the thread may run here, or else the first on which it may.
    pub fn nearest_cpu(self) -> Ref<Cpu> {
        let (own, allowed) = (cpu::this(), self.cpus & cpu::mask());
        let other = cpu::of(allowed.trailing_zeros() as usize).filter(|_| allowed >> own.number & 1 == 0);
        other.unwrap_or(own)
    }
    /// Whether it may run on this CPU.
    pub fn may_run_on(self, cpu: Ref<Cpu>) -> bool {
        self.cpus >> cpu.number & 1 != 0
    }
    /// It belongs to this CPU from now on.
    pub fn go_to(mut self, cpu: Ref<Cpu>) {
        self.cpu = cpu;
        self.moves &= self.carries_orphans;
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
