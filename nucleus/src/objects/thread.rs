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
    /// Its CPU runs it.
    Running = 0,
    /// It is in a queue of `sched`, in the ring, or marked because the ring was full.
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
    /// Top of its chain. It comes first for `entry.s`.
    pub top: Cell<Link<Activation>>,
    /// Number by which `sched` names it; 0 for the seat of a scheduler.
    pub number: u16,
    /// Effective priority, 0 (lowest) to 63, with what was lent to it.
    pub priority: Cell<u8>,
    /// Bit 0: it may run on one CPU only. Bits 1 to 7: its share of time, in percent; 0 = all, or it is lifted.
    pub limits: Cell<u8>,
    /// Whether it can run.
    pub runs: Cell<Runs>,
    /// Its next dispatch takes more steps: it must migrate because it may not run on its CPU any more, or it carries orphans
    /// and one of them awaits its turn.
    pub moves: Cell<bool>,
    /// It is the orphan thread of its home domain.
    pub carries_orphans: bool,
    /// It has ended and waits for removal.
    pub ended: Cell<bool>,
    /// It is being removed.
    pub is_going: Cell<bool>,
    /// When it ends, its home domain dies.
    pub is_first: bool,
    /// The orphan that it carries has not run yet in this turn.
    pub fresh: Cell<bool>,
    /// The CPU that it belongs to: it runs there, or the scheduler there has it or gets it.
    pub cpu: Cell<Ref<Cpu>>,
    /// Bottom of its chain.
    pub bottom: Cell<Link<Activation>>,
    /// Its own priority, without what was lent to it.
    pub own_priority: Cell<u8>,
    /// Counter value at its last post to a scheduler's ring, modulo 2^16. Its word may still be in that slot.
    pub posted: Cell<u16>,
    /// End of its slice, in ticks.
    pub slice_end: Cell<u64>,
    /// Time of its last dispatch, in ticks.
    pub started: Cell<u64>,
    /// Length of a slice in ticks.
    pub slice: Cell<u64>,
    /// Ticks of its slice when it runs next: all, or the rest after a preemption.
    pub left: Cell<u64>,
    /// Ticks used before its last dispatch.
    pub used: Cell<u64>,
    /// Domain in which it started.
    pub home: Ref<Domain>,
    /// Next in the home domain's list of threads.
    pub home_next: Cell<Link<Thread>>,
    /// Its original entry.
    pub entry: Cell<Link<Entry>>,
    /// CPUs on which it may run, one bit each.
    pub cpus: Cell<u64>,
}

impl Ref<Thread> {
    /// Its thread word, as `sched` gets it.
    pub fn word(self) -> u64 {
        // SAFETY: `number`, `priority` and `limits` of a live thread are four adjacent bytes, aligned as a word (asserted
        // below).
        unsafe { (&raw const (*self.pointer()).number).cast::<u32>().read() as u64 }
    }
    /// Sets the CPUs on which it may run; at least one must be present.
    pub fn set_cpus(self, cpus: u64) {
        self.cpus.set(cpus);
        self.limits.update(|value| value & !1 | cpus.is_power_of_two() as u8);
    }
    /// Sets its share of time: that of its home. If `lifted`, all: a thread without a share waits for it, and must not wait
    /// for the next period.
    pub fn set_share(self, lifted: bool) {
        self.limits.update(|value| value & 1 | if lifted { 0 } else { self.home.time_share.get() << 1 });
    }
    /// Whether its time ahead of others is limited to a share.
    pub fn has_share(self) -> bool {
        self.limits.get() > 1
    }
    /// Whether it may run on this CPU.
    pub fn may_run_on(self, cpu: Ref<Cpu>) -> bool {
        self.cpus.get() >> cpu.number & 1 != 0
    }
    /// Assigns it to this CPU.
    pub fn go_to(self, cpu: Ref<Cpu>) {
        self.cpu.set(cpu);
        self.moves.update(|value| value & self.carries_orphans);
    }
    /// Whether it is ready and its dispatch takes no more steps (`moves`), in one comparison.
    #[inline(always)]
    pub fn can_run(self) -> bool {
        // SAFETY: `runs` and `moves` of a live thread are adjacent bytes, aligned as a half word (asserted below).
        let both = unsafe { (&raw const (*self.pointer()).runs).cast::<u16>().read() };
        both == Runs::Ready as u16
    }
}

/// The layout that [`Ref::word`] and [`Ref::can_run`] rely on.
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
