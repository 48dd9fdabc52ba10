//! Windows: pages of a caller that the callee sees during a call ([`abi::window`]).
//!
//! The *record* is authoritative: the activation that was called keeps the window's word, and its caller is below it in the
//! chain. Page-table entries are only a cache of that. Portal code writes the entry of a one-page window; all others are
//! written here, and a page fault fills in missing ones ([`fault`]). So an entry may be cleared at any time. It is
//! cleared before the page is unmapped or loses a right ([`withdraw`], [`weaken`]), and when the call ends ([`close`], [`cut`]).
//!
//! Each activation of a domain that takes windows has a slot of 16 pages in its space. The page-table entries for slots are per
//! CPU: each CPU has its own root for such a domain. So a return never needs a TLB shootdown on another CPU. With several CPUs,
//! none loads the domain's first root once it has windows: the entries of one CPU would be visible to another.
//!
//! Invariant: the slot of an activation has entries only while the activation has a record, and only on one CPU. That is the CPU
//! of its thread, or the one where they were *left behind* when the chain migrated ([`leave_behind`]). With entries left
//! behind, the return takes the slow path, and the first access to the window from another CPU clears them.
//!
//! If the page or the caller of a window is gone before the call ends, the window shows a page of scrap memory: with a fault
//! instead, any caller could kill the callee.

use super::frames::{self, Use, table};
use super::{account, own, space};
use crate::arch::paging;
use crate::cpus::translations::OwedSlot;
use crate::cpus::{cpu, root};
use crate::objects::{Activation, Cpu, Domain, FRAME, Frame, Mapping, Memory, PageEntry, PerCpu, State, index};
use crate::pointer::{Held, Link, Ref};
use abi::Error;
use abi::layout::{MAX_ACTIVATIONS, USER_END, WINDOWS, WINDOWS_END};
use abi::rights::{MAP_READ, MAP_WRITE};
use abi::window::{FLAGS, MAX_HANDED_ON, MAX_PAGES, PAGES, SLOT_BYTES, SLOTS, WRITABLE};

const PAGE: u64 = FRAME as u64;

/// Replaces the page count in the record of a one-page window whose entry was left behind. Portal code leaves a return to the
/// nucleus unless the count is 1.
const LEFT: u64 = MAX_PAGES as u64 + 1;

/// Pages of a window.
fn pages(window: u64) -> usize {
    match window & PAGES {
        LEFT => 1,
        count => count as usize,
    }
}

/// The first page's address in the lender's space.
fn start(window: u64) -> u64 {
    window & !(PAGE - 1)
}

/// Whether the callee may write.
fn is_writable(window: u64) -> bool {
    window & WRITABLE != 0
}

/// Index of the page at `address` in a window that begins at `start`, if any.
fn page_in(window: u64, start: u64, address: u64) -> Option<usize> {
    let page = (address.wrapping_sub(start) / PAGE) as usize;
    (page < pages(window)).then_some(page)
}

/// The address of the slot of an activation with this number in its domain's space; 0 = it takes no windows.
pub fn slot(number: u8) -> u64 {
    match number as usize {
        number @ 1..=SLOTS => WINDOWS + ((number - 1) * SLOT_BYTES) as u64,
        _ => 0,
    }
}

/// Offset in bytes of this slot's first entry.
pub const fn place(number: u8) -> usize {
    (number as usize).saturating_sub(1) * MAX_PAGES * size_of::<PageEntry>()
}

/// The entries for the slot of an activation on a CPU; None if there are no tables.
fn entries(activation: Ref<Activation>, cpu: Ref<Cpu>) -> Option<&'static [PageEntry]> {
    let held = activation.held();
    let windows = activation.domain.per_cpu_on(cpu.number as usize).windows.get();
    let first = activation.slot_offset / size_of::<PageEntry>();
    (windows != 0).then(|| table(held, frames::frame_of(windows)).get(first..first + MAX_PAGES)).flatten()
}

