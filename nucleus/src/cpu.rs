//! The block of a CPU, reached through GS, and what CPUs do to each other.
//!
//! A CPU that is in the nucleus beyond the short ways has the nucleus lock or waits for it. Who has the lock can
//! *hold up* another CPU: it interrupts it and waits until that CPU is quiet, which it stays until the lock is given
//! back. Then nothing moves on that CPU, and whatever runs there may be changed; what the other CPU must do
//! because of that it finds in its block (`flush`, `disturbed`) when it gets the lock. A CPU that got the lock at
//! once was not quiet before, so there is nothing to find.

use crate::activation::Activation;
use crate::arch::{interrupts, processor};
use crate::domain::Domain;
use crate::pointer::{Held, Link, Nucleus, Ref, look};
use crate::schedule::Seat;
use crate::semaphore::Semaphore;
use crate::table::Entry;
use crate::thread::{Runs, Thread};
use abi::{Error, MAX_CPUS, MAX_THREADS};
use core::cell::Cell;
use core::sync::atomic::{Ordering, fence};
use parallel::quiet::Quiet;

/// What runs on a CPU, and where its stack is. The fields up to `settles` are used by `entry.s`.
#[repr(C)]
pub struct Cpu {
    /// The running domain. It is written before the root of its space is loaded: who weakens a space can rely on it. It comes first
    /// for `entry.s`; what it is on another CPU tells [`Ref::domain_there`].
    pub domain: Cell<Link<Domain>>,
    /// The running thread; while `sched` runs, none.
    pub thread: Cell<Link<Thread>>,
    /// This block.
    pub own: Cell<Link<Cpu>>,
    /// Where the running flow of control keeps its registers.
    pub activation: Cell<Link<Activation>>,
    /// The running domain's table, and its bytes minus those of an entry.
    pub table: Cell<usize>,
    /// See `table`.
    pub limit: Cell<usize>,
    /// Top of the one kernel stack.
    pub stack: Cell<usize>,
    /// One word for the first instructions of a trap.
    pub scratch: usize,
    /// The entry of the last operation on a semaphore.
    pub entry: Cell<Link<Entry>>,
    /// Where this CPU's share is of each domain: bytes from the domain on.
    pub share: usize,
    /// In a measuring build: the time of the last entry, and of what (index * 64, or 0x1000 + vector).
    pub entered: u64,
    /// See `entered`.
    pub entered_by: u64,
    /// The longest time from an entry to leaving, and of what.
    pub longest: Cell<u64>,
    /// See `longest`.
    pub longest_by: Cell<u64>,
    /// It waits for the lock or sleeps; the lock's holder may change what runs here.
    pub quiet: Quiet,
    /// Its number.
    pub number: u8,
    /// While it waits for the lock: a semaphore that it must settle. Who holds it up does it in its place.
    pub settles: Cell<Link<Semaphore>>,
    /// The machine's number of it.
    pub identity: Cell<u32>,
    /// An operation that can be made again lets interrupts in.
    pub window: Cell<bool>,
    /// It has nothing to do.
    pub idle: Cell<bool>,
    /// Something that precedes the running thread became ready.
    pub preempt: Cell<bool>,
    /// Another CPU changed what runs here: it must be looked at anew.
    pub disturbed: Cell<bool>,
    /// Translations of the loaded space got weaker.
    pub flush: Cell<bool>,
    /// It was sent an interrupt that it has not taken yet.
    pub kicked: Cell<bool>,
    /// The loaded floating-point registers are those of an activation that is gone.
    pub fpu_is_stale: Cell<bool>,
    /// Not zero: `pointer`, `fpu` or `fpu_is_stale` is.
    pub special: Cell<u8>,
    /// The loaded thread pointer.
    pub pointer: Cell<u64>,
    /// Whose floating-point registers are loaded.
    pub fpu: Cell<Link<Activation>>,
    /// Its scheduler.
    pub seat: Cell<Option<Seat>>,
    /// The number of the thread from which on its scheduler is still to get those that are ready; 0 = it has them all.
    pub hands_over: Cell<u16>,
    /// That scheduler's ring, or while it has not all of them one that always holds something unread.
    pub ring: Cell<*mut abi::sched::Ring>,
    /// When the scheduler must have dispatched (ticks).
    pub patience_ends: Cell<u64>,
    /// How often it got more time, and for which of its dispatches.
    pub chances: Cell<u8>,
    /// See `chances`.
    pub chances_of: Cell<u64>,
    /// Root of the deadlines that were set here.
    pub deadlines: Cell<Link<Activation>>,
    /// When the timer's interrupt comes (ticks).
    pub armed: Cell<u64>,
    /// When it began to rest (ticks).
    pub idle_since: Cell<u64>,
    /// What it did.
    pub counts: Counts,
    /// By number of a thread: where it was last put into the ring of its scheduler, modulo 2^16. It outlives the thread: while
    /// the ring was not read, that slot is used again by the next thread with the number.
    pub posted: [Cell<u16>; MAX_THREADS],
    /// In a checked build: owed invalidations.
    pub debts: crate::ledger::Debts,
}

