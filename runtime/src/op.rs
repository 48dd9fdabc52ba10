//! Every kernel operation as a function.
//!
//! The effects, needs and errors of each are defined once, in the table of its number and stub ([`abi::op`]). Operations that make
//! something name the index themselves ([`table`]) and give it back as [`Entry`]; the variants
//! with `_at` fill a given index, also of another domain (there, 0 lets the nucleus choose).
//! Functions are unsafe only where memory that this program uses could change or vanish.

use abi::info::Record;
use abi::rights::Kind;
use abi::{Error, info, op};

use crate::arch::{question, relax};
use crate::{Entry, area, raw, table};

/// Shorthand for the results here.
type Result<T = ()> = core::result::Result<T, Error>;

/// Number of the running thread.
#[inline(always)]
pub fn thread_id() -> u64 {
    // SAFETY: cannot fail, touches no memory.
    unsafe { question::<{ op::THREAD_ID }>() }
}

/// The known facts about our caller's labels: [`op::CALLER_USUAL`] and the like.
#[inline(always)]
pub fn caller() -> u64 {
    // SAFETY: cannot fail, touches no memory.
    unsafe { question::<{ op::CALLER }>() }
}

/// Nanoseconds since boot.
#[inline(always)]
pub fn clock() -> u64 {
    // SAFETY: cannot fail, touches no memory.
    unsafe { question::<{ op::CLOCK }>() }
}

/// Lets another thread of the same priority run.
#[inline(always)]
pub fn yield_now() {
    // SAFETY: touches no memory of ours. Refusal is not possible.
    let _ = unsafe { raw::r#yield() };
}

/// Ends the running thread; of the first thread of a domain, the domain.
pub fn exit(status: u64) -> ! {
    // SAFETY: does not come back.
    let _ = unsafe { raw::exit(status) };
    loop {
        relax();
    }
}

/// Eight bytes of a name each.
fn name_words(name: &str) -> [u64; 2] {
    let mut bytes = [0; 16];
    let count = name.len().min(bytes.len());
    bytes[..count].copy_from_slice(&name.as_bytes()[..count]);
    let word = u128::from_le_bytes(bytes);
    [word as u64, (word >> 64) as u64]
}

/// A new domain; its name is cut after 16 bytes.
pub fn domain_new(account: Entry, flags: u64, name: &str) -> Result<Entry> {
    let [low, high] = name_words(name);
    // SAFETY: changes nothing in this domain but an entry.
    table::fill(|index| unsafe { raw::domain_new(account, flags, index, low, high) })
}

/// Ends a domain with a status; ours does not come back.
pub fn domain_kill(domain: Entry, status: u64) -> Result {
    // SAFETY: a dead domain uses no memory.
    unsafe { raw::domain_kill(domain, status) }
}

/// Page faults of a domain in `start..end` go to its upcall portal number `slot`.
pub fn domain_set_fault_range(domain: Entry, slot: u64, start: u64, end: u64) -> Result {
    // SAFETY: where a fault goes does not change memory that is mapped.
    unsafe { raw::domain_set_fault_range(domain, slot, start, end) }
}

/// V on the semaphore when the domain dies.
pub fn domain_set_death_semaphore(domain: Entry, semaphore: Entry) -> Result {
    // SAFETY: touches no memory of ours.
    unsafe { raw::domain_set_death_semaphore(domain, semaphore) }
}

/// The highest priority that the domain's threads may have.
pub fn domain_set_max_priority(domain: Entry, priority: u64) -> Result {
    // SAFETY: touches no memory of ours.
    unsafe { raw::domain_set_max_priority(domain, priority) }
}

/// The CPUs on which threads of the domain may run, and those of domains that it makes from now on: a bit for each.
pub fn domain_set_cpus(domain: Entry, cpus: u64) -> Result {
    // SAFETY: touches no memory of ours.
    unsafe { raw::domain_set_cpus(domain, cpus) }
}

/// The longest slice of the domain's threads, in microseconds.
pub fn domain_set_max_slice(domain: Entry, microseconds: u64) -> Result {
    // SAFETY: touches no memory of ours.
    unsafe { raw::domain_set_max_slice(domain, microseconds) }
}

/// The share of each CPU's time that threads of the domain have ahead of others, in percent; 0 = all.
pub fn domain_set_share(domain: Entry, percent: u64) -> Result {
    // SAFETY: touches no memory of ours.
    unsafe { raw::domain_set_share(domain, percent) }
}

/// The seat of a scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seat {
    /// It decides for the CPU with this number.
    Cpu(usize),
    /// It stands by for all CPUs.
    Standby,
}