/// The CPU that has a window's entries.
fn cpu_of(activation: Ref<Activation>) -> Link<Cpu> {
    match activation.left_behind.get() {
        0 => activation.thread.get().map(|thread| thread.cpu.get()),
        left => cpu::of(activation.held(), left as usize - 1),
    }
}

/// Page-table entries for a checked window.
pub type Shown = [u64; MAX_PAGES];

/// Checks that an activation may lend this window; gives the entries for the callee.
pub fn check(of: Ref<Activation>, window: u64) -> Result<Shown, Error> {
    let count = (window & PAGES) as usize;
    if window & (PAGE - 1) & !FLAGS != 0 || !(1..=MAX_PAGES).contains(&count) {
        return Err(Error::BadArgument);
    }
    let (start, bytes) = (start(window), count as u64 * PAGE);
    if start >= USER_END || bytes > USER_END - start {
        return Err(Error::BadAddress);
    }
    let mut shown = [0; MAX_PAGES];
    if !(WINDOWS..WINDOWS_END).contains(&start) {
        if start < WINDOWS && start + bytes > WINDOWS {
            return Err(Error::Reserved);
        }
        lent_pages(of.domain, start, window, |page, entry| entry.map(|entry| shown[page] = entry))?;
        return Ok(shown);
    }
    // A window that is handed on: its missing pages show as scrap, so none of them is refused.
    let own = of.window.get();
    let last = start + bytes - PAGE;
    if page_in(own, of.slot, start).and(page_in(own, of.slot, last)).is_none() {
        return Err(Error::WindowGone);
    }
    if is_writable(window) && !is_writable(own) {
        return Err(Error::PageRights);
    }
    if times_handed_on(of) >= MAX_HANDED_ON {
        return Err(Error::TooOften);
    }
    if let Ok((domain, start)) = source(of, start) {
        lent_pages(domain, start, window, |page, entry| {
            shown[page] = entry.unwrap_or(0);
            Ok(())
        })?;
    }
    Ok(shown)
}

/// How often the window of an activation was handed on before.
fn times_handed_on(mut activation: Ref<Activation>) -> usize {
    let mut times = 0;
    while (WINDOWS..WINDOWS_END).contains(&start(activation.window.get()))
        && let Some(below) = activation.caller.get()
    {
        times += 1;
        activation = below;
    }
    times
}

/// The domain whose page an activation lends at an address, perhaps in its own window, and the page's address there.
fn source(mut lender: Ref<Activation>, mut address: u64) -> Result<(Ref<Domain>, u64), Error> {
    // At most `MAX_HANDED_ON` times.
    while (WINDOWS..WINDOWS_END).contains(&address) {
        let page = page_in(lender.window.get(), lender.slot, address).ok_or(Error::WindowGone)?;
        address = start(lender.window.get()) + page as u64 * PAGE;
        lender = alive(lender.caller.get())?;
    }
    Ok((lender.domain, address))
}

fn alive(lender: Link<Activation>) -> Result<Ref<Activation>, Error> {
    lender.filter(|lender| !lender.domain.is_dead()).ok_or(Error::WindowGone)
}

/// Calls `each` with the entry for each page of `domain` that a window at `start` shows, in order.
fn lent_pages(
    domain: Ref<Domain>,
    start: u64,
    window: u64,
    mut each: impl FnMut(usize, Result<u64, Error>) -> Result<(), Error>,
) -> Result<(), Error> {
    let held = domain.held();
    let mut slot = None;
    for page in 0..pages(window) {
        let address = start + page as u64 * PAGE;
        slot = match slot {
            Some(slot) if index(address, 0) != 0 => Some(space::Slot::next(&slot, held)),
            _ => space::find(domain, address),
        };
        each(page, lent_page(held, slot, window))?;
    }
    Ok(())
}

/// The window's entry for a page.
fn lent_page(held: Held, slot: Option<space::Slot>, window: u64) -> Result<u64, Error> {
    let page = slot.filter(space::Slot::is_used).ok_or(Error::NotMapped)?;
    if page.is_kept() {
        // The page is being unmapped, or is the nucleus's.
        return Err(if page.mapping(held).is_some() { Error::NotMapped } else { Error::Reserved });
    }
    if page.memory() == Memory::Registers {
        return Err(Error::Registers);
    }
    if is_writable(window) && page.rights() & MAP_WRITE == 0 {
        return Err(Error::PageRights);
    }
    page.lend();
    Ok(page.in_window(is_writable(window)))
}