/// Counters of a CPU; see `abi::info::Cpu`. Times are ticks.
#[allow(missing_docs)]
pub struct Counts {
    pub idle: Cell<u64>,
    pub dispatches: Cell<u64>,
    pub interrupts: Cell<u64>,
    pub received: Cell<u64>,
    pub wakes: Cell<u64>,
    pub halts: Cell<u64>,
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
            halts: Cell::new(0),
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
            &self.halts,
            &self.lock_waits,
            &self.lock_waited,
            &self.lock_longest,
            &self.root_writes,
        ];
        all.into_iter().for_each(|count| count.set(0));
    }
}

impl Cpu {
    /// A CPU on which nothing runs: its number, what the machine calls it, and the top of its stack.
    pub const fn new(number: u8, identity: u32, stack: usize) -> Self {
        Self {
            domain: Cell::new(None),
            thread: Cell::new(None),
            own: Cell::new(None),
            activation: Cell::new(None),
            table: Cell::new(0),
            limit: Cell::new(0),
            stack: Cell::new(stack),
            scratch: 0,
            entry: Cell::new(None),
            share: crate::domain::share_at(number as usize),
            entered: 0,
            entered_by: 0,
            longest: Cell::new(0),
            longest_by: Cell::new(0),
            quiet: Quiet::new(),
            number,
            settles: Cell::new(None),
            identity: Cell::new(identity),
            window: Cell::new(false),
            idle: Cell::new(false),
            preempt: Cell::new(false),
            disturbed: Cell::new(false),
            flush: Cell::new(false),
            kicked: Cell::new(false),
            fpu_is_stale: Cell::new(false),
            special: Cell::new(0),
            pointer: Cell::new(0),
            fpu: Cell::new(None),
            seat: Cell::new(None),
            hands_over: Cell::new(0),
            ring: Cell::new(core::ptr::null_mut()),
            patience_ends: Cell::new(u64::MAX),
            chances: Cell::new(0),
            chances_of: Cell::new(0),
            deadlines: Cell::new(None),
            armed: Cell::new(u64::MAX),
            idle_since: Cell::new(0),
            counts: Counts::new(),
            posted: [const { Cell::new(0) }; MAX_THREADS],
            debts: crate::ledger::Debts::new(),
        }
    }
}

/// The CPU that boots.
static FIRST: Nucleus<Cpu> = Nucleus::new(Cpu::new(0, 0, 0));

struct All {
    cpus: [Cell<Link<Cpu>>; MAX_CPUS],
    /// What the machine calls them, those that did not start included.
    identities: [Cell<u32>; MAX_CPUS],
    present: Cell<usize>,
    /// More than one is there.
    several: Cell<bool>,
    /// Those that are there, one bit each.
    mask: Cell<u64>,
}

static ALL: Nucleus<All> = Nucleus::new(All {
    cpus: [const { Cell::new(None) }; MAX_CPUS],
    identities: [const { Cell::new(0) }; MAX_CPUS],
    present: Cell::new(1),
    several: Cell::new(false),
    mask: Cell::new(1),
});

/// Makes the block of the first CPU its own.
pub fn init_first(held: Held) {
    let first = FIRST.reference(held);
    first.own.set(Some(first));
    ALL.get(held).cpus[0].set(Some(first));
    processor::load_block(first);
}

/// The machine says that it has this CPU besides the first; gives its number, if there is one left.
pub fn announce(held: Held, identity: u32) -> Option<usize> {
    let all = ALL.get(held);
    let number = all.present.get();
    all.identities.get(number)?.set(identity);
    all.present.set(number + 1);
    Some(number)
}

/// The first CPU is called so.
pub fn name_first(held: Held, identity: u32) {
    ALL.get(held).identities[0].set(identity);
    FIRST.get(held).identity.set(identity);
}

/// A CPU that was announced is there; what it runs has begun to wait for the lock.
pub fn join(cpu: Ref<Cpu>) {
    let held = cpu.held();
    let all = ALL.get(held);
    all.cpus[cpu.number as usize].set(Some(cpu));
    all.mask.update(|mask| mask | 1 << cpu.number);
    all.several.set(true);
}

/// The block of this CPU.
#[inline(always)]
pub fn this(held: Held) -> Ref<Cpu> {
    processor::block(held)
}

/// The CPU with this number, if it is there.
pub fn of(held: Held, number: usize) -> Link<Cpu> {
    ALL.get(held).cpus.get(number)?.get()
}

/// CPUs that the machine has, and what it calls the one with this number.
pub fn present(held: Held) -> usize {
    ALL.get(held).present.get()
}

