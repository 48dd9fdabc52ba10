//! Domains: an address space, a portal table, a pool of activations, an account. How they are made and go is in `control`.

use super::{Account, Activation, Entry, Labelled, Mapping, Queue, Ranked, Semaphore, Thread, USUAL};
use crate::pointer::{Link, Ref};
use core::cell::Cell;
use flow::rules::Labels;

/// Why crossings take the slow path: the domain is dead.
pub const SLOW_DEAD: u8 = 1;

/// Why crossings take the slow path: its activations have floating-point state.
pub const SLOW_FPU: u8 = 2;

/// Why crossings take the slow path: an activation has a thread pointer, where crossings do not keep that anyway.
#[allow(dead_code, reason = "on some ISAs it is a register like others")]
pub const SLOW_POINTER: u8 = 4;

/// Why crossings take the slow path: a priority is lent to one of its activations.
pub const SLOW_LENT: u8 = 8;
/// Why crossings take the slow path: callers wait for one of its activations.
pub const SLOW_WAITED: u8 = 16;

/// Why crossings take the slow path: they are recorded there. In a build that traces, of all domains.
const SLOW_TRACED: u8 = if cfg!(feature = "trace") { 32 } else { 0 };

/// Why crossings take the slow path: its labels are changing.
pub const SLOW_LABELS: u8 = 64;

/// Bits of a version of a domain's labels.
pub const VERSION_BITS: u32 = 28;
/// Where the reasons stand in what a domain has as caller and callee: above both versions.
const SLOW_SHIFT: u32 = 2 * VERSION_BITS;
/// The byte in which they stand.
pub const SLOW_AT: usize = core::mem::offset_of!(Domain, as_caller) + 7;

/// Pages of a table that a domain keeps at hand.
pub const NEAR_PAGES: usize = 4;

/// State of a domain on one CPU. Only that CPU touches it, or the lock holder that stopped it. One for each CPU of the machine follows
/// each [`Domain`].
#[repr(C)]
pub struct PerCpu {
    /// Free activations.
    pub pool: Cell<Link<Activation>>,
    /// Calls made.
    pub crossings: Cell<u64>,
    /// Root of the page tables, as the processor's register has it.
    pub root: Cell<u64>,
    /// Entries for the slots of its windows, 0 = there are no tables for them yet.
    pub windows: Cell<usize>,
}

/// Bytes from a domain to its state on the CPU with this number.
pub const fn per_cpu_at(number: usize) -> usize {
    size_of::<Domain>() + number * size_of::<PerCpu>()
}

/// See the module. The fields up to `as_callee` are used by `entry.s`, and the per-CPU state behind.
#[repr(C)]
pub struct Domain {
    /// The portal table: where its range begins.
    pub table: Cell<usize>,
    /// Its bytes minus one. A CPU in the domain that has an older limit looks here before it refuses an index.
    pub limit: Cell<usize>,
    /// Root of the page tables that it had first. CPUs load that of their own state.
    pub root: u64,
    /// As a caller: the version of its labels, and why crossings take the slow path (`SLOW_*`). Together with what the callee has these are the
    /// versions for which an entry allows the flow, unless one of the two is slow. See [`Ref::set_slow`].
    pub as_caller: Cell<u64>,
    /// As a callee: the same, with the version above that of the caller.
    pub as_callee: Cell<u64>,
    /// Highest priority of its threads.
    pub max_priority: Cell<u8>,
    /// The share of time that its threads have ahead of others, in percent; 0 = all.
    pub time_share: Cell<u8>,
    /// The log says so.
    pub death_reported: Cell<bool>,
    /// Makers above it.
    pub depth: u8,
    /// Longest slice of its threads, in microseconds.
    pub max_slice: Cell<u32>,
    /// Where the search for a free index begins.
    pub free_hint: Cell<u32>,
    /// Removal: table entries below this are empty, or kernel operations, which need none.
    pub removal_cursor: Cell<u32>,
    /// Callers that wait for an activation.
    pub waiters: Ranked,
    /// Callers that waited, and make their call again.
    pub called: Queue,
    /// Who pays.
    pub account: Ref<Account>,
    /// Of the first pages of the table, as the direct map has them: the address minus the offset in the table.
    pub near_pages: [Cell<usize>; NEAR_PAGES],
    /// Its number, unique since boot.
    pub number: u64,
    /// For people.
    pub name: [u8; 16],
    /// A bit for each CPU on which its threads may run.
    pub cpus: Cell<u64>,
    /// If it [is labelled](Self::is_labelled), the address of its labels, and the status is there; else why it died.
    pub labels_or_status: Cell<u64>,
    /// V on it when the domain dies.
    pub death_semaphore: Cell<Link<Semaphore>>,
    /// Address ranges of the page-fault portals.
    pub ranges: [Cell<(u64, u64)>; 4],
    /// All activations.
    pub activations: Cell<Link<Activation>>,
    /// How many.
    pub activation_count: Cell<u8>,
    /// It has, or had, call entries that pass windows.
    pub lends: Cell<bool>,
    /// How many threads started here.
    pub thread_count: Cell<u16>,
    /// Activations to which a priority is lent.
    pub lent: Cell<u8>,
    /// It has labels that are not [`USUAL`].
    pub is_labelled: Cell<bool>,
    /// It may not use what has the label {1}.
    pub is_barred: Cell<bool>,
    /// It has, or had, semaphores or pages in common with others whose label is not {1}.
    pub shares_labelled: Cell<bool>,
    /// A bit for each shape of which it has, or had, services.
    pub shapes: Cell<u32>,
    /// What windows show whose page is gone, 0 = no call has brought a window.
    pub scrap: Cell<u32>,
    /// An activation that was freed, kept for the next.
    pub spare: Cell<Link<Activation>>,
    /// Message areas in use, one bit each.
    pub message_slots: Cell<u128>,
    /// All threads that started here, the orphan thread included.
    pub threads: Cell<Link<Thread>>,
    /// Carries chains whose lower part was cut off here.
    pub orphan_thread: Cell<Link<Thread>>,
    /// Tops of orphaned chains that wait for the orphan thread.
    pub orphans: Ranked,
    /// The last page table but one of its lowest GiB, in the direct map, or one that leads nowhere.
    pub low: Cell<usize>,
    /// All mappings.
    pub mappings: Cell<Link<Mapping>>,
    /// How many.
    pub pages: Cell<u32>,
    /// The number of a last-level table that may be empty, from 1, 0 = there is none: see [`crate::memory::space::prune_emptied`].
    pub emptied: Cell<u32>,
    /// Its original entry.
    pub entry: Cell<Link<Entry>>,
    /// Removal: a domain in the table, which goes first.
    pub inner: Cell<Link<Domain>>,
    /// Who made it.
    pub maker: Link<Domain>,
    /// In the list of all: the next older one.
    pub next: Cell<Link<Domain>>,
    /// The next younger one.
    pub previous: Cell<Link<Domain>>,
}