/// The entry for a page of an activation's window, which its caller lends or hands on.
fn shown_page(activation: Ref<Activation>, page: usize) -> Result<u64, Error> {
    let window = activation.window.get();
    let (domain, address) = source(alive(activation.caller.get())?, start(window) + page as u64 * PAGE)?;
    lent_page(activation.held(), space::find(domain, address), window)
}

/// Opens a checked window for an activation that is being called on this CPU, whose tables exist. Gives the word that the
/// callee gets.
pub fn open(callee: Ref<Activation>, window: u64, shown: &Shown) -> u64 {
    let held = callee.held();
    check_empty(callee);
    callee.window.set(window);
    if let Some(entries) = entries(callee, cpu::this(held)) {
        for (entry, shown) in entries.iter().zip(shown).take(pages(window)) {
            entry.set(*shown);
        }
    }
    paging::publish_entries();
    callee.slot | window & FLAGS
}

/// Closes the window of an activation whose call ends.
pub fn close(activation: Ref<Activation>) {
    if activation.window.get() != 0 {
        clear(activation, 0, pages(activation.window.get()));
        activation.window.set(0);
        activation.left_behind.set(0);
        check_empty(activation);
    }
}

/// In a checked build: panics if a CPU has an entry for the slot of an activation that has no window.
fn check_empty(activation: Ref<Activation>) {
    if cfg!(feature = "checked") {
        for cpu in cpu::all(activation.held()) {
            let is_empty = |entries: &[PageEntry]| entries.iter().all(|entry| entry.get() == 0);
            assert!(entries(activation, cpu).is_none_or(is_empty), "a window that is closed shows pages");
        }
    }
}

/// Clears entries of a window, on any CPU.
fn clear(activation: Ref<Activation>, first: usize, count: usize) {
    let Some(cpu) = cpu_of(activation) else { return };
    let Some(entries) = entries(activation, cpu) else { return };
    let mut was_used = 0;
    for entry in entries.iter().skip(first).take(count) {
        was_used |= entry.get();
        entry.set(0);
    }
    if was_used != 0 {
        OwedSlot::new(activation.domain, cpu, activation.slot + first as u64 * PAGE, count).invalidate();
    }
}

/// Leaves windows behind: the chain with this top, which does not run, migrates or loses its thread.
pub fn leave_behind(top: Link<Activation>) {
    let mut next = top;
    while let Some(activation) = next {
        next = activation.caller.get();
        stay_behind(activation);
    }
}

/// As [`leave_behind`], for one activation of the chain.
#[inline(always)]
pub fn stay_behind(activation: Ref<Activation>) {
    if activation.window.get() != 0 {
        note_left_behind(activation);
    }
}

#[cold]
#[inline(never)]
fn note_left_behind(activation: Ref<Activation>) {
    let Some(thread) = activation.thread.get().filter(|_| activation.left_behind.get() == 0) else { return };
    activation.left_behind.set(thread.cpu.get().number + 1);
    if activation.window.get() & PAGES == 1 {
        activation.window.update(|window| window & !PAGES | LEFT);
    }
}

/// Clears entries that were left behind: they fault in on this CPU.
fn come_here(activation: Ref<Activation>) {
    let held = activation.held();
    let left = activation.left_behind.get();
    if left == 0 {
        return;
    }
    let count = pages(activation.window.get());
    if left != cpu::this(held).number + 1 {
        clear(activation, 0, count);
    }
    activation.left_behind.set(0);
    activation.window.update(|window| window & !PAGES | count as u64);
}

/// The chain was split below `upper`: revokes the window that its caller lent it, also wherever it was handed on.
pub fn cut(upper: Ref<Activation>) {
    let mut next = Some(upper);
    while let Some(activation) = next {
        if activation.window.get() == 0 {
            return;
        }
        clear(activation, 0, pages(activation.window.get()));
        next = above(activation)
            .filter(|callee| page_in(activation.window.get(), activation.slot, start(callee.window.get())).is_some());
    }
}