/// See [`present`].
pub fn identity_of(held: Held, number: usize) -> u32 {
    ALL.get(held).identities[number].get()
}

/// A bit for each CPU that is there.
pub fn mask(held: Held) -> u64 {
    ALL.get(held).mask.get()
}

/// Those of the `wanted` CPUs that are there; there must be one, and all must be among the `allowed`.
pub fn check_mask(held: Held, wanted: u64, allowed: u64) -> Result<u64, Error> {
    match wanted & mask(held) {
        0 => Err(Error::BadArgument),
        found if found & !allowed != 0 => Err(Error::NoRight),
        found => Ok(found),
    }
}

/// Whether there is more than one.
#[inline(always)]
pub fn several(held: Held) -> bool {
    ALL.get(held).several.get()
}

/// All CPUs that are there.
pub fn all(held: Held) -> impl Iterator<Item = Ref<Cpu>> {
    let all = ALL.get(held);
    all.cpus[..all.present.get()].iter().filter_map(Cell::get)
}

/// All but this one. What this CPU wrote before is seen by those of them that do not yet stand in its way: the fence
/// pairs with the write of the root, which is serialising, or of the domain, before which and the next system call's
/// first load nothing is reordered (`arch::entry`).
#[inline(always)]
pub fn others(held: Held) -> impl Iterator<Item = Ref<Cpu>> {
    let own = this(held);
    let several = several(held);
    if several {
        fence(Ordering::SeqCst);
    }
    let count = if several { ALL.get(held).present.get() } else { 0 };
    ALL.get(held).cpus[..count].iter().filter_map(Cell::get).filter(move |cpu| *cpu != own)
}

/// Interrupts another CPU, unless it was and has not noticed yet.
pub fn kick(other: Ref<Cpu>) {
    if !other.kicked.get() {
        other.kicked.set(true);
        interrupts::send(other.identity.get());
    }
}

/// Sees to it that nothing moves on another CPU while we have the lock.
#[cold]
pub fn hold_up(other: Ref<Cpu>) {
    let held = other.held();
    let send = || {
        this(held).counts.halts.update(|value| value + 1);
        kick(other);
    };
    other.quiet.hold_up(send, processor::relax);
    if let Some(semaphore) = other.settles.take() {
        semaphore.settle();
    }
}

/// Holds up all others for which `stands_in_the_way` holds.
#[inline(always)]
pub fn hold_up_where(held: Held, stands_in_the_way: impl Fn(Ref<Cpu>) -> bool) {
    for other in others(held) {
        if stands_in_the_way(other) {
            hold_up(other);
        }
    }
}

/// What another CPU has loaded of the floating-point registers of `activation` is not its state any more.
pub fn forget_registers_elsewhere(activation: Ref<Activation>) {
    let held = activation.held();
    let own = this(held);
    for other in all(held).filter(|cpu| cpu.fpu.get() == Some(activation) && *cpu != own) {
        other.fpu.set(None);
        other.fpu_is_stale.set(true);
        other.special.set(1);
    }
}

/// The floating-point registers of `activation` are not kept any more; whether they are loaded here.
pub fn forget_registers(activation: Ref<Activation>) -> bool {
    let own = this(activation.held());
    let is_loaded = own.fpu.get() == Some(activation);
    if is_loaded {
        own.fpu.set(None);
    }
    is_loaded
}

/// The thread does not move while we have the lock: if it runs on another CPU, that is held up.
#[inline(always)]
pub fn hold_up_thread(thread: Ref<Thread>) {
    let held = thread.held();
    if several(held) && thread.runs.get() == Runs::Running {
        let home = thread.cpu.get();
        if home != this(held) {
            hold_up(home);
        }
    }
}

impl Ref<Cpu> {
    /// The domain in which another CPU is; its short ways change it meanwhile.
    pub fn domain_there(self) -> Link<Domain> {
        look(&self.domain)
    }
    /// The CPU runs no thread any more; it finds out when it gets the lock.
    pub fn leave_thread(self) {
        let held = self.held();
        self.thread.set(None);
        if self != this(held) {
            self.disturbed.set(true);
        }
    }

    /// It was quiet and has the lock now: does what was left to it.
    pub fn catch_up(self) {
        let held = self.held();
        if self.flush.get() {
            self.flush.set(false);
            if let Some(domain) = self.domain.get() {
                crate::arch::paging::load_root(held, domain.root);
            }
        }
    }
}

/// The CPU has nothing to do from now on; or has again.
pub fn rest(held: Held, is_idle: bool) {
    let cpu = this(held);
    let now = crate::arch::timer::now();
    if is_idle {
        cpu.idle_since.set(now);
    } else {
        cpu.counts.idle.update(|value| value + (now - cpu.idle_since.get()));
    }
    cpu.idle.set(is_idle);
}
