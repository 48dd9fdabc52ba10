//! Domains: an address space, a portal table, a pool of activations, an account.
//!
//! A domain is alive, then dead (`die`: nothing runs in it any more), then removed by the owner of its
//! original entry (`remove_step`, one bounded step at a time).

use crate::account::{self, Account};
use crate::activation::{self, Activation, State};
use crate::arch::{entry, paging, processor, timer};
use crate::chain;
use crate::frames::{self, FRAME, Frame, Use};
use crate::log::{self, Part};
use crate::mapping::Mapping;
use crate::operation::Stop;
use crate::pointer::{Fresh, Held, Link, Nucleus, Ref};
use crate::queue::Queue;
use crate::semaphore::Semaphore;
use crate::table::Entry;
use crate::thread::{self, Thread};
use crate::{cpu, info, lending, operation, removal, schedule, slab, space, trace};
use abi::info::status;
use abi::layout::{ENTRY_BYTES, MAX_TABLE_ORDER, TABLE_ENTRIES};
use abi::rights::Kind;
use abi::{Error, MAX_CPUS, MAX_SLICE_MICROSECONDS};
use core::cell::Cell;

/// `Domain::slow`: the domain is dead.
pub const SLOW_DEAD: u8 = 1;
/// `Domain::slow`: its activations have floating-point state.
pub const SLOW_FPU: u8 = 2;

/// `Domain::slow`: an activation has a thread pointer, where crossings do not keep that anyway.
#[allow(dead_code, reason = "on some ISAs it is a register like others")]
pub const SLOW_POINTER: u8 = 4;

/// `Domain::slow`: a priority is lent to one of its activations.
pub const SLOW_LENT: u8 = 8;

/// The pair of labels that every domain has until there are labels.
const ONLY_PAIR: u32 = 1;

/// Entries of a table that one step of a removal looks at.
const ENTRIES_PER_STEP: usize = 32;

/// Slice of the thread that carries a domain's orphans.
const ORPHAN_SLICE_MICROSECONDS: u64 = 10_000;

/// Domains made by domains made by domains.
const MAX_NESTING: u8 = abi::MAX_NESTING as u8;

/// What a domain has on one CPU, which alone touches it unless it is held up. One for each CPU of the machine follows
/// each [`Domain`].
#[repr(C)]
pub struct Share {
    /// Free activations.
    pub pool: Cell<Link<Activation>>,
    /// Calls made.
    pub crossings: Cell<u64>,
}

/// Bytes from a domain to the share of the CPU with this number.
pub const fn share_at(number: usize) -> usize {
    size_of::<Domain>() + number * size_of::<Share>()
}

