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
use crate::pointer::{Link, Nucleus, Ref};
use crate::schedule::Seat;
use crate::semaphore::Semaphore;
use crate::table::Entry;
use crate::thread::{Runs, Thread};
use abi::{Error, MAX_CPUS, MAX_THREADS};
use core::sync::atomic::{AtomicUsize, Ordering, fence};
use parallel::quiet::Quiet;

/// What runs on a CPU, and where its stack is. The fields up to `settles` are used by `entry.s`.
#[repr(C)]
pub struct Cpu {
    /// The running domain. It is written before the root of its space is loaded: who weakens a space can rely on it. It comes first
    /// for `entry.s`; what it is on another CPU tells [`Ref::domain_there`].
    pub domain: Link<Domain>,
    /// The running thread; while `sched` runs, none.
    pub thread: Link<Thread>,
    /// This block.
    pub own: Link<Cpu>,
    /// Where the running flow of control keeps its registers.
    pub activation: Link<Activation>,
    /// The running domain's table, and its bytes minus those of an entry.
    pub table: usize,
    /// See `table`.
    pub limit: usize,
    /// Top of the one kernel stack.
    pub stack: usize,
    /// One word for the first instructions of a trap.
    pub scratch: usize,
    /// The entry of the last operation on a semaphore.
    pub entry: Link<Entry>,
    /// Where this CPU's share is of each domain: bytes from the domain on.
    pub share: usize,
    /// In a measuring build: the time of the last entry, and of what (index * 64, or 0x1000 + vector).
    pub entered: u64,
    /// See `entered`.
    pub entered_by: u64,
    /// The longest time from an entry to leaving, and of what.
    pub longest: u64,
    /// See `longest`.
    pub longest_by: u64,
    /// It waits for the lock or sleeps; the lock's holder may change what runs here.
    pub quiet: Quiet,
    /// Its number.
    pub number: u8,
    /// While it waits for the lock: a semaphore that it must settle. Who holds it up does it in its place.
    pub settles: Link<Semaphore>,
    /// The machine's number of it.
    pub identity: u32,
    /// An operation that can be made again lets interrupts in.
    pub window: bool,
    /// It has nothing to do.
    pub idle: bool,
    /// Something that precedes the running thread became ready.
    pub preempt: bool,
    /// Another CPU changed what runs here: it must be looked at anew.
    pub disturbed: bool,
    /// Translations of the loaded space got weaker.
    pub flush: bool,
    /// It was sent an interrupt that it has not taken yet.
    pub kicked: bool,
    /// The loaded floating-point registers are those of an activation that is gone.
    pub fpu_is_stale: bool,
    /// Not zero: `pointer`, `fpu` or `fpu_is_stale` is.
    pub special: u8,
    /// The loaded thread pointer.
    pub pointer: u64,
    /// Whose floating-point registers are loaded.
    pub fpu: Link<Activation>,
    /// Its scheduler.
    pub seat: Option<Seat>,
    /// The number of the thread from which on its scheduler is still to get those that are ready; 0 = it has them all.
    pub hands_over: u16,
    /// That scheduler's ring, or while it has not all of them one that always holds something unread.
    pub ring: *mut abi::sched::Ring,
    /// When the scheduler must have dispatched (ticks).
    pub patience_ends: u64,
    /// How often it got more time, and for which of its dispatches.
    pub chances: u8,
    /// See `chances`.
    pub chances_of: u64,
    /// Root of the deadlines that were set here.
    pub deadlines: Link<Activation>,
    /// When the timer's interrupt comes (ticks).
    pub armed: u64,
    /// When it began to rest (ticks).
    pub idle_since: u64,
    /// What it did.
    pub counts: Counts,
    /// By number of a thread: where it was last put into the ring of its scheduler, modulo 2^16. It outlives the thread: while
    /// the ring was not read, that slot is used again by the next thread with the number.
    pub posted: [u16; MAX_THREADS],
    /// In a checked build: owed invalidations.
    pub debts: crate::ledger::Debts,
}

