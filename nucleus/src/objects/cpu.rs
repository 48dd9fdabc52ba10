//! The block of a CPU.

use super::{Activation, Debts, Domain, Entry, Marks, Seat, Semaphore, Thread, per_cpu_at};
use crate::pointer::{Link, Ref, look};
use abi::MAX_THREADS;
use core::cell::{Cell, RefCell};
use flow::rules::Unfinished;
use nucleus_sync::quiescent::Quiescent;

/// State of a CPU: the thread that it runs, its stack. The fields up to `unsettled` are used by `entry.s`.
#[repr(C)]
pub struct Cpu {
    /// The running domain. It is written before the root of its space is loaded: who weakens a space can rely on it. It comes first
    /// for `entry.s`; for another CPU it is read with [`Ref::domain_there`].
    pub domain: Cell<Link<Domain>>,
    /// The running thread; while `sched` runs, none.
    pub thread: Cell<Link<Thread>>,
    /// This block.
    pub own: Cell<Link<Cpu>>,
    /// Where the running flow of control keeps its registers.
    pub activation: Cell<Link<Activation>>,
    /// The running domain's table, and its bytes minus one.
    pub table: Cell<usize>,
    /// See `table`.
    pub limit: Cell<usize>,
    /// Top of the one kernel stack.
    pub stack: Cell<usize>,
    /// What makes an address of the direct map of a physical one.
    pub direct: usize,
    /// One word for the first instructions of a trap.
    pub scratch: usize,
    /// The entry of the last operation on a semaphore.
    pub entry: Cell<Link<Entry>>,
    /// Bytes from each domain to its state on this CPU.
    pub per_cpu_at: usize,
    /// In a measuring build: the time of the last entry, and of what (index * 64, or 0x1000 + vector).
    pub entered: u64,
    /// See `entered`.
    pub entered_by: u64,
    /// The longest time from an entry to leaving, and of what.
    pub longest: Cell<u64>,
    /// See `longest`.
    pub longest_by: Cell<u64>,
    /// It waits for the lock or sleeps; the lock's holder may change what runs here.
    pub quiescent: Quiescent,
    /// Its number.
    pub number: u8,
    /// While it waits for the lock: a semaphore that it must settle. A CPU that stops it does that in its place.
    pub unsettled: Cell<Link<Semaphore>>,
    /// The machine's number of it.
    pub identity: Cell<u32>,
    /// An operation that can be restarted lets interrupts in.
    pub window: Cell<bool>,
    /// It has nothing to do.
    pub idle: Cell<bool>,
    /// Something that precedes the running thread became ready.
    pub preempt: Cell<bool>,
    /// Another CPU changed what runs here: it must be looked at again.
    pub needs_recheck: Cell<bool>,
    /// Translations of the loaded space got weaker.
    pub flush: Cell<bool>,
    /// It was sent an interrupt that it has not taken yet.
    pub ipi_pending: Cell<bool>,
    /// The loaded floating-point registers are those of an activation that is gone.
    pub fpu_is_stale: Cell<bool>,
    /// Not zero: `pointer`, `fpu`, `fpu_is_stale` or `again` is.
    pub special: Cell<u8>,
    /// The loaded thread pointer.
    pub pointer: Cell<u64>,
    /// Whose floating-point registers are loaded.
    pub fpu: Cell<Link<Activation>>,
    /// Domains for which an activation is free, and whose callers that wait this CPU sees to when something stops here: those that
    /// the activation that goes on here was woken to call again, and those whose caller was woken but has no turn. By the numbers of
    /// their orphan threads.
    pub again: Marks<{ MAX_THREADS / 64 }>,
    /// Its scheduler.
    pub seat: Cell<Option<Seat>>,
    /// The number of the thread from which on its scheduler is still to get those that are ready; 0 = it has them all.
    pub hands_over: Cell<u16>,
    /// The numbers of threads that became ready while the scheduler's ring was full.
    pub unposted: Marks<{ MAX_THREADS / 64 }>,
    /// That scheduler's ring, or while it has not all of them one that always holds something unread.
    pub ring: Cell<*mut abi::sched::Ring>,
    /// When the scheduler must have dispatched (ticks).
    pub patience_ends: Cell<u64>,
    /// How often it got more time.
    pub extensions: Cell<u8>,
    /// For which of its dispatches it got that.
    pub extensions_of: Cell<u64>,
    /// Root of the deadlines that were set here.
    pub deadlines: Cell<Link<Activation>>,
    /// When the timer's interrupt comes (ticks).
    pub armed: Cell<u64>,
    /// When it began to rest (ticks).
    pub idle_since: Cell<u64>,
    /// What it did.
    pub counts: Counts,
    /// What it is finding out about labels.
    pub unfinished: RefCell<Unfinished>,
    /// In a checked build: owed invalidations.
    pub debts: Debts,
}

/// Counters of a CPU; see `abi::info::Cpu`. Times are ticks.
#[allow(missing_docs)]
pub struct Counts {
    pub idle: Cell<u64>,
    pub dispatches: Cell<u64>,
    pub interrupts: Cell<u64>,
    pub received: Cell<u64>,
    pub wakes: Cell<u64>,
    pub stops: Cell<u64>,
    pub lock_waits: Cell<u64>,
    pub lock_waited: Cell<u64>,
    pub lock_longest: Cell<u64>,
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
    /// From zero again.
    pub fn restart(&self) {
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
    /// A CPU on which nothing runs: its number, what the machine calls it, the top of its stack, and where the direct map begins.
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
            window: Cell::new(false),
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
    /// The domain in which another CPU is; its fast paths change it meanwhile.
    pub fn domain_there(self) -> Link<Domain> {
        look(&self.domain)
    }
}