/// See the module. The fields up to `waiters` are used by `entry.s`, and the shares behind.
#[repr(C)]
pub struct Domain {
    /// The portal table.
    pub table: usize,
    /// Its bytes minus those of one entry.
    pub limit: Cell<usize>,
    /// Root of the page tables (CR3).
    pub root: u64,
    /// Label-pair id.
    pub pair: u32,
    /// Not zero: crossings take the long way (`SLOW_*`).
    pub slow: Cell<u8>,
    /// Highest priority of its threads.
    pub max_priority: Cell<u8>,
    /// The share of time that its threads have ahead of others, in percent; 0 = all.
    pub time_share: Cell<u8>,
    /// Longest slice of its threads, in microseconds.
    pub max_slice: Cell<u32>,
    /// Where the search for a free index begins.
    pub free_hint: Cell<u16>,
    /// Callers that wait for one.
    pub waiters: Queue,
    /// Who pays.
    pub account: Ref<Account>,
    /// Its number, unique since boot.
    pub number: u64,
    /// Number of its maker.
    pub parent: u64,
    /// For people.
    pub name: [u8; 16],
    /// A bit for each CPU on which its threads may run.
    pub cpus: Cell<u64>,
    /// Why it died.
    pub status: Cell<u64>,
    /// The log says so.
    death_told: Cell<bool>,
    /// V on it when the domain dies.
    pub death_semaphore: Cell<Link<Semaphore>>,
    /// Address ranges of the page-fault portals.
    pub ranges: [Cell<(u64, u64)>; 4],
    /// All activations.
    pub activations: Cell<Link<Activation>>,
    /// How many.
    pub activation_count: Cell<u32>,
    /// How many threads started here.
    pub thread_count: Cell<u32>,
    /// Activations to which a priority is lent.
    pub lent: Cell<u32>,
    /// An activation that was freed, kept for the next.
    pub spare: Cell<Link<Activation>>,
    /// Message areas in use, one bit each.
    pub message_slots: Cell<u128>,
    /// All threads that started here, the orphan thread included.
    pub threads: Cell<Link<Thread>>,
    /// Carries chains whose lower part was cut off here.
    pub orphan_thread: Cell<Link<Thread>>,
    /// Tops of orphaned chains that wait for the orphan thread.
    pub orphans: Queue,
    /// All mappings.
    pub mappings: Cell<Link<Mapping>>,
    /// How many.
    pub pages: Cell<u64>,
    /// Its original entry.
    pub entry: Cell<Link<Entry>>,
    /// Removal: table entries below this are empty, or kernel operations, which need none.
    pub removal_cursor: Cell<u32>,
    /// Removal: a domain in the table, which goes first.
    inner: Cell<Link<Domain>>,
    table_order: u8,
    depth: u8,
    maker: Link<Domain>,
    next: Cell<Link<Domain>>,
    previous: Cell<Link<Domain>>,
}

struct All {
    first: Cell<Link<Domain>>,
    count: Cell<u64>,
    /// On each CPU. If all had one, two that walk at the same time would begin again and again.
    walks: [Walk; MAX_CPUS],
}

/// A walk along the list: the walker, and its place.
struct Walk {
    walker: Cell<Link<Activation>>,
    cursor: Cell<Link<Domain>>,
}

static ALL: Nucleus<All> = Nucleus::new(All {
    first: Cell::new(None),
    count: Cell::new(0),
    walks: [const { Walk { walker: Cell::new(None), cursor: Cell::new(None) } }; MAX_CPUS],
});

/// Domains passed between two preemption points.
const DOMAINS_PASSED: usize = 32;

/// The newest domain with a number below `position` (0: of all). `Repeat` if that is far away: `walker` makes its
/// operation again and goes on where it was, or from the first if others walked on this CPU meanwhile.
pub fn newest_below(walker: Ref<Activation>, position: u64) -> Result<Link<Domain>, Stop> {
    let held = walker.held();
    let all = ALL.get(held);
    let walk = &all.walks[cpu::this(held).number as usize % MAX_CPUS];
    let goes_on = walker.progress.get() != 0 && walk.walker.get() == Some(walker);
    let mut found = if goes_on { walk.cursor.get() } else { all.first.get() };
    for _ in 0..DOMAINS_PASSED {
        match found {
            Some(domain) if position != 0 && domain.number >= position => found = domain.next.get(),
            _ => return Ok(found),
        }
    }
    walker.progress.set(1);
    walk.walker.set(Some(walker));
    walk.cursor.set(found);
    Err(Stop::Repeat)
}