/// The domain takes a scheduler's seat, or stands by.
///
/// # Safety
/// Of our own domain: the stack is used by nobody else, and the entry address leads to code that is made to be entered so.
pub unsafe fn domain_set_scheduler(domain: Entry, seat: Seat, entry: u64, stack_top: u64) -> Result {
    let seat = match seat {
        Seat::Cpu(cpu) => (cpu as u64) << 8,
        Seat::Standby => 1,
    };
    // SAFETY: as the caller says.
    unsafe { raw::domain_set_scheduler(domain, seat, entry, stack_top) }.map(drop)
}

/// A new account filled with `frames` from its parent.
pub fn account_new(parent: Entry, frames: u64) -> Result<Entry> {
    account_new_with(parent, frames, 0)
}

/// As [`account_new`]; it pays for at most so many numbers of threads.
pub fn account_new_with(parent: Entry, frames: u64, numbers: u64) -> Result<Entry> {
    account_new_labelled(parent, frames, numbers, Entry::OWN)
}

/// As [`account_new_with`]; its objects have this label. [`Entry::OWN`]: the usual one.
pub fn account_new_labelled(parent: Entry, frames: u64, numbers: u64, label: Entry) -> Result<Entry> {
    // SAFETY: changes nothing in this domain but an entry.
    table::fill(|index| unsafe { raw::account_new(parent, frames, index, numbers, label) })
}

/// Moves unused frames between an account and its parent.
pub fn account_move(from: Entry, to: Entry, frames: u64) -> Result {
    // SAFETY: touches no memory of ours.
    unsafe { raw::account_move(from, to, frames) }
}

/// Adds an activation to a domain's pool; gives the address of its message area.
///
/// # Safety
/// For our own domain: the stack below `stack_top` is used by nobody else, and lies in a stack slot.
pub unsafe fn activation_new(domain: Entry, stack_top: u64, receive: Entry) -> Result<u64> {
    // SAFETY: as the caller says.
    unsafe { raw::activation_new(domain, stack_top, receive) }
}

/// Priority and slice of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// 0 (lowest) to 63.
    pub priority: u8,
    /// Slice in microseconds.
    pub slice: u32,
}

impl Schedule {
    /// The operand word.
    pub const fn word(self) -> u64 {
        self.priority as u64 | (self.slice as u64) << 8
    }
    /// From the operand word.
    pub const fn from_word(word: u64) -> Self {
        Self { priority: word as u8, slice: (word >> 8) as u32 }
    }
}

/// Starts a thread.
///
/// # Safety
/// For our own domain: `instruction` is made to be entered so, and the stack is used by nobody else.
pub unsafe fn thread_new(
    domain: Entry,
    instruction: u64,
    stack_top: u64,
    argument: u64,
    schedule: Schedule,
) -> Result<Entry> {
    // SAFETY: as the caller says.
    table::fill(|index| unsafe { raw::thread_new(domain, instruction, stack_top, argument, schedule.word(), index) })
}

/// Sets priority and slice of a thread ([`Entry::OWN`]: the running one); gives the old ones. It may run on the same
/// CPUs as before.
pub fn thread_schedule(thread: Entry, schedule: Schedule) -> Result<Schedule> {
    thread_schedule_on(thread, schedule, 0)
}

/// As [`thread_schedule`], and sets where the thread may run: a bit for each CPU, 0 = as before.
pub fn thread_schedule_on(thread: Entry, schedule: Schedule, cpus: u64) -> Result<Schedule> {
    // SAFETY: touches no memory of ours.
    unsafe { raw::thread_schedule(thread, schedule.word(), cpus) }.map(Schedule::from_word)
}

