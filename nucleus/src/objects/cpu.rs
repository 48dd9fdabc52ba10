//! The block of a CPU: its per-CPU state.

use super::{Activation, Debts, Domain, Entry, Marks, Seat, Semaphore, Thread, per_cpu_at};
use crate::pointer::{Link, Ref, look};
use abi::MAX_THREADS;
use core::cell::{Cell, RefCell};
use flow::rules::Unfinished;
use nucleus_sync::quiescent::Quiescent;

/// State of a CPU. `entry.s` uses the fields up to `unsettled`.
#[repr(C)]
pub struct Cpu {
    /// The running domain. It is written before the root of its space is loaded, so a TLB shootdown can rely on it. It comes
    /// first for `entry.s`. [`Ref::domain_there`] reads that of another CPU.
    pub domain: Cell<Link<Domain>>,
    /// The running thread. While `sched` runs, the pseudo-thread of its seat.
    pub thread: Cell<Link<Thread>>,
    /// This block.
    pub own: Cell<Link<Cpu>>,
    /// The running activation.
    pub activation: Cell<Link<Activation>>,
    /// The running domain's portal table: its address, and (`limit`) its bytes minus one.
    pub table: Cell<usize>,
    /// See `table`.
    pub limit: Cell<usize>,
    /// Top of its kernel stack.
    pub stack: Cell<usize>,
    /// Start of the direct map: plus a physical address, it is that address in the direct map.
    pub direct: usize,
    /// Scratch word for `entry.s`.
    pub scratch: usize,
    /// The entry of the last operation on a semaphore.
    pub entry: Cell<Link<Entry>>,
    /// Offset in bytes from a domain to its state on this CPU.
    pub per_cpu_at: usize,
    /// In a measuring build: time of the last entry, and (`entered_by`) its cause: index * 64, or 0x1000 + vector.
    pub entered: u64,
    /// See `entered`.
    pub entered_by: u64,
    /// Longest time from an entry to the exit, and (`longest_by`) its cause.
    pub longest: Cell<u64>,
    /// See `longest`.
    pub longest_by: Cell<u64>,
    /// The CPU waits for the lock or sleeps: the lock holder may change what runs here.
    pub quiescent: Quiescent,
    /// CPU number.
    pub number: u8,
    /// While it waits for the lock: a semaphore that it must settle. A CPU that stops it does so instead.
    pub unsettled: Cell<Link<Semaphore>>,
    /// Identity in hardware: the local APIC's ID, or MPIDR_EL1 in 32 bits.
    pub identity: Cell<u32>,
    /// It is at a preemption point, with interrupts enabled.
    pub at_preemption_point: Cell<bool>,
    /// It idles.
    pub idle: Cell<bool>,
    /// `sched` is to be entered as soon as possible: a ready thread has a higher priority, or waiters must be checked.
    pub preempt: Cell<bool>,
    /// Another CPU changed what runs here; this CPU must recheck it.
    pub needs_recheck: Cell<bool>,
    /// Translations of the loaded space are stale: the root must be loaded again.
    pub flush: Cell<bool>,
    /// An IPI to it is pending.
    pub ipi_pending: Cell<bool>,
    /// The loaded floating-point registers are not their owner's state any more: it continued on another CPU or was freed.
    pub fpu_is_stale: Cell<bool>,
    /// Nonzero if `pointer`, `fpu`, `fpu_is_stale` or `again` may be: a switch of activations then has more to do.
    pub special: Cell<u8>,
    /// The loaded thread pointer.
    pub pointer: Cell<u64>,
    /// Owner of the loaded floating-point registers.
    pub fpu: Cell<Link<Activation>>,
    /// Domains in which a caller may wait although an activation is free; this CPU checks them when something stops here. A
    /// domain is marked when it got an activation, when one of its callers resumed here to restart its call, or when a woken
    /// caller is an orphan that awaits its turn. Bits are the numbers of their orphan threads.
    pub again: Marks<{ MAX_THREADS / 64 }>,
    /// Its scheduler.
    pub seat: Cell<Option<Seat>>,
    /// First thread number of the rest of a hand-over to a new scheduler; 0 = no hand-over.
    pub hands_over: Cell<u16>,
    /// Numbers of threads that found the scheduler's ring full, and are still to be posted.
    pub unposted: Marks<{ MAX_THREADS / 64 }>,
    /// Ring of the scheduler; `UNREAD` (`control::ready`) while threads are still to be handed over or posted.
    pub ring: Cell<*mut abi::sched::Ring>,
    /// Time by which the scheduler must dispatch (ticks).
    pub patience_ends: Cell<u64>,
    /// Extensions that the scheduler got.
    pub extensions: Cell<u8>,
    /// Value of `counts.dispatches` to which `extensions` refers.
    pub extensions_of: Cell<u64>,
    /// Words that the scheduler had read when `dispatch` was first refused because of others.
    pub words_read: Cell<u32>,
    /// Low bits of the value of `counts.dispatches` to which `words_read` refers.
    pub words_read_of: Cell<u32>,
    /// Time at which a thread is preempted that was dispatched although there were unread words; `u64::MAX` = none.
    pub short_slice_ends: Cell<u64>,
    /// Root of the tree of deadlines set on this CPU.
    pub deadlines: Cell<Link<Activation>>,
    /// Time for which the timer is armed (ticks); `u64::MAX` = not armed.
    pub armed: Cell<u64>,
    /// Start of its idle time (ticks).
    pub idle_since: Cell<u64>,
    /// Counters.
    pub counts: Counts,
    /// Unfinished evaluation of a label rule.
    pub unfinished: RefCell<Unfinished>,
    /// In a checked build: the TLB invalidations that it owes.
    pub debts: Debts,
}