/// The callee of an activation that is stopped.
fn above(activation: Ref<Activation>) -> Link<Activation> {
    activation.callee.get().filter(|_| activation.state.get() == State::Calling)
}

/// Calling activations that a step checks for lending a page.
const LOOKED_AT: u64 = 12;

/// Revokes a page from all windows, and from new ones, before it is unmapped. False if another step is needed; the mapping
/// remembers the progress. After true, the page must be unmapped in the same step.
pub fn withdraw(mapping: Ref<Mapping>) -> bool {
    let domain = mapping.domain.get();
    if !domain.lends.get() {
        return true;
    }
    if let Some(slot) = space::find(domain, mapping.page()).filter(|slot| !slot.is_kept()) {
        if !slot.is_lent() {
            return true;
        }
        slot.keep();
        mapping.set_taken_back(0);
    }
    take_back(mapping, false)
}

/// Revokes a page, which lost its write right, from writable windows. False if another step is needed, as with [`withdraw`].
pub fn weaken(mapping: Ref<Mapping>) -> bool {
    take_back(mapping, true)
}

/// Revokes a page, which its space no longer lends so, from all its windows or only from writable ones: a step, or two.
fn take_back(mapping: Ref<Mapping>, only_writable: bool) -> bool {
    let (domain, address) = (mapping.domain.get(), mapping.page());
    let held = domain.held();
    // After the stop, a call with a window has found the page, or will not find it.
    cpu::stop_where(held, |other| other.domain_there() == Some(domain));
    // The first step checks all calling activations, if few; later steps a range of numbers each.
    let first = mapping.taken_back();
    let numbers = if first == 0 { 0..u64::MAX } else { first..first + LOOKED_AT };
    let (mut found, mut looked_at) = (None::<Ref<Activation>>, 0);
    let mut next = domain.activations.get();
    while let Some(activation) = next {
        next = activation.domain_next.get();
        if activation.state_there() != State::Calling || !numbers.contains(&(activation.number as u64)) {
            continue;
        }
        looked_at += 1;
        if looked_at > LOOKED_AT {
            mapping.set_taken_back(1);
            return false;
        }
        if found.is_none_or(|found| activation.number < found.number) && lends(activation, address, only_writable) {
            found = Some(activation);
        }
    }
    if let Some(activation) = found {
        take_back_above(activation, address);
        mapping.set_taken_back(activation.number as u64 + 1);
        return false;
    }
    let is_done =
        first == 0 || numbers.end > MAX_ACTIVATIONS as u64 || domain.message_slots.get() >> (numbers.end - 1) == 0;
    mapping.set_taken_back(if is_done { 0 } else { numbers.end });
    is_done
}

/// Whether a calling activation lends this page.
fn lends(activation: Ref<Activation>, address: u64, only_writable: bool) -> bool {
    if let Some(thread) = activation.thread.get() {
        cpu::stop_cpu_of(thread);
    }
    above(activation).is_some_and(|callee| {
        let window = callee.window.get();
        page_in(window, start(window), address).is_some() && (is_writable(window) || !only_writable)
    })
}

/// Clears the page that `lender`, which is stopped, lends at an address from the windows that show it.
fn take_back_above(mut lender: Ref<Activation>, mut address: u64) {
    // Also where it was handed on.
    while let Some(callee) = above(lender)
        && let Some(page) = page_in(callee.window.get(), start(callee.window.get()), address)
    {
        clear(callee, page, 1);
        address = callee.slot + page as u64 * PAGE;
        lender = callee;
    }
}