/// Aborts what a thread waits for and sets where it goes on; `NEVER` leaves a register as it is.
///
/// # Safety
/// A thread of our own domain must bear to go on there.
pub unsafe fn thread_ex_regs(thread: Entry, instruction: u64, stack: u64) -> Result<u64> {
    // SAFETY: as the caller says.
    unsafe { raw::thread_ex_regs(thread, instruction, stack) }
}

/// Aborts what a thread waits for or calls: that ends with `Cancelled`.
pub fn thread_cancel(thread: Entry) -> Result {
    // SAFETY: the registers stay as they are; every wait may end with an error.
    unsafe { thread_ex_regs(thread, abi::NEVER, abi::NEVER) }.map(drop)
}

/// Copies an entry between domains (`Entry::OWN`: ours) with reduced rights; `index` [`Entry::OWN`] lets
/// the nucleus choose.
pub fn entry_copy(from: Entry, entry: Entry, to: Entry, index: Entry, rights: u8) -> Result<Entry> {
    // SAFETY: changes nothing in this domain but an entry.
    unsafe { raw::entry_copy(from, entry, to, index, rights.into()) }
}

/// Copies an entry of ours to a free index of ours, with reduced rights.
pub fn entry_duplicate(entry: Entry, rights: u8) -> Result<Entry> {
    table::fill(|index| entry_copy(Entry::OWN, entry, Entry::OWN, index, rights))
}

/// Empties an entry and all that is derived from it; an original destroys its object. The index stays
/// reserved in our table: see [`crate::entry::Owned`].
pub fn entry_remove(domain: Entry, entry: Entry) -> Result {
    // SAFETY: entries of ours that stand for running threads or activations cannot vanish under us:
    // the nucleus refuses what we run in, and memory goes only with UNMAP.
    unsafe { raw::entry_remove(domain, entry) }
}

/// Empties all entries derived from this one.
pub fn entry_revoke(domain: Entry, entry: Entry) -> Result {
    // SAFETY: entries of ours that stand for running threads or activations cannot vanish under us:
    // the nucleus refuses what we run in, and memory goes only with UNMAP.
    unsafe { raw::entry_revoke(domain, entry) }
}

/// Kind and rights of an entry.
pub fn entry_info(domain: Entry, entry: Entry) -> Result<(Kind, u8)> {
    entry_word(domain, entry).map(|(kind, word)| (kind, (word >> 8) as u8))
}

/// The number, in the nucleus's lists, of the domain that an entry of ours stands for.
pub fn domain_number(entry: Entry) -> Result<u64> {
    match entry_word(Entry::OWN, entry)? {
        (Kind::Domain, word) => Ok(word >> 16),
        _ => Err(Error::WrongKind),
    }
}

/// The number of the shape of the portals that a service or call entry of ours has; 0 = that of services without a shape.
pub fn shape_number(entry: Entry) -> Result<u64> {
    match entry_word(Entry::OWN, entry)? {
        (Kind::Service | Kind::Call, word) => Ok(word >> 16),
        (Kind::Empty, _) => Err(Error::Empty),
        (Kind::Revoked, _) => Err(Error::Revoked),
        _ => Err(Error::WrongKind),
    }
}

fn entry_word(domain: Entry, entry: Entry) -> Result<(Kind, u64)> {
    // SAFETY: only looks.
    let word = unsafe { raw::entry_info(domain, entry) }?;
    Ok((Kind::from_number(word as u8).ok_or(Error::WrongKind)?, word))
}

/// Maps pages of ours into another domain.
///
/// # Safety
/// Rust references must not refer to memory that the other domain may write; with `MAP_GRANT`,
/// nothing may be referred to at all.
pub unsafe fn map(to: Entry, source: u64, destination: u64, order: u64, rights: u64) -> Result {
    // SAFETY: as the caller says.
    unsafe { raw::map(to, source, destination, order, rights) }
}