impl Ref<Domain> {
    /// What it has on the CPU with this number.
    pub fn per_cpu_on(self, cpu: usize) -> Ref<PerCpu> {
        // SAFETY: the state of each CPU stands behind the domain; see `allocate`.
        unsafe { Ref::new(self.pointer().add(1).cast::<PerCpu>().add(cpu)) }
    }
    /// Sets why crossings take the slow path, or that this is a reason no more.
    #[inline(never)]
    pub fn set_slow(self, why: u8, is_so: bool) {
        let slow = if is_so { self.slow() | why } else { self.slow() & !why } | SLOW_TRACED;
        self.set_crossing(self.version(), slow);
    }
    fn set_crossing(self, version: u32, slow: u8) {
        let (version, slow) = (version as u64, (slow as u64) << SLOW_SHIFT);
        self.as_caller.set(version | slow);
        self.as_callee.set(version << VERSION_BITS | slow);
    }
    /// Why crossings take the slow path: `SLOW_*`.
    #[inline(always)]
    pub fn slow(self) -> u8 {
        (self.as_caller.get() >> SLOW_SHIFT) as u8
    }
    /// The version of its labels: how often they have changed, from 1.
    pub fn version(self) -> u32 {
        self.as_caller.get() as u32 & ((1 << VERSION_BITS) - 1)
    }
    /// Its labels are others from now on.
    pub fn count_version(self) {
        self.set_crossing(self.version() + 1, self.slow() & !SLOW_LABELS);
    }
    /// Its labels have changed so often that they cannot change any more.
    pub fn is_at_last_version(self) -> bool {
        (self.version() + 1) >> VERSION_BITS != 0
    }
    /// Its labels, if they are not the usual ones.
    pub fn labelled(self) -> Link<Labelled> {
        // SAFETY: then this is the address of its labels.
        if self.is_labelled.get() { unsafe { Ref::link(self.labels_or_status.get() as usize) } } else { None }
    }
    /// Its labels.
    pub fn labels(self) -> Labels {
        self.labelled().map_or(USUAL, |labelled| labelled.now.get())
    }
    /// It died of that.
    pub fn set_status(self, status: u64) {
        match self.labelled() {
            Some(labelled) => labelled.status.set(status),
            None => self.labels_or_status.set(status),
        }
    }
    /// Why it died; 0 while it lives.
    pub fn status(self) -> u64 {
        match self.labelled() {
            Some(labelled) => labelled.status.get(),
            None => self.labels_or_status.get(),
        }
    }
    /// Callers wait for an activation, or do so no more.
    #[inline(never)]
    pub fn note_waiters(self) {
        self.set_slow(SLOW_WAITED, self.waiters.head().is_some());
    }
    /// Whether nothing runs here any more.
    pub fn is_dead(self) -> bool {
        self.slow() & SLOW_DEAD != 0
    }
    /// Whether it is a program or made by one: neither of the nucleus, nor a component.
    pub fn is_program(self) -> bool {
        self.depth > 1
    }
    /// The name, whatever its maker wrote.
    pub fn name_bytes(&self) -> &[u8] {
        let end = self.name.iter().position(|byte| *byte == 0).unwrap_or(16);
        &self.name[..end]
    }
    /// Whether this is `other` or one of its makers' makers.
    pub fn contains(self, other: Ref<Domain>) -> bool {
        let mut inner = Some(other);
        while let Some(domain) = inner {
            if domain == self {
                return true;
            }
            inner = domain.maker;
        }
        false
    }
    /// Whether its maker is known, and not `other`; the nucleus made the first domains, which have none.
    pub fn is_made_by_another_than(self, other: Ref<Domain>) -> bool {
        self == other || self.maker.is_some_and(|maker| maker != other)
    }
    /// The next of all domains.
    pub fn next_domain(self) -> Link<Domain> {
        self.next.get()
    }
}
// With the state of four CPUs it takes eight granules.
const _: () = assert!(size_of::<Domain>() <= 384);
