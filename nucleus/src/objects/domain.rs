//! Domains: each has an address space, a portal table, a pool of activations, and an account. `control` makes and removes
//! them.

use super::{Account, Activation, Entry, Labelled, Mapping, Queue, Ranked, Semaphore, Thread, USUAL};
use crate::pointer::{Link, Ref};
use core::cell::Cell;
use flow::rules::Labels;

/// Slow-path reason: the domain is dead.
pub const SLOW_DEAD: u8 = 1;

/// Slow-path reason: at least one of its activations has floating-point state.
pub const SLOW_FPU: u8 = 2;

/// Slow-path reason: at least one of its activations has a thread pointer, on ISAs whose fast path does not preserve it.
#[allow(dead_code, reason = "on some ISAs it is a register like others")]
pub const SLOW_POINTER: u8 = 4;

/// Slow-path reason: a priority is lent to one of its activations.
pub const SLOW_LENT: u8 = 8;
/// Slow-path reason: callers wait for one of its activations.
pub const SLOW_WAITED: u8 = 16;

/// Slow-path reason: tracing. Set for all domains in a build with the feature `trace`.
const SLOW_TRACED: u8 = if cfg!(feature = "trace") { 32 } else { 0 };

/// Slow-path reason: its labels are changing.
pub const SLOW_LABELS: u8 = 64;

/// Width in bits of a version of a domain's labels.
pub const VERSION_BITS: u32 = 28;
/// Position of the `SLOW_*` bits in `as_caller` and `as_callee`: above both versions.
const SLOW_SHIFT: u32 = 2 * VERSION_BITS;
/// Offset of the byte with the `SLOW_*` bits.
pub const SLOW_AT: usize = core::mem::offset_of!(Domain, as_caller) + 7;

/// Number of portal-table pages whose addresses the domain caches.
pub const NEAR_PAGES: usize = 4;

/// State of a domain on one CPU. Only that CPU accesses it, or the lock holder that stopped it. An array of these, one per CPU, follows
/// each [`Domain`] in memory.
#[repr(C)]
pub struct PerCpu {
    /// Free activations.
    pub pool: Cell<Link<Activation>>,
    /// Calls to other domains that it made on this CPU.
    pub crossings: Cell<u64>,
    /// Root of the page tables, as written to the register (CR3, TTBR0_EL1).
    pub root: Cell<u64>,
    /// Last-level page table that maps its window slots, in the direct map; 0 = none yet.
    pub windows: Cell<usize>,
}

/// Offset in bytes from a domain to its state on the CPU with this number.
pub const fn per_cpu_at(number: usize) -> usize {
    size_of::<Domain>() + number * size_of::<PerCpu>()
}

/// See the module. `entry.s` uses the fields up to `as_callee`, and the per-CPU state after them.
#[repr(C)]
pub struct Domain {
    /// Start of the portal table.
    pub table: Cell<usize>,
    /// Bytes of the portal table minus one. A CPU that has cached a smaller limit reads this before it refuses an index.
    pub limit: Cell<usize>,
    /// First root of the page tables. A CPU loads the root in its [`PerCpu`].
    pub root: u64,
    /// Version of its labels in its role as caller, with its `SLOW_*` bits. If an entry's cached verdict allows the call and neither domain
    /// is slow, this OR the callee's `as_callee` equals the entry's `versions`. See [`Ref::set_slow`].
    pub as_caller: Cell<u64>,
    /// As a callee: the same, with the version shifted above that of the caller.
    pub as_callee: Cell<u64>,
    /// Highest priority of its threads.
    pub max_priority: Cell<u8>,
    /// Percent of time in which its threads run ahead of those without a share; 0 = no limit.
    pub time_share: Cell<u8>,
    /// Its death needs no further log line.
    pub death_reported: Cell<bool>,
    /// Depth of nesting: the number of makers above it.
    pub depth: u8,
    /// Longest slice of its threads, in microseconds.
    pub max_slice: Cell<u32>,
    /// Index where the next search for a free entry begins.
    pub free_hint: Cell<u32>,
    /// Removal: 0 = not begun; 1 = begun, with its labels. Else table entries below this are empty, or kernel operations, which need no removal.
    pub removal_cursor: Cell<u32>,
    /// Callers that wait for an activation.
    pub waiters: Ranked,
    /// Callers that were woken to restart their call.
    pub called: Queue,
    /// Account that it is charged to.
    pub account: Ref<Account>,
    /// For each of the first pages of the table: its address in the direct map, minus its offset in the table. So the address of an
    /// entry is this plus its offset in the table.
    pub near_pages: [Cell<usize>; NEAR_PAGES],
    /// Its number, unique since boot.
    pub number: u64,
    /// Name for display; no meaning to the nucleus.
    pub name: [u8; 16],
    /// CPUs on which its threads may run, one bit each.
    pub cpus: Cell<u64>,
    /// If it [is labelled](Self::is_labelled): the address of its [`Labelled`], which holds the status of its death. Otherwise that status.
    pub labels_or_status: Cell<u64>,
    /// Semaphore that gets a V when the domain dies.
    pub death_semaphore: Cell<Link<Semaphore>>,
    /// Address range of each page-fault portal.
    pub ranges: [Cell<(u64, u64)>; 4],
    /// List of all activations.
    pub activations: Cell<Link<Activation>>,
    /// Number of activations.
    pub activation_count: Cell<u8>,
    /// It has, or once had, a call entry whose shape passes windows.
    pub lends: Cell<bool>,
    /// Number of threads whose home this is, including its orphan thread.
    pub thread_count: Cell<u16>,
    /// Number of activations to which a priority is lent.
    pub lent: Cell<u8>,
    /// It has a [`Labelled`]. Without one, its labels are [`USUAL`], and its portals have the default label {3}.
    pub is_labelled: Cell<bool>,
    /// Its labels forbid the use of objects with label {1}.
    pub is_barred: Cell<bool>,
    /// It used a shared semaphore, or shared a page, whose label is not {1}.
    pub shares_labelled: Cell<bool>,
    /// Shapes of the services that it has or had, one bit each.
    pub shapes: Cell<u32>,
    /// Frame of the scrap page; 0 = none: no call has passed a window yet.
    pub scrap: Cell<u32>,
    /// A freed activation, kept for reuse.
    pub spare: Cell<Link<Activation>>,
    /// Message areas in use, one bit each.
    pub message_slots: Cell<u128>,
    /// List of all threads whose home this is, including its orphan thread.
    pub threads: Cell<Link<Thread>>,
    /// Thread that runs the orphans whose lowest activation is in this domain.
    pub orphan_thread: Cell<Link<Thread>>,
    /// Top activations of the orphans that wait for the orphan thread, by priority.
    pub orphans: Ranked,
    /// Page directory (AArch64: level-2 table) of its lowest GiB, in the direct map; a table of zeros if there is none.
    pub low: Cell<usize>,
    /// List of all mappings.
    pub mappings: Cell<Link<Mapping>>,
    /// Number of mappings.
    pub pages: Cell<u32>,
    /// Number, from 1, of a last-level page table that may be empty; 0 = none. See [`crate::memory::space::prune_emptied`].
    pub emptied: Cell<u32>,
    /// Its original entry.
    pub entry: Cell<Link<Entry>>,
    /// During removal: a domain that this one made, which is removed before it.
    pub inner: Cell<Link<Domain>>,
    /// Domain that made it; the nucleus made the first domains.
    pub maker: Link<Domain>,
    /// In the list of all domains: the next older one.
    pub next: Cell<Link<Domain>>,
    /// In the list of all domains: the next newer one.
    pub previous: Cell<Link<Domain>>,
}