/// Takes mappings away from a domain ([`Entry::OWN`]: ours).
///
/// # Safety
/// With `UNMAP_SELF` on our own domain: nothing there may be referred to.
pub unsafe fn unmap(domain: Entry, address: u64, order: u64, rights: u64) -> Result {
    // SAFETY: as the caller says.
    unsafe { raw::unmap(domain, address, order, rights) }
}

/// Draws clear frames, charged to `account`, and maps them in `domain` where nothing is mapped yet.
pub fn draw(memory: Entry, account: Entry, domain: Entry, address: u64, order: u64, rights: u64) -> Result {
    // SAFETY: a destination in use is refused, so no memory that is referred to changes.
    unsafe { raw::draw(memory, account, domain, address, order, rights) }
}

/// An entry point of our domain.
///
/// # Safety
/// The address leads to code that is made to be entered so ([`crate::server`] has it).
pub unsafe fn service_new(address: u64, flags: u64) -> Result<Entry> {
    // SAFETY: as the caller says.
    table::fill(|index| unsafe { raw::service_new(Entry::OWN, address, flags, index, Entry::OWN, Entry::OWN) })
}

/// An entry point of our domain for calls of a shape.
///
/// # Safety
/// As for [`service_new`]; the code expects the registers of this shape.
pub unsafe fn service_new_shaped(address: u64, shape: Entry) -> Result<Entry> {
    // SAFETY: as the caller says.
    table::fill(|index| unsafe { raw::service_new(Entry::OWN, address, 0, index, shape, Entry::OWN) })
}

/// Makes a shape from a specification of portals; `machine` with USE allows it.
pub fn shape_new(machine: Entry, specification: &[u8]) -> Result<Entry> {
    let make = |bytes| {
        // SAFETY: fills an index that is ours.
        table::fill(|index| unsafe { raw::shape_new(machine, bytes as u64, index) }).map(|shape| (shape, 0))
    };
    crate::area::transfer(&[specification], make, |shape, _| shape)
}

/// An entry point of another domain, put into that domain's table or, for 0, an index the nucleus chooses.
///
/// # Safety
/// As for [`service_new`], in the other domain's terms; of this shape, [`Entry::OWN`] = the one with a control word.
pub unsafe fn service_new_at(domain: Entry, address: u64, flags: u64, shape: Entry, index: Entry) -> Result<Entry> {
    // SAFETY: as the caller says.
    unsafe { service_new_labelled(domain, address, flags, shape, index, Entry::OWN) }
}

/// The same; its portals have this label: a call by one of them needs a send label of the caller that is below it.
///
/// # Safety
/// As for [`service_new_at`].
pub unsafe fn service_new_labelled(
    domain: Entry,
    address: u64,
    flags: u64,
    shape: Entry,
    index: Entry,
    label: Entry,
) -> Result<Entry> {
    // SAFETY: as the caller says.
    unsafe { raw::service_new(domain, address, flags, index, shape, label) }
}

/// A call entry to a service, for a domain's table.
pub fn portal_new(to: Entry, service: Entry, badge: u64, index: Entry, ceiling: u64) -> Result<Entry> {
    // SAFETY: changes nothing in this domain but an entry.
    unsafe { raw::portal_new(to, service, badge, index, ceiling) }
}

/// A semaphore with a count.
pub fn semaphore_new(account: Entry, count: u64) -> Result<Entry> {
    // SAFETY: changes nothing in this domain but an entry.
    table::fill(|index| unsafe { raw::semaphore_new(account, count, index) })
}

/// A port with room for so many messages of so many bytes; see [`crate::port`]. [`Entry::OWN`] as label: {3}, as inbox: itself.
pub fn port_new(
    account: Entry,
    (bytes, messages): (usize, usize),
    label: Entry,
    inbox: Entry,
    badge: u64,
) -> Result<Entry> {
    let size = bytes as u64 | (messages as u64) << 16;
    // SAFETY: ports touch no memory of ours.
    table::fill(|index| unsafe { raw::port_new(account, size, index, label, inbox, badge) })
}