/// A new domain charged to `account`, with the kernel operations in its table, of which there is only the
/// first page so far: [`Ref::grow_table`] adds the others.
pub fn new(
    account: Ref<Account>,
    table_order: u64,
    flags: u64,
    name: [u8; 16],
    maker: Link<Domain>,
) -> Result<Ref<Domain>, Error> {
    let held = account.held();
    let depth = maker.map_or(0, |maker| maker.depth + 1);
    if depth > MAX_NESTING {
        return Err(Error::TooDeep);
    }
    if table_order as usize > MAX_TABLE_ORDER || flags & !(abi::op::DOMAIN_FPU | abi::op::DOMAIN_TRUSTED) != 0 {
        return Err(Error::BadArgument);
    }
    let table_order = table_order as usize;
    let mut domain: Fresh<Domain> = allocate(account)?;
    let table: Frame = match account.allocate(table_order, Use::Kernel) {
        Ok(frame) => frame,
        Err(error) => {
            release(domain.share());
            return Err(error);
        }
    };
    let root = match paging::new_root(account) {
        Ok(root) => root,
        Err(error) => {
            account::release(held, table, table_order);
            release(domain.share());
            return Err(error);
        }
    };
    domain.table = frames::address_of(table);
    domain.table_order = table_order as u8;
    (domain.root, domain.account, domain.pair) = (root, account, ONLY_PAIR);
    domain.removal_cursor.set(operation::TABLE.len() as u32);
    domain.cpus.set(maker.map_or(u64::MAX, |maker| maker.cpus.get()));
    domain.slow.set(if flags & abi::op::DOMAIN_FPU != 0 { SLOW_FPU } else { 0 });
    let all = ALL.get(held);
    (domain.number, domain.parent, domain.name) = (all.count.get() + 1, maker.map_or(0, |maker| maker.number), name);
    (domain.maker, domain.depth) = (maker, depth);
    let domain = domain.share();
    domain.grow_table();
    let slice = timer::from_microseconds(ORPHAN_SLICE_MICROSECONDS);
    let thread = match thread::new_empty(domain, 0, slice, true) {
        Ok(thread) => thread,
        Err(error) => {
            space::free_root(domain);
            account::release(held, table, table_order);
            release(domain);
            return Err(error);
        }
    };
    domain.orphan_thread.set(Some(thread));
    all.count.set(domain.number);
    info::counters(held).domains.up();
    domain.max_priority.set(maker.map_or(63, |maker| maker.max_priority.get()));
    domain.max_slice.set(maker.map_or(MAX_SLICE_MICROSECONDS as u32, |maker| maker.max_slice.get()));
    domain.time_share.set(maker.map_or(0, |maker| maker.time_share.get()));
    domain.next.set(all.first.get());
    if let Some(next) = domain.next.get() {
        next.previous.set(Some(domain));
    }
    all.first.set(Some(domain));
    trace::domain(domain);
    Ok(domain)
}

/// The domain stops for good: what it called goes on as orphans once it is removed, who called it gets
/// `PeerDied`, its owner is told. Nothing runs in it from here on.
pub fn die(domain: Ref<Domain>, status: u64) {
    let held = domain.held();
    if domain.slow.get() & SLOW_DEAD != 0 {
        return;
    }
    domain.slow.update(|value| value | SLOW_DEAD);
    domain.status.set(status);
    trace::died(domain);
    info::counters(held).deaths.up();
    if status != 0 {
        tell_death(domain, status, 0);
    }
    leave_all(domain);
    schedule::domain_died(domain);
    if let Some(semaphore) = domain.death_semaphore.get() {
        semaphore.signal();
    }
}

/// Every other CPU that is in a domain that died leaves it; none is on a short way into it.
fn leave_all(domain: Ref<Domain>) {
    let held = domain.held();
    for other in cpu::others(held) {
        cpu::hold_up(other);
        if other.domain.get() == Some(domain) && !other.idle.get() {
            other.disturbed.set(true);
        }
    }
}

/// As [`die`], in two stretches: false after the first, which only tells.
pub fn die_step(domain: Ref<Domain>, status: u64) -> bool {
    let tells = !domain.death_told.get();
    if tells {
        tell_death(domain, status, 0);
    } else {
        die(domain, status);
    }
    !tells
}

/// Says in the log, once, that the domain dies, and why if `owner` has put that together.
pub fn tell_death(domain: Ref<Domain>, status: u64, owner: usize) {
    let held = domain.held();
    if !domain.death_told.replace(true) && !log::finish(held, domain.log_part(), owner) {
        log::line_in(held, domain.log_part(), &death_line(&domain, status), &[]);
    }
}

/// How the line about a death begins.
pub fn death_line(domain: &Ref<Domain>, status: u64) -> [Part<'_>; 6] {
    let (number, name, status) = (Part::Number(domain.number), Part::Foreign(domain.name_bytes()), Part::Hex(status));
    [Part::Text("domain "), number, Part::Text(" "), name, Part::Text(" died, status "), status]
}