impl Ref<Domain> {
    /// Its state on the CPU with this number.
    pub fn per_cpu_on(self, cpu: usize) -> Ref<PerCpu> {
        // SAFETY: the state for each CPU follows the domain: `control::domain` allocates both as one.
        unsafe { Ref::new(self.pointer().add(1).cast::<PerCpu>().add(cpu)) }
    }
    /// Sets or clears reasons why crossings take the slow path.
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
    /// The slow-path reasons (`SLOW_*`) that are set.
    #[inline(always)]
    pub fn slow(self) -> u8 {
        (self.as_caller.get() >> SLOW_SHIFT) as u8
    }
    /// The version of its labels: how often they have changed, from 1.
    pub fn version(self) -> u32 {
        self.as_caller.get() as u32 & ((1 << VERSION_BITS) - 1)
    }
    /// Counts a change of its labels, which ends [`SLOW_LABELS`].
    pub fn count_version(self) {
        self.set_crossing(self.version() + 1, self.slow() & !SLOW_LABELS);
    }
    /// Whether its labels have the last version, so that they cannot change again.
    pub fn is_at_last_version(self) -> bool {
        (self.version() + 1) >> VERSION_BITS != 0
    }
    /// Its [`Labelled`], if it [is labelled](Domain::is_labelled).
    pub fn labelled(self) -> Link<Labelled> {
        // SAFETY: while `is_labelled` is set, this is the address of the domain's `Labelled`.
        if self.is_labelled.get() { unsafe { Ref::link(self.labels_or_status.get() as usize) } } else { None }
    }
    /// Its labels.
    pub fn labels(self) -> Labels {
        self.labelled().map_or(USUAL, |labelled| labelled.now.get())
    }
    /// Sets the status of its death.
    pub fn set_status(self, status: u64) {
        match self.labelled() {
            Some(labelled) => labelled.status.set(status),
            None => self.labels_or_status.set(status),
        }
    }
    /// Status of its death; 0 while it lives.
    pub fn status(self) -> u64 {
        match self.labelled() {
            Some(labelled) => labelled.status.get(),
            None => self.labels_or_status.get(),
        }
    }
    /// Sets or clears [`SLOW_WAITED`], after a change of `waiters`.
    #[inline(never)]
    pub fn note_waiters(self) {
        self.set_slow(SLOW_WAITED, self.waiters.head().is_some());
    }
    /// Whether the domain is dead: nothing runs in it any more.
    pub fn is_dead(self) -> bool {
        self.slow() & SLOW_DEAD != 0
    }
    /// Whether it is a program or made by one: neither a first domain nor a component.
    pub fn is_program(self) -> bool {
        self.depth > 1
    }
    /// The name without padding. Its maker chose the bytes: they need not be text.
    pub fn name_bytes(&self) -> &[u8] {
        let end = self.name.iter().position(|byte| *byte == 0).unwrap_or(16);
        &self.name[..end]
    }
    /// Whether this is `other`, or made it directly or indirectly.
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
    /// Whether this is `other`, or has a maker other than `other`. The first domains, made by the nucleus, have no maker.
    pub fn is_made_by_another_than(self, other: Ref<Domain>) -> bool {
        self == other || self.maker.is_some_and(|maker| maker != other)
    }
    /// The next of all domains.
    pub fn next_domain(self) -> Link<Domain> {
        self.next.get()
    }
}
// With the state of four CPUs a domain fills eight granules of 64 bytes.
const _: () = assert!(size_of::<Domain>() <= 384);