/// P: waits until the semaphore's count can be lowered, at most until the absolute time `deadline`
/// (`NEVER`: for ever; 0: not at all).
#[inline(always)]
pub fn p(semaphore: Entry, deadline: u64) -> Result {
    raw::p(semaphore, deadline, 0)
}

/// As [`p`], for something that activation `holder` (from 1) of this domain has: it gets our priority until
/// we stop waiting.
pub fn p_lending(semaphore: Entry, deadline: u64, holder: u32) -> Result {
    raw::p(semaphore, deadline, holder.into())
}

/// V: adds a token, or wakes the waiter of the highest priority.
#[inline(always)]
pub fn v(semaphore: Entry) -> Result {
    raw::v(semaphore)
}

/// Binds an interrupt line to a semaphore and enables it.
pub fn interrupt_bind(interrupt: Entry, semaphore: Entry) -> Result {
    // SAFETY: touches no memory of ours.
    unsafe { raw::interrupt_bind(interrupt, semaphore) }
}

/// Enables an interrupt line again after an interrupt.
pub fn interrupt_enable(interrupt: Entry) -> Result {
    interrupt_bind(interrupt, Entry::OWN)
}

/// Reads a byte of I/O space; `offset` counts from the first port of the entry.
pub fn io_read(ports: Entry, offset: u64) -> Result<u8> {
    // SAFETY: the effect of a device on memory is not within the language.
    unsafe { raw::io_read(ports, offset, 0) }.map(|value| value as u8)
}

/// Writes a byte of I/O space.
pub fn io_write(ports: Entry, offset: u64, value: u8) -> Result {
    // SAFETY: the effect of a device on memory is not within the language.
    unsafe { raw::io_write(ports, offset, value.into()) }
}

/// Reads four bytes of I/O space at once.
pub fn io_read_long(ports: Entry, offset: u64) -> Result<u32> {
    // SAFETY: the effect of a device on memory is not within the language.
    unsafe { raw::io_read_long(ports, offset, 0) }.map(|value| value as u32)
}

/// Writes four bytes of I/O space at once.
pub fn io_write_long(ports: Entry, offset: u64, value: u32) -> Result {
    // SAFETY: the effect of a device on memory is not within the language.
    unsafe { raw::io_write_long(ports, offset, value.into()) }
}

/// No record of [`abi::info`] is longer.
const RECORD_BYTES: usize = 256;

/// Asks for a record of the nucleus's lists ([`abi::info`]) and lends the message area with it to
/// `look`, together with the next position.
pub fn info<R>(machine: Entry, what: u64, position: u64, look: impl FnOnce(&[u8], u64) -> R) -> Result<R> {
    let enter = |_| {
        let mut position = position;
        loop {
            // SAFETY: the nucleus writes into the area, which is free meanwhile.
            let next = unsafe { raw::info(machine, what, position) }?;
            if !info::is_log(what & !info::UNTAINTED) {
                return Ok((next, RECORD_BYTES));
            }
            let count = next.saturating_sub(position) as usize;
            if count <= info::LOG_BYTES {
                return Ok((next, count));
            }
            position = next;
        }
    };
    area::transfer(&[], enter, |next, bytes| look(bytes, next))
}

/// The record of the nucleus's lists at a position, and the next position.
pub fn record<R: Record>(machine: Entry, position: u64) -> Result<(R, u64)> {
    record_of(machine, R::WHAT, position)
}

fn record_of<R: Record>(machine: Entry, what: u64, position: u64) -> Result<(R, u64)> {
    info(machine, what, position, |bytes, next| R::read(bytes).map(|record| (record, next)))?.ok_or(Error::AtEnd)
}

/// All records of a kind.
pub fn records<R: Record>(machine: Entry) -> impl Iterator<Item = Result<R>> {
    records_of(machine, R::WHAT)
}

/// The records of domains that this one made, which are dead and not removed yet.
pub fn ended_domains(machine: Entry) -> impl Iterator<Item = Result<info::Domain>> {
    records_of(machine, info::DOMAIN | info::ENDED)
}

/// All records of a kind but those of domains that are tainted.
pub fn untainted_records<R: Record>(machine: Entry) -> impl Iterator<Item = Result<R>> {
    records_of(machine, R::WHAT | info::UNTAINTED)
}