/// Handles a page fault in the range of windows; after success the access is restarted.
pub fn fault(activation: Ref<Activation>, address: u64) -> Result<(), Error> {
    let held = activation.held();
    let page = page_in(activation.window.get(), activation.slot, address).ok_or(Error::WindowGone)?;
    if !prepare(activation.domain)? {
        // The chain migrated: the next fault does the next step.
        return Ok(());
    }
    come_here(activation);
    let window = activation.window.get();
    let entry = &entries(activation, cpu::this(held)).ok_or(Error::WindowGone)?[page];
    if entry.get() != 0 {
        // Present, but without that right.
        return Err(Error::PageRights);
    }
    let shown = shown_page(activation, page).unwrap_or_else(|_| {
        // All callers' windows share the scrap page. It may hold what the callee wrote for another one, so it shows in none that is only read.
        let (frame, rights) = if is_writable(window) {
            (activation.domain.scrap.get() as Frame, MAP_READ | MAP_WRITE)
        } else {
            (own::zeros(), MAP_READ)
        };
        space::entry(frame, rights, Memory::Ram)
    });
    entry.set(shown);
    paging::publish_entries();
    Ok(())
}

/// A step of making this CPU's tables for the windows of a domain, which pays for them; true if they are there.
pub fn prepare(domain: Ref<Domain>) -> Result<bool, Error> {
    let held = domain.held();
    let per_cpu = domain.per_cpu();
    if per_cpu.windows.get() != 0 {
        return Ok(true);
    }
    if frames::prepare(held) || frames::clear_ahead(held, 1) {
        return Ok(false);
    }
    if domain.scrap.get() == 0 {
        domain.scrap.set(domain.account.allocate_clear_apart(Use::Kernel)? as u32);
        return Ok(false);
    }
    // A single CPU uses the first root.
    if per_cpu.root.get() == domain.root && cpu::present(held) > 1 {
        let frame = domain.account.allocate_clear_apart(Use::Kernel)?;
        space::copy_root(domain, frame);
        per_cpu.root.set(paging::root_beside(domain.root, frame));
        if cpu::this(held).domain.get() == Some(domain) {
            root::load(held, per_cpu.root.get());
        }
        return Ok(false);
    }
    let mut at = paging::root_frame(per_cpu.root.get());
    for level in (1..4).rev() {
        let entry = &table(held, at)[index(WINDOWS, level)];
        if entry.get() == 0 {
            let frame = domain.account.allocate_clear_apart(Use::Kernel)?;
            entry.set(paging::user_table(frame));
            paging::publish_entries();
            if level == 1 {
                per_cpu.windows.set(frames::address_of(frame));
            }
            return Ok(false);
        }
        at = paging::frame_of(entry.get());
    }
    Ok(true)
}

/// Frees some tables for windows of a domain that no CPU has loaded; false if there are none.
pub fn free_tables(domain: Ref<Domain>) -> bool {
    let held = domain.held();
    if domain.scrap.get() == 0 {
        return false;
    }
    match domain.per_cpus().find(|per_cpu| per_cpu.windows.get() != 0 || per_cpu.root.get() != domain.root) {
        Some(per_cpu) => free_per_cpu(domain, per_cpu),
        None => {
            // The common root. Of the tables below, [`prepare`] may have made only some.
            free_below(held, &table(held, paging::root_frame(domain.root))[index(WINDOWS, 3)], 3);
            account::release(held, domain.scrap.replace(0) as Frame);
        }
    }
    true
}

fn free_per_cpu(domain: Ref<Domain>, per_cpu: Ref<PerCpu>) {
    let held = domain.held();
    let root = paging::root_frame(per_cpu.root.get());
    free_below(held, &table(held, root)[index(WINDOWS, 3)], 3);
    per_cpu.windows.set(0);
    if per_cpu.root.get() != domain.root {
        per_cpu.root.set(domain.root);
        account::release(held, root);
    }
}

/// Frees the table to which an entry points, and those below.
fn free_below(held: Held, entry: &PageEntry, level: u32) {
    if entry.get() == 0 {
        return;
    }
    let frame = paging::frame_of(entry.get());
    entry.set(0);
    if level > 1 {
        free_below(held, &table(held, frame)[index(WINDOWS, level - 1)], level - 1);
    }
    account::release(held, frame);
}

const _: () = assert!(place(SLOTS as u8 + 1) == FRAME, "one table has the entries for all slots");