/// Counters of a CPU; see `abi::info::Cpu`. Times are ticks.
pub struct Counts {
    /// Time in which it had nothing to do.
    pub idle: Cell<u64>,
    /// Dispatches by its scheduler.
    pub dispatches: Cell<u64>,
    /// Interrupts taken, IPIs included.
    pub interrupts: Cell<u64>,
    /// Threads that migrated to it.
    pub received: Cell<u64>,
    /// IPIs sent to wake other CPUs.
    pub wakes: Cell<u64>,
    /// Times it stopped another CPU.
    pub stops: Cell<u64>,
    /// Times it waited for the nucleus lock.
    pub lock_waits: Cell<u64>,
    /// Time spent in these waits.
    pub lock_waited: Cell<u64>,
    /// The longest of them.
    pub lock_longest: Cell<u64>,
    /// Writes of the root of its page tables by the slow paths.
    pub root_writes: Cell<u64>,
}

impl Counts {
    const fn new() -> Self {
        Self {
            idle: Cell::new(0),
            dispatches: Cell::new(0),
            interrupts: Cell::new(0),
            received: Cell::new(0),
            wakes: Cell::new(0),
            stops: Cell::new(0),
            lock_waits: Cell::new(0),
            lock_waited: Cell::new(0),
            lock_longest: Cell::new(0),
            root_writes: Cell::new(0),
        }
    }
    /// Resets all counters.
    pub fn reset(&self) {
        let all = [
            &self.idle,
            &self.dispatches,
            &self.interrupts,
            &self.received,
            &self.wakes,
            &self.stops,
            &self.lock_waits,
            &self.lock_waited,
            &self.lock_longest,
            &self.root_writes,
        ];
        all.into_iter().for_each(|count| count.set(0));
    }
}

impl Cpu {
    /// A CPU on which nothing runs. `identity` is that in hardware, `stack` the top of its kernel stack, `direct` the start
    /// of the direct map.
    pub const fn new(number: u8, identity: u32, stack: usize, direct: usize) -> Self {
        Self {
            domain: Cell::new(None),
            thread: Cell::new(None),
            own: Cell::new(None),
            activation: Cell::new(None),
            table: Cell::new(0),
            limit: Cell::new(0),
            stack: Cell::new(stack),
            direct,
            scratch: 0,
            entry: Cell::new(None),
            per_cpu_at: per_cpu_at(number as usize),
            entered: 0,
            entered_by: 0,
            longest: Cell::new(0),
            longest_by: Cell::new(0),
            quiescent: Quiescent::new(),
            number,
            unsettled: Cell::new(None),
            identity: Cell::new(identity),
            at_preemption_point: Cell::new(false),
            idle: Cell::new(false),
            preempt: Cell::new(false),
            needs_recheck: Cell::new(false),
            flush: Cell::new(false),
            ipi_pending: Cell::new(false),
            fpu_is_stale: Cell::new(false),
            special: Cell::new(0),
            pointer: Cell::new(0),
            fpu: Cell::new(None),
            again: Marks::new(),
            seat: Cell::new(None),
            hands_over: Cell::new(0),
            unposted: Marks::new(),
            ring: Cell::new(core::ptr::null_mut()),
            patience_ends: Cell::new(u64::MAX),
            extensions: Cell::new(0),
            extensions_of: Cell::new(0),
            words_read: Cell::new(0),
            words_read_of: Cell::new(0),
            short_slice_ends: Cell::new(u64::MAX),
            deadlines: Cell::new(None),
            armed: Cell::new(u64::MAX),
            idle_since: Cell::new(0),
            counts: Counts::new(),
            unfinished: RefCell::new(Unfinished::NONE),
            debts: Debts::new(),
        }
    }
}

impl Ref<Cpu> {
    /// The domain in which another CPU runs. Its fast paths may change it at any time.
    pub fn domain_there(self) -> Link<Domain> {
        look(&self.domain)
    }
}