fn records_of<R: Record>(machine: Entry, what: u64) -> impl Iterator<Item = Result<R>> {
    let mut position = Some(0);
    core::iter::from_fn(move || {
        let reported = record_of(machine, what, position?);
        position = reported.as_ref().ok().map(|(_, next)| *next).filter(|next| *next != 0);
        match reported {
            Err(Error::AtEnd) => None,
            reported => Some(reported.map(|(record, _)| record)),
        }
    })
}

/// Stops the machine with an exit status, 0 to 127.
pub fn machine_stop(machine: Entry, status: u64) -> Result {
    // SAFETY: the stopped machine uses no memory.
    unsafe { raw::machine_stop(machine, status) }
}

/// Makes an entry for an interrupt line.
pub fn machine_interrupt(machine: Entry, line: u64) -> Result<Entry> {
    // SAFETY: changes nothing in this domain but an entry.
    table::fill(|index| unsafe { raw::machine_interrupt(machine, line, index) })
}

/// Shows the boot archive to a domain, at `layout::ARCHIVE` and for reading.
pub fn machine_archive(machine: Entry, domain: Entry) -> Result<()> {
    // SAFETY: changes nothing in this domain.
    unsafe { raw::machine_archive(machine, domain) }
}

/// Maps a page of device registers at a free address of ours.
pub fn machine_device(machine: Entry, physical: u64, address: u64) -> Result {
    // SAFETY: a destination in use is refused; the effect of a device is not within the language.
    unsafe { raw::machine_device(machine, physical, address) }
}

/// Maps a page of the device tree at a free address of ours; gives where that begins in its first page, and its bytes.
pub fn machine_fdt(machine: Entry, page: u64, address: u64) -> Result<(usize, usize)> {
    // SAFETY: a destination in use is refused.
    let value = unsafe { raw::machine_fdt(machine, page, address) }?;
    Ok((value as usize & 0xfff, value as usize >> 12))
}

/// Physical address of a page of ours.
pub fn machine_physical(machine: Entry, address: u64) -> Result<u64> {
    // SAFETY: only looks.
    unsafe { raw::machine_physical(machine, address) }
}

/// Makes an entry for `count` I/O ports from `first` on.
pub fn machine_ports(machine: Entry, first: u16, count: u16) -> Result<Entry> {
    let value = u64::from(first) | u64::from(count) << 16;
    // SAFETY: changes nothing in this domain but an entry.
    table::fill(|index| unsafe { raw::machine_ports(machine, value, index) })
}

/// V on the semaphore whenever the log grows or a domain dies.
pub fn machine_log_semaphore(machine: Entry, semaphore: Entry) -> Result {
    // SAFETY: touches no memory of ours.
    unsafe { raw::machine_log_semaphore(machine, semaphore) }
}

/// Appends the first `bytes` of the message area to the kernel log; see [`mod@crate::log`].
pub fn log(bytes: usize, about: u64) -> Result {
    // SAFETY: only reads the area.
    unsafe { raw::log(bytes as u64, about) }
}

/// Sets a property of the running activation. The receive index is kept by `message`.
pub fn activation_set(what: u64, value: u64) -> Result {
    loop {
        // SAFETY: no property changes memory that is mapped; nothing in this crate uses the thread pointer.
        match unsafe { raw::activation_set(what, value) } {
            // The table grows by a page at a time.
            Err(Error::Again) => {}
            done => return done,
        }
    }
}

/// Sets the key of which handles come, for good.
pub fn machine_handles(machine: Entry, key: [u64; 2]) -> Result {
    let [one, other] = key.map(u64::to_le_bytes);
    // SAFETY: only reads the area.
    let set = |_| unsafe { raw::machine_handles(machine) }.map(|()| ((), 0));
    area::transfer(&[&one, &other], set, |(), _| ())
}

/// Makes room for more threads; gives for how many there is room now. For `roottask`, before a scheduler has a seat.
pub fn machine_threads(machine: Entry) -> Result<u64> {
    // SAFETY: threads are no memory.
    unsafe { raw::machine_threads(machine) }
}