/// Counters of a CPU; see `abi::info::Cpu`. Times are ticks.
#[derive(Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Counts {
    pub idle: u64,
    pub dispatches: u64,
    pub interrupts: u64,
    pub received: u64,
    pub wakes: u64,
    pub halts: u64,
    pub lock_waits: u64,
    pub lock_waited: u64,
    pub lock_longest: u64,
    pub root_writes: u64,
}

impl Cpu {
    /// A CPU on which nothing runs.
    pub const fn new() -> Self {
        Self {
            domain: None,
            thread: None,
            own: None,
            activation: None,
            table: 0,
            limit: 0,
            stack: 0,
            scratch: 0,
            entry: None,
            share: crate::domain::share_at(0),
            entered: 0,
            entered_by: 0,
            longest: 0,
            longest_by: 0,
            quiet: Quiet::new(),
            number: 0,
            settles: None,
            identity: 0,
            window: false,
            idle: false,
            preempt: false,
            disturbed: false,
            flush: false,
            kicked: false,
            fpu_is_stale: false,
            special: 0,
            pointer: 0,
            fpu: None,
            seat: None,
            hands_over: 0,
            ring: core::ptr::null_mut(),
            patience_ends: u64::MAX,
            chances: 0,
            chances_of: 0,
            deadlines: None,
            armed: u64::MAX,
            idle_since: 0,
            counts: Counts {
                idle: 0,
                dispatches: 0,
                interrupts: 0,
                received: 0,
                wakes: 0,
                halts: 0,
                lock_waits: 0,
                lock_waited: 0,
                lock_longest: 0,
                root_writes: 0,
            },
            posted: [0; MAX_THREADS],
            debts: crate::ledger::Debts::new(),
        }
    }
}

/// The CPU that boots.
static FIRST: Nucleus<Cpu> = Nucleus::new(Cpu::new());

struct All {
    cpus: [Link<Cpu>; MAX_CPUS],
    /// What the machine calls them, those that did not start included.
    identities: [u32; MAX_CPUS],
    present: usize,
    /// More than one is there.
    several: bool,
    /// Those that are there, one bit each.
    mask: u64,
}

static ALL: Nucleus<All> =
    Nucleus::new(All { cpus: [None; MAX_CPUS], identities: [0; MAX_CPUS], present: 1, several: false, mask: 1 });

/// Makes the block of the first CPU its own.
pub fn init_first() {
    let mut first = FIRST.reference();
    first.own = Some(first);
    ALL.get().cpus[0] = Some(first);
    processor::load_block(first);
}

/// The machine says that it has this CPU besides the first; gives its number, if there is one left.
pub fn announce(identity: u32) -> Option<usize> {
    let all = ALL.get();
    let number = all.present;
    *all.identities.get_mut(number)? = identity;
    all.present += 1;
    Some(number)
}

/// The first CPU is called so.
pub fn name_first(identity: u32) {
    ALL.get().identities[0] = identity;
    FIRST.get().identity = identity;
}

/// A CPU that was announced is there; what it runs has begun to wait for the lock.
pub fn join(cpu: Ref<Cpu>) {
    let all = ALL.get();
    all.cpus[cpu.number as usize] = Some(cpu);
    all.mask |= 1 << cpu.number;
    all.several = true;
}

/// The block of this CPU.
#[inline(always)]
pub fn this() -> Ref<Cpu> {
    processor::block()
}

/// The CPU with this number, if it is there.
pub fn of(number: usize) -> Link<Cpu> {
    ALL.get().cpus.get(number).copied().flatten()
}

/// CPUs that the machine has, and what it calls the one with this number.
pub fn present() -> usize {
    ALL.get().present
}

/// See [`present`].
pub fn identity_of(number: usize) -> u32 {
    ALL.get().identities[number]
}