/// The running thread is in a domain that died: goes on with its caller, or lets others run.
pub fn leave_dead(held: Held) -> ! {
    match cpu::this(held).thread.get() {
        Some(thread) if !schedule::is_seat(thread) => chain::resume_top(thread),
        _ => schedule::enter(held, abi::sched::Event::Choose, 0),
    }
}

impl Ref<Domain> {
    /// What it has on the CPU with this number.
    pub fn share_on(self, cpu: usize) -> Ref<Share> {
        // SAFETY: there is a share for each CPU behind the domain; see `allocate`.
        unsafe { Ref::new(self.pointer().add(1).cast::<Share>().add(cpu)) }
    }
    /// What it has on this CPU.
    pub fn share(self) -> Ref<Share> {
        let held = self.held();
        self.share_on(cpu::this(held).number as usize)
    }
    /// What it has on all CPUs.
    pub fn shares(self) -> impl Iterator<Item = Ref<Share>> {
        let held = self.held();
        (0..cpu::present(held)).map(move |cpu| self.share_on(cpu))
    }
    /// Adds a page of empty entries to the table; false when it has the size that was asked for.
    pub fn grow_table(self) -> bool {
        let (bytes, all) = (self.table_bytes(), FRAME << self.table_order);
        if bytes == all {
            return false;
        }
        let empty = entry::entry_empty as *const () as usize;
        let operations = if bytes == 0 { self.fill_operations() } else { 0 };
        let mut place = (self.table + bytes + operations * ENTRY_BYTES) as *mut Entry;
        for _ in operations..TABLE_ENTRIES {
            // SAFETY: within the table, which is ours, behind what is used of it. Whatever else is in an
            // empty entry is written when it is filled and not read before.
            unsafe {
                (*place).code.set(empty);
                (*place).node.kind.set(Kind::Empty as u8);
                (*place).node.rights.set(0);
                place = place.add(1);
            }
        }
        self.limit.set(bytes + FRAME - ENTRY_BYTES);
        true
    }
    /// Puts the kernel operations into the first entries; gives their number.
    fn fill_operations(self) -> usize {
        let mut place = self.table as *mut Entry;
        for operation in &operation::TABLE {
            // SAFETY: the operations are fewer than the entries of the smallest table.
            unsafe {
                (*place).code.set(operation.code as usize);
                (*place).object.set(operation.function as usize);
                (*place).node.kind.set(Kind::Operation as u8);
                (*place).node.rights.set(0);
                place = place.add(1);
            }
        }
        operation::TABLE.len()
    }
    fn table_bytes(self) -> usize {
        if self.limit.get() == 0 { 0 } else { self.limit.get() + ENTRY_BYTES }
    }
    /// Whether nothing runs here any more.
    pub fn is_dead(self) -> bool {
        self.slow.get() & SLOW_DEAD != 0
    }
    /// Whether it is a program or made by one: neither of the nucleus, nor a component.
    pub fn is_program(self) -> bool {
        self.depth > 1
    }
    /// The part of the log for lines about it.
    pub fn log_part(self) -> usize {
        if self.is_program() { log::PROGRAMS } else { log::SYSTEM }
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

    /// Removes a bounded part of what the domain, which is dead, has; true when it is gone. A domain in its table goes first,
    /// and those in that one's: at most [`MAX_NESTING`].
    pub fn remove_step(self) -> bool {
        let (mut outer, mut innermost) = (None, self);
        while let Some(inner) = innermost.inner.get() {
            (outer, innermost) = (Some(innermost), inner);
        }
        let entry = innermost.entry.get();
        let is_gone = innermost.remove_own_step();
        let (true, Some(outer)) = (is_gone, outer) else { return is_gone };
        outer.inner.set(None);
        if let Some(entry) = entry {
            entry.vacate(Kind::Empty);
        }
        false
    }

    /// As [`Self::remove_step`], of one domain; what it finds in the table is removed by the steps to come.
    fn remove_own_step(self) -> bool {
        let held = self.held();
        if let Some(other) = cpu::others(held).find(|other| other.domain_there() == Some(self)) {
            // It is about to leave, or sleeps there. CPUs of an emulator take turns.
            cpu::kick(other);
            processor::relax();
            return false;
        }
        if chain::wake_waiter(self) {
            return false;
        }
        if let Some(spare) = self.spare.take() {
            activation::release(spare);
            return false;
        }
        if let Some(activation) = self.activations.get() {
            if lending::forget(activation) {
                return false;
            }
            let was_free = activation.state.get() == State::Free;
            chain::cut_out(activation);
            if was_free {
                activation::free_first(self);
            }
            return false;
        }
        if let Some(thread) = self.threads.get() {
            if let Some(entry) = thread.entry.get() {
                if entry.revoke_one() {
                    return false;
                }
                entry.vacate(Kind::Revoked);
            }
            thread::free_first(self);
            return false;
        }
        if let Some(mapping) = self.mappings.get() {
            mapping.remove_step();
            return false;
        }
        for _ in 0..ENTRIES_PER_STEP {
            let Ok(place) = self.place(self.removal_cursor.get() as usize) else {
                self.free();
                return true;
            };
            let vacant = place.is_vacant();
            if let Some(inner) = place.object::<Domain>().filter(|_| place.node_reference().is_original()) {
                if !inner.is_dead() {
                    die_step(inner, status::KILLED);
                } else if !place.revoke_one() {
                    self.inner.set(Some(inner));
                }
            } else if vacant || removal::remove_step(place) {
                self.removal_cursor.update(|value| value + 1);
            }
            if !vacant {
                return false;
            }
        }
        false
    }

    fn free(self) {
        let held = self.held();
        if let Some(semaphore) = self.death_semaphore.get() {
            semaphore.drop_hold();
        }
        space::free_root(self);
        account::release(held, frames::frame_of(self.table), self.table_order as usize);
        let all = ALL.get(held);
        for walk in all.walks.iter().take(cpu::present(held)).filter(|walk| walk.cursor.get() == Some(self)) {
            walk.cursor.set(self.next.get());
        }
        match self.previous.get() {
            Some(previous) => previous.next.set(self.next.get()),
            None => all.first.set(self.next.get()),
        }
        if let Some(next) = self.next.get() {
            next.previous.set(self.previous.get());
        }
        release(self);
    }
}

const fn bytes_with(shares: usize) -> usize {
    size_of::<Domain>() + shares * size_of::<Share>()
}

/// Room for a domain and its shares, cleared: most machines have few CPUs.
fn allocate(account: Ref<Account>) -> Result<Fresh<Domain>, Error> {
    let held = account.held();
    // SAFETY: both begin with a domain, and zeros are one.
    unsafe {
        if cpu::present(held) <= FEW {
            slab::allocate::<Bytes<{ bytes_with(FEW) }>>(account)
                .map(|bytes| Fresh::new(bytes.share().pointer().cast()))
        } else {
            slab::allocate::<Bytes<{ bytes_with(MAX_CPUS) }>>(account)
                .map(|bytes| Fresh::new(bytes.share().pointer().cast()))
        }
    }
}

fn release(domain: Ref<Domain>) {
    let held = domain.held();
    // SAFETY: as it was allocated: the number of CPUs is known before the first domain is made.
    unsafe {
        if cpu::present(held) <= FEW {
            slab::free::<Bytes<{ bytes_with(FEW) }>>(Ref::new(domain.pointer().cast()));
        } else {
            slab::free::<Bytes<{ bytes_with(MAX_CPUS) }>>(Ref::new(domain.pointer().cast()));
        }
    }
}

#[repr(align(8))]
struct Bytes<const COUNT: usize>([u8; COUNT]);

/// Shares for which there is room in what a domain takes on most machines.
const FEW: usize = 8;

const _: () = assert!(FRAME == TABLE_ENTRIES * ENTRY_BYTES);