/// A handle that nobody had before; our domain owns it.
pub fn label_handle() -> Result<u64> {
    // SAFETY: labels are no memory.
    unsafe { raw::label_handle() }
}

/// The level of a handle in our send label becomes this one, which is not lower: 0 = ★, 1 = 0, up to 4 = 3. Ends ownership.
pub fn label_send(handle: u64, level: u64) -> Result {
    // SAFETY: labels are no memory.
    unsafe { raw::label_send(handle, level) }
}

/// The level of a handle in our receive label becomes this one: one that is not higher, or any if we own the handle.
pub fn label_receive(handle: u64, level: u64) -> Result {
    // SAFETY: labels are no memory.
    unsafe { raw::label_receive(handle, level) }
}

/// From now on, what would raise our send label is refused; or no more.
pub fn label_explicit(is_explicit: bool) -> Result {
    // SAFETY: labels are no memory.
    unsafe { raw::label_explicit(is_explicit.into()) }
}

/// The level of a handle in our send label, and in our receive label.
pub fn label_levels(handle: u64) -> Result<[u64; 2]> {
    // SAFETY: labels are no memory.
    unsafe { raw::label_levels(handle) }.map(|levels| [levels & 7, levels >> 3])
}

/// Entries of a label that one call returns.
pub const LABEL_ENTRIES: usize = 32;

/// Where a new label comes from.
#[derive(Clone, Copy)]
pub enum LabelFrom {
    /// The same level for all handles: 0 = ★, 1 = 0, up to 4 = 3.
    Level(u64),
    /// A copy of our send label.
    Send,
    /// A copy of our receive label.
    Receive,
}

/// A label for operations that take one.
pub fn label_new(from: LabelFrom) -> Result<Entry> {
    let from = match from {
        LabelFrom::Level(level) => level,
        LabelFrom::Send => 5,
        LabelFrom::Receive => 6,
    };
    // SAFETY: labels are no memory.
    table::fill(|index| unsafe { raw::label_new(from, index) })
}

/// The label has another level for a handle.
pub fn label_put(label: Entry, handle: u64, level: u64) -> Result {
    // SAFETY: labels are no memory.
    unsafe { raw::label_put(label, handle, level) }
}

/// The label becomes the least upper bound of itself and another one, or the greatest lower one.
pub fn label_combine(label: Entry, with: Entry, is_lower: bool) -> Result {
    // SAFETY: labels are no memory.
    unsafe { raw::label_combine(label, with, is_lower.into()) }
}

/// Whether our caller may observe, and may change, what has this label.
pub fn label_caller(label: Entry) -> Result<(bool, bool)> {
    // SAFETY: labels are no memory.
    unsafe { raw::label_caller(label) }.map(|may| (may & 1 != 0, may & 2 != 0))
}

/// A domain that we made, and that has no activation yet, gets these labels.
pub fn domain_set_labels(domain: Entry, send: Entry, receive: Entry, is_explicit: bool) -> Result {
    // SAFETY: labels are no memory.
    unsafe { raw::domain_set_labels(domain, send, receive, is_explicit.into()) }
}

/// Entries of our send label ([`Entry`] 0), our receive label (1) or a label of ours, from a position on: handle and level each. Gives how
/// many entries the label has, and its default.
pub fn label_read(label: Entry, position: u64, mut look: impl FnMut(u64, u64)) -> Result<(u64, u64)> {
    let enter = |_| {
        // SAFETY: the nucleus writes into the area, which is free meanwhile.
        let reported = unsafe { raw::label_read(label, position) }?;
        let count = (reported & u64::from(u32::MAX)).saturating_sub(position).min(LABEL_ENTRIES as u64);
        Ok((reported, count as usize * 8))
    };
    area::transfer(&[], enter, |reported, bytes| {
        for entry in bytes.as_chunks::<8>().0 {
            let entry = u64::from_le_bytes(*entry);
            look(entry >> 3, entry & 7);
        }
        (reported & u64::from(u32::MAX), reported >> 32)
    })
}