/// A bit for each CPU that is there.
pub fn mask() -> u64 {
    ALL.get().mask
}

/// Those of the `wanted` CPUs that are there; there must be one, and all must be among the `allowed`.
pub fn check_mask(wanted: u64, allowed: u64) -> Result<u64, Error> {
    match wanted & mask() {
        0 => Err(Error::BadArgument),
        found if found & !allowed != 0 => Err(Error::NoRight),
        found => Ok(found),
    }
}

/// Whether there is more than one.
#[inline(always)]
pub fn several() -> bool {
    ALL.get().several
}

/// All CPUs that are there.
pub fn all() -> impl Iterator<Item = Ref<Cpu>> {
    let all = ALL.get();
    all.cpus[..all.present].iter().filter_map(|cpu| *cpu)
}

/// All but this one. What this CPU wrote before is seen by those of them that do not yet stand in its way: the fence
/// pairs with the write of the root, which is serialising, or of the domain, before which and the next system call's
/// first load nothing is reordered (`arch::entry`).
#[inline(always)]
pub fn others() -> impl Iterator<Item = Ref<Cpu>> {
    let own = this();
    let several = several();
    if several {
        fence(Ordering::SeqCst);
    }
    let count = if several { ALL.get().present } else { 0 };
    ALL.get().cpus[..count].iter().filter_map(|cpu| *cpu).filter(move |cpu| *cpu != own)
}

/// Interrupts another CPU, unless it was and has not noticed yet.
pub fn kick(mut other: Ref<Cpu>) {
    if !other.kicked {
        other.kicked = true;
        interrupts::send(other.identity);
    }
}

/// Sees to it that nothing moves on another CPU while we have the lock.
#[cold]
pub fn hold_up(mut other: Ref<Cpu>) {
    let send = || {
        this().counts.halts += 1;
        kick(other);
    };
    other.quiet.hold_up(send, processor::relax);
    if let Some(semaphore) = other.settles.take() {
        semaphore.settle();
    }
}

/// Holds up all others for which `stands_in_the_way` holds.
#[inline(always)]
pub fn hold_up_where(stands_in_the_way: impl Fn(Ref<Cpu>) -> bool) {
    for other in others() {
        if stands_in_the_way(other) {
            hold_up(other);
        }
    }
}

/// The thread does not move while we have the lock: if it runs on another CPU, that is held up.
#[inline(always)]
pub fn hold_up_thread(thread: Ref<Thread>) {
    if several() && thread.runs == Runs::Running {
        let home = thread.cpu;
        if home != this() {
            hold_up(home);
        }
    }
}

impl Ref<Cpu> {
    /// The domain in which another CPU is; its short ways change it meanwhile. What that CPU did before is seen from here on.
    pub fn domain_there(self) -> Link<Domain> {
        // SAFETY: an aligned word of a block, which lives for ever. Domains go only with the lock, and when no CPU is in them.
        unsafe {
            let domain = &raw mut (*self.pointer()).domain;
            Ref::link(AtomicUsize::from_ptr(domain.cast()).load(Ordering::Acquire))
        }
    }
    /// The CPU runs no thread any more; it finds out when it gets the lock.
    pub fn leave_thread(mut self) {
        self.thread = None;
        self.disturbed |= self != this();
    }

    /// It was quiet and has the lock now: does what was left to it.
    pub fn catch_up(mut self) {
        if self.flush {
            self.flush = false;
            if let Some(domain) = self.domain {
                crate::arch::paging::load_root(domain.root);
            }
        }
    }
}

/// The CPU has nothing to do from now on; or has again.
pub fn rest(is_idle: bool) {
    let mut cpu = this();
    let now = crate::arch::timer::now();
    if is_idle {
        cpu.idle_since = now;
    } else {
        cpu.counts.idle += now - cpu.idle_since;
    }
    cpu.idle = is_idle;
}
