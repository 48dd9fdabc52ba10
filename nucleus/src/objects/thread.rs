//! Threads: a scheduling context (number, priority, slice) and a chain of activations.

use super::{Activation, Cpu, Domain, Entry};
use crate::pointer::{Link, Ref};
use abi::sched::ThreadWord;
use core::cell::Cell;
use core::mem::offset_of;

/// Whether a thread can run.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Runs {
    /// It is the CPU's thread.
    Running = 0,
    /// In `sched`'s queue, in the ring, or marked because that is full.
    Ready = 1,
    /// It waits, or has ended.
    Blocked = 3,
}

/// Whether this is the pseudo-thread of a scheduler's seat.
pub fn is_seat(thread: Ref<Thread>) -> bool {
    thread.number == 0
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
    /// Its priority without what was lent to it.
    pub own_priority: Cell<u8>,
    /// Where it was last put into the ring of a scheduler, modulo 2^16: perhaps it stands there still.
    pub posted: Cell<u16>,
    /// When its slice ends.
    pub slice_end: Cell<u64>,
    /// When it was dispatched.
    pub started: Cell<u64>,
    /// Slice in ticks.
    pub slice: Cell<u64>,
    /// What it has of its slice when it runs next: all, or what was left when it was preempted.
    pub left: Cell<u64>,
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
